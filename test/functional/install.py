#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`meson install`: everything is in its place, and works from there, also after a move."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

from vrbtest import Process, Site, Suite, arguments, require

WANTED = ("bin/verbena", "lib/**/verbena/libibverbs.so.1", "lib/**/librte_net_shmlan.so*",
          "share/man/man1/verbena.1", "share/man/man1/verbena-run.1",
          "share/man/man1/verbena-info.1", "share/man/man1/verbena-top.1",
          "share/man/man7/verbena-environment.7")


def install(site, build):
    stage = site.folder / "stage"
    done = subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--destdir", stage],
                          capture_output=True, text=True)
    require(done.returncode == 0, done.stdout + done.stderr)
    command = next(stage.glob("**/bin/verbena"), None)
    require(command, f"no bin/verbena below the stage\n{done.stdout}")
    return command.parent.parent


def all_there(prefix):
    for pattern in WANTED:
        require(list(prefix.glob(pattern)) or list(prefix.glob(pattern + ".gz")),
                f"no {pattern} was installed")


def works(site, prefix):
    process = Process(site, "installed", [prefix / "bin/verbena", "run", "--", "ibv_devices"],
                      site.environment(), site.folder)
    process.wait()
    require(process.status == 0 and "vrb0" in process.out, process.describe())


def no_build_paths(prefix, build):
    """Nothing that is run may look for something in the tree that it was built in."""
    for path in [prefix / "bin/verbena", *prefix.glob("lib/**/*.so*")]:
        out = subprocess.run(["readelf", "-d", path], capture_output=True, text=True).stdout
        require(not re.search(r"\((RPATH|RUNPATH)\).*" + re.escape(str(build)), out),
                f"{path.name} has a run path of the build tree")


def main():
    args = arguments(__doc__)
    build = Path(args.verbena).resolve().parent.parent.parent
    suite = Suite()
    with Site(args.verbena) as site:
        prefix = install(site, build)
        moved = site.folder / "moved"
        suite.check("all there", lambda: all_there(prefix))
        suite.check("works from there", lambda: works(site, prefix))
        shutil.move(prefix, moved)
        suite.check("works after a move", lambda: works(site, moved))
        suite.check("no paths of the build", lambda: no_build_paths(moved, build))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
