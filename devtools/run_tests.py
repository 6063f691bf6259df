# SPDX-License-Identifier: BSD-3-Clause
"""Builds what is needed and runs everything that must pass.

devtools/test [--quick] [--werror] [PATTERN]

  --quick    leave away the slow tests and the builds with sanitizers
  --werror   warnings of the compiler are errors (on by itself when CI is set)
  PATTERN    only tests whose "suite/name" holds this regular expression, for example
             'pingpong' or '^unit/'; builds without such a test are left away too

Three builds: build/ as a user has it; build-asan/ with ASan and UBSan, where everything is run but
the suites checks and functional, and of these what is marked 'asan'; build-tsan/ with TSan, where
what is marked 'tsan' is run. Meson runs the tests. The last line says how many passed and failed;
the status is 1 when one failed.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
GOOD = {"OK", "EXPECTEDFAIL"}
SANITIZER_ENV = {
    "ASAN_OPTIONS": "halt_on_error=1:abort_on_error=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "halt_on_error=1:abort_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:abort_on_error=1:second_deadlock_stack=1",
}


class Build:
    """A build folder, how it is made, and which of its tests are run."""

    def __init__(self, folder, options, wants):
        self.folder = TOP / folder
        self.name = folder
        self.options = options
        self.wants = wants  # of the set of a test's suites


BUILDS = (
    Build("build", [], lambda suites: True),
    Build("build-asan", ["-Db_sanitize=address,undefined", "-Db_lundef=false"],
          lambda suites: "asan" in suites or not {"checks", "functional"} & suites),
    # DPDK's locks by the compiler's atomics, which TSan sees, and not by assembly. That it does not
    # follow fences, of which GCC warns, is known where one stands.
    Build("build-tsan", ["-Db_sanitize=thread", "-Db_lundef=false",
                         "-Dc_args=-Wno-tsan -DRTE_FORCE_INTRINSICS"],
          lambda suites: "tsan" in suites),
)


class Results:
    """What passed, failed and was skipped, by name."""

    def __init__(self):
        self.passed, self.failed, self.skipped = [], [], []

    def add(self, name, result):
        if result in GOOD:
            self.passed.append(name)
        elif result == "SKIP":
            self.skipped.append(name)
        else:
            self.failed.append(f"{name} ({result})")


def say(text):
    print(f"test: {text}", flush=True)


def quiet(*command):
    """Runs a tool of whose output only errors and warnings matter. True when it went well."""
    done = subprocess.run([str(a) for a in command], cwd=TOP, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        print(done.stdout[-6000:], flush=True)
    else:
        for line in done.stdout.splitlines():
            if "warning:" in line:
                print(line, flush=True)
    return done.returncode == 0


def configure(build, werror):
    # GCC warns of more, and of what is not so, where sanitizers have rewritten the code.
    strict = werror and build is BUILDS[0]
    options = build.options + [f"-Dwerror={'true' if strict else 'false'}"]
    if (build.folder / "build.ninja").exists():
        # The second writes build.ninja anew when a meson.build has changed: the list of tests too.
        return (quiet("meson", "configure", build.folder, *options)
                and quiet("ninja", "-C", build.folder, "build.ninja"))
    return quiet("meson", "setup", build.folder, *options)


def select(build, pattern, quick):
    """Names of the tests of a build that are to be run."""
    out = subprocess.run(["meson", "introspect", "--tests", build.folder], cwd=TOP, check=True,
                         capture_output=True, text=True).stdout
    names = []
    for test in json.loads(out):
        suites = {s.split(":")[-1] for s in test["suite"]}
        shown = f"{test['suite'][0].split(':')[-1]}/{test['name']}" if suites else test["name"]
        if quick and "slow" in suites:
            continue
        if build.wants(suites) and (not pattern or pattern.search(shown)):
            names.append(test["name"])
    return names


def run_tests(build, names, results):
    log = build.folder / "meson-logs" / "testlog.json"
    log.unlink(missing_ok=True)
    subprocess.run(["meson", "test", "-C", build.folder, "--no-rebuild", "--print-errorlogs",
                    *names], cwd=TOP, env={**SANITIZER_ENV, **os.environ})
    seen = set()
    if log.exists():
        for line in log.read_text().splitlines():
            test = json.loads(line)
            name = re.sub(r"^.* / ", "", test["name"])
            seen.add(name)
            results.add(f"{build.name}: {test['name']}", test["result"])
    for name in set(names) - seen:
        results.add(f"{build.name}: {name}", "NOT RUN")


def summary(results, began):
    for name in results.skipped:
        print(f"skipped: {name}")
    for name in results.failed:
        print(f"FAILED: {name}")
    say(f"took {int(time.monotonic() - began)} s")
    line = f"{len(results.passed)} passed, {len(results.failed)} failed"
    print(line + (f", {len(results.skipped)} skipped" if results.skipped else ""))
    return 1 if results.failed or not results.passed else 0


def main():
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__.strip())
        return 0
    parser = argparse.ArgumentParser(usage="devtools/test [--quick] [--werror] [PATTERN]")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--werror", action="store_true", default=bool(os.environ.get("CI")))
    parser.add_argument("pattern", nargs="?", type=re.compile)
    args = parser.parse_args()
    began = time.monotonic()
    results = Results()
    found = False
    for build in BUILDS[:1] if args.quick else BUILDS:
        say(f"building {build.name}/ {' '.join(build.options)}".rstrip())
        if not configure(build, args.werror):
            results.add(f"{build.name}: configure", "FAIL")
            continue
        names = select(build, args.pattern, args.quick)
        found |= bool(names)
        if args.pattern and not names:
            continue
        built = quiet("ninja", "-C", build.folder)
        results.add(f"{build.name}: build", "OK" if built else "FAIL")
        if built and names:
            say(f"running {len(names)} tests in {build.name}/")
            run_tests(build, names, results)
    if args.pattern and not found and not results.failed:
        say(f"no test matches '{args.pattern.pattern}'; 'meson test --list -C build' lists them")
        return 1
    return summary(results, began)


if __name__ == "__main__":
    sys.exit(main())
