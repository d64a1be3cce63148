-- SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
--
-- A dissector for RPC-over-RDMA version 2, draft-cel-nfsv4-rpcrdma-version-two-02 ("draft"
-- below), over RoCE. tshark's own dissector, rpcordma, knows version 1 alone.
--
--	tshark -X lua_script:rpcordma2.lua -r FILE -Y rpcordma2
--
-- For root, tshark since 4.4 leaves out the script and says nothing. The file tshark in this
-- folder runs it for root, too.
--
-- Its fields have the names of rpcordma's where they mean the same. What breaks a rule of
-- the draft is marked by expert information. Rules about several messages need all packets
-- of a connection from its first message on.
--
-- It was written from the XDR in the draft, and shares nothing with the module.

local rpcordma2 = Proto("rpcordma2", "RPC over RDMA version 2")

local VERSION = 2
local MSG, NOMSG, ERROR, OPTIONAL = 0, 1, 4, 5
local ERR_VERS, ERR_CANT_REPLY = 1, 3
local CALL, REPLY = 0, 1

-- Octets of the longest message before the version is agreed on (draft 6)
local FIRST_MAX = 1024
-- Octets of the fixed header fields and of one more, which all messages have
local SHORTEST = 20

local PROCS = {
	[MSG] = "RDMA2_MSG", [NOMSG] = "RDMA2_NOMSG",
	[ERROR] = "RDMA2_ERROR", [OPTIONAL] = "RDMA2_OPTIONAL",
}
local ERRORS = {
	[ERR_VERS] = "RDMA2_ERR_VERS", [2] = "RDMA2_ERR_BAD_XDR",
	[ERR_CANT_REPLY] = "RDMA2_ERR_CANT_REPLY", [4] = "RDMA2_ERR_INVAL_PROC",
	[5] = "RDMA2_ERR_INVAL_OPTION",
}
local DIRECTIONS = { [CALL] = "CALL", [REPLY] = "REPLY" }

local function field(kind, name, title, ...)
	return ProtoField[kind]("rpcordma2." .. name, title, ...)
end

local f = {
	xid = field("uint32", "xid", "XID", base.HEX),
	version = field("uint32", "version", "Version", base.DEC),
	credits = field("uint32", "flow_control", "Credits", base.DEC),
	proc = field("uint32", "msg_type", "Message type", base.DEC, PROCS),
	direction = field("uint32", "direction", "Direction", base.DEC, DIRECTIONS),
	inv_handle = field("uint32", "inv_handle", "Handle to invalidate", base.HEX),
	reads = field("uint32", "reads_count", "Segments in the Read list", base.DEC),
	writes = field("uint32", "writes_count", "Chunks in the Write list", base.DEC),
	reply = field("uint32", "reply_count", "Reply chunks", base.DEC),
	present = field("uint32", "present", "Present", base.DEC),
	position = field("uint32", "position", "Position", base.DEC),
	segments = field("uint32", "segment_count", "Segments", base.DEC),
	handle = field("uint32", "rdma_handle", "Handle", base.HEX),
	length = field("uint32", "rdma_length", "Length", base.DEC),
	offset = field("uint64", "rdma_offset", "Offset", base.HEX),
	error = field("uint32", "errcode", "Error", base.DEC, ERRORS),
	low = field("uint32", "vers_low", "Lowest version", base.DEC),
	high = field("uint32", "vers_high", "Highest version", base.DEC),
	processed = field("uint32", "processed", "Processed", base.DEC),
	index = field("uint32", "segment_index", "Segment that is too short", base.DEC),
	needed = field("uint32", "length_needed", "Length that it needs", base.DEC),
	opttype = field("uint32", "opttype", "Option", base.DEC),
	optlen = field("uint32", "optinfo_length", "Length of optinfo", base.DEC),
	optinfo = field("bytes", "optinfo", "Optinfo"),
	octets = field("uint32", "message_length", "Octets of the message", base.DEC),
	payload = field("uint32", "payload_length", "Octets of inline payload", base.DEC),
}
rpcordma2.fields = f

local function mistake(name, text)
	return ProtoExpert.new("rpcordma2." .. name, text, expert.group.PROTOCOL,
			       expert.severity.ERROR)
end

local e = {
	truncated = ProtoExpert.new("rpcordma2.truncated", "The message ends within its header",
				    expert.group.MALFORMED, expert.severity.ERROR),
	credits = mistake("no_credits", "Credits are zero"),
	proc = mistake("unknown_proc", "Unknown message type"),
	error = mistake("unknown_error", "Unknown error"),
	direction = mistake("bad_direction", "The direction is neither CALL nor REPLY"),
	present = mistake("bad_discriminator", "Optional data is marked by neither 0 nor 1"),
	boolean = mistake("bad_boolean", "A boolean is neither 0 nor 1"),
	no_payload = mistake("no_payload", "RDMA2_MSG without an RPC message (draft 5.2.1)"),
	payload = mistake("unexpected_payload", "Octets after the header (draft 5.2.1)"),
	no_chunk = mistake("no_chunk", "RDMA2_NOMSG without a chunk for the RPC message"),
	msg_type = mistake("other_direction",
			   "The RPC message has another direction (draft 5.2.2)"),
	xid = mistake("other_xid", "The RPC message has another XID"),
	reads = mistake("reads_in_reply", "A Reply with a Read list"),
	foreign = mistake("foreign_handle",
			  "None of the handles is the one to invalidate (draft 5.2.3)"),
	echo = mistake("other_handle",
		       "The Call named another handle to invalidate (draft 5.2.3)"),
	invalidated = mistake("invalidated",
			      "Invalidates another handle than the header has (draft 5.2.3)"),
	chunks = mistake("other_chunks", "The chunks are not those of the Call"),
	first = mistake("long_first", "More than 1024 octets in the first message (draft 6)"),
	alone = mistake("not_alone", "Sent before the first Call had its Reply (draft 6)"),
}
local experts = {}
for _, value in pairs(e) do
	experts[#experts + 1] = value
end
rpcordma2.experts = experts

-- tshark has these fields only when it builds a tree, so not in the first of two passes.
local bth = Field.new("infiniband.bth")
local bth_opcode = Field.new("infiniband.bth.opcode")
local bth_psn = Field.new("infiniband.bth.psn")
local bth_destqp = Field.new("infiniband.bth.destqp")
local bth_padding = Field.new("infiniband.bth.padcnt")
local ieth = Field.new("infiniband.ieth")
local crc = Field.new("infiniband.invariant.crc")

-- Opcodes of a Send on a reliable connection: whether a message begins and ends with it
local SENDS = {
	[0] = { begins = true }, [1] = {}, [2] = { ends = true }, [3] = { ends = true },
	[4] = { begins = true, ends = true }, [5] = { begins = true, ends = true },
	[22] = { ends = true }, [23] = { begins = true, ends = true },
}

-- What is remembered of earlier packets

-- flows[FLOW]: one direction of a connection: the fragments of a message, and its Calls
--	parts, next_psn		fragments of the message that has begun, and what is next
--	begun			PSNs of messages that were seen
--	outstanding, answered	Calls without an answer, and whether one had a Reply
local flows
-- calls[CALL-KEY]: the last Call with this XID: its flow, inv_handle and chunks
local calls
-- packets[FRAME]: false, or what was found when the packet was dissected first: its message,
-- or true for a fragment; and the rules that it breaks together with earlier messages. A
-- packet may be dissected several times.
local packets

function rpcordma2.init()
	flows, calls, packets = {}, {}, {}
end

local function flow_of(pinfo)
	local key = tostring(pinfo.src) .. " " .. tostring(pinfo.dst) .. " " .. tostring(bth_destqp())
	flows[key] = flows[key] or { begun = {}, outstanding = 0, answered = false }
	return flows[key]
end

-- A Call and its Reply have the same key. The two directions have XIDs of their own.
local function call_key(header, pinfo)
	local from, to = tostring(pinfo.src), tostring(pinfo.dst)
	if header.direction == REPLY then
		from, to = to, from
	end
	return from .. " " .. to .. " " .. header.xid
end

-- What a packet of a Send carries; nil if that is nothing. A capture may have cut off its
-- end.
local function payload_of(tvb)
	local headers = ieth() or bth()
	local first, last = headers.offset + headers.len, tvb:len()
	if crc() then
		last = crc().offset - bth_padding().value
	end
	return first < last and tvb(first, last - first) or nil
end

-- Put messages together that take several packets. Returns the message that ends with this
-- packet; true if another packet of it follows; nil if this is no message of version 2.
local function reassemble(tvb, pinfo, send)
	local flow, psn, payload = flow_of(pinfo), bth_psn().value, payload_of(tvb)
	if send.begins then
		flow.parts = nil
		if not payload or payload:len() < SHORTEST or payload(4, 4):uint() ~= VERSION then
			return nil
		end
		if send.ends then
			return payload:bytes()
		end
		flow.parts, flow.next_psn = payload:bytes(), (psn + 1) % 0x1000000
		return true
	end
	if not flow.parts then
		return nil
	end
	-- A packet that is sent again
	if psn ~= flow.next_psn then
		return true
	end
	if payload then
		flow.parts:append(payload:bytes())
	end
	flow.next_psn = (psn + 1) % 0x1000000
	if not send.ends then
		return true
	end
	local whole = flow.parts
	flow.parts = nil
	return whole
end

-- The header

-- A cursor over the words of a message. Past its end an error ends the walk.
local TRUNCATED = {}

local function take(cursor, octets)
	if cursor.at + octets > cursor.tvb:len() then
		error(TRUNCATED)
	end
	local range = cursor.tvb(cursor.at, octets)
	cursor.at = cursor.at + octets
	return range
end

local function word(cursor, tree, what)
	local range = take(cursor, 4)
	return range:uint(), tree:add(what, range)
end

-- The discriminator of optional data, or a boolean
local function flag(cursor, tree, what, complaint)
	local value, item = word(cursor, tree, what)
	if value > 1 then
		item:add_proto_expert_info(complaint)
		error(complaint)
	end
	return value == 1
end

local function present(cursor, tree)
	return flag(cursor, tree, f.present, e.present)
end

local function segment(cursor, tree, header)
	local range = cursor.tvb(cursor.at, math.min(16, cursor.tvb:len() - cursor.at))
	local item = tree:add(rpcordma2, range, "Segment")
	local handle = word(cursor, item, f.handle)
	word(cursor, item, f.length)
	item:add(f.offset, take(cursor, 8))
	header.handles[handle] = true
	return handle
end

-- The segments of a Write chunk or of the Reply chunk
local function chunk(cursor, tree, header)
	local handles = {}
	local count = word(cursor, tree, f.segments)
	for _ = 1, count do
		handles[#handles + 1] = segment(cursor, tree, header)
	end
	header.chunks[#header.chunks + 1] = table.concat(handles, ",")
end

local function direction(cursor, tree, header)
	local value, item = word(cursor, tree, f.direction)
	header.direction = value
	if not DIRECTIONS[value] then
		item:add_proto_expert_info(e.direction)
	end
end

local function chunk_lists(cursor, tree, header)
	local reads, writes, reply = 0, 0, 0

	direction(cursor, tree, header)
	header.inv_handle, header.inv_item = word(cursor, tree, f.inv_handle)
	header.handles, header.chunks = {}, {}
	while present(cursor, tree) do
		reads = reads + 1
		header.positions = header.positions or {}
		header.positions[word(cursor, tree, f.position)] = true
		segment(cursor, tree, header)
	end
	while present(cursor, tree) do
		writes = writes + 1
		chunk(cursor, tree, header)
	end
	header.chunks[#header.chunks + 1] = "end of the Write list"
	if present(cursor, tree) then
		reply = 1
		chunk(cursor, tree, header)
	end
	header.reads, header.reply = reads, reply
	tree:add(f.reads, reads):set_generated()
	tree:add(f.writes, writes):set_generated()
	tree:add(f.reply, reply):set_generated()
end

local function rdma_error(cursor, tree, header)
	local value, item = word(cursor, tree, f.error)
	header.error, header.direction = value, REPLY
	if value == ERR_VERS then
		word(cursor, tree, f.low)
		word(cursor, tree, f.high)
	elseif value == ERR_CANT_REPLY then
		flag(cursor, tree, f.processed, e.boolean)
		word(cursor, tree, f.index)
		word(cursor, tree, f.needed)
	elseif not ERRORS[value] then
		item:add_proto_expert_info(e.error)
	end
end

local function optional(cursor, tree, header)
	direction(cursor, tree, header)
	word(cursor, tree, f.opttype)
	local octets = word(cursor, tree, f.optlen)
	if octets > 0 then
		tree:add(f.optinfo, take(cursor, octets))
		take(cursor, -octets % 4)
	end
end

local BODIES = { [MSG] = chunk_lists, [NOMSG] = chunk_lists, [ERROR] = rdma_error,
		 [OPTIONAL] = optional }

local function whole_header(cursor, tree, header)
	local item
	header.xid = word(cursor, tree, f.xid)
	word(cursor, tree, f.version)
	header.credits, item = word(cursor, tree, f.credits)
	if header.credits == 0 then
		item:add_proto_expert_info(e.credits)
	end
	header.proc, item = word(cursor, tree, f.proc)
	if not BODIES[header.proc] then
		item:add_proto_expert_info(e.proc)
		error(e.proc)
	end
	BODIES[header.proc](cursor, tree, header)
end

-- Rules about one message

local function check_payload(cursor, tree, header)
	local rest = cursor.tvb:len() - cursor.at
	tree:add(f.payload, rest):set_generated()
	if header.proc == ERROR or header.proc == NOMSG then
		if rest > 0 then
			tree:add_proto_expert_info(e.payload)
		end
		return
	end
	-- An option may be without one.
	if rest < 8 then
		if header.proc == MSG then
			tree:add_proto_expert_info(e.no_payload)
		end
		return
	end
	if header.proc == OPTIONAL then
		return
	end
	if cursor.tvb(cursor.at, 4):uint() ~= header.xid then
		tree:add_proto_expert_info(e.xid)
	end
	if cursor.tvb(cursor.at + 4, 4):uint() ~= header.direction then
		tree:add_proto_expert_info(e.msg_type)
	end
end

local function check_chunks(tree, header)
	if header.proc == NOMSG then
		local zero = header.positions and header.positions[0]
		if header.direction == CALL and not zero or
		   header.direction == REPLY and header.reply == 0 then
			tree:add_proto_expert_info(e.no_chunk)
		end
	end
	if header.direction == REPLY and header.reads > 0 then
		tree:add_proto_expert_info(e.reads)
	end
	if header.direction == CALL and header.inv_handle ~= 0 and
	   not header.handles[header.inv_handle] then
		header.inv_item:add_proto_expert_info(e.foreign)
	end
end

-- Only a Reply invalidates, and only what its header says.
local function check_invalidation(tree, header)
	local invalidated = ieth()
	if not invalidated then
		return
	end
	local handle = invalidated.range:uint()
	if header.direction ~= REPLY or header.inv_handle ~= handle then
		tree:add_proto_expert_info(e.invalidated)
	end
end

-- Rules about several messages. Each returns a list of what it breaks.

local function note_call(header, pinfo, octets)
	local flow, broken = flow_of(pinfo), {}
	local psn = bth_psn().value

	-- RoCE sends a packet again if its acknowledgement is lost.
	if flow.begun[psn] then
		return broken
	end
	flow.begun[psn] = true
	if not flow.answered then
		if octets > FIRST_MAX then
			broken[#broken + 1] = e.first
		end
		if flow.outstanding > 0 then
			broken[#broken + 1] = e.alone
		end
	end
	flow.outstanding = flow.outstanding + 1
	calls[call_key(header, pinfo)] = {
		flow = flow, inv_handle = header.inv_handle,
		chunks = header.chunks and table.concat(header.chunks, ";"),
	}
	return broken
end

local function note_reply(header, pinfo)
	local broken, key = {}, call_key(header, pinfo)
	local call = calls[key]
	if not call then
		return broken
	end
	if not call.done then
		call.done = true
		call.flow.outstanding = call.flow.outstanding - 1
	end
	if header.proc == ERROR then
		return broken
	end
	call.flow.answered = true
	if not header.chunks or not call.chunks then
		return broken
	end
	if header.inv_handle ~= call.inv_handle then
		broken[#broken + 1] = e.echo
	end
	if table.concat(header.chunks, ";") ~= call.chunks then
		broken[#broken + 1] = e.chunks
	end
	return broken
end

local function note(header, pinfo, octets)
	if header.direction == CALL then
		return note_call(header, pinfo, octets)
	elseif header.direction == REPLY then
		return note_reply(header, pinfo)
	end
	return {}
end

-- Without chunks the payload is a whole RPC message, which tshark may know.
local function show_rpc(cursor, pinfo, tree, header)
	if header.proc ~= MSG or next(header.handles) or cursor.at >= cursor.tvb:len() then
		return
	end
	pcall(Dissector.call, Dissector.get("rpc"), cursor.tvb(cursor.at):tvb(), pinfo, tree)
end

local function show(packet, pinfo, tree)
	local tvb = packet.message:tvb("RPC over RDMA version 2")
	local item = tree:add(rpcordma2, tvb())
	local cursor, header = { tvb = tvb, at = 0 }, {}
	local fine, why = pcall(whole_header, cursor, item, header)

	item:add(f.octets, tvb:len()):set_generated()
	pinfo.cols.protocol = "RPCoRDMA2"
	pinfo.cols.info = string.format("%s XID 0x%08x", PROCS[header.proc] or "RPC-over-RDMA 2",
					header.xid or 0)
	if fine then
		check_payload(cursor, item, header)
		if header.chunks then
			check_chunks(item, header)
		end
		check_invalidation(item, header)
	elseif why == TRUNCATED then
		item:add_proto_expert_info(e.truncated)
	elseif type(why) == "string" then
		error(why)
	end
	packet.broken = packet.broken or fine and note(header, pinfo, tvb:len()) or {}
	for _, broken in ipairs(packet.broken) do
		item:add_proto_expert_info(broken)
	end
	if fine then
		show_rpc(cursor, pinfo, tree, header)
	end
end

function rpcordma2.dissector(tvb, pinfo, tree)
	local opcode = bth_opcode()
	local send = opcode and SENDS[opcode.value]
	if not send then
		return
	end
	local packet = packets[pinfo.number]
	if packet == nil then
		local message = reassemble(tvb, pinfo, send)
		packet = message and { message = message } or false
		packets[pinfo.number] = packet
	end
	if not packet then
		return
	end
	if packet.message == true then
		tree:add(rpcordma2, "Fragment of an RPC-over-RDMA message of version 2")
	else
		show(packet, pinfo, tree)
	end
end

-- After all others, because rpcordma claims messages of version 2 that look like a fragment
-- of an earlier message to it.
register_postdissector(rpcordma2)
