// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The RDMA-CM private data, and the agreement that follows from it. RFC 8797.
 */
#include "wire_test.h"

static void expect_defaults(struct kunit *test,
			    const struct rpcrdma_params *params)
{
	KUNIT_EXPECT_EQ(test, params->send_size, 1024);
	KUNIT_EXPECT_EQ(test, params->recv_size, 1024);
	KUNIT_EXPECT_FALSE(test, params->remote_inv);
}

static void expect_golden(struct kunit *test,
			  const struct rpcrdma_params *params)
{
	KUNIT_EXPECT_EQ(test, params->send_size, 4096);
	KUNIT_EXPECT_EQ(test, params->recv_size, 262144);
	KUNIT_EXPECT_TRUE(test, params->remote_inv);
}

/* Decodes a copy without room after it, so that sanitizers see overruns. */
static bool receive_private(struct kunit *test, struct rpcrdma_params *params,
			    const void *octets, u32 len)
{
	void *data = exact_copy(test, octets, len);
	bool found;

	memset(params, 0xa5, sizeof(*params));
	params->remote_inv = true;
	found = rpcrdma_wire_decode_private(params, data, len);
	kunit_kfree(test, data);
	return found;
}

static void test_private_golden(struct kunit *test)
{
	struct rpcrdma_params params;
	u8 octets[RPCRDMA_PRIVATE_LEN];

	KUNIT_EXPECT_TRUE(test, receive_private(test, &params, rpcrdma_golden_private,
						sizeof(rpcrdma_golden_private)));
	expect_golden(test, &params);
	rpcrdma_wire_encode_private(&params, octets);
	KUNIT_EXPECT_EQ(test, memcmp(octets, rpcrdma_golden_private, sizeof(octets)),
			0);
}

static void test_private_none(struct kunit *test)
{
	struct rpcrdma_params params;
	u8 octets[196] = {};

	KUNIT_EXPECT_FALSE(test, receive_private(test, &params, octets,
						 sizeof(octets)));
	expect_defaults(test, &params);
	KUNIT_EXPECT_FALSE(test, rpcrdma_wire_decode_private(&params, NULL, 0));
	expect_defaults(test, &params);
}

/* Other layers add data of their own before and after ours. */
static void test_private_at_any_offset(struct kunit *test)
{
	struct rpcrdma_params params;
	u32 offset, after;
	u8 octets[96];

	for (offset = 0; offset <= 64; offset++) {
		for (after = 0; after < 8; after++) {
			u32 len = offset + RPCRDMA_PRIVATE_LEN + after;

			memset(octets, 0xf6, sizeof(octets));
			memcpy(octets + offset, rpcrdma_golden_private,
			       RPCRDMA_PRIVATE_LEN);
			KUNIT_EXPECT_TRUE(test, receive_private(test, &params,
								octets, len));
			expect_golden(test, &params);
		}
	}
}

static void test_private_cut_off(struct kunit *test)
{
	struct rpcrdma_params params;
	u32 offset, len;
	u8 octets[32] = {};

	for (offset = 0; offset < 8; offset++) {
		memset(octets, 0, sizeof(octets));
		memcpy(octets + offset, rpcrdma_golden_private, RPCRDMA_PRIVATE_LEN);
		for (len = 0; len < offset + RPCRDMA_PRIVATE_LEN; len++) {
			KUNIT_EXPECT_FALSE(test, receive_private(test, &params,
								 octets, len));
			expect_defaults(test, &params);
		}
	}
}

static void test_private_other_version(struct kunit *test)
{
	struct rpcrdma_params params;
	u8 octets[RPCRDMA_PRIVATE_LEN];
	u32 version;

	memcpy(octets, rpcrdma_golden_private, sizeof(octets));
	for (version = 0; version < 256; version++) {
		bool found;

		octets[4] = version;
		found = receive_private(test, &params, octets, sizeof(octets));
		KUNIT_EXPECT_EQ(test, found, version == 1);
		if (version != 1)
			expect_defaults(test, &params);
	}
}

static void test_private_other_identifier(struct kunit *test)
{
	struct rpcrdma_params params;
	u8 octets[RPCRDMA_PRIVATE_LEN];
	u32 bit;

	for (bit = 0; bit < 32; bit++) {
		memcpy(octets, rpcrdma_golden_private, sizeof(octets));
		octets[bit / 8] ^= 1 << bit % 8;
		KUNIT_EXPECT_FALSE(test, receive_private(test, &params, octets,
							 sizeof(octets)));
		expect_defaults(test, &params);
	}
}

/* The first one that is complete is used. */
static void test_private_repeated(struct kunit *test)
{
	struct rpcrdma_params params;
	u8 octets[3 * RPCRDMA_PRIVATE_LEN];

	memcpy(octets, rpcrdma_golden_private, 8);
	memcpy(octets + 8, rpcrdma_golden_private, 8);
	memcpy(octets + 16, rpcrdma_golden_private, 8);
	octets[4] = 2;
	octets[16 + 6] = 0;
	KUNIT_EXPECT_TRUE(test, receive_private(test, &params, octets,
						sizeof(octets)));
	expect_golden(test, &params);

	/* An identifier right before a complete one does not hide it. */
	memcpy(octets, rpcrdma_golden_private, 4);
	memcpy(octets + 4, rpcrdma_golden_private, 8);
	KUNIT_EXPECT_TRUE(test, receive_private(test, &params, octets, 12));
	expect_golden(test, &params);
}

static void test_private_reserved_flags(struct kunit *test)
{
	struct rpcrdma_params params = {};
	u8 octets[RPCRDMA_PRIVATE_LEN];
	u32 flags;

	memcpy(octets, rpcrdma_golden_private, sizeof(octets));
	for (flags = 0; flags < 256; flags++) {
		octets[5] = flags;
		KUNIT_EXPECT_TRUE(test, receive_private(test, &params, octets,
							sizeof(octets)));
		KUNIT_EXPECT_EQ(test, params.remote_inv, flags % 2 == 1);
	}
	params.remote_inv = false;
	rpcrdma_wire_encode_private(&params, octets);
	KUNIT_EXPECT_EQ(test, octets[5], 0);
	params.remote_inv = true;
	rpcrdma_wire_encode_private(&params, octets);
	KUNIT_EXPECT_EQ(test, octets[5], 1);
}

/* Code n means n + 1 KiB. Send and receive size are different fields. */
static void test_private_sizes(struct kunit *test)
{
	struct rpcrdma_params params;
	u8 octets[RPCRDMA_PRIVATE_LEN], again[RPCRDMA_PRIVATE_LEN];
	u32 code;

	memcpy(octets, rpcrdma_golden_private, sizeof(octets));
	for (code = 0; code < 256; code++) {
		octets[6] = code;
		octets[7] = 255 - code;
		KUNIT_EXPECT_TRUE(test, receive_private(test, &params, octets,
							sizeof(octets)));
		KUNIT_EXPECT_EQ(test, params.send_size, (code + 1) * 1024);
		KUNIT_EXPECT_EQ(test, params.recv_size, (256 - code) * 1024);
		rpcrdma_wire_encode_private(&params, again);
		KUNIT_EXPECT_EQ(test, memcmp(again, octets, sizeof(octets)), 0);
	}
}

static void test_private_sizes_clamped(struct kunit *test)
{
	static const struct {
		u32 size;
		u8 code;
	} sizes[] = {
		{ 0, 0 }, { 1, 0 }, { 1023, 0 }, { 1024, 0 }, { 2047, 0 },
		{ 2048, 1 }, { 4095, 2 }, { 4096, 3 }, { 262143, 254 },
		{ 262144, 255 }, { 262145, 255 }, { U32_MAX, 255 },
	};
	struct rpcrdma_params params = {};
	u8 octets[RPCRDMA_PRIVATE_LEN];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		params.send_size = sizes[i].size;
		params.recv_size = sizes[i].size;
		rpcrdma_wire_encode_private(&params, octets);
		KUNIT_EXPECT_EQ(test, octets[6], sizes[i].code);
		KUNIT_EXPECT_EQ(test, octets[7], sizes[i].code);
	}
}

static void test_agree_thresholds(struct kunit *test)
{
	struct rpcrdma_params client = { .send_size = 4096, .recv_size = 8192 };
	struct rpcrdma_params server = { .send_size = 2048, .recv_size = 16384 };
	struct rpcrdma_agreement agreement;

	rpcrdma_wire_agree(&client, &server, &agreement);
	KUNIT_EXPECT_EQ(test, agreement.call_threshold, 4096);
	KUNIT_EXPECT_EQ(test, agreement.reply_threshold, 2048);
	rpcrdma_wire_agree(&server, &client, &agreement);
	KUNIT_EXPECT_EQ(test, agreement.call_threshold, 2048);
	KUNIT_EXPECT_EQ(test, agreement.reply_threshold, 4096);

	/* The peer sent no private data. */
	rpcrdma_wire_decode_private(&server, NULL, 0);
	rpcrdma_wire_agree(&client, &server, &agreement);
	KUNIT_EXPECT_EQ(test, agreement.call_threshold, 1024);
	KUNIT_EXPECT_EQ(test, agreement.reply_threshold, 1024);

	/* Sizes count as they are encoded, for both ends. */
	client.send_size = 5000;
	client.recv_size = 0;
	server.send_size = U32_MAX;
	server.recv_size = U32_MAX;
	rpcrdma_wire_agree(&client, &server, &agreement);
	KUNIT_EXPECT_EQ(test, agreement.call_threshold, 4096);
	KUNIT_EXPECT_EQ(test, agreement.reply_threshold, 1024);
}

static void test_agree_remote_invalidation(struct kunit *test)
{
	struct rpcrdma_params client = {}, server = {};
	struct rpcrdma_agreement agreement;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		client.remote_inv = i & 1;
		server.remote_inv = i & 2;
		rpcrdma_wire_agree(&client, &server, &agreement);
		KUNIT_EXPECT_EQ(test, agreement.client_inv, client.remote_inv);
		KUNIT_EXPECT_EQ(test, agreement.server_inv, server.remote_inv);
		KUNIT_EXPECT_EQ(test, agreement.remote_inv, i == 3);
	}
}

static struct kunit_case private_data_cases[] = {
	KUNIT_CASE(test_private_golden),
	KUNIT_CASE(test_private_none),
	KUNIT_CASE(test_private_at_any_offset),
	KUNIT_CASE(test_private_cut_off),
	KUNIT_CASE(test_private_other_version),
	KUNIT_CASE(test_private_other_identifier),
	KUNIT_CASE(test_private_repeated),
	KUNIT_CASE(test_private_reserved_flags),
	KUNIT_CASE(test_private_sizes),
	KUNIT_CASE(test_private_sizes_clamped),
	KUNIT_CASE(test_agree_thresholds),
	KUNIT_CASE(test_agree_remote_invalidation),
	{}
};

static struct kunit_suite private_data_suite = {
	.name = "rpcrdma_private_data",
	.test_cases = private_data_cases,
};

kunit_test_suites(&private_data_suite);
