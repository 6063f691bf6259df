#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Who waits uses no processor: with the device open, and in ibv_get_cq_event()."""
import sys
import time

from vrbtest import Failure, Site, Suite, arguments, identities, require, wait_until

SECONDS = 3.0
SHARE = 0.01  # of one processor
MODES = ("open", "event")


def uses_little(process):
    time.sleep(0.5)  # what is left of starting up
    before = process.cpu_seconds()
    time.sleep(SECONDS)
    used = process.cpu_seconds() - before
    # The kernel counts in hundredths of a second: one of them may fall to us by chance.
    require(used <= SHARE * SECONDS + 0.01, f"used {used:.2f} s of processor in {SECONDS:.0f} s")


def waiting(site, program, mode, neighbours):
    process = site.start([program, mode])
    others = [site.start([program, "open"]) for _ in range(neighbours)]
    for p in (process, *others):
        wait_until(lambda p=p: "ready" in p.out or p.status is not None, 20, "it waits")
        if p.status is not None:
            raise Failure(p.describe())
    uses_little(process)
    for p in (process, *others):
        p.kill()


def main():
    args = arguments(__doc__, (["--program"], {"required": True}))
    suite = Suite()
    for identity in identities():
        with Site(args.verbena, identity) as site:
            program = site.copy(args.program)
            for mode in MODES:
                for neighbours in (0, 3):
                    suite.check(f"{mode}, {neighbours} others on the segment, as {identity.name}",
                                lambda m=mode, n=neighbours: waiting(site, program, m, n))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
