// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Do devices lose packets now? Their counters, twice. */

#include <stdio.h>
#include <stdlib.h>

#include "doctor.h"
#include "sock.h"

#define CHECK		"fabric"
#define CLASS		"/sys/class/infiniband"
#define MS		1000000u	/* ns */
#define PERIOD_MS	2000
#define MISSING		UINT64_MAX

enum kind { LOSS, CONGESTION };

/* Each driver has names of its own for packets that were lost, came again, or found no Receive. */
static const struct counter {
	const char *name;
	enum kind kind;
} counters[] = {
	/* mlx5 */
	{ "out_of_sequence", LOSS }, { "packet_seq_err", LOSS }, { "implied_nak_seq_err", LOSS },
	{ "local_ack_timeout_err", LOSS }, { "rnr_nak_retry_err", LOSS },
	{ "rx_icrc_encapsulated", LOSS }, { "np_ecn_marked_roce_packets", CONGESTION },
	{ "rp_cnp_handled", CONGESTION },
	/* mlx4 */
	{ "rq_num_oos", LOSS }, { "sq_num_oos", LOSS }, { "sq_num_to", LOSS },
	{ "sq_num_rnr", LOSS },
	/* bnxt_re */
	{ "seq_err_naks_rcvd", LOSS }, { "to_retransmits", LOSS }, { "rnr_naks_rcvd", LOSS },
	{ "oos_drop_count", LOSS }, { "tx_roce_discards", LOSS }, { "rx_roce_discards", LOSS },
	{ "rx_ecn_marked_pkts", CONGESTION }, { "rx_cnp_pkts", CONGESTION },
	/* irdma */
	{ "ip4InDiscards", LOSS }, { "ip6InDiscards", LOSS }, { "tcpRetransSegs", LOSS },
	{ "RetransSegs", LOSS }, { "Nak Sequence Error", LOSS }, { "RTO", LOSS },
	{ "Rcvd Out of order packets", LOSS }, { "CRC errors", LOSS }, { "RNR received", LOSS },
	{ "RxECNMrkd", CONGESTION }, { "cnpHandled", CONGESTION },
	/* hns */
	{ "rx_err_pkt", LOSS }, { "tx_err_pkt", LOSS }, { "rx_cnp_pkt", CONGESTION },
	/* cxgb4 */
	{ "ip4RetransSegs", LOSS }, { "ip6RetransSegs", LOSS },
	/* rxe */
	{ "out_of_seq_request", LOSS }, { "rcvd_seq_err", LOSS }, { "rcvd_rnr_err", LOSS },
	{ "retry_exceeded_err", LOSS },
	/* InfiniBand */
	{ "port_rcv_errors", LOSS }, { "port_xmit_discards", LOSS },
};

_Static_assert(ARRAY_SIZE(counters) <= DOCTOR_COUNTERS_MAX, "DOCTOR_COUNTERS_MAX is too small");

static uint64_t read_counter(struct doctor *d, const struct doctor_port *port, const char *name)
{
	char line[32];

	if (doctor_read_line(d, line, sizeof(line), CLASS "/%s/ports/%u/hw_counters/%s",
			     port->device, port->port, name) &&
	    doctor_read_line(d, line, sizeof(line), CLASS "/%s/hw_counters/%s", port->device,
			     name) &&
	    doctor_read_line(d, line, sizeof(line), CLASS "/%s/ports/%u/counters/%s",
			     port->device, port->port, name))
		return MISSING;
	return strtoull(line, NULL, 10);
}

void doctor_count(struct doctor *d)
{
	size_t i, n;

	for (i = 0; i < d->port_count; i++) {
		for (n = 0; n < ARRAY_SIZE(counters); n++) {
			d->counters[i][n] = read_counter(d, &d->ports[i], counters[n].name);
			d->lossy |= d->counters[i][n] && d->counters[i][n] != MISSING;
		}
	}
	d->counted = sock_now();
}

/* A list of counters */
struct list {
	char text[DOCTOR_TEXT_MAX - 100];
	size_t len;
};

static void list(struct list *list, const char *name, uint64_t value, const char *unit)
{
	int len = snprintf(list->text + list->len, sizeof(list->text) - list->len,
			   "%s%s %llu%s", list->len ? ", " : "", name,
			   (unsigned long long)value, unit);

	if (list->len + len < sizeof(list->text))
		list->len += len;
	else
		list->text[list->len] = '\0';	/* The rest says nothing new. */
}

static void check_port(struct doctor *d, size_t i, uint64_t ms)
{
	struct list rising[2] = {}, past = {};
	const struct doctor_port *port = &d->ports[i];
	uint64_t before, now;
	size_t n, found = 0;

	for (n = 0; n < ARRAY_SIZE(counters); n++) {
		before = d->counters[i][n];
		now = read_counter(d, port, counters[n].name);
		found += now != MISSING;
		if (now == MISSING || before == MISSING || !now)
			continue;
		if (now > before)
			list(&rising[counters[n].kind], counters[n].name,
			     ((now - before) * 1000 + ms - 1) / ms, "/s");
		else if (counters[n].kind == LOSS)
			list(&past, counters[n].name, now, "");
	}
	if (rising[LOSS].len)
		doctor_add(d, CHECK, DOCTOR_WRONG,
			   "compare the MTU and the flow control of both ends and of the switches, and look at cables",
			   "packets of %s port %u are lost: %s", port->device, port->port,
			   rising[LOSS].text);
	else if (found)
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "%s port %u loses no packets%s%s",
			   port->device, port->port, past.len ? "; it has lost some: " : "",
			   past.text);
	if (rising[CONGESTION].len)
		doctor_add(d, CHECK, DOCTOR_NOTE, "see which other traffic has the way",
			   "packets of %s port %u meet congestion (ECN): %s", port->device,
			   port->port, rising[CONGESTION].text);
}

void doctor_loss(struct doctor *d)
{
	uint64_t ms;
	size_t i;

	/* Few have the time to wait for the first loss. Tests have none. */
	if (d->lossy && !*d->root)
		sock_sleep(d->counted + PERIOD_MS * (uint64_t)MS);
	ms = (sock_now() - d->counted) / MS ?: 1;
	for (i = 0; i < d->port_count; i++)
		check_port(d, i, ms);
}
