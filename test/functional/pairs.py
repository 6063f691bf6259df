#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Debian's own programs, unmodified, between two processes: each must complete and exit 0.

pairs.py --verbena COMMAND [--repeat N] [--quick] [--direct MODE] GROUP...

A group is a program; "all" stands for every one of them. --repeat runs everything that many times
in a row, as a hang or a failure in a hundred runs is one too many; --quick takes only the first
line of each group.
"""
import sys

from vrbtest import Site, Suite, arguments, identities

PAIR_LIMIT = 120.0  # a second or two, but for -a on a machine that others use as well
MTU_EDGES = (1023, 1024, 1025, 4095, 4096, 4097)

# Each line: arguments for both sides. Few iterations: what is looked for is a wrong or a missing
# completion, and test/perf measures.
PINGPONG = (
    ["-g", 0, "-c"],
    ["-g", 0, "-c", "-e"],
    ["-g", 0, "-c", "-s", 1000000, "-n", 50],
    ["-g", 1, "-c"],
    ["-g", 0, "-c", "-N"],
    ["-g", 0, "-c", "-e", "-s", 1, "-n", 5000],
    ["-g", 0, "-c", "-m", 4096, "-s", 100000, "-n", 100],
    *(["-g", 0, "-c", "-n", 100, "-s", size] for size in MTU_EDGES),
)
SRQ_PINGPONG = (
    ["-g", 0, "-c"],
    ["-g", 0, "-e"],
    ["-g", 0, "-c", "-s", 100000, "-n", 20],
    ["-g", 0, "-q", 1, "-n", 100],
)
# Nothing answers for a lost message here, so one at a time is outstanding.
UC_PINGPONG = (["-g", 0, "-c"], ["-g", 0, "-c", "-e"], ["-g", 1, "-c", "-s", 100000, "-n", 50])
UD_PINGPONG = (["-g", 0, "-c", "-s", 1000], ["-g", 0, "-c", "-e", "-s", 4056], ["-g", 1, "-s", 1])
XSRQ_PINGPONG = (["-g", 0], ["-g", 0, "-s", 100000, "-n", 20])
GIDS = (["-x", 0], ["-x", 1])
BANDWIDTH = (
    ["-n", 1000],
    ["-s", 1, "-n", 2000],
    ["-q", 4, "-n", 500],
    ["-l", 8, "-n", 1600, "-s", 4096],
    ["-b", "-n", 500],
    ["-m", 1024, "-s", 4097, "-n", 500],
)
LATENCY = (
    ["-n", 1000],
    ["-s", 1, "-n", 1000],
    ["-s", 65536, "-n", 500],
    ["-m", 256, "-s", 1025, "-n", 500],
)
ALL_SIZES = (["-a", "-n", 100],)
EVENTS = (["-e", "-n", 500],)
INLINE = (["-I", 64, "-s", 64, "-n", 1000], ["-I", 0, "-s", 8, "-n", 1000])


def without_size(lines):
    """The atomic programs know one size only."""
    return tuple(line for line in lines if "-s" not in line)


GROUPS = {
    "ibv_rc_pingpong": PINGPONG,
    "ibv_srq_pingpong": SRQ_PINGPONG,
    "ibv_uc_pingpong": UC_PINGPONG,
    "ibv_ud_pingpong": UD_PINGPONG,
    "ibv_xsrq_pingpong": XSRQ_PINGPONG,
    "ib_send_bw": (*BANDWIDTH, *GIDS, *ALL_SIZES, *EVENTS, *INLINE, ["-r", 16, "-n", 1000]),
    "ib_send_lat": (*LATENCY, *GIDS, *ALL_SIZES, *EVENTS, *INLINE, ["-c", "UC", "-n", 1000],
                    ["-c", "UD", "-n", 1000]),
    "ib_write_bw": (*BANDWIDTH, *GIDS, *ALL_SIZES, *INLINE, ["--use_old_post_send", "-n", 500],
                    ["-c", "UC", "-n", 500]),
    "ib_write_lat": (*LATENCY, *GIDS, *ALL_SIZES, *INLINE),
    "ib_read_bw": (*BANDWIDTH, *GIDS, *ALL_SIZES, *EVENTS, ["-o", 1, "-n", 200]),
    "ib_read_lat": (*LATENCY, *GIDS, *ALL_SIZES, *EVENTS),
    "ib_atomic_bw": (*without_size(BANDWIDTH), *GIDS, *EVENTS, ["-A", "CMP_AND_SWAP", "-n", 500],
                     ["-A", "FETCH_AND_ADD", "-n", 500], ["-l", 8, "-n", 800]),
    "ib_atomic_lat": (*without_size(LATENCY), *GIDS, *EVENTS,
                      ["-A", "CMP_AND_SWAP", "-n", 500], ["-A", "FETCH_AND_ADD", "-n", 500]),
}


def run_group(suite, verbena, identity, program, lines, options=()):
    with Site(verbena, identity) as site:
        for line in lines:
            name = " ".join(map(str, (*options, program, *line, "as", identity.name)))
            suite.check(name, lambda line=line: site.pair(program, line, PAIR_LIMIT,
                                                          options=options))


def main():
    args = arguments(
        "Debian's own programs between two processes",
        (["--repeat"], {"type": int, "default": 1}),
        (["--quick"], {"action": "store_true", "help": "the first line of each group only"}),
        (["--direct"], {"choices": ("auto", "off", "always"), "metavar": "MODE",
                        "help": "of 'verbena run': off, auto or always"}),
        (["group"], {"nargs": "+", "choices": [*GROUPS, "all"]}))
    groups = list(GROUPS) if "all" in args.group else args.group
    options = ("--direct", args.direct) if args.direct else ()
    suite = Suite()
    for turn in range(args.repeat):
        if args.repeat > 1:
            print(f"turn {turn + 1} of {args.repeat}", flush=True)
        for identity in identities():
            for program in groups:
                lines = GROUPS[program][:1] if args.quick else GROUPS[program]
                run_group(suite, args.verbena, identity, program, lines, options)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
