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

from vrbtest import Site, Suite, arguments, free_port, identities, require, wait_until

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


def kill_one(site, program, timeout, victim_side, delay, early):
    port = free_port()
    argv = [program, "-p", port, "-b", "-D", 60, "-u", timeout]
    argv += [] if program == "ib_atomic_bw" else ["-s", 8192]
    server = site.serve(argv, port)
    client = site.start([*argv, "127.0.0.1"], name="client")
    victim, other = (server, client) if victim_side == "server" else (client, server)
    if not early:
        wait_until(lambda: started(client) and started(server) or client.status is not None, 20,
                   "the run begins")
    time.sleep(delay)
    victim.kill(signal.SIGKILL)
    began = time.monotonic()
    # Beside the transport's own time: noticing, perftest's exchange over TCP, a busy machine.
    other.wait(bound(timeout) + 10)
    took = time.monotonic() - began
    require(other.status != 0, f"the other side did not notice\n{other.describe()}")
    # One that was killed before the run ends on its TCP connection, whatever perftest makes of it.
    if early:
        return
    require(other.status > 0, f"the other side crashed\n{other.describe()}")
    seen = set(STATUS.findall(other.out + other.err))
    require(seen and seen <= ERRORS, f"statuses {sorted(seen)}\n{other.describe()}")
    require(took <= bound(timeout) + 3, f"took {took:.1f} s of {bound(timeout):.1f} s\n"
            + other.describe())


def leftovers(site):
    """Files of members that are no more; the registry itself stays."""
    return sorted(p.name for p in site.runtime.glob("verbena/*/*")
                  if p.is_socket() or p.is_fifo())


def clean(site):
    """The next pair works, takes the addresses of the dead, and leaves nothing."""
    server, client = site.pair("ibv_rc_pingpong", ["-g", 0, "-c", "-n", 100])
    addresses = re.findall(r"local address:.*GID (\S+)", server.out + client.out)
    require(sorted(addresses) == ["::ffff:198.18.0.1", "::ffff:198.18.0.2"],
            f"addresses of the dead are not given out again: {addresses}")
    require(not leftovers(site), f"left on the segment: {leftovers(site)}")


def turn(site, program, timeout, victim, delay, early):
    kill_one(site, program, timeout, victim, delay, early)
    clean(site)


def main():
    args = arguments(__doc__, (["--turns"], {"type": int, "default": 2}),
                     (["--seed"], {"type": int, "default": 1}))
    chance = random.Random(args.seed)
    suite = Suite()
    for identity in identities():
        with Site(args.verbena, identity) as site:
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
                                    e=early: turn(site, p, t, v, d, e))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
