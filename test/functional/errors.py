#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong around a program gives one sentence that helps, at once, and no device."""
import os
import re
import sys

from vrbtest import Failure, Site, Suite, arguments, identities, require, wait_until

SECONDS = 10.0


def preloaded(site, env):
    """As a program gets it that was not started by `verbena run`, which would look first."""
    exports = site.run([site.command, "run", "--env"], verbena=False).out
    preload = re.search(r"export LD_PRELOAD='([^']*)'", exports).group(1)
    return site.run(["ibv_devinfo"], env={"LD_PRELOAD": preload, **env}, verbena=False,
                    seconds=SECONDS)


def refused(process, *words):
    """Ends by itself, not well, and says one thing with these words in it."""
    require(process.status is not None and process.status > 0,
            f"it should have failed by itself\n{process.describe()}")
    said = [line for line in process.err.splitlines() if line.startswith("verbena[")]
    require(len(said) == 1, f"one sentence is wanted, not {len(said)}\n{process.describe()}")
    for word in words:
        require(word in said[0], f"no '{word}' in the sentence\n{process.describe()}")


def taken_address(site, program):
    holder = site.start([program, "open"], ["--ip", "198.18.3.4"])
    wait_until(lambda: "ready" in holder.out or holder.status is not None, 20, "the holder opens")
    if holder.status is not None:
        raise Failure(holder.describe())
    refused(site.run(["ibv_devinfo"], ["--ip", "198.18.3.4"], seconds=SECONDS), "198.18.3.4")
    holder.kill()
    process = site.run(["ibv_devinfo"], ["--ip", "198.18.3.4"])
    require(process.status == 0, f"free again, and refused\n{process.describe()}")


def bad_values(site, _):
    for name, value in (("VERBENA_IP", "198.18.0"), ("VERBENA_SEGMENT", "../x"),
                        ("VERBENA_ICRC", "maybe"), ("VERBENA_LOG", "loud"),
                        ("VERBENA_PORT", "net_nothing_of_this_name0"),
                        ("VERBENA_LOG", "info:/nonexistent/folder/log")):
        process = preloaded(site, {name: value})
        refused(process, value.split(":")[-1])


def folder_not_writable(site, _):
    refused(preloaded(site, {"XDG_RUNTIME_DIR": "/proc/self/fdinfo"}), "/proc/self/fdinfo")


def folder_of_others(site, _):
    """A segment that others may enter is none."""
    folder = site.runtime / "verbena"
    folder.mkdir(mode=0o700, exist_ok=True)
    segment = folder / "open"
    segment.mkdir(exist_ok=True)
    segment.chmod(0o777)
    site.identity.own(folder)
    site.identity.own(segment)
    refused(preloaded(site, {"VERBENA_SEGMENT": "open"}), str(segment))


def no_capability(site, _):
    """For a kernel's interface; root is shown without it too."""
    before = ("setpriv", "--bounding-set=-net_raw") if os.geteuid() == 0 and \
        not site.identity.user else ()
    process = site.start(["ibv_devinfo"], ["--port", "net_af_packet0,iface=lo"], before=before)
    process.wait(SECONDS)
    refused(process, "CAP_NET_RAW")


def log_to_file(site, _):
    """The log goes where it is told, and leaves standard error alone."""
    log = site.runtime / "verbena.log"
    process = site.run(["ibv_devinfo"], ["--log", f"debug:{log}"])
    require(process.status == 0 and not process.err, process.describe())
    require(log.exists() and log.read_text(), "the log is empty")


CHECKS = (taken_address, bad_values, folder_not_writable, folder_of_others, no_capability,
          log_to_file)


def main():
    args = arguments(__doc__, (["--program"], {"required": True}))
    suite = Suite()
    for identity in identities():
        for check in CHECKS:
            with Site(args.verbena, identity) as site:
                program = site.copy(args.program)
                suite.check(f"{check.__name__} as {identity.name}",
                            lambda c=check: c(site, program))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
