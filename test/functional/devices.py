#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a program sees first: the device, listed fast and with not a word more than on hardware."""
import re
import sys

from vrbtest import Site, Suite, arguments, identities, require

LISTED_WITHIN = 0.3
# As ibverbs-utils print it for any card.
DEVICES = re.compile(r"    device          \t   node GUID\n"
                     r"    ------          \t----------------\n"
                     r"    vrb0            \t([0-9a-f]{16})\n")


def silent(process):
    require(process.status == 0, process.describe())
    require(not process.err, f"it printed more than on hardware\n{process.describe()}")


def ibv_devices(site):
    process = site.run(["ibv_devices"])
    silent(process)
    found = DEVICES.fullmatch(process.out)
    require(found, f"not the form of hardware\n{process.describe()}")
    require(int(found.group(1), 16) != 0, "the node GUID is 0")


def ibv_devices_time(site):
    times = []
    for _ in range(5):
        process = site.start(["ibv_devices"])
        process.wait()
        times.append(process.ended - process.began)
    require(min(times) < LISTED_WITHIN, f"took {min(times):.2f} s at best of {len(times)}")


def ibv_devinfo(site):
    process = site.run(["ibv_devinfo", "-v"])
    silent(process)
    for pattern in (r"hca_id:\tvrb0", r"state:\t+PORT_ACTIVE", r"link_layer:\t+Ethernet",
                    r"max_mtu:\t+4096", r"active_mtu:\t+4096", r"port_lid:\t+0",
                    r"GID\[  0\]:\t+::ffff:198\.18\.\d+\.\d+, RoCE v2",
                    r"GID\[  1\]:\t+fe80:.*, RoCE v2"):
        require(re.search(pattern, process.out), f"no {pattern!r} in\n{process.describe()}")


def stable_guid(site):
    """The same address gives the same GUID, whoever asks and when."""
    seen = {site.run(["ibv_devices"], ["--ip", "198.18.7.9"]).out for _ in range(2)}
    require(len(seen) == 1, f"two runs with one address differ: {seen}")


def leaves_nothing(site):
    """A program that ended by itself is no member any more, and has left no file of its own."""
    site.run(["ibv_devinfo"])
    require(not site.sockets(), f"left on the segment: {site.sockets()}")


def main():
    args = arguments(__doc__)
    suite = Suite()
    for identity in identities():
        with Site(args.verbena, identity) as site:
            for check in (ibv_devices, ibv_devices_time, ibv_devinfo, stable_guid, leaves_nothing):
                suite.check(f"{check.__name__} as {identity.name}", lambda c=check: c(site))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
