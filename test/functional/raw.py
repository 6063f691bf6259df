#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""perftest's programs for raw frames: raw_ethernet_bw, _lat, _burst_lat and _fs_rate.

raw.py --verbena COMMAND [--repeat N] [--full]

They want to see the user id of root; nobody gives it to them with `unshare -r`. Without --full some
variants of each. What this build of perftest refuses, or does wrong whatever the device, stands in
REFUSED and in doc/guides/troubleshooting.rst.
"""
import re
import sys

from vrbtest import Site, Suite, arguments, require, root_identities, wait_until

LIMIT = 30.0
SERVER, CLIENT = ("198.18.0.1", "02:00:c6:12:00:01"), ("198.18.0.2", "02:00:c6:12:00:02")
IP4 = ["-J", SERVER[0], "-j", CLIENT[0]]
IP6 = ["--raw_ipv6", "-J", "fe80::1", "-j", "fe80::2"]
PORTS = ["-K", 5000, "-k", 6000]
UDP, TCP = [*IP4, *PORTS], [*IP4, *PORTS, "--tcp"]

BW = [[], ["-b"], ["-s", 64], ["-s", 1500], ["-l", 8], ["-q", 2], ["-Q", 16], ["-I", 64, "-s", 64],
      ["-D", 1, "-f", 0], ["-m", 1000], ["-r", 16], ["-t", 8], ["-N"], ["--use-srq"], IP4, UDP, TCP,
      [*UDP, "-b"], ["--vlan_en"], ["--vlan_en", "--vlan_pcp", 3], ["--vlan_en", "--vlan_pcp", 8],
      [*UDP, "--vlan_en"], ["--promiscuous"], ["--sniffer"], [*UDP, "--flows", 8],
      [*UDP, "--flows", 8, "--flows_burst", 4], [*TCP, "--flows", 8], IP6, [*IP6, *PORTS],
      [*IP6, *PORTS, "--tcp"], ["--rate_limit", 1, "--rate_limit_type", "SW"], ["--rate_limit", 10],
      ["--mr_per_qp"], ["--use_old_post_send"], ["--recv_post_list", 8], ["--report_gbits"],
      ["-L", 3, *IP4], ["--tclass", 8, *IP4], ["-T", 8, *IP4]]
LAT = [[], ["-s", 64], ["-s", 1500], ["-I", 64, "-s", 64], ["-D", 1, "-f", 0], IP4, UDP, TCP,
       ["--vlan_en"], ["--promiscuous"], ["--sniffer"], ["-r", 16], ["--raw_mcast"], IP6,
       ["--reply_every", 4], ["-H"], ["-C"], ["-U"]]
RATE = [[], ["-n", 500], UDP, TCP, ["--vlan_en"], IP6, ["--use-srq"], ["-H", "-n", 20]]

SOME_BW = [[], ["-b"], ["-s", 64], UDP, [*TCP, "--flows", 8], ["--vlan_en"], ["--sniffer"],
           [*IP6, *PORTS], ["--use-srq"]]
SOME_LAT = [[], UDP, ["--raw_mcast"], ["--reply_every", 4]]
SOME_RATE = [[], UDP]

SW_LIMIT = "SW Rate limiter cann't be executed"
# Program, arguments, what it says.
REFUSED = (
    ("raw_ethernet_bw", ["-G"], "invalid option -- 'G'"),
    ("raw_ethernet_lat", ["-G"], "invalid option -- 'G'"),
    ("raw_ethernet_bw", ["-Y", "0x0800"], "invalid option -- 'Y'"),
    ("raw_ethernet_bw", ["-a"], "Raw Ethernet tests do not support -a / --all flag"),
    ("raw_ethernet_bw", ["-g"], "Couldn't attach QP"),  # -g makes a queue pair of UD of it
    ("raw_ethernet_bw", ["--rate_limit", 1], "The input value for hw rate limit is not supported"),
    ("raw_ethernet_burst_lat", [], SW_LIMIT),
    ("raw_ethernet_burst_lat", ["--burst_size", 16], SW_LIMIT),
    ("raw_ethernet_burst_lat", [*UDP, "--reply_every", 4], SW_LIMIT),
    ("raw_ethernet_burst_lat", ["-D", 1, "--rate_limit_type", "HW"],
     "Latency under load test is currently support iteration mode only"),
    ("raw_ethernet_fs_rate", ["-G"], "invalid option -- 'G'"),
)


def start(site, program, side, line):
    mine, peer = (SERVER, CLIENT) if side == "server" else (CLIENT, SERVER)
    return site.start([program, f"--{side}", "-B", mine[1], "-E", peer[1], *line],
                      ["--ip", mine[0]], name=side, before=site.before)


def is_ready(site, server):
    """It tells nobody; but its flow rule and its state are seen from outside."""
    out = site.run([site.command, "info", "--pid", server.pid], verbena=False).out
    return server.status is not None or (
        re.search(r" [1-9]\d* flow rules", out) and re.search(r"RAW, RT[RS],", out))


def run_pair(site, program, line):
    if not {"-n", "-D"} & set(line):
        # As many as it has receives, 512: on a network without acknowledgements a program that
        # is not given a processor for long loses the others, and waits for them.
        line = [*line, "-n", 500]
    server = start(site, program, "server", line)
    wait_until(lambda: is_ready(site, server), 10, "the server is ready")
    client = start(site, program, "client", line)
    for process in (client, server):
        process.wait(LIMIT)
    require(server.status == 0 and client.status == 0,
            f"{server.describe()}\n{client.describe()}")


def run_rate(site, line):
    process = start(site, "raw_ethernet_fs_rate", "server", line)
    process.wait(LIMIT)
    require(process.status == 0 and "fps[flow per sec]" in process.out, process.describe())


def run_refused(site, program, line, message):
    process = start(site, program, "server", line)
    process.wait(LIMIT)
    require(process.status != 0 and message in process.out + process.err, process.describe())


def run_all(suite, site, full):
    who = f"as {site.identity.name}"

    def check(program, line, function, *more):
        suite.check(f"{program} {' '.join(map(str, line))} {who}", lambda: function(site, *more))

    for program, lines in (("raw_ethernet_bw", BW if full else SOME_BW),
                           ("raw_ethernet_lat", LAT if full else SOME_LAT)):
        for line in lines:
            check(program, line, run_pair, program, line)
    for line in RATE if full else SOME_RATE:
        check("raw_ethernet_fs_rate", line, run_rate, line)
    if not site.identity.user:
        for program, line, message in REFUSED:
            check(program, [*line, "is refused"], run_refused, program, line, message)


def main():
    args = arguments("perftest's programs for raw frames",
                     (["--repeat"], {"type": int, "default": 1}),
                     (["--full"], {"action": "store_true", "help": "every variant"}))
    suite = Suite()
    for turn in range(args.repeat):
        if args.repeat > 1:
            print(f"turn {turn + 1} of {args.repeat}", flush=True)
        for identity, before in root_identities():
            with Site(args.verbena, identity) as site:
                site.before = before
                run_all(suite, site, args.full)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
