#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""verbena-testpmd as a person and as a script have it: at a terminal, from files, and in pairs.

prompt.py VERBENA-TESTPMD VERBENA VERBS-PEER [TEST...]

Each test has a network of its own in a folder that goes with it.
"""
import ctypes
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = VERBENA = PEER = None
GUIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../doc/guides/testpmd.rst")
PATIENCE = 20.0
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
CTRL_C, CTRL_D, TAB, UP = b"\x03", b"\x04", b"\t", b"\x1b[A"


def environment(folder):
    """Ours, on a network of its own. Meson names the folder of the verbs library for the loader:
    DPDK's plugins, which verbena-testpmd loads, want the system's."""
    ours = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "LD_PRELOAD")}
    return {**ours, "XDG_RUNTIME_DIR": folder}


def die_with_us():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Program:
    """A verbena-testpmd: what it has said, and what is still to be looked at."""

    def __init__(self, test, args, stdin, stdout, program=None):
        self.said = ""
        self.popen = subprocess.Popen([*(program or [PROGRAM]), *args], stdin=stdin, stdout=stdout,
                                      stderr=subprocess.STDOUT,
                                      env=environment(test.folder),
                                      preexec_fn=die_with_us)
        test.addCleanup(self.end)

    def end(self):
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout):
            if stream:
                stream.close()

    def read_until(self, pattern, fd):
        """Reads until the pattern has come. Returns what came, the match at its end."""
        end = time.monotonic() + PATIENCE
        while True:
            match = re.search(pattern, self.said)
            if match:
                came, self.said = self.said[:match.end()], self.said[match.end():]
                return came
            ready = select.select([fd], [], [], max(0, end - time.monotonic()))[0]
            try:
                data = os.read(fd, 65536) if ready else b""
            except OSError:  # the other end of a terminal is closed
                data = b""
            if not data:
                raise AssertionError(f"'{pattern}' did not come; what came:\n{self.said}")
            self.said += data.decode()


class Piped(Program):
    """One that gets its commands one by one through a pipe."""

    def __init__(self, test, *args):
        super().__init__(test, ["--echo", *args], subprocess.PIPE, subprocess.PIPE)

    def do(self, line):
        """Runs a command and returns what it prints."""
        # The echo of the second tells that the first is done.
        self.popen.stdin.write(f"{line}\nsleep 0\n".encode())
        self.popen.stdin.flush()
        came = self.read_until("verbena> sleep 0\n", self.popen.stdout.fileno())
        return came.split(f"verbena> {line}\n", 1)[1].rsplit("verbena> ", 1)[0]

    def close(self):
        """Ends it. Returns its status."""
        self.popen.stdin.close()
        self.popen.stdin = None
        return self.popen.wait(PATIENCE)


class Verbs(Program):
    """A program of verbs that is the other side."""

    def __init__(self, test):
        super().__init__(test, [], subprocess.PIPE, subprocess.PIPE, [VERBENA, "run", "--", PEER])
        self.shown = self.read_until("dest .*\n", self.popen.stdout.fileno())

    def connect(self, dest_):
        gid, qpn, psn = dest_.split()
        self.popen.stdin.write(f"::ffff:{gid} {qpn} {psn}\n".encode())
        self.popen.stdin.flush()
        self.read_until("connected\n", self.popen.stdout.fileno())

    def close(self):
        """Ends it. Returns how many messages it has received."""
        self.popen.stdin.close()
        self.popen.stdin = None
        out = self.read_until("received .*\n", self.popen.stdout.fileno())
        return figure(out, "received")


class Terminal(Program):
    """One that a person types at."""

    def __init__(self, test, *args):
        self.fd, slave = pty.openpty()
        super().__init__(test, args, slave, slave)
        os.close(slave)
        test.addCleanup(os.close, self.fd)
        self.wait("verbena> ")

    def type(self, keys):
        os.write(self.fd, keys if isinstance(keys, bytes) else keys.encode())

    def wait(self, pattern):
        return self.read_until(pattern, self.fd)

    def do(self, line):
        self.type(line + "\n")
        self.wait(re.escape(line))
        return self.wait(r"verbena> ")


def figure(text, key):
    """The number behind a word."""
    match = re.search(rf"(?:^|\s){re.escape(key)} (0x[0-9a-f]+|[0-9.]+)", text)
    if not match:
        raise AssertionError(f"no '{key}' in:\n{text}")
    return float(match[1]) if "." in match[1] else int(match[1], 0)


def dest(text):
    """The arguments by which another connects."""
    return re.search(r"qp connect <qp> dest (.*)", text)[1]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="testpmd-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_lines(self, lines, *args):
        """Runs a file of commands. Returns status, output and messages."""
        path = os.path.join(self.folder, "commands")
        with open(path, "w", encoding="utf-8") as f:
            f.write(lines)
        done = subprocess.run([PROGRAM, "--cmdline-file", path, *args], capture_output=True,
                              text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                              env=environment(self.folder))
        return done.returncode, done.stdout, done.stderr


class Batch(Case):
    def test_good_commands_end_with_0(self):
        status, out, err = self.run_lines("# a comment\n\nsrq create 3 # another\nsrq show\n")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("srq 3  size ", out)

    def test_a_refused_command_ends_it_with_1(self):
        status, out, err = self.run_lines("srq destroy 3\nsrq create 4\nsrq show\n")
        self.assertEqual(status, 1)
        self.assertIn("error: there is no srq 3", err)
        self.assertIn("commands:1: \"srq destroy 3\" failed", err)
        self.assertEqual(out, "")

    def test_keep_going_runs_the_others(self):
        status, out, _ = self.run_lines("srq destroy 3\nsrq create 4\nsrq show", "--keep-going")
        self.assertEqual(status, 1)
        self.assertIn("srq 4  size", out)

    def test_echo_shows_commands(self):
        out = self.run_lines("cq create 1\ncq show\n", "--echo")[1]
        self.assertRegex(out, "^verbena> cq create 1\nverbena> cq show\ncq 1 ")

    def test_quit_leaves_the_rest(self):
        status, out, _ = self.run_lines("quit\ncq show\n")
        self.assertEqual((status, out), (0, ""))

    def test_a_missing_file_and_bad_options_are_told(self):
        for args in (["--cmdline-file", "/nonexistent"], ["--rxq", "0"], ["--segment"],
                     ["--port", "net_nonsense0"]):
            done = subprocess.run([PROGRAM, *args], capture_output=True, text=True,
                                  timeout=PATIENCE, stdin=subprocess.DEVNULL,
                                  env=environment(self.folder))
            self.assertEqual(done.returncode, 2, args)
            self.assertIn("verbena-testpmd: ", done.stderr)

    def test_help_and_version(self):
        out = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
        self.assertIn("--cmdline-file", out)
        out = subprocess.run([PROGRAM, "-V"], capture_output=True, text=True, check=True).stdout
        self.assertRegex(out, r"^verbena-testpmd \d")


class Guide(Case):
    def test_the_session_of_the_guide_works(self):
        with open(GUIDE, encoding="utf-8") as f:
            text = f.read()
        lines = re.findall(r"^   verbena> (.+)$", text, re.M)
        args = re.search(r"\$ verbena-testpmd (--rxq.*)$", text, re.M)[1].replace("'", "").split()
        self.assertGreater(len(lines), 30)
        status, out, err = self.run_lines("\n".join(lines), *args)
        self.assertEqual((status, err), (0, ""))
        # What does not depend on the machine is as the guide has it.
        for figures in ("verified 100000  missing 0", "44 of 128  limit 0  limit-events 1",
                        "74.8 %  frames 7480", "queue 0  [", "flow 2  packets 100  bytes 6400"):
            self.assertIn(figures, text)
            self.assertIn(figures, out)


class Pair(Case):
    """Two programs on one network, each with a queue pair."""

    def make(self, kind, *args):
        self.sides = [Piped(self, *args), Piped(self, *args)]
        for side in self.sides:
            side.do("cq create 1")
            side.do(f"qp create 1 type {kind} cq 1")
        shown = [side.do("qp show 1") for side in self.sides]
        for i, side in enumerate(self.sides):
            self.assertEqual(side.do(f"qp connect 1 dest {dest(shown[1 - i])}"), "")
        return self.sides

    def finish(self):
        for side in self.sides:
            self.assertEqual(side.close(), 0)

    def test_messages_writes_and_reads(self):
        left, right = self.make("rc")
        right.do("sink start 1 size 10000")
        out = left.do("send 1 count 500 size 10000")
        self.assertEqual(figure(out, "messages"), 500)
        out = right.do("sink show")
        self.assertEqual((figure(out, "messages"), figure(out, "verified")), (500, 500))
        right.do("mr reg 1 size 1m")
        shown = right.do("mr show 1")
        where = f"addr {figure(shown, 'addr'):#x} rkey {figure(shown, 'rkey'):#x}"
        out = left.do(f"read 1 {where} count 100 size 8192 depth 16")
        self.assertEqual(figure(out, "verified"), 100)
        out = left.do(f"write 1 {where} count 100 size 8192 depth 16")
        self.assertEqual(figure(out, "read-back"), 16)
        self.finish()

    def test_ping(self):
        left, right = self.make("rc")
        right.do("sink start 1 echo on")
        out = left.do("ping 1 count 500")
        self.assertEqual(figure(out, "verified"), 500)
        self.assertGreater(figure(out, "median-us"), 0)
        self.finish()

    def test_a_shared_queue_that_runs_low(self):
        right = Piped(self)
        left = Piped(self)
        self.sides = [left, right]
        right.do("cq create 1")
        right.do("srq create 1 size 64")
        right.do("qp create 1 cq 1 srq 1")
        right.do("srq post 1 count 20 bytes 64")
        right.do("srq modify 1 limit 10")
        left.do("cq create 1")
        left.do("qp create 1 cq 1")
        shown = left.do("qp show 1"), right.do("qp show 1")
        left.do(f"qp connect 1 dest {dest(shown[1])}")
        right.do(f"qp connect 1 dest {dest(shown[0])}")
        left.do("send 1 count 11")
        out = right.do("srq show 1")
        self.assertEqual((figure(out, "posted"), figure(out, "limit-events")), (9, 1))
        self.assertEqual(figure(right.do("cq show 1"), "waiting"), 11)
        self.finish()

    def test_datagrams(self):
        left, right = self.make("ud")
        right.do("sink start 1 depth 128")
        left.do("send 1 count 100 size 1000")
        right.do("sleep 100")
        self.assertEqual(figure(right.do("sink stop 1"), "verified"), 100)
        self.finish()

    def test_frames_by_rules_over_a_table(self):
        left, right = Piped(self), Piped(self)
        self.sides = [left, right]
        mac = re.search(r"mac (\S+)", right.do("device show"))[1]
        for line in ("cq create 1", "wq create 1 cq 1", "wq create 2 cq 1",
                     "wq modify 1 state ready", "wq modify 2 state ready",
                     "ind-table create 1 wqs 1-2 size 16", "qp create 1 type rss ind-table 1",
                     "flow create 1 qp 1 protocol udp dst-port 9", "sink start 1 depth 200"):
            right.do(line)
        left.do("cq create 1")
        left.do("qp create 1 type raw cq 1")
        left.do(f"send 1 count 150 size 200 flows 50 depth 16 dst-mac {mac}")
        right.do("sleep 200")
        out = right.do("wq show")
        frames = [int(n) for n in re.findall(r"frames (\d+)", out)]
        self.assertEqual(sum(frames), 150, out)
        self.assertTrue(all(frames), out)
        self.finish()

    def test_a_program_of_verbs_as_the_other_side(self):
        verbs, left = Verbs(self), Piped(self)
        left.do("cq create 1")
        left.do("qp create 1 cq 1")
        verbs.connect(dest(left.do("qp show 1")))
        gid, qpn, psn = re.search(r"dest (\S+) (\S+) (\S+)", verbs.shown).groups()
        self.assertEqual(left.do(f"qp connect 1 dest {gid} {qpn} {psn}"), "")
        out = left.do("send 1 count 300 size 4000")
        self.assertEqual(figure(out, "messages"), 300)
        where = re.search("addr .*", verbs.shown)[0]
        out = left.do(f"write 1 {where} count 100 size 16k depth 8")
        self.assertEqual(figure(out, "read-back"), 8)
        out = left.do(f"read 1 {where} count 100 size 16k depth 8 verify off")
        self.assertEqual(figure(out, "messages"), 100)
        self.assertEqual(verbs.close(), 300)
        self.assertEqual(left.close(), 0)

    def test_a_peer_that_goes_is_told(self):
        left, right = self.make("rc")
        right.popen.kill()
        left.popen.stdin.write(b"send 1 count 1\n")
        left.popen.stdin.flush()
        came = left.read_until("failed\n", left.popen.stdout.fileno())
        self.assertIn("retries exceeded", came)
        self.assertEqual(left.popen.wait(PATIENCE), 1)


class Typing(Case):
    def test_tab_completes(self):
        prompt = Terminal(self)
        prompt.type(b"srq cr" + TAB + b"7 si" + TAB + b"100\n")
        prompt.wait("verbena> ")
        self.assertIn("srq 7 ", prompt.do("srq show"))
        prompt.type(b"srq destroy " + TAB)
        prompt.wait(r"7 \[srq\]: a shared receive queue")
        prompt.type(b"7\n")
        prompt.wait("verbena> ")
        prompt.type(b"qp create 1 type ?")
        out = prompt.wait("rss ")
        self.assertIn("rc [type]", out)

    def test_help_and_wrong_words(self):
        prompt = Terminal(self)
        self.assertIn("shared receive queues", prompt.do("help"))
        self.assertIn("low watermark", prompt.do("help srq modify"))
        self.assertIn('did you mean "srq"?', prompt.do("sqr show"))
        self.assertIn("srq create <srq>", prompt.do("srq creat 1"))

    def test_arrows_fetch_earlier_lines(self):
        prompt = Terminal(self)
        prompt.do("cq create 1")
        prompt.do("cq show 1")
        prompt.do("cq destroy 1")
        prompt.type(UP + UP + UP + b"\n")
        prompt.wait("cq create 1")
        prompt.wait("verbena> ")
        self.assertIn("cq 1 ", prompt.do("cq show"))

    def test_ctrl_c_ends_a_command_and_ctrl_d_the_program(self):
        prompt = Terminal(self)
        for line in ("cq create 1", "qp create 1 cq 1", "qp connect 1 to 1", "sink start 1"):
            prompt.do(line)
        prompt.type("send 1 count 0 interval 50\n")
        prompt.wait("progress")
        prompt.type(CTRL_C)
        self.assertIn("state done", prompt.wait("verbena> "))
        prompt.type("watch srq 1\n")
        prompt.wait("there is no srq 1")
        prompt.wait("verbena> ")
        prompt.type("watch qp 1 interval 20\n")
        prompt.wait("(?s)receives of qp 1.*receives of qp 1")
        prompt.type("q")
        prompt.wait("verbena> ")
        prompt.type(b"half a line" + CTRL_C)
        prompt.wait("verbena> ")
        prompt.type(CTRL_D)
        self.assertEqual(prompt.popen.wait(PATIENCE), 0)

    def test_interactive_goes_on_behind_a_file(self):
        path = os.path.join(self.folder, "commands")
        with open(path, "w", encoding="utf-8") as f:
            f.write("srq create 9\n")
        prompt = Terminal(self, "--cmdline-file", path, "--interactive")
        self.assertIn("srq 9 ", prompt.do("srq show"))
        prompt.type("quit\n")
        self.assertEqual(prompt.popen.wait(PATIENCE), 0)

    def test_sigterm_ends_it_and_leaves_the_terminal_as_it_was(self):
        prompt = Terminal(self)
        prompt.popen.terminate()
        self.assertEqual(prompt.popen.wait(PATIENCE), 0)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    PROGRAM, VERBENA, PEER = [os.path.abspath(sys.argv.pop(1)) for _ in range(3)]
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
