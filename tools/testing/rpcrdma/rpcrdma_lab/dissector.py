# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
Test of the dissector for version 2: tshark reads messages that are written here by hand from
the draft's XDR, correct ones and wrong ones, in RoCE packets.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .host import BUILD, LAB, run
from .ktap import Reporter
from .steps import check_step

TSHARK = LAB / "dissector/tshark"

# BTH opcodes of a reliable connection
FIRST, MIDDLE, LAST, ONLY, LAST_INVALIDATE, ONLY_INVALIDATE = 0, 1, 2, 4, 22, 23

MSG, NOMSG, ERROR, OPTIONAL = 0, 1, 4, 5
CALL, REPLY = 0, 1
XID = 0x17171717
HANDLE, OTHER = 0x1234, 0x5678
SEGMENT = (HANDLE, 4096, 0, 0x10000)
PACKET_MAX = 1024       # octets of a message in one packet

# Expert information of the dissector, without the protocol's name
MISTAKES = ("truncated no_credits unknown_proc unknown_error bad_direction bad_discriminator "
            "bad_boolean no_payload unexpected_payload no_chunk other_direction other_xid "
            "reads_in_reply foreign_handle other_handle invalidated other_chunks long_first "
            "not_alone").split()


@dataclass(frozen=True)
class Message:
    """A message, who sends it, the handle that it invalidates, and what is wrong with it."""
    server: bool
    octets: bytes
    wrong: str = ""
    invalidates: int = 0


def words(*values: int) -> bytes:
    """XDR of unsigned integers."""
    return struct.pack(f">{len(values)}I", *values)


def header(proc: int, *body: int, xid: int = XID, credits: int = 32) -> bytes:
    """The fixed fields and what follows them."""
    return words(xid, 2, credits, proc, *body)


def payload(direction: int, octets: int = 40, xid: int = XID) -> bytes:
    """An NFSv3 NULL or its answer, and zeros"""
    begin = words(xid, direction, *((2, 100003, 3) if direction == CALL else ()))
    return begin + bytes(octets - len(begin))


def call(*lists: int, handle: int = 0, octets: int = 40, wrong: str = "",
         xid: int = XID) -> Message:
    """A Call inline; without lists they are empty."""
    return Message(False, header(MSG, CALL, handle, *(lists or (0, 0, 0)), xid=xid) +
                   payload(CALL, octets, xid), wrong)


def reply(*lists: int, handle: int = 0, wrong: str = "", invalidates: int = 0) -> Message:
    """Its Reply inline"""
    return Message(True, header(MSG, REPLY, handle, *(lists or (0, 0, 0))) + payload(REPLY),
                   wrong, invalidates)


def from_client(octets: bytes, wrong: str = "") -> Message:
    """A message of the client"""
    return Message(False, octets, wrong)


def from_server(octets: bytes, wrong: str = "", invalidates: int = 0) -> Message:
    """A message of the server"""
    return Message(True, octets, wrong, invalidates)


WRITE_LIST = (0, 1, 1, *SEGMENT, 0, 0)
READ_LIST = (1, 40, *SEGMENT, 0, 0, 0)
REPLY_CHUNK = (0, 0, 1, 1, *SEGMENT)
POSITION_ZERO = (1, 0, *SEGMENT, 0, 0, 0)

# Each has a connection of its own.
CONNECTIONS: Sequence[Sequence[Message]] = (
    (call(), reply(), call(octets=4060), reply()),
    (call(*READ_LIST, handle=HANDLE), reply(handle=HANDLE)),
    (call(*READ_LIST, handle=HANDLE), reply(*WRITE_LIST, handle=HANDLE, wrong="other_chunks")),
    (call(*READ_LIST, handle=HANDLE), reply(handle=HANDLE, invalidates=HANDLE)),
    (call(*WRITE_LIST, handle=HANDLE), reply(*WRITE_LIST, handle=HANDLE, invalidates=HANDLE)),
    (call(*WRITE_LIST, handle=HANDLE), reply(*WRITE_LIST, handle=HANDLE, invalidates=OTHER,
                                             wrong="invalidated")),
    (call(*WRITE_LIST), reply(*WRITE_LIST, invalidates=HANDLE, wrong="invalidated")),
    (call(*WRITE_LIST, handle=HANDLE), reply(*WRITE_LIST, wrong="other_handle")),
    (call(*WRITE_LIST, handle=OTHER, wrong="foreign_handle"),),
    (call(*REPLY_CHUNK, handle=HANDLE),
     from_server(header(NOMSG, REPLY, HANDLE, *REPLY_CHUNK))),
    (from_client(header(NOMSG, CALL, 0, *POSITION_ZERO)), reply()),
    (from_client(header(NOMSG, CALL, 0, *READ_LIST), "no_chunk"),),
    (from_client(header(NOMSG, CALL, 0, *POSITION_ZERO) + payload(CALL), "unexpected_payload"),),
    (call(), from_server(header(NOMSG, REPLY, 0, *WRITE_LIST), "no_chunk other_chunks")),
    (call(), from_server(header(MSG, REPLY, 0, *READ_LIST) + payload(REPLY), "reads_in_reply")),
    (call(), from_server(header(ERROR, 1, 1, 1))),
    (call(), from_server(header(ERROR, 2))),
    (call(), from_server(header(ERROR, 3, 1, 2, 65536))),
    (call(), from_server(header(ERROR, 3, 2, 2, 65536), "bad_boolean")),
    (call(), from_server(header(ERROR, 3, 1, 2), "truncated")),
    (call(), from_server(header(ERROR, 4))),
    (call(), from_server(header(ERROR, 5))),
    (call(), from_server(header(ERROR, 6), "unknown_error")),
    (call(), from_server(header(ERROR, 2) + payload(REPLY), "unexpected_payload")),
    (call(), from_server(header(ERROR, 2), "invalidated", HANDLE)),
    (from_client(header(OPTIONAL, CALL, 17, 0)), from_server(header(ERROR, 5))),
    (from_client(header(OPTIONAL, CALL, 17, 5) + b"abcde\0\0\0" + payload(CALL)),),
    (from_client(header(OPTIONAL, CALL, 17, 5) + b"abcd", "truncated"),),
    (from_client(header(OPTIONAL, 2, 17, 0), "bad_direction"),),
    (from_client(header(2, CALL, 0, 0, 0, 0), "unknown_proc"),),
    (from_client(header(MSG, CALL, 0, 0, 0, 0)[:-4], "truncated"),),
    (from_client(header(MSG, CALL, 0, 0, 0, 0), "no_payload"),),
    (from_client(header(MSG, CALL, 0, 0, 0, 2), "bad_discriminator"),),
    (from_client(header(MSG, CALL, 0, 0, 1, 0xffffffff, *SEGMENT), "truncated"),),
    (from_client(header(MSG, CALL, 0, 0, 0, 0, credits=0) + payload(CALL), "no_credits"),),
    (from_client(header(MSG, CALL, 0, 0, 0, 0) + payload(REPLY), "other_direction"),),
    (from_client(header(MSG, CALL, 0, 0, 0, 0) + payload(CALL, xid=1), "other_xid"),),
    (call(octets=988), reply()),
    (call(octets=992, wrong="long_first"), reply()),
    (call(), call(xid=XID + 1, wrong="not_alone"), reply(), call(xid=XID + 2)),
    # What an error grants does not count.
    (call(), from_server(header(ERROR, 3, 0, 1, 8192)),
     call(octets=992, xid=XID + 1, wrong="long_first")),
    # After a message of version 1, tshark's own dissector claims messages like this one.
    (from_client(words(XID, 1, 32, MSG, 0, 0, 0) + payload(CALL)),
     call(1, 44, *SEGMENT, 0, 1, 1, *SEGMENT, 1, 2, *SEGMENT, *SEGMENT, 0, 1, 1, *SEGMENT,
          handle=HANDLE)),
    # Backward Calls have XIDs and credits of their own.
    (call(), reply(), from_server(header(MSG, CALL, 0, 0, 0, 0) + payload(CALL)),
     from_client(header(MSG, REPLY, 0, 0, 0, 0) + payload(REPLY))),
)


def packet(server: bool, queue_pair: int, number: int, opcode: int, octets: bytes,
           invalidates: int) -> bytes:
    """An Ethernet frame with a RoCE packet"""
    source, to = (b"\x0a\x11\0\x01", b"\x0a\x11\0\x02")[::1 if server else -1]
    pad = -len(octets) % 4
    infiniband = struct.pack(">BBHII", opcode, pad << 4, 0xffff, queue_pair + server, number)
    infiniband += words(invalidates) if invalidates else b""
    infiniband += octets + bytes(pad) + bytes(4)
    udp = struct.pack(">HHHH", 0xc000 + queue_pair, 4791, 8 + len(infiniband), 0) + infiniband
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0) + source + to
    return bytes(12) + b"\x08\x00" + ip + udp


def packets(message: Message, queue_pair: int, number: int) -> list[bytes]:
    """The packets of a message"""
    parts = [message.octets[at:at + PACKET_MAX]
             for at in range(0, len(message.octets), PACKET_MAX)]
    opcodes = [FIRST, *[MIDDLE] * (len(parts) - 2), LAST] if len(parts) > 1 else [ONLY]
    if message.invalidates:
        opcodes[-1] = {ONLY: ONLY_INVALIDATE, LAST: LAST_INVALIDATE}[opcodes[-1]]
    return [packet(message.server, queue_pair, number + n, opcode, part,
                   message.invalidates if opcode in (ONLY_INVALIDATE, LAST_INVALIDATE) else 0)
            for n, (opcode, part) in enumerate(zip(opcodes, parts))]


def write_capture(path: Path) -> dict[int, Message]:
    """Write all messages to a pcap file. Returns each with the number of its last packet."""
    messages: dict[int, Message] = {}
    count = 0
    with path.open("wb") as file:
        file.write(struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for queue_pair, connection in enumerate(CONNECTIONS, 0x10):
            sent = [0, 0]
            for message in connection:
                found = packets(message, 2 * queue_pair, sent[message.server])
                sent[message.server] += len(found)
                for frame in found:
                    count += 1
                    file.write(struct.pack("<IIII", count, 0, len(frame), len(frame)) + frame)
                messages[count] = message
    return messages


def dissect(path: Path) -> dict[int, tuple[str, str]]:
    """For each packet with a whole message its type and what tshark finds wrong with it."""
    fields = [argument for name in MISTAKES for argument in ("-e", f"rpcordma2.{name}")]
    out = run(TSHARK, "-r", path, "-Y", "rpcordma2.xid", "-T", "fields", "-E", "occurrence=f",
              "-e", "frame.number", "-e", "rpcordma2.msg_type", *fields)
    found = {}
    for line in out.splitlines():
        if "\t" not in line:       # a warning
            continue
        number, kind, *texts = line.split("\t")
        wrong = [name for name, text in zip(MISTAKES, texts) if text]
        found[int(number)] = kind, " ".join(wrong)
    return found


def complaints() -> list[str]:
    """Messages for which tshark finds something else than it should."""
    path = BUILD / "rpcordma2.pcap"
    messages = write_capture(path)
    found = dissect(path)
    bad = []
    for number, message in messages.items():
        _, version, _, kind = struct.unpack(">4I", message.octets[:16])
        wrong = " ".join(sorted(message.wrong.split(), key=MISTAKES.index))
        wanted = (str(kind), wrong) if version == 2 else None
        if found.get(number) != wanted:
            bad.append(f"packet {number} of {path}: {found.get(number)} instead of {wanted}")
    bad += [f"packet {number} of {path} has no whole message"
            for number in found if number not in messages]
    shown = {name for message in messages.values() for name in message.wrong.split()}
    bad += [f"no message is wrong by {name}" for name in MISTAKES if name not in shown]
    return bad


def dissector(report: Reporter) -> None:
    """Messages of version 2, correct and wrong, as tshark sees them."""
    BUILD.mkdir(exist_ok=True)
    with report.test("dissector [tshark]") as test:
        check_step(test, "tshark finds what is wrong with messages of version 2", complaints)
