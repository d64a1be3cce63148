# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What a kernel says by the netlink family rpcrdma, for canned.c."""

import re
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

TOP = Path(__file__).resolve().parents[3]
HEADER = TOP / "include/uapi/linux/rpcrdma.h"

FAMILY = 0x1f
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_MULTI, NLM_F_DUMP_INTR = 2, 16
GENL_ID_CTRL = 16
CTRL_CMD_NEWFAMILY, CTRL_CMD_DELFAMILY = 1, 2
NESTED = 0x8000

# The values of attributes: an int is a number of 32 bits, Uint one of 64, True a flag, a
# dict a nest, a list the values of an attribute that is there several times.
Value: TypeAlias = "int | str | bool | bytes | Uint | Mapping[str, Value] | Sequence[Value]"


class Uint(int):
    """A number of type uint that the kernel sends in 64 bits."""


def constants(header: Path = HEADER) -> dict[str, int]:
    """The values of the enumerations of a header."""
    found: dict[str, int] = {}
    for body in re.findall(r"enum[^{;]*\{(.*?)\}", header.read_text(), re.S):
        value = 0
        for name, given in re.findall(r"\b(RPCRDMA_\w+)(?: = (\d+))?,", body):
            value = int(given) if given else value
            found[name] = value
            value += 1
    return found


CONSTANTS = constants()
SETS = {"sent": "TRAFFIC", "received": "TRAFFIC", "waits": "WAITS", "errors": "ERRORS"}


def attr(number: int, payload: bytes) -> bytes:
    """One attribute with its padding."""
    return struct.pack("HH", len(payload) + 4, number) + payload + b"\0" * (-len(payload) % 4)


def encode(number: int, name: str, value: "Value") -> bytes:
    """One attribute of the family, or several of the same number."""
    if isinstance(value, bytes):
        return attr(number, value)
    if value is True:
        return attr(number, b"")
    if isinstance(value, Uint):
        return attr(number, struct.pack("Q", value))
    if isinstance(value, int):
        return attr(number, struct.pack("I", value))
    if isinstance(value, str):
        return attr(number, value.encode() + b"\0")
    if isinstance(value, Mapping):
        return attr(number | NESTED, attrs(SETS.get(name, name.upper()), value))
    return b"".join(encode(number, name, item) for item in value)


def attrs(kind: str, values: Mapping[str, "Value"]) -> bytes:
    """The attributes of one object, by their names in the specification."""
    return b"".join(
        encode(CONSTANTS[f"RPCRDMA_A_{kind}_{name.upper().replace('-', '_')}"], name, value)
        for name, value in values.items())


def message(kind: int, payload: bytes, flags: int = NLM_F_MULTI) -> bytes:
    """A netlink message. The program's last request has its sequence number."""
    return struct.pack("IHHII", 16 + len(payload), kind, flags, 0, 0) + payload


def genl(command: str, payload: bytes, flags: int = NLM_F_MULTI) -> bytes:
    """A message of the family."""
    number = CONSTANTS[f"RPCRDMA_CMD_{command}"]
    return message(FAMILY, struct.pack("BBH", number, 1, 0) + payload, flags)


def error(number: int) -> bytes:
    """How a request ends that is no dump; 0 is no error."""
    return message(NLMSG_ERROR, struct.pack("i", -number) + bytes(16), 0)


def datagram(*messages: bytes) -> bytes:
    """What one call to receive returns."""
    data = b"".join(messages)
    return struct.pack("I", len(data)) + data


def failure(number: int) -> bytes:
    """A call to receive that fails."""
    return struct.pack("i", -number)


def family() -> bytes:
    """The answer to the question for the family."""
    group = attr(1, attr(1, b"events\0") + attr(2, struct.pack("I", 9)))
    payload = (struct.pack("BBH", CTRL_CMD_NEWFAMILY, 2, 0) + attr(2, b"rpcrdma\0") +
               attr(1, struct.pack("H", FAMILY)) + attr(7, group))
    return datagram(message(GENL_ID_CTRL, payload, 0)) + datagram(error(0))


def family_gone(number: int) -> bytes:
    """What the controller says when a family is unregistered."""
    payload = struct.pack("BBH", CTRL_CMD_DELFAMILY, 2, 0) + attr(1, struct.pack("H", number))
    return datagram(message(GENL_ID_CTRL, payload, 0))


def dump(kind: str, *objects: Mapping[str, "Value"], flags: int = 0) -> bytes:
    """The answer to a dump."""
    kinds = {"PEER": "CONNECTION"}     # whose attributes they have
    messages = [genl(f"{kind}_GET", attrs(kinds.get(kind, kind), values), NLM_F_MULTI | flags)
                for values in objects]
    done = message(NLMSG_DONE, struct.pack("i", 0), NLM_F_MULTI | flags)
    return b"".join(datagram(each) for each in [*messages, done])


def event(command: str, values: Mapping[str, "Value"]) -> bytes:
    """An event."""
    return datagram(genl(command, attrs("CONNECTION", values), 0))
