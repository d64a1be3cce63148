# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""`make demo` and `make shell`: a guest for a person."""

import sys

from . import check, host, kernels
from .console import GuestFailure
from .guest import Guest
from .host import BUILD, LabError, say

DEMO_SECONDS = 300


def demo() -> bool:
    """Boot Debian's own kernel, mount over RDMA, and show that it works."""
    guest = Guest(kernels.of_host(), BUILD / "logs/demo", check.MODULE)
    say()
    say(f"  Booting Debian's kernel {guest.kernel.release} in QEMU, with this project's "
        "rpcrdma module.")
    say()
    try:
        seconds = guest.boot()
        say(f"  Booted in {seconds:.0f} s. One machine is client and server here, over rdma_rxe,")
        say("  RDMA in software on a dummy network interface.")
        variables: dict[str, str | int] = {"MODULE": check.MODULE, "DEVICE": "rxe",
                                           "ENDS": 1, "END": 1}
        status = guest.run(variables, "demo", "demo", DEMO_SECONDS, say)
    except GuestFailure as failure:
        say("\n".join(guest.last_lines()))
        raise LabError(f"the demo failed: {failure}; see {guest.console}") from failure
    finally:
        guest.kill()
    if status:
        raise LabError(f"the demo failed: see above, and {guest.console}")
    say("  'make shell' gives you a shell in such a machine; 'make check' runs the daily tests.")
    say()
    return True


def shell(name: str | None, module: str, device: str) -> bool:
    """Run a guest with its console on this terminal: that of the demo if none is named."""
    if not sys.stdin.isatty():
        raise LabError("make shell was not started in a terminal: start it in one")
    name = name or kernels.of_host()
    guest = Guest(name, BUILD / "logs/shell", module, rdma=device)
    say(f"# booting {name} with the {module} rpcrdma over {device}; what it writes to /lab/out "
        f"is in {guest.out.relative_to(host.TOP)}")
    guest.shell()
    return True
