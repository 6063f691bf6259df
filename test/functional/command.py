#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The command itself: what it accepts, what it refuses with which words, and what it becomes."""
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

from vrbtest import Identity, Site, Suite, arguments, require


def call(site, *argv, env=None):
    process = site.start([site.command, *argv], env=env, verbena=False)
    process.wait(20)
    return process


def ends(process, status, *words):
    require(process.status == status, f"status {status} is wanted\n{process.describe()}")
    if status and status != 77:
        lines = process.err.strip().splitlines()
        require(len(lines) == 1, f"one sentence is wanted\n{process.describe()}")
    for word in words:
        require(word in process.out + process.err, f"no '{word}' in\n{process.describe()}")


def help_and_version(site):
    ends(call(site, "--version"), 0, "verbena 0.")
    for argv in (["help"], ["--help"], ["help", "help"]):
        ends(call(site, *argv), 0, "run", "info")
    for command in ("run", "info", "top"):
        shown = [call(site, "help", command).out, call(site, command, "--help").out]
        require(shown[0] == shown[1] and "--segment" in shown[0], shown[0])


def bad_command_lines(site):
    for argv, word in (([], "command"), (["dance"], "dance"), (["--dance"], "--dance"),
                       (["help", "dance"], "dance"), (["run"], "program"),
                       (["run", "--dance", "true"], "--dance"), (["run", "--ip"], "--ip"),
                       (["info", "--env"], "--env"), (["info", "more"], "more"),
                       (["run", "--env", "true"], "true"), (["top", "--dance"], "--dance"),
                       (["top", "--delay"], "--delay"), (["top", "--delay", "x"], "x"),
                       (["top", "more"], "more"), (["info", "--pid", "x"], "x")):
        ends(call(site, *argv), 2, word)


def bad_values(site):
    for option, variable, value in (
            ("--ip", "VERBENA_IP", "198.18.0"), ("--ip", "VERBENA_IP", "127.0.0.1"),
            ("--ip", "VERBENA_IP", "224.0.0.1"), ("--ip", "VERBENA_IP", "::1"),
            ("--segment", "VERBENA_SEGMENT", "a/b"), ("--segment", "VERBENA_SEGMENT", ".."),
            ("--segment", "VERBENA_SEGMENT", "x" * 65), ("--icrc", "VERBENA_ICRC", "maybe"),
            ("--log", "VERBENA_LOG", "loud"), ("--log", "VERBENA_LOG", "info:"),
            ("--port", "VERBENA_PORT", "net_shmlan0, segment=x"),
            ("--eal", "VERBENA_EAL_ARGS", " ")):
        ends(call(site, "run", option, value, "--", "true"), 2, option, value)
        ends(call(site, "run", "--", "true", env={variable: value}), 2, variable, value)


def environment(site):
    """Options become variables, and win over those that are there."""
    process = call(site, "run", "--ip", "198.18.0.7", "--segment", "s", "--icrc", "on", "--log",
                   "info:f", "--port", "net_shmlan1", "--eal", "-v -v", "--explain", "--", "env",
                   env={"VERBENA_IP": "198.18.0.8"})
    ends(process, 0, "VERBENA_IP=198.18.0.7\n", "VERBENA_SEGMENT=s\n", "VERBENA_ICRC=on\n",
         "VERBENA_LOG=info:f\n", "VERBENA_PORT=net_shmlan1\n", "VERBENA_EAL_ARGS=-v -v\n",
         "VERBENA_EXPLAIN=1\n")
    process = call(site, "run", "--", "env")
    require("VERBENA_" not in process.out, process.describe())


def preload(site):
    """Ours, then upstream's, then what was there; a sanitizer's runtime stays in front."""
    def value(before):
        env = {"LD_PRELOAD": before} if before else {}
        out = call(site, "run", "--env", env=env).out
        return re.search(r"LD_PRELOAD='([^']*)'", out).group(1).split(":")
    ours, upstream = value("")[-2:]
    require(ours == str(site.shim().resolve()), f"{ours} is not ours")
    require(upstream != ours and upstream.endswith("/libibverbs.so.1"), upstream)
    again = value(f"{ours}:{upstream}")
    require(again[-2:] == [ours, upstream], f"a run below a run: {again}")


def program_statuses(site):
    ends(call(site, "run", "--", "sh", "-c", "exit 77"), 77)
    process = call(site, "run", "--", "sh", "-c", "kill -TERM $$")
    require(process.status == -15, process.describe())
    ends(call(site, "run", "--", "nothing-of-this-name"), 127, "nothing-of-this-name")
    ends(call(site, "run", "--", "/nothing/of/this/name"), 127, "/nothing/of/this/name")
    ends(call(site, "run", "--", "/etc/passwd"), 126, "/etc/passwd")
    ends(call(site, "run", "--", "/etc"), 126, "/etc")


def out_of_reach(site):
    """Programs that a preloaded library cannot reach."""
    source, static = site.folder / "p.c", site.folder / "static"
    source.write_text("int main(void) { return 0; }\n")
    built = subprocess.run(["cc", "-static", "-o", static, source], capture_output=True)
    require(built.returncode == 0, built.stderr.decode())
    script = site.folder / "script"
    script.write_text(f"#!{static}\n")
    script.chmod(0o755)
    for program in (static, script):
        ends(call(site, "run", "--", program), 126, "statically linked", str(static))


def gains_rights(site):
    """As root everything that is root's own may be run; anyone else is told."""
    process = call(site, "run", "--", "su", "--version")
    setuid = os.stat("/usr/bin/su").st_mode & stat.S_ISUID
    require(setuid, "su is not set-user-ID here")
    ends(process, 126, "set-user-ID")


def relocated(site):
    """Not in the build tree and not installed: a sentence, not a program without a device."""
    lonely = site.folder / "lonely" / "bin"
    lonely.mkdir(parents=True)
    place = lonely / "verbena"
    place.write_bytes(Path(site.command).read_bytes())
    place.chmod(0o755)
    process = site.start([place, "run", "true"], verbena=False)
    process.wait(10)
    ends(process, 125, "libibverbs.so.1", str(lonely))


def info(site):
    process = call(site, "info", "--segment", "seen", env={"VERBENA_LOG": "error"})
    ends(process, 0, "vrb0", "Ethernet", "::ffff:198.18.", "RoCEv2", "seen (option)",
         "error (environment VERBENA_LOG)", "net_shmlan0 (default)",
         str(site.runtime / "verbena/seen"))
    require(not process.err, process.describe())


CHECKS = (help_and_version, bad_command_lines, bad_values, environment, preload,
          program_statuses, out_of_reach, relocated, info)


def main():
    args = arguments(__doc__)
    suite = Suite()
    with Site(args.verbena) as site:
        for check in CHECKS:
            suite.check(check.__name__, lambda c=check: c(site))
    with Site(args.verbena, Identity("nobody") if os.geteuid() == 0 else None) as site:
        suite.check("gains_rights", lambda: gains_rights(site))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
