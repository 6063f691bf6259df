#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program that polls does all the work itself: the background thread lets it."""
import os
import sys
import time
from pathlib import Path

from vrbtest import Failure, Site, Suite, arguments, free_port, identities, require, wait_until

THREAD = "vrb-poller"
SECONDS = 1.0
TRIES = 3  # on a machine that others use a program polls only now and then
# Looking again every 2 ms makes 500; sharing the work with the program makes many thousands.
WAKEUPS = 2000


def background_thread(process):
    """Its folder in /proc; none before the device is open."""
    for task in Path(f"/proc/{process.pid}/task").glob("*"):
        if (task / "comm").read_text(encoding="ascii").strip() == THREAD:
            return task
    return None


def wakeups(task):
    for line in (task / "status").read_text(encoding="ascii").splitlines():
        if line.startswith("voluntary_ctxt_switches:"):
            return int(line.split()[1])
    raise Failure(f"{task}/status does not tell how often the thread has slept")


def leaves_alone(site, program):
    port = free_port()
    argv = [program, "-F", "-p", port, "-s", 8, "-D", int(TRIES * SECONDS) + 4]
    # Each with its background thread on one processor, where they are in each other's way.
    cpus = sorted(os.sched_getaffinity(0))
    pair = [site.serve(argv, port, before=("taskset", "-c", str(cpus[0]))),
            site.start([*argv, "127.0.0.1"], before=("taskset", "-c", str(cpus[-1])))]
    for process in pair:
        wait_until(lambda p=process: background_thread(p) or p.status is not None, 20,
                   "the device is open")
        if process.status is not None:
            raise Failure(process.describe())
    tasks = [background_thread(process) for process in pair]
    time.sleep(SECONDS)  # exchanging addresses, and the first messages
    seen = []
    for _ in range(TRIES):
        before, began = [wakeups(t) for t in tasks], time.monotonic()
        time.sleep(SECONDS)
        passed = time.monotonic() - began
        seen.append(max((wakeups(t) - b) / passed for t, b in zip(tasks, before)))
        if seen[-1] <= WAKEUPS:
            break
    for process in pair:
        process.kill()
    require(min(seen) <= WAKEUPS,
            "the background thread woke " + ", ".join(f"{n:.0f}" for n in seen)
            + " times a second while the program polled")


def main():
    args = arguments(__doc__)
    suite = Suite()
    for identity in identities():
        with Site(args.verbena, identity) as site:
            for program in ("ib_send_lat", "ib_send_bw"):
                suite.check(f"{program} as {identity.name}",
                            lambda p=program: leaves_alone(site, p))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
