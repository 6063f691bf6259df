#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""rdma-core's own tests, as Debian ships them, under `verbena run`.

rdmacore.py --verbena COMMAND [MODULE...]

Every test must pass, but for those below, each with the reason why the device skips it. A failure,
a skip that is not listed and a listed skip that no longer happens are failures. Nobody runs them
in a user namespace of its own (unshare -r), since some want to see the user id of root.
"""
import contextlib
import gzip
import io
import json
import shutil
import sys
import unittest
from pathlib import Path

TESTS = Path("/usr/share/doc/rdma-core/tests")
MODULES = ("test_cq", "test_cqex", "test_cq_events", "test_rss_traffic", "test_flow", "test_qp",
           "test_qpex", "test_device", "test_pd", "test_parent_domain", "test_mr", "test_addr",
           "test_atomic", "test_relaxed_ordering")
LIMIT = 120.0
RESULTS = "RESULTS "

NO_DMABUF = "buffers of a GPU: what is tested is a GPU's driver"
NO_ALLOCATORS = ("the device makes its queues while it holds its own lock, and an allocator of the "
                 "program may wait for a thread that waits for that lock")
# Name (a test, or all of a class) to the reason. MACHINE: whether it is skipped is the machine's.
MACHINE = ("test_mr.DmaBuf",)
SKIPS = {
    "test_device.DeviceTest.test_query_gid_ex_bad_flow":
        "the table has as many entries as the device has addresses; none is empty",
    "test_device.SharedDMTest.test_import_dm":
        "a device belongs to one process: there is nothing to import it from",
    "test_mr.DmaBuf": NO_DMABUF,
    "test_parent_domain.ParentDomainTrafficTest.test_huge_page_traffic": NO_ALLOCATORS,
    "test_parent_domain.ParentDomainTrafficTest.test_default_allocators_rc_traffic": NO_ALLOCATORS,
    "test_parent_domain.ParentDomainTrafficTest.test_mem_align_rc_traffic": NO_ALLOCATORS,
    "test_parent_domain.ParentDomainTrafficTest.test_mem_align_ud_traffic": NO_ALLOCATORS,
    "test_parent_domain.ParentDomainTrafficTest.test_mem_align_srq_excq_rc_traffic": NO_ALLOCATORS,
}


class Recorder(unittest.TestResult):
    """Notes what became of each test."""

    def __init__(self):
        super().__init__()
        self.seen = {}

    def note(self, test, what, text=""):
        self.seen[test.id().replace("tests.", "", 1)] = [what, text]

    def addSuccess(self, test):
        self.note(test, "ok")

    def addSkip(self, test, reason):
        self.note(test, "skip", reason)

    def addFailure(self, test, err):
        self.note(test, "fail", self._exc_info_to_string(err, test))

    def addError(self, test, err):
        self.note(test, "fail", self._exc_info_to_string(err, test))

    addUnexpectedSuccess = addSuccess


def inside(folder, module):
    """In the process that has the device: runs a module, prints what became of it as JSON."""
    sys.path[:0] = [str(folder), str(folder / "tests")]
    from tests.args_parser import parser  # noqa: what run_tests.py of theirs does
    sys.argv[1:] = []
    parser.parse_args()
    # Two names for one module there: what one has read the other must know.
    sys.modules["args_parser"] = sys.modules["tests.args_parser"]
    __import__(f"tests.{module}")
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[f"tests.{module}"])
    result = Recorder()
    with contextlib.redirect_stdout(io.StringIO()):
        suite.run(result)
    print("\n" + RESULTS + json.dumps(result.seen), flush=True)


def unpack(folder):
    """Their files where every identity can read them; what loads all of them is left away."""
    tests = folder / "tests"
    tests.mkdir()
    for path in TESTS.iterdir():
        if path.name == "__init__.py":
            (tests / path.name).write_text("")
        elif path.suffix == ".gz":
            (tests / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        elif path.suffix == ".py":
            shutil.copy(path, tests / path.name)
    shutil.copy(__file__, folder / "rdmacore.py")
    shutil.copy(Path(__file__).parent / "vrbtest.py", folder / "vrbtest.py")


def expected_skip(name):
    return next((listed for listed in SKIPS if name == listed or
                 (listed.count(".") == 1 and name.startswith(listed))), None)


def run_module(site, module):
    from vrbtest import Failure, require
    process = site.start(["/usr/bin/python3", "-B", site.folder / "rdmacore.py", "--inside",
                          site.folder, module], name=module, before=site.before)
    process.wait(LIMIT)
    line = next((x for x in process.out.splitlines() if x.startswith(RESULTS)), None)
    require(process.status == 0 and line, process.describe())
    seen = json.loads(line[len(RESULTS):])
    require(seen, f"{module} holds no test")
    wrong = []
    for name, (what, text) in sorted(seen.items()):
        listed = expected_skip(name)
        if what == "fail":
            wrong.append(f"{name} failed:\n{text}")
        elif what == "skip" and not listed:
            wrong.append(f"{name} is skipped: {text}\n  it must run, or stand in SKIPS")
        elif what == "ok" and listed and not name.startswith(MACHINE):
            wrong.append(f"{name} runs; take it out of SKIPS")
    for listed in SKIPS:
        if listed.startswith(f"{module}.") and not any(expected_skip(n) == listed for n in seen):
            wrong.append(f"{listed} stands in SKIPS, and there is no such test")
    if wrong:
        raise Failure("\n".join(wrong))
    return sum(what == "ok" for what, _ in seen.values())


def main():
    from vrbtest import Site, Suite, arguments, root_identities
    args = arguments("rdma-core's own tests", (["module"], {"nargs": "*"}))
    suite = Suite()
    ran = {}
    for identity, before in root_identities():
        with Site(args.verbena, identity) as site:
            site.before = before
            unpack(site.folder)
            for module in args.module or MODULES:
                suite.check(f"{module} as {identity.name}",
                            lambda m=module: ran.update({m: run_module(site, m)}))
    print(f"{sum(ran.values())} tests of {len(ran)} modules passed for each identity")
    return suite.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(Path(sys.argv[2]), sys.argv[3])
    else:
        sys.exit(main())
