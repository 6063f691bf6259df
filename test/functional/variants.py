#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""perftest over shared receive queues, XRC, UC and UD, in the variants that it has.

variants.py --verbena COMMAND [--repeat N] [--full] [GROUP...]

Without --full some lines of each group, which take half a minute in all. A group is srq, xrc, uc,
ud, xsrq or refused: what perftest refuses by itself, with its message.
"""
import contextlib
import sys
from pathlib import Path

from vrbtest import Site, Suite, arguments, identities, require

PAIR_LIMIT = 120.0
N = ["-n", 200]
SIZES = ["-a", "-n", 100]  # a latency test of perftest then measures the CPU's clock 23 times
BW = ("ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_atomic_bw")
LAT = ("ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_atomic_lat")
# Of fixed names: perftest and ibv_xsrq_pingpong leave them, and another user cannot open them.
XRC_FILES = ("xrc_domain", "xrc_domain_server", "xrc_domain_client")


def full_xrc():
    for program in (*BW, *LAT):
        yield program, ["-c", "XRC", *N]
        yield program, ["-c", "XRC", "-D", 1]
        if "atomic" not in program:
            yield program, ["-c", "XRC", *SIZES]
        if "write" not in program:
            yield program, ["-c", "XRC", "-e", *N]
        if program in BW:
            yield program, ["-c", "XRC", "-q", 4, *N]
            yield program, ["-c", "XRC", "-b", *N]
    yield "ib_send_bw", ["-c", "XRC", "--use-srq", *N]
    yield "ib_send_lat", ["-c", "XRC", "--use-srq", *N]


def full_srq():
    for extra in ([], ["-r", 4], ["-e"], ["-c", "UD"], ["-c", "UC"], ["-c", "XRC"],
                  ["-I", 64, "-s", 32], ["-s", 65536]):
        yield "ib_send_bw", ["--use-srq", *extra, *N]
        yield "ib_send_lat", ["--use-srq", *extra, *N]
    for extra in (["-q", 8], ["-b"], ["-q", 4, "-b"], ["-c", "XRC", "-q", 4], ["-l", 8],
                  ["-q", 16, "-r", 16]):
        yield "ib_send_bw", ["--use-srq", *extra, "-n", 1600]
    yield "ib_send_bw", ["--use-srq", *SIZES]
    yield "ib_send_lat", ["--use-srq", *SIZES]


FULL = {
    "srq": list(full_srq()),
    "xrc": list(full_xrc()),
    "uc": [(p, ["-c", "UC", *SIZES]) for p in
           ("ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat")],
    "ud": [(p, ["-c", "UD", *extra]) for p in ("ib_send_bw", "ib_send_lat")
           for extra in (N, SIZES, ["-e", *N], ["-D", 1])],
    # Clients of one server, each with a queue pair of XRC: -c, of the server only.
    "xsrq": [("ibv_xsrq_pingpong", ["-g", 0, *extra]) for extra in
             ([], ["-n", 1000], ["-e"], ["-e", "-n", 500], ["-s", 1], ["-s", 100000, "-n", 50],
              ["-m", 256], ["-m", 4096, "-s", 65536])],
}
FULL["xsrq"].append(("ibv_xsrq_pingpong", ["-g", 1]))
SOME = {
    "srq": [("ib_send_bw", ["--use-srq", "-q", 8, "-n", 1600]),
            ("ib_send_lat", ["--use-srq", *N]),
            ("ib_send_bw", ["--use-srq", "-c", "UD", *N]),
            ("ib_send_bw", ["--use-srq", "-e", *N]),
            ("ib_send_bw", ["--use-srq", "-c", "XRC", "-q", 4, "-n", 1600])],
    "xrc": [(p, ["-c", "XRC", *N]) for p in (*BW, *LAT)]
    + [("ib_send_bw", ["-c", "XRC", "-q", 4, *N]), ("ib_send_bw", ["-c", "XRC", "-e", *N])],
    "uc": [("ib_send_bw", ["-c", "UC", "-s", 1 << 20, "-n", 50]),
           ("ib_write_bw", ["-c", "UC", *N])],
    "ud": [("ib_send_bw", ["-c", "UD", *N])],
    "xsrq": [("ibv_xsrq_pingpong", ["-g", 0, "-e"]),
             ("ibv_xsrq_pingpong", ["-g", 0, "-n", 1000])],
}
# What this build of perftest does not do, whatever the device.
NO_SRQ = "Using SRQ only avavilible in SEND tests"
NO_UD = "UD connection only possible in SEND verb"
NO_UC = "UC connection not possible in READ/ATOMIC verbs"
REFUSED = (
    [(p, ["--use-srq"], NO_SRQ) for p in (*BW[1:], *LAT[1:])]
    + [(p, ["-c", "UD"], NO_UD) for p in (*BW[1:], *LAT[1:])]
    + [(p, ["-c", "UC"], NO_UC) for p in
       ("ib_read_bw", "ib_read_lat", "ib_atomic_bw", "ib_atomic_lat")]
    + [(p, ["-e"], "Events feature not available on WRITE verb")
       for p in ("ib_write_bw", "ib_write_lat")]
    + [(p, ["-a"], "Message size cannot be changed for Atomic tests")
       for p in ("ib_atomic_bw", "ib_atomic_lat")]
    + [("ib_send_lat", ["--use-srq", "-q", 4], "Multiple QPs only available on bw tests")]
)


def remove_xrc_files():
    for name in XRC_FILES:
        with contextlib.suppress(FileNotFoundError):
            Path("/tmp", name).unlink()


def run_line(site, program, line):
    remove_xrc_files()
    try:
        site.pair(program, line, PAIR_LIMIT)
    finally:
        remove_xrc_files()


def run_refused(site, program, line, message):
    process = site.run([program, *line])
    require(process.status != 0 and message in process.out + process.err, process.describe())


def run_group(suite, verbena, identity, group, full):
    with Site(verbena, identity) as site:
        if group == "refused":
            for program, line, message in REFUSED:
                suite.check(f"{program} {' '.join(map(str, line))} is refused",
                            lambda p=program, x=line, m=message: run_refused(site, p, x, m))
            return
        for program, line in (FULL if full else SOME)[group]:
            suite.check(f"{program} {' '.join(map(str, line))} as {identity.name}",
                        lambda p=program, x=line: run_line(site, p, x))


def main():
    args = arguments(
        "perftest over shared receive queues, XRC, UC and UD",
        (["--repeat"], {"type": int, "default": 1}),
        (["--full"], {"action": "store_true", "help": "every variant; some minutes"}),
        (["group"], {"nargs": "*", "choices": [*FULL, "refused", []]}))
    suite = Suite()
    for turn in range(args.repeat):
        if args.repeat > 1:
            print(f"turn {turn + 1} of {args.repeat}", flush=True)
        for identity in identities():
            for group in args.group or [*FULL, *([] if identity.user or turn else ["refused"])]:
                run_group(suite, args.verbena, identity, group, args.full)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
