#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
golden.py [--update] PROGRAM
golden.py --corpus FOLDER

Run the program with what a kernel might say, and compare what it prints with golden/NAME,
character by character: in a pipe and on terminals of 80 and 100 columns. Prints KTAP. The
program's commands must be linked with canned.c. --update writes golden/ instead; --corpus
writes what the kernel says, as inputs for the fuzzer.
"""

import dataclasses
import difflib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Mapping
from pathlib import Path

import kernel
from kernel import Uint, Value

VERSION = re.compile(r"(?<=^rpcrdma )\d\S*$", re.M)
GOLDEN = Path(__file__).resolve().parent / "golden"

HISTOGRAM = [Uint(n) for n in (0, 0, 0, 0, 0, 12, 4100, 9000, 350, 20, 3, 0, 0, 0, 0, 0, 0, 0,
                               0, 0, 1, 0, 0, 0)]


def traffic(scale: int, **more: int) -> dict[str, Value]:
    """Counters of one direction."""
    return {"inline": Uint(13000 * scale), **{name.replace("_", "-"): Uint(value)
                                              for name, value in more.items()},
            "inline-octets": Uint(2_100_000 * scale), "placed-octets": Uint(900_000_000 * scale),
            "copied-octets": Uint(70_000)}


CLIENT: Mapping[str, Value] = {
    "id": 7, "role": 0, "family": 2, "peer": "10.17.0.1:20049", "peer-port": 20049,
    "local": "10.17.0.2:39412", "local-port": 39412, "device": "rxe0", "port": 1, "xprt-id": 3,
    "state": 4, "state-age": Uint(200_000), "version": 1, "call-threshold": 4096,
    "reply-threshold": 4096, "remote-invalidation": True, "initiator-depth": 0,
    "responder-resources": 16, "credits-requested": 128, "credits-granted": 64,
    "credits-in-use": 2, "credits-waiting": 0,
    "sent": traffic(1, read_chunk=431), "received": traffic(1, write_chunk=21),
    "registrations-in-use": 2, "registrations-idle": 14,
    "waits": {name: Uint(0) for name in ("credit", "registration", "memory")},
    "errors": {name: Uint(0) for name in ("bad-header", "unmatched", "denied")},
    "receives-posted": 64, "receives": 66, "send-queue-used": 3, "send-queue-size": 257,
    "memory": Uint(196_608), "latency": HISTOGRAM,
}

# One that has trouble, with the longest address there is; a transport of the same switch
TROUBLED: Mapping[str, Value] = {
    **CLIENT, "id": 123456, "family": 10, "xprt-id": 4,
    "peer": "[2001:db8:1111:2222:3333:4444:5555:6666]:20049",
    "local": "[2001:db8:1111:2222:3333:4444:5555:7777]:50123", "device": "mlx5_bond_0",
    "state": 5, "state-age": Uint(90_061_000), "cause": 104, "version": 2,
    "credits-in-use": 64, "credits-waiting": 12,
    "waits": {"credit": Uint(1200), "registration": Uint(7), "send-queue": Uint(1)},
    "errors": {"bad-header": Uint(3), "unmatched": Uint(1), "denied": Uint(12345)},
}

SERVER: Mapping[str, Value] = {
    **{name: value for name, value in CLIENT.items()
       if name not in ("xprt-id", "registrations-in-use", "registrations-idle",
                       "credits-requested", "credits-waiting", "remote-invalidation")},
    "id": 8, "role": 1, "peer": "10.17.0.2:39412", "local": "10.17.0.1:20049",
    "sent": traffic(1, write_chunk=21, reply_chunk=2), "received": traffic(1, read_chunk=431),
}

# One that has only begun
NEW: Mapping[str, Value] = {
    "id": 9, "role": 0, "family": 2, "peer": "10.17.0.9:20049", "peer-port": 20049, "state": 0,
    "state-age": Uint(12),
}

LISTENERS: tuple[Mapping[str, Value], ...] = (
    {"local": "0.0.0.0:20049", "family": 2, "local-port": 20049, "state": 0,
     "state-age": Uint(86_500_000), "accepted": Uint(12), "refused": Uint(0), "waiting": 0},
    {"local": "[::]:20049", "family": 10, "local-port": 20049, "state": 1,
     "state-age": Uint(5_000), "accepted": Uint(0), "refused": Uint(3), "waiting": 1},
)

DEVICES: tuple[Mapping[str, Value], ...] = (
    {"name": "rxe0", "index": 0, "node-guid": "0200:00ff:fe00:0001", "usability": 0,
     "port-count": 1, "port": [{"number": 1, "state": 4, "protocol": 2, "ifindex": 1}],
     "max-queue-wrs": 1048576, "max-cqes": 32767, "max-send-sges": 32, "max-recv-sges": 32,
     "max-page-list": 512, "max-mr-size": Uint(2**64 - 1), "max-mrs": Uint(524287),
     "max-qps": Uint(1048560), "mr-pages": 512, "max-reads-served": 128,
     "max-reads-issued": 128},
    {"name": "mlx4_0", "index": 1, "node-guid": "0002:c903:0000:1000", "usability": 1,
     "port-count": 2, "port": [{"number": 1, "state": 1, "protocol": 1},
                               {"number": 2, "state": 4, "protocol": 1}],
     "max-queue-wrs": 16351, "max-cqes": 4194303, "max-send-sges": 30, "max-recv-sges": 31,
     "max-page-list": 0, "max-mr-size": Uint(0), "max-mrs": Uint(0), "max-qps": Uint(392632),
     "mr-pages": 0, "sg-gaps": True, "max-reads-served": 16, "max-reads-issued": 16},
)


def later(connection: Mapping[str, Value], factor: int, seconds: int) -> dict[str, Value]:
    """The same connection after some time, with its counters several times as high."""
    age = connection["state-age"]
    assert isinstance(age, int)
    return {**connection, "state-age": Uint(age + 1000 * seconds),
            "sent": traffic(factor, read_chunk=431 * factor),
            "received": traffic(factor, write_chunk=21 * factor),
            "latency": [Uint(count * factor) for count in HISTOGRAM]}


def peer(connection: Mapping[str, Value], factor: int, **more: Value) -> dict[str, Value]:
    """Of a connection, what its peer has counted since there was the first."""
    counters = ("role", "state-age", "sent", "received", "waits", "errors", "latency")
    return {**{name: value for name, value in later(connection, factor, 3600).items()
               if name in counters}, **more}


# All others, which nobody is of as a client, and one that has an earlier connection besides
UNUSED: Mapping[str, Value] = {"role": 0, "state-age": Uint(90_000_000), "connects": Uint(0)}
OTHERS = peer(SERVER, 1, connects=Uint(40))
PEERS = (UNUSED, OTHERS, peer(CLIENT, 3, peer="10.17.0.1", connects=Uint(5)),
         peer(SERVER, 2, peer="10.17.0.2", connects=Uint(2)),
         peer(TROUBLED, 1, peer="2001:db8:1111:2222:3333:4444:5555:6666", connects=Uint(1)),
         peer(SERVER, 4, peer="fe80::1", connects=Uint(1)))


# In sysfs and procfs: sunrpc's transport switches, a mount that the NFS client links to one, and
# one of a kernel that has no such links
FOLDERS = ("sys/kernel/sunrpc/xprt-switches/switch-2/xprt-4-rdma",
           "sys/kernel/sunrpc/xprt-switches/switch-2/xprt-3-rdma",
           "sys/kernel/sunrpc/xprt-switches/switch-10/xprt-5-tcp",
           "sys/fs/nfs/0:40/nfs_client", "sys/fs/nfs/0:43/nfs_client")
LINKS = {"sys/fs/nfs/0:40/nfs_client/switch": "../../xprt-switches/switch-2",
         "sys/fs/nfs/0:43/nfs_client/switch": "../../xprt-switches/switch-10"}
FILES = {
    "proc/self/mountinfo": """\
22 1 0:2 / / rw - ext4 /dev/sda rw
36 22 0:40 / /mnt rw - nfs4 10.17.0.1:/a rw,vers=4.2,proto=rdma,addr=10.17.0.1
37 22 0:40 /b /home\\040of\\040all rw - nfs4 10.17.0.1:/a rw,vers=4.2,proto=rdma,addr=10.17.0.1
38 22 0:41 / /old rw - nfs 10.17.0.9:/old rw,vers=3,proto=rdma,port=20049,addr=10.17.0.9
39 22 0:42 / /tcp rw - nfs4 10.17.0.1:/a rw,vers=4.2,proto=tcp,addr=10.17.0.1
40 22 0:43 / /other rw - nfs4 10.17.0.1:/c rw,vers=4.1,proto=rdma,addr=10.17.0.1
""",
    "proc/fs/nfsd/clients/5/info": """\
clientid: 0x5
address: "10.17.0.2:0"
status: confirmed
name: "Linux NFSv4.2 node2 \\x22a\\x22"
minor version: 2
""",
    "proc/fs/nfsd/clients/6/info": 'address: "[fd17::2]:0"\nname: "Linux NFSv4.1 node3"\n',
    "proc/fs/nfsd/clients/7/info": 'address: "10.17.0.2:0"\nname: "\\x1b[2J\\x5c"\n',
    "sys/module/rpcrdma/version": "0.1\n",
    "sys/module/rpcrdma/srcversion": "533BB7E5866E52F63B9ACCB\n",
    "sys/module/rpcrdma/taint": "OE\n",
    "proc/sys/kernel/osrelease": "6.12.0-test\n",
    **{f"proc/sys/sunrpc/svc_rdma/rdma_stat_{name}": f"{count}\n" for name, count in {
        "recv": 26862, "read": 862, "write": 46, "sq_starve": 3, "dropped": 0, "errors": 1}.items()},
}

def of_crowd(number: int) -> dict[str, Value]:
    """A connection of one of three peers, of which one has a lone connection."""
    return {**SERVER, "id": 100 + number, "state": 5 if number == 4 else 4,
            "peer": f"10.17.1.{number % 2 + 9 if number else 200}:{40000 + number}",
            "state-age": Uint(60_000 + 1000 * number), "sent": traffic(number)}


# More than get a row each
CROWD = kernel.dump("CONNECTION", *map(of_crowd, range(36)))

# Connections of two clients, of one of them two that the client has made anew
CLIENTS = kernel.dump("CONNECTION", SERVER, {**SERVER, "id": 11, "peer": "10.17.0.2:50000"},
                      {**SERVER, "id": 12, "peer": "10.17.0.3:39412"},
                      {**SERVER, "id": 13, "peer": "[fe80::1]:39412", "device": 'a"b\\c'})

ALL = (kernel.dump("CONNECTION", CLIENT, TROUBLED, SERVER, NEW) +
       kernel.dump("LISTENER", *LISTENERS) + kernel.dump("DEVICE", *DEVICES))
METRICS = (kernel.dump("CONNECTION", CLIENT, TROUBLED, SERVER, NEW) +
           kernel.dump("PEER", *PEERS) +
           kernel.dump("LISTENER", *LISTENERS) + kernel.dump("DEVICE", *DEVICES))
NOTHING = kernel.dump("CONNECTION") + kernel.dump("LISTENER") + kernel.dump("DEVICE")
OPENING = {name: CLIENT[name] for name in (
    "id", "role", "family", "peer", "peer-port", "local", "local-port", "device", "port")}
EVENTS = (
    kernel.event("CONNECTED", {**OPENING, "call-threshold": 4096, "reply-threshold": 4096,
                               "remote-invalidation": True}) +
    kernel.event("CLOSED", {**OPENING, "state-age": Uint(93_000), "cause": 104}) +
    kernel.event("CLOSED", {**OPENING, "role": 1, "state-age": Uint(4_000)}) +
    kernel.event("REFUSED", {"role": 1, "family": 2, "peer": "10.17.0.3:40000",
                             "local": "10.17.0.1:20049", "refusal": 3, "cause": 12}))
FOREIGN = kernel.FAMILY + 1

# Between the two dumps of an interval: one connection goes on, one goes, one comes, and one
# has the number of another one, as after the module was loaded again.
FIRST = kernel.dump("CONNECTION", CLIENT, SERVER, {**TROUBLED, "id": 10})
SECOND = kernel.family() + kernel.dump(
    "CONNECTION", later(CLIENT, 2, 5), {**TROUBLED, "state": 4, "state-age": Uint(2_000)},
    {**CLIENT, "id": 10, "peer": "10.17.0.5:20049", "state-age": Uint(1_000)})
# A peer goes on, though its connection is another one; one comes, and one gets another's record.
PEERS_FIRST = kernel.dump("PEER", UNUSED, OTHERS, peer(CLIENT, 3, peer="10.17.0.1",
                                                       connects=Uint(5)), PEERS[3])
PEERS_SECOND = kernel.family() + kernel.dump(
    "PEER", UNUSED, peer(SERVER, 2, connects=Uint(41)),
    peer(CLIENT, 4, peer="10.17.0.1", connects=Uint(6)),
    {**OTHERS, "peer": "10.17.0.4", "state-age": Uint(2_000)})
RESET = (kernel.dump("CONNECTION", later(CLIENT, 3, 0)) + kernel.family() +
         kernel.dump("CONNECTION", {**CLIENT, "state-age": Uint(4_000)}))
# The first dump is not consistent, so its objects do not count.
CHANGED = (kernel.dump("CONNECTION", CLIENT, CLIENT, flags=kernel.NLM_F_DUMP_INTR) +
           kernel.dump("CONNECTION", CLIENT))
# What breaks a rule of the specification
WRONG_TYPE = kernel.dump("CONNECTION", {**CLIENT, "id": b"\1\2"})
ESCAPES = kernel.dump("CONNECTION", {**CLIENT, "peer": "\x1b[2J"})
UNENDING = kernel.dump("CONNECTION", {**CLIENT, "peer": b"no NUL at the end!!!"})
TWICE = kernel.dump("CONNECTION", {**CLIENT, "id": [1, 2]})
NESTED_WRONG = kernel.dump("CONNECTION", {**CLIENT, "waits": b"\xff\xff\1\0"})
NEWER = kernel.datagram(kernel.genl("CONNECTION_GET", kernel.attrs("CONNECTION", {
    **CLIENT, "state": 77}) + kernel.attr(250, b"of a newer kernel"))) + kernel.datagram(
        kernel.message(kernel.NLMSG_DONE, bytes(4)))
CUT_OFF = kernel.dump("CONNECTION", CLIENT)[:-30]
OTHER_ANSWER = kernel.dump("LISTENER", *LISTENERS)


@dataclasses.dataclass(frozen=True)
class Case:
    """A run of the program."""
    name: str
    arguments: str
    says: bytes             # what the kernel says
    status: int = 0
    width: int = 0          # of the terminal, 0: a pipe
    known: bool = True      # whether the kernel has the family
    installed: bool = False     # a build of the module, beside the one that runs
    environment: tuple[tuple[str, str], ...] = ()


CASES = [
    Case("show", "show", ALL),
    Case("show-100", "show", ALL, width=100),
    Case("show-80", "show", ALL, width=80),
    Case("show-no-color", "show client", ALL, width=100, environment=(("NO_COLOR", "1"),)),
    Case("show-dumb", "show client", ALL, width=100, environment=(("TERM", "dumb"),)),
    Case("show-client", "show client", ALL),
    Case("show-server", "show server", ALL),
    Case("show-listeners", "show listeners", kernel.dump("LISTENER", *LISTENERS)),
    Case("show-devices", "show devices", kernel.dump("DEVICE", *DEVICES)),
    Case("show-peers", "show peers", kernel.dump("PEER", *PEERS)),
    Case("show-peers-80", "show peers --sort RPCS", kernel.dump("PEER", *PEERS), width=80),
    Case("show-peers-details", "show peers -d", kernel.dump("PEER", *PEERS)),
    Case("show-peers-json", "show peers -j", kernel.dump("PEER", *PEERS)),
    Case("show-peers-nothing", "show peers", kernel.dump("PEER", UNUSED)),
    Case("show-details", "show -d", ALL),
    Case("show-details-100", "show -d", ALL, width=100),
    Case("show-no-switches", "show client -d", kernel.dump("CONNECTION", CLIENT),
         environment=(("ROOT", "/nonexistent"),)),
    Case("show-no-clients", "show server -j", kernel.dump("CONNECTION", SERVER),
         environment=(("ROOT", "/nonexistent"),)),
    Case("show-to", "show client to 2001:db8:1111:2222:3333:4444:5555:6666", ALL),
    Case("show-to-port", "show to 10.17.0.2:39412", ALL),
    Case("show-to-nobody", "show client to 10.17.0.3", ALL),
    Case("show-device", "show client device rxe0/1 --columns ID,DEVICE", ALL),
    Case("show-state", "show state resolving", ALL),
    Case("show-mount", "show client mount /mnt/ --columns ID,MOUNTS", ALL),
    Case("show-mount-json", "show client mount /old -j", ALL),
    Case("show-sort", "show client --sort errors --columns ID,ERRORS", ALL),
    Case("show-sort-version", "show client --sort V --columns ID,V", ALL),
    Case("show-sort-text", "show client --sort PEER --top 2 --columns ID", ALL),
    Case("show-crowd", "show server", CROWD),
    Case("show-crowd-80", "show server --sort sent --top 2", CROWD, width=80),
    Case("show-crowd-all", "show server -a --sort ID --top 3", CROWD),
    Case("show-crowd-raw", "show server --raw --top 3", CROWD),
    Case("show-140", "show", ALL, width=140),
    Case("stat-sort", "stat --sort SENT/s --columns ID,SENT/s --top 2", FIRST),
    Case("show-json", "show -j", ALL),
    Case("show-json-first", "-j show client", kernel.dump("CONNECTION", CLIENT)),
    Case("show-json-100", "show --json client", ALL, width=100),
    Case("show-nothing", "show", NOTHING),
    Case("show-nothing-details", "show -d", NOTHING),
    Case("show-nothing-json", "show -j", NOTHING),
    Case("show-changed", "show client", CHANGED),
    Case("show-newer-kernel", "show -j client", NEWER),
    Case("show-module", "show module", b"", installed=True),
    Case("show-module-json", "show module -j", b"", installed=True),
    Case("show-module-raw", "show module --raw --columns build,srcversion", b"", installed=True),
    Case("show-module-alone", "show module", b""),
    Case("show-module-alone-json", "show module -j", b""),
    Case("show-module-none", "show module", b"", environment=(("ROOT", "/nonexistent"),)),
    Case("reload-not-loaded", "reload", b"", 1, environment=(("ROOT", "/nonexistent"),)),
    Case("show-columns", "show client --columns ERRORS,peer,v", ALL),
    Case("show-columns-80", "show client --columns peer,device,state,p99", ALL, width=80),
    Case("show-noheadings", "show --noheadings", NOTHING),
    Case("show-raw", "show server --raw --noheadings", ALL),
    Case("show-raw-headings", "show listeners --raw", kernel.dump("LISTENER", *LISTENERS)),
    Case("stat", "stat", FIRST),
    Case("stat-interval", "stat 5 2", FIRST + SECOND),
    Case("stat-interval-80", "stat 5 2", FIRST + SECOND, width=80),
    Case("stat-json", "stat -j 5 2", FIRST + SECOND),
    Case("stat-peers", "stat peers 5 2", PEERS_FIRST + PEERS_SECOND),
    Case("stat-peers-80", "stat peers 5 2", PEERS_FIRST + PEERS_SECOND, width=80),
    Case("stat-peers-json", "stat -j peers 5 2", PEERS_FIRST + PEERS_SECOND),
    Case("stat-peers-nothing", "stat peers", kernel.dump("PEER", UNUSED)),
    Case("stat-reset", "stat 10 2", RESET),
    Case("stat-nothing", "stat", NOTHING),
    Case("stat-columns", "stat 5 2 --columns ID,RPC/s --noheadings", FIRST + SECOND),
    Case("monitor", "monitor", EVENTS),
    Case("monitor-100", "monitor", EVENTS, width=100),
    Case("monitor-json", "monitor -j", EVENTS),
    Case("monitor-unloaded", "monitor", EVENTS + kernel.family_gone(FOREIGN) +
         kernel.family_gone(kernel.FAMILY) + EVENTS, 2),
    Case("monitor-lost", "monitor", kernel.failure(105) + kernel.family() + EVENTS),
    Case("metrics", "metrics", METRICS),
    Case("metrics-per-peer", "metrics --per-peer=1", CLIENTS + kernel.dump("PEER", *PEERS) +
         kernel.dump("LISTENER") + kernel.dump("DEVICE")),
    Case("metrics-nothing", "metrics --per-peer",
         kernel.dump("CONNECTION") + kernel.dump("PEER") + kernel.dump("LISTENER") +
         kernel.dump("DEVICE"), environment=(("ROOT", "/none"),)),
    Case("metrics-file", "metrics -o FOLDER/rpcrdma.prom", kernel.datagram(kernel.error(2)),
         known=False),
    Case("metrics-no-folder", "metrics -o FOLDER/none/rpcrdma.prom",
         kernel.datagram(kernel.error(2)), 1, known=False),
    Case("metrics-no-family", "metrics", kernel.datagram(kernel.error(2)), known=False),
    Case("metrics-not-permitted", "metrics", kernel.datagram(kernel.error(1)), 1, known=False),
    Case("no-family-show", "show", kernel.datagram(kernel.error(2)), 2, known=False),
    Case("no-family-stat", "stat 1", kernel.datagram(kernel.error(2)), 2, known=False),
    Case("no-family-monitor", "monitor -j", kernel.datagram(kernel.error(2)), 2, known=False),
    Case("no-family-json", "-j show", kernel.datagram(kernel.error(2)), 2, known=False),
    Case("not-permitted", "show", kernel.datagram(kernel.error(1)), 1, known=False),
    Case("lie-type", "show client", WRONG_TYPE, 1),
    Case("lie-escapes", "show client", ESCAPES, 1),
    Case("lie-unending", "show client", UNENDING, 1),
    Case("lie-twice", "show client", TWICE, 1),
    Case("lie-nested", "show client", NESTED_WRONG, 1),
    Case("lie-cut-off", "show client", CUT_OFF, 1),
    Case("lie-other-answer", "show client", OTHER_ANSWER, 1),
    Case("lie-event", "monitor", kernel.event("CLOSED", {"id": b""}), 1),
    Case("lie-family", "show", kernel.datagram(kernel.message(kernel.GENL_ID_CTRL, bytes(4))) +
         kernel.datagram(kernel.error(0)), 1, known=False),
    Case("usage", "show clients", b"", 64),
    Case("usage-to", "show to 10.17.0", b"", 64),
    Case("usage-to-port", "show to 10.17.0.1:99999", b"", 64),
    Case("usage-state", "show state open", b"", 64),
    Case("usage-mount", "show client mount", b"", 64),
    Case("usage-filter", "show devices to 10.17.0.1", b"", 64),
    Case("usage-top", "show client --top 0", b"", 64),
    Case("usage-sort", "show client --sort PORT", b"", 64),
    Case("usage-sort-all", "show --sort ERRORS", b"", 64),
    Case("usage-sort-json", "show client -j --sort ERRORS", b"", 64),
    Case("usage-sort-stat", "stat --sort STATE", b"", 64),
    Case("usage-top-details", "show client --top 3 -d", b"", 64),
    Case("usage-two", "show client server", b"", 64),
    Case("usage-option", "show -x", b"", 64),
    Case("usage-nothing", "", b"", 64),
    Case("usage-unknown", "-j sow", b"", 64),
    Case("usage-unknown-option", "-x", b"", 64),
    Case("usage-module", "show module to 10.17.0.1", b"", 64),
    Case("usage-module-sort", "show module --sort PEER", b"", 64),
    Case("usage-reload", "reload now", b"", 64),
    Case("usage-reload-wait", "reload --wait=-1", b"", 64),
    Case("usage-stat", "stat 0", b"", 64),
    Case("usage-stat-count", "stat 1 x", b"", 64),
    Case("usage-monitor", "monitor 1", b"", 64),
    Case("usage-metrics", "metrics rpcrdma.prom", b"", 64),
    Case("usage-metrics-file", "metrics -o /dev/null", kernel.datagram(kernel.error(2)), 64,
         known=False),
    Case("usage-metrics-count", "metrics --per-peer=0", b"", 64),
    Case("usage-metrics-sign", "metrics --per-peer=+5", b"", 64),
    Case("usage-ping", "ping -c 0 h", b"", 2),
    Case("usage-ping-none", "ping", b"", 2),
    Case("usage-ping-option", "ping -z h", b"", 2),
    Case("usage-ping-host", "ping [::1", b"", 2),
    Case("usage-doctor", "doctor host:0", b"", 64),
    Case("usage-columns", "show client --columns PEER,PORT", b"", 64),
    Case("usage-help", "stat --help", b""),
    Case("usage-help-short", "stat -h", b""),
    Case("usage-help-late", "show -dh nothing", b""),
    Case("help", "help", b""),
    Case("help-option", "-h", b""),
    Case("help-show", "help show", b""),
    Case("help-reload", "help reload", b""),
    Case("help-version", "help version", b""),
    Case("version", "version", b""),
    Case("version-option", "-V", b""),
    Case("version-long", "--version", b""),
    Case("help-unknown", "help sow", b"", 64),
]


def plant(root: Path) -> None:
    """Write what the program reads of /proc and /sys."""
    for name in FOLDERS:
        (root / name).mkdir(parents=True)
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def install(root: Path) -> None:
    """The file of a module, and what depmod makes of it."""
    folder = root / "lib/modules/6.12.0-test/updates"
    folder.mkdir(parents=True)
    subprocess.run(["cc", "-c", "-o", folder / "rpcrdma.ko",
                    GOLDEN.parent / "doctor/module.c"], check=True)
    subprocess.run(["depmod", "-b", root, "6.12.0-test"], check=True, stderr=subprocess.DEVNULL,
                   env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"})


def run(program: str, case: Case) -> tuple[int, str]:
    """Run the program. Returns its exit status and what it prints."""
    with tempfile.NamedTemporaryFile() as said, tempfile.TemporaryDirectory() as root:
        plant(Path(root))
        if case.installed:
            install(Path(root))
        said.write((kernel.family() if case.known else b"") + case.says)
        said.flush()
        # The leak checker cannot work where the program is traced, and what die() leaves
        # is freed by the end of the program.
        environment = {**os.environ, "CANNED": said.name, "ROOT": root, "TZ": "UTC",
                       "TERM": "xterm", "ASAN_OPTIONS": "detect_leaks=0", "LC_ALL": "C",
                       **dict(case.environment)}
        if not any(name == "NO_COLOR" for name, _ in case.environment):
            environment.pop("NO_COLOR", None)
        argv = [program, *case.arguments.replace("FOLDER", root).split()]
        if case.width:
            return on_terminal(argv, environment, case.width)
        done = subprocess.run(argv, env=environment, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30,
                              check=False)
        written = [f"{path.stat().st_mode:o} {path.name}\n{path.read_text()}"
                   for path in sorted(Path(root).glob("*prom*"))]
        printed = (done.stdout + "".join(written)).replace(root, "FOLDER")
        return done.returncode, VERSION.sub("VERSION", printed)


def on_terminal(argv: list[str], environment: dict[str, str], width: int) -> tuple[int, str]:
    """The same on a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    with subprocess.Popen(argv, env=environment, stdin=theirs, stdout=theirs,
                          stderr=theirs) as process:
        os.close(theirs)
        printed = b""
        try:
            while more := os.read(ours, 4096):
                printed += more
        except OSError:     # the end of a terminal
            pass
        process.wait(30)
    os.close(ours)
    return process.returncode, printed.decode().replace("\r\n", "\n").replace("\x1b", "\\e")


def too_wide(case: Case, printed: str) -> list[str]:
    """Lines that do not fit the terminal."""
    plain = printed
    for escape in ("\\e[0m", "\\e[1m", "\\e[31m", "\\e[32m", "\\e[33m"):
        plain = plain.replace(escape, "")
    if not case.width or "json" in case.name:
        return []
    return [line for line in plain.splitlines() if len(line) > case.width]


def check(program: str, case: Case) -> list[str]:
    """What is wrong with a run."""
    status, printed = run(program, case)
    file = GOLDEN / f"{case.name}.txt"
    wanted = file.read_text() if file.exists() else ""
    wrong = [f"the exit status is {status} instead of {case.status}"] * (status != case.status)
    wrong += [f"too wide: {line}" for line in too_wide(case, printed)]
    wrong += difflib.unified_diff(wanted.splitlines(), printed.splitlines(), "wanted", "printed",
                                  lineterm="")
    return wrong


def update(program: str) -> None:
    """Write golden/."""
    GOLDEN.mkdir(exist_ok=True)
    for old in GOLDEN.glob("*.txt"):
        old.unlink()
    for case in CASES:
        (GOLDEN / f"{case.name}.txt").write_text(run(program, case)[1])


def write_corpus(folder: Path) -> None:
    """Write an input for the fuzzer for each case; see fuzz.c for the first octet."""
    folder.mkdir(exist_ok=True)
    commands = {"show": 0, "show -d": 1, "show -j": 2, "stat": 3, "stat -j": 4, "monitor": 5,
                "monitor -j": 6, "metrics": 7, "show peers": 8, "show peers -d": 9,
                "show peers -j": 10, "stat peers": 11, "stat peers -j": 12}
    for case in CASES:
        if not case.says or case.width:
            continue
        words = sorted((word for word in case.arguments.split()
                        if word in (*commands, "peers", "-d", "-j")), reverse=True)
        said = (kernel.family() if case.known else b"") + case.says
        (folder / case.name).write_bytes(bytes([commands[" ".join(words)]]) + said)


def main() -> int:
    """Returns the exit status."""
    if sys.argv[1] == "--corpus":
        write_corpus(Path(sys.argv[2]))
        return 0
    if sys.argv[1] == "--update":
        update(sys.argv[2])
        return 0
    failed = 0
    print(f"KTAP version 1\n1..{len(CASES)}")
    for number, case in enumerate(CASES, 1):
        wrong = check(sys.argv[1], case)
        failed += bool(wrong)
        for line in wrong:
            print(f"# {line}")
        print(f"{'not ok' if wrong else 'ok'} {number} - {case.name}: rpcrdma {case.arguments}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
