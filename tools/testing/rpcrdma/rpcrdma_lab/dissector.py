# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
Test of the dissector for version 2: tshark reads messages that are written here by hand from
the draft's XDR, correct ones and wrong ones, in RoCE packets. Test of what guest/wire.sh checks
in each capture: it gets captures of correct connections, and of wrong ones.
"""

import os
import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .host import BUILD, LAB, attempt, run
from .ktap import Reporter
from .steps import check_step

TSHARK = LAB / "dissector/tshark"

# BTH opcodes of a reliable connection
FIRST, MIDDLE, LAST, ONLY, LAST_INVALIDATE, ONLY_INVALIDATE = 0, 1, 2, 4, 22, 23

MSG, NOMSG, ERROR, OPTIONAL = 0, 1, 4, 5
CALL, REPLY = 0, 1
XID = 0x17171717
CALLBACKS = 0x40000000  # NFSv4's program
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
    (call(), reply(), from_server(header(MSG, REPLY, 0, 0, 0, 0) + payload(CALL),
                                  "other_direction"),
     from_client(header(MSG, CALL, 0, 0, 0, 0) + payload(REPLY), "other_direction")),
)


def frame(server: bool, port: int, infiniband: bytes) -> bytes:
    """An Ethernet frame with a RoCE packet"""
    source, to = (b"\x0a\x11\0\x01", b"\x0a\x11\0\x02")[::1 if server else -1]
    infiniband += bytes(4)
    udp = struct.pack(">HHHH", 0xc000 + port, 4791, 8 + len(infiniband), 0) + infiniband
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0) + source + to
    return bytes(12) + b"\x08\x00" + ip + udp


def packet(server: bool, queue_pair: int, number: int, opcode: int, octets: bytes,
           invalidates: int) -> bytes:
    """A packet of a connection. The server's queue pair has this number, the client's the next."""
    pad = -len(octets) % 4
    headers = struct.pack(">BBHII", opcode, pad << 4, 0xffff, queue_pair + server, number)
    headers += words(invalidates) if invalidates else b""
    return frame(server, queue_pair, headers + octets + bytes(pad))


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


def write_pcap(path: Path, frames: Iterable[bytes]) -> None:
    """Write a pcap file with a frame each second."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for count, octets in enumerate(frames, 1):
            file.write(struct.pack("<IIII", count, 0, len(octets), len(octets)) + octets)


def of_connection(messages: Iterable[Message], queue_pair: int) -> list[list[bytes]]:
    """The packets of each message of a connection"""
    sent = [0, 0]
    found = []
    for message in messages:
        found.append(packets(message, queue_pair, sent[message.server]))
        sent[message.server] += len(found[-1])
    return found


def write_capture(path: Path) -> dict[int, Message]:
    """Write all messages to a pcap file. Returns each with the number of its last packet."""
    messages: dict[int, Message] = {}
    frames: list[bytes] = []
    for number, connection in enumerate(CONNECTIONS, 0x10):
        for message, found in zip(connection, of_connection(connection, 2 * number)):
            frames += found
            messages[len(frames)] = message
    write_pcap(path, frames)
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


# What guest/wire.sh checks

DATAGRAM = 0x64         # BTH opcode
# The CM's messages
REQUEST, ACCEPT, DISCONNECT, DISCONNECTED = 0x10, 0x13, 0x15, 0x16


def cm(server: bool, attribute: int, queue_pair: int, *body: int) -> bytes:
    """A message of the CM for the connection with this queue pair"""
    headers = struct.pack(">BBHIIII", DATAGRAM, 0, 0xffff, 1, 0, 0x80010000, 1)
    mad = struct.pack(">BBBBIQHHI232s", 1, 7, 2, 3, 0, queue_pair, attribute, 0, 0, words(*body))
    return frame(server, 0, headers + mad)


def begin(queue_pair: int) -> list[bytes]:
    """A connection is made."""
    return [cm(False, REQUEST, queue_pair, 1, *[0] * 7, (queue_pair + 1) << 8),
            cm(True, ACCEPT, queue_pair, 2, 1, 0, queue_pair << 8)]


def end(queue_pair: int) -> list[bytes]:
    """The client ends it."""
    return [cm(False, DISCONNECT, queue_pair, 1, 2, queue_pair << 8),
            cm(True, DISCONNECTED, queue_pair, 2, 1)]


def exchange(version: int, xid: int, backward: bool = False, lists: Sequence[int] = (0, 0, 0),
             credits: int = 32) -> tuple[Message, Message]:
    """A Call with these lists, and its Reply"""
    program = words(CALLBACKS, 1) if backward else words(100003, 3)
    found = []
    for direction, rest in ((CALL, words(2) + program + bytes(20)), (REPLY, bytes(16))):
        chunks = lists if direction == CALL else (0, 0, 0)
        body = (direction, 0, *chunks) if version == 2 else chunks
        found.append(Message(backward != (direction == REPLY),
                             words(xid, version, credits, MSG, *body, xid, direction) + rest))
    return found[0], found[1]


def whole(queue_pair: int, *messages: Message) -> list[bytes]:
    """A connection with its beginning and its end"""
    frames = [octets for found in of_connection(messages, queue_pair) for octets in found]
    return begin(queue_pair) + frames + end(queue_pair)


def fine_capture() -> list[bytes]:
    """A connection in each version, with Calls in both directions"""
    return [octets for version in (1, 2) for octets in
            whole(0x20 * version, *exchange(version, 1), *exchange(version, 2),
                  *exchange(version, 2, backward=True))]


def bad_capture(version: int) -> list[bytes]:
    """Connections with what the checks are for"""
    good = exchange(version, 1)
    error = from_server(words(2, version, 32, ERROR, 2))
    return [
        *whole(0x20, *good)[2:],
        *whole(0x30, *good)[:-2],
        *whole(0x40, *good, exchange(version, 2)[0]),
        *whole(0x50, *good, exchange(version, 2)[1]),
        *whole(0x60, *good, exchange(version, 3, backward=True)[0]),
        *whole(0x70, *good, exchange(version, 3, backward=True)[1]),
        *whole(0x80, *good, exchange(version, 2)[0], error),
        *whole(0x90, *good, *exchange(version, 2, credits=0)),
        *whole(0xa0, *good, *exchange(version, 2, backward=True, lists=WRITE_LIST)),
        *whole(0xb0, *good, *exchange(version, 2, backward=True, lists=REPLY_CHUNK)),
        *whole(0xc0, *good, exchange(version, 4, backward=True, lists=READ_LIST)[0]),
        *whole(0xd0, *good, from_client(words(2, 3))),
    ]


# What they print about bad_capture() in either version, without their names and what tshark
# prints. In version 1 tshark does not see the direction of a message with a Read list.
COMPLAINTS = """
packet 1: the connection began before the capture
packet 2: the connection began before the capture
packet 20: a Reply without a Call
packet 34: a Reply without a Call
queue pair 0x000031: no disconnect
XID 0x00000002: no Reply
XID 0x00000003: no Reply
it is '1' instead of '0'
it is '2' instead of '0'
it is '3' instead of '0'
it is '1' instead of '0'
""".split("\n")[1:-1]
OF_READ_LIST = ("packet 73: a Reply without a Call", "XID 0x00000004: no Reply")


def capture_complaints() -> list[str]:
    """Captures about which guest/wire.sh says something else than it should."""
    bad = []
    captures: list[tuple[str, list[bytes], list[str]]] = [("fine", fine_capture(), [])]
    captures += [(f"bad-{version}", bad_capture(version), [*COMPLAINTS, line])
                 for version, line in enumerate(OF_READ_LIST, 1)]
    for name, frames, wanted in captures:
        write_pcap(BUILD / f"{name}.pcap", frames)
        script = f". {LAB}/guest/lib.sh; . {LAB}/guest/wire.sh; check_capture {name}"
        out = attempt("bash", "-c", script, env=dict(os.environ, OUT2=str(BUILD))).stdout
        found = re.findall(r"^# (\w.*)", out, re.MULTILINE)
        if sorted(found) != sorted(wanted) or bool(wanted) != ("not ok" in out):
            bad += [f"{BUILD}/{name}.pcap:", *out.splitlines()]
    return bad


def dissector(report: Reporter) -> None:
    """Messages, correct and wrong, as tshark and the checks of captures see them."""
    BUILD.mkdir(exist_ok=True)
    with report.test("dissector [tshark]") as test:
        check_step(test, "tshark finds what is wrong with messages of version 2", complaints)
        check_step(test, "the checks of a capture find what is wrong with it", capture_complaints)
