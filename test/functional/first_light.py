# SPDX-License-Identifier: BSD-3-Clause
"""The main job, told to someone who sees it for the first time: devtools/quickstart runs it."""
import re
import sys

from vrbtest import Failure, Site, arguments


def show(server, client):
    print("\n  in one process:  verbena " + " ".join(server.argv[1:]))
    print("  in another one:  verbena " + " ".join(client.argv[1:]))


def pingpong(site):
    server, client = site.pair("ibv_rc_pingpong", ["-g", 0, "-c"])
    show(server, client)
    rate = re.search(r"(\d+) bytes in .* = ([\d.]+) Mbit/sec", client.out)
    time = re.search(r"(\d+) iters in .* = ([\d.]+) usec/iter", client.out)
    print(f"  measured: {time.group(1)} messages of 4096 bytes there and back, every byte checked:"
          f"\n            {time.group(2)} microseconds for each, {rate.group(2)} Mbit/s")


def row(client):
    """The only line of perftest's table that begins with a number."""
    line = re.search(r"^ +\d+ +\d+ .*$", client.out, re.M)
    return [float(x) for x in line.group(0).split()]


def bandwidth(site):
    server, client = site.pair("ib_write_bw")
    show(server, client)
    size, count, _, average, _ = row(client)
    print(f"  measured: {count:.0f} RDMA WRITEs of {size:.0f} bytes into the other's memory:"
          f"\n            {average:.0f} MiB/s")


def latency(site):
    server, client = site.pair("ib_send_lat", ["-s", 8])
    show(server, client)
    size, count, _, _, typical, average, *_ = row(client)
    print(f"  measured: {count:.0f} messages of {size:.0f} bytes, one way:"
          f"\n            {typical:.2f} microseconds typically, {average:.2f} on average")


def main():
    args = arguments(__doc__)
    try:
        with Site(args.verbena) as site:
            print(f"The programs run as {site.identity.name}, unmodified, as Debian ships them.")
            for job in (pingpong, bandwidth, latency):
                job(site)
    except Failure as e:
        print(e, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
