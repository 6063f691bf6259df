#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills one side of a running pair at any moment: the other side ends with an error in time.

Both sides have sends outstanding all the time, so the one that is left must get a completion with
IBV_WC_RETRY_EXC_ERR (12), or with IBV_WC_WR_FLUSH_ERR (5) once its queue pair is in error, within
the time that its timeout and retry count give. After each turn the segment serves the next pair.
"""
import random
import re
import signal
import sys
import time

from vrbtest import (Site, Suite, arguments, free_port, identities, listening, require,
                     wait_until)

PROGRAMS = ("ib_write_bw", "ib_send_bw", "ib_read_bw", "ib_atomic_bw")
RETRIES = 7  # perftest's
STATUS = re.compile(r"[Ff]ailed status (\d+)")
ERRORS = {"12", "5"}


def bound(timeout):
    """Seconds until an unanswered send must have failed: at most four times the timeout a try."""
    return (RETRIES + 1) * 4 * 4.096e-6 * (1 << timeout)


def started(process):
    """Prints its table's head when the queue pairs are connected and the run begins."""
    return "#bytes" in process.out


def expect_error(other, timeout, began):
    """Both had sends outstanding: the one that is left was told, in time, and ended by itself."""
    # Beside the transport's own time: perftest's exchange over TCP, and a busy machine.
    other.wait(bound(timeout) + 10)
    took = other.ended - began
    require(other.status > 0, f"the other side did not end with an error\n{other.describe()}")
    seen = set(STATUS.findall(other.out + other.err))
    require(seen and seen <= ERRORS, f"statuses {sorted(seen)}\n{other.describe()}")
    require(took <= bound(timeout) + 3,
            f"took {took:.1f} s of {bound(timeout):.1f} s\n{other.describe()}")


def expect_end(other, timeout, port):
    """Killed before the run: perftest may be anywhere, but must not crash or spin for ever."""
    wait_until(lambda: other.status is not None or listening(port), bound(timeout) + 10,
               "the other side ends, or waits for its client")
    require(other.status is None or other.status >= 0, other.describe())


def kill_one(site, program, timeout, victim_side, delay, early):
    port = free_port()
    argv = [program, "-p", port, "-b", "-D", 60, "-u", timeout]
    argv += [] if program == "ib_atomic_bw" else ["-s", 8192]
    # Its table is to be seen while it runs, though it is no terminal.
    lines = {"before": ("stdbuf", "-oL")}
    server = site.serve(argv, port, **lines)
    client = site.start([*argv, "127.0.0.1"], name="client", **lines)
    victim, other = (server, client) if victim_side == "server" else (client, server)
    try:
        if not early:
            wait_until(lambda: (started(client) and started(server)) or client.status is not None,
                       20, "the run begins")
        time.sleep(delay)
        victim.kill(signal.SIGKILL)
        if early:
            expect_end(other, timeout, port)
        else:
            expect_error(other, timeout, time.monotonic())
    finally:
        for process in (server, client):
            process.kill()


def clean(site, program):
    """The next pair works, takes the addresses of the dead, and nothing of them is left."""
    server, client = site.pair("ibv_rc_pingpong", ["-g", 0, "-c", "-n", 100])
    addresses = re.findall(r"local address:.*GID (\S+)", server.out + client.out)
    require(sorted(addresses) == ["::ffff:198.18.0.1", "::ffff:198.18.0.2"],
            f"addresses of the dead are not given out again: {addresses}")
    living = site.start([program, "open"])
    wait_until(lambda: "ready" in living.out or living.status is not None, 20, "one more comes")
    sockets = site.sockets()
    living.kill()
    require(len(sockets) == 1, f"one member, and on the segment are {sockets}")


def turn(site, idle, program, timeout, victim, delay, early):
    kill_one(site, program, timeout, victim, delay, early)
    clean(site, idle)


def main():
    args = arguments(__doc__, (["--program"], {"required": True}),
                     (["--turns"], {"type": int, "default": 2}),
                     (["--seed"], {"type": int, "default": 1}))
    chance = random.Random(args.seed)
    suite = Suite()
    for identity in identities():
        with Site(args.verbena, identity) as site:
            idle = site.copy(args.program)
            for program in PROGRAMS:
                for victim in ("server", "client"):
                    for number in range(args.turns):
                        early = number % 2 == 1
                        delay = chance.uniform(0, 0.3)
                        timeout = 14 if number == 0 and program == "ib_write_bw" else 10
                        name = (f"{program} -u {timeout}, the {victim} killed "
                                f"{'after' if early else 'running for'} {delay:.3f} s, "
                                f"as {identity.name}")
                        suite.check(name, lambda p=program, t=timeout, v=victim, d=delay,
                                    e=early: turn(site, idle, p, t, v, d, e))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
