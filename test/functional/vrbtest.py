# SPDX-License-Identifier: BSD-3-Clause
"""What the functional tests share: programs under `verbena run`, in pairs, within a time limit.

A Site is a network of its own: a private folder as XDG_RUNTIME_DIR, so that no other run can be
met, and an identity that the programs run as. Whatever is started there is ended and removed with
it, also when a test fails. As root every test is run twice, once as it is called and once as
nobody with 64 KiB of lockable memory, which is what a program has on a machine it does not own.
"""
import argparse
import contextlib
import ctypes
import os
import pwd
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TIME_LIMIT = 60.0
NO_CLOCK = "Can't produce a report"
CLOCK_TRIES = 3
MEMLOCK = 64 * 1024
SONAME = "libibverbs.so.1"
SANITIZERS = ("libasan", "libtsan", "libubsan")


LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>

# Meson ends a test that takes too long with SIGTERM: what it has started and made goes with it.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


class Failure(Exception):
    """A test that did not hold; the text says what was seen."""


class Identity:
    """Whom the programs run as."""

    def __init__(self, user=None):
        self.user = user
        self.name = user or pwd.getpwuid(os.getuid()).pw_name
        self.entry = pwd.getpwnam(user) if user else None

    def popen_args(self):
        if not self.user:
            return {"preexec_fn": self.prepare}
        return {"user": self.entry.pw_uid, "group": self.entry.pw_gid, "extra_groups": [],
                "preexec_fn": self.prepare}

    def prepare(self):
        """In the new process, as the user that it is to be."""
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # also when this script is killed outright
        if self.user:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (MEMLOCK, MEMLOCK))

    def own(self, path):
        if self.user:
            os.chown(path, self.entry.pw_uid, self.entry.pw_gid)


def identities():
    """As it is called, and, for root, as nobody."""
    return [Identity()] + ([Identity("nobody")] if os.geteuid() == 0 else [])


AS_ROOT = ("unshare", "-r")  # a user namespace in which any user has the id of root


def root_identities():
    """The identities that can show a program the user id of root, and how: (identity, before)."""
    found = []
    for identity in identities():
        if not identity.user and os.geteuid() == 0:
            found.append((identity, ()))
        elif subprocess.run([*AS_ROOT, "true"], cwd="/", stderr=subprocess.DEVNULL,
                            **identity.popen_args()).returncode == 0:
            found.append((identity, AS_ROOT))
        else:
            print(f"left out: {identity.name} may not make a user namespace here", flush=True)
    return found


def listening(port):
    """Whether somebody listens on a TCP port; a connection would disturb the one who does."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                return True
    return False


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until(condition, seconds, what):
    """Waits for a condition that is bound to come soon; a Failure when it does not."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failure(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.005)


class Process:
    """A started program, its output, and how it ended."""

    def __init__(self, site, name, argv, env, cwd):
        self.name, self.argv = name, [str(a) for a in argv]
        self.out_path = site.folder / f"{name}.out"
        self.err_path = site.folder / f"{name}.err"
        self.began = self.ended = time.monotonic()
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.popen = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=out,
                                          stderr=err, env=env, cwd=cwd, start_new_session=True,
                                          **site.identity.popen_args())
        self.pid = self.popen.pid

    @property
    def out(self):
        return self.out_path.read_text(errors="replace")

    @property
    def err(self):
        return self.err_path.read_text(errors="replace")

    @property
    def status(self):
        return self.popen.poll()

    def wait(self, seconds=TIME_LIMIT):
        try:
            status = self.popen.wait(seconds)
            self.ended = time.monotonic()
            return status
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure(f"{self.describe()}\nstill running after {seconds:.0f} s") from None

    def kill(self, number=signal.SIGKILL):
        """The whole session: what it started goes with it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        if number == signal.SIGKILL:
            self.popen.wait()

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def describe(self):
        text = f"{self.name}: {' '.join(self.argv)}\n  status {self.status}"
        for what, content in (("stdout", self.out), ("stderr", self.err)):
            if content.strip():
                text += f"\n  {what}:\n" + "\n".join("    " + x for x in
                                                    content.strip().splitlines()[-30:])
        return text


class Site:
    """A network of its own with the programs on it."""

    def __init__(self, verbena, identity=None):
        self.identity = identity or Identity()
        self.verbena = Path(verbena).resolve()
        self.processes = []
        self.names = {}

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="verbena-test."))
        self.identity.own(self.folder)
        self.runtime = self.folder / "runtime"
        self.runtime.mkdir(mode=0o700)
        self.identity.own(self.runtime)
        self.command = reachable_command(self.verbena, self.identity, self.folder)
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.status is None:
                process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def environment(self, extra=None):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("VERBENA_", "LD_", "IBV_", "RDMAV_"))}
        env.update(XDG_RUNTIME_DIR=str(self.runtime), LC_ALL="C", HOME=str(self.folder))
        env.update(sanitizer_environment(self.verbena))
        env.update(extra or {})
        return env

    def shim(self):
        """The library that stands in for libibverbs."""
        path = self.command.parent.parent.parent / "lib/verbs" / SONAME
        return path if path.exists() else next(self.folder.glob(f"stage/**/verbena/{SONAME}"))

    def sockets(self):
        """Names of the members on the segments of this site, living or left behind."""
        return sorted(p.name for p in self.runtime.glob("verbena/*/*")
                      if p.is_socket() and p.parent.name != ".figures")

    def copy(self, program):
        """A program of the build tree where every identity can run it."""
        place = self.folder / Path(program).name
        shutil.copy(program, place)
        place.chmod(0o755)
        return place

    def start(self, argv, options=(), env=None, name=None, verbena=True, before=()):
        """Starts a program under `verbena run`, or as it is; before: such as taskset."""
        base = name or Path(str(argv[0])).name
        self.names[base] = self.names.get(base, 0) + 1
        unique = base if self.names[base] == 1 else f"{base}.{self.names[base]}"
        prefix = [self.command, "run", *options, "--"] if verbena else []
        process = Process(self, unique, [*before, *prefix, *argv], self.environment(env),
                          self.folder)
        self.processes.append(process)
        return process

    def run(self, argv, options=(), env=None, seconds=TIME_LIMIT, verbena=True):
        """Runs a program to its end."""
        process = self.start(argv, options, env, verbena=verbena)
        process.wait(seconds)
        return process

    def serve(self, argv, port, **kwargs):
        """Starts a server and waits until it listens for its client."""
        server = self.start(argv, name="server", **kwargs)
        wait_until(lambda: listening(port) or server.status is not None, 20, "the server listens")
        if server.status is not None:
            raise Failure(server.describe())
        return server

    def pair(self, program, arguments=(), seconds=TIME_LIMIT, **kwargs):
        """Server and client of one program; both must end well. Returns them."""
        for _ in range(CLOCK_TRIES):
            server, client = self.pair_once(program, arguments, seconds, **kwargs)
            if not (client.status or server.status):
                return server, client
            # perftest measures the CPU's clock, and gives up on a machine that is busy.
            if not any(NO_CLOCK in p.err for p in (server, client)):
                break
        raise Failure(f"{server.describe()}\n{client.describe()}")

    def pair_once(self, program, arguments, seconds, **kwargs):
        port = free_port()
        argv = [program, "-p", port, *arguments]
        began = time.monotonic()
        server = self.serve(argv, port, **kwargs)
        client = self.start([*argv, "127.0.0.1"], name="client", **kwargs)
        for process in (client, server):
            try:
                process.wait(max(1.0, seconds - (time.monotonic() - began)))
            except Failure as e:
                raise Failure(f"{e}\n{server.describe()}\n{client.describe()}") from None
        return server, client


def sanitizer_environment(verbena):
    """A shim with a sanitizer wants its runtime in front of every program."""
    shim = verbena.parent.parent.parent / "lib/verbs" / SONAME
    if not shim.exists():
        return {}
    out = subprocess.run(["ldd", shim], capture_output=True, text=True).stdout
    first = [m.group(1) for m in re.finditer(r"=> (\S+) \(", out)
             if Path(m.group(1)).name.startswith(SANITIZERS)]
    # What the program itself leaks is not ours to judge.
    return {"LD_PRELOAD": ":".join(first), "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"} if first else {}


def reachable_command(verbena, identity, folder):
    """The command, or, when this user may not enter the build tree, an installed copy of it."""
    shim = verbena.parent.parent.parent / "lib/verbs" / SONAME
    probe = subprocess.run(["cat", verbena, shim], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, cwd="/", **identity.popen_args())
    if probe.returncode == 0 or not shim.exists():
        return verbena
    stage = folder / "stage"
    subprocess.run(["meson", "install", "-C", verbena.parent.parent.parent, "--no-rebuild",
                    "--destdir", stage, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    found = list(stage.glob("**/bin/verbena"))
    if not found:
        raise Failure(f"{identity.name} cannot read {verbena}, and nothing was installed either")
    return found[0]


class Suite:
    """Runs named checks, prints a line for each, remembers failures."""

    def __init__(self):
        self.failed = self.passed = 0

    def check(self, name, function):
        began = time.monotonic()
        try:
            function()
        except Failure as e:
            self.failed += 1
            print(f"not ok  {name}  {time.monotonic() - began:.1f} s\n{e}", flush=True)
        else:
            self.passed += 1
            print(f"ok      {name}  {time.monotonic() - began:.1f} s", flush=True)

    def finish(self):
        print(f"{self.passed} ok, {self.failed} not ok")
        return 1 if self.failed or not self.passed else 0


def arguments(description, *extra):
    """The arguments that every functional test takes; extra: (args, kwargs) of add_argument()."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--verbena", required=True, help="the command, in the build tree")
    for args, kwargs in extra:
        parser.add_argument(*args, **kwargs)
    return parser.parse_args()


def require(condition, text):
    if not condition:
        raise Failure(text)
