#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every way that leads to libibverbs leads to ours; and programs that fork and exec keep it."""
import shlex
import sys

from vrbtest import Site, Suite, arguments, identities, require


def well(process, *words):
    require(process.status == 0, process.describe())
    for word in words:
        require(word in process.out, f"no '{word}' in\n{process.describe()}")


def forks(site, programs):
    well(site.run([programs["verbs"], "fork"]), "done")


def shell(site, _):
    """A shell's children, and theirs, are hosts of their own."""
    process = site.run(["sh", "-c", "ibv_devices && (ibv_devices | cat) && exec ibv_devices"])
    well(process, "vrb0")
    require(process.out.count("vrb0") == 3, process.describe())


def dlopen(site, programs):
    well(site.run([programs["dlopen"]]), "vrb0")


def library_path(site, programs):
    """Without LD_PRELOAD: the SONAME is what counts."""
    folder = site.shim().parent
    for argv in (["ibv_devices"], [programs["dlopen"]]):
        well(site.run(argv, env={"LD_LIBRARY_PATH": str(folder)}, verbena=False), "vrb0")


def shell_eval(site, _):
    line = f'eval "$({shlex.quote(str(site.command))} run --env)"; ibv_devices; ib_write_bw -V'
    process = site.run(["bash", "-c", line], verbena=False)
    require("vrb0" in process.out, process.describe())


def nested(site, _):
    well(site.run([site.command, "run", "--", "ibv_devices"]), "vrb0")


def python(site, _):
    code = "from pyverbs.device import get_device_list; print(get_device_list()[0].name.decode())"
    well(site.run(["/usr/bin/python3", "-c", code]), "vrb0")


CHECKS = (forks, shell, dlopen, library_path, shell_eval, nested, python)


def main():
    args = arguments(__doc__, (["--verbs-program"], {"required": True}),
                     (["--dlopen-program"], {"required": True}))
    suite = Suite()
    for identity in identities():
        with Site(args.verbena, identity) as site:
            programs = {"verbs": site.copy(args.verbs_program),
                        "dlopen": site.copy(args.dlopen_program)}
            for check in CHECKS:
                suite.check(f"{check.__name__} as {identity.name}",
                            lambda c=check: c(site, programs))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
