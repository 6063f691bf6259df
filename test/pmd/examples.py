# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's own examples, built from /usr/share/dpdk/examples and run on net_verbena, unchanged. What
goes in and comes out are captures, by way of net_pcap, or frames on a segment of net_shmlan.

examples.py --plugin librte_net_verbena.so --shmlan librte_net_shmlan.so [PATTERN]

PATTERN chooses examples by name. Exit status 77 (skipped) where the examples, or what is needed to
build them, are not installed.
"""
import argparse
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLES = Path("/usr/share/dpdk/examples")
TIME_LIMIT = 30.0

signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


class Failure(Exception):
    """A test that did not hold; the text says what was seen."""


def require(condition, what):
    if not condition:
        raise Failure(what)


# ---- frames and captures ----

def ip_sum(header):
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def address(text):
    return bytes(int(part) for part in text.split("."))


def udp_frame(dst, payload=b"", src="10.0.0.1", sport=1000, dport=2000):
    """A UDP frame in IPv4, its IP checksum right."""
    udp = struct.pack("!HHHH", sport, dport, 8 + len(payload), 0) + payload
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, address(src),
                     address(dst))
    ip = ip[:10] + struct.pack("!H", ip_sum(ip)) + ip[12:]
    return (bytes.fromhex("020000000001") + bytes.fromhex("020000000002") + b"\x08\x00" + ip +
            udp)


def write_pcap(path, frames):
    out = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)
    for frame in frames:
        out += struct.pack("<IIII", 1, 0, len(frame), len(frame)) + frame
    path.write_bytes(out)


def read_pcap(path):
    data = path.read_bytes() if path.exists() else b""
    frames, at = [], 24
    while at + 16 <= len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        if at + 16 + length > len(data):
            break  # it is being written
        frames.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return frames


# ---- running ----

class Site:
    """A private folder with the plugins, the examples that were built, and what runs."""

    def __init__(self, plugins):
        base = os.environ.get("XDG_RUNTIME_DIR") or os.path.expanduser("~")
        self.secure = Path(tempfile.mkdtemp(prefix=".verbena-examples.", dir=base))
        self.work = Path(tempfile.mkdtemp(prefix="verbena-examples."))
        self.plugins = []
        for plugin in plugins:
            shutil.copy(plugin, self.secure)
            self.plugins.append(self.secure / Path(plugin).name)
        self.running = []
        self.number = 0

    def build(self, name):
        folder, program = EXAMPLES / name, self.work / name
        if program.exists():
            return program
        # As the Makefile there says, which would build in that folder.
        makefile = (folder / "Makefile").read_text().replace("\\\n", " ")
        made = " ".join(re.findall(r"^SRCS-y\s*[:+]?=\s*(.*)", makefile, re.M))
        sources = [str(folder / s) for s in made.split()]
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libdpdk"], check=True,
                               capture_output=True, text=True).stdout.split()
        done = subprocess.run(["cc", "-O0", "-w", "-DALLOW_EXPERIMENTAL_API", f"-I{folder}",
                               f"-I{EXAMPLES / 'common'}", *sources, "-o", str(program), *flags,
                               "-lm"], stderr=subprocess.PIPE, text=True)
        require(done.returncode == 0, f"{name} does not compile: {done.stderr[-1500:]}")
        return program

    def vdevs(self, inputs, more=""):
        """A port over net_pcap for each list of frames. Returns vdevs and the files written."""
        vdevs, outs = [], []
        for frames in inputs:
            self.number += 1
            source, out = (self.work / f"{kind}{self.number}.pcap" for kind in ("in", "out"))
            write_pcap(source, frames)
            vdevs.append(f"net_verbena{len(outs)},dev(net_pcap{len(outs)},rx_pcap={source},"
                         f"tx_pcap={out}){more}")
            outs.append(out)
        return vdevs, outs

    def start(self, program, vdevs, *args, lcores="0", eal=()):
        self.number += 1
        log = self.work / f"log{self.number}"
        command = ["stdbuf", "-oL", str(program), "--no-huge", "--no-shconf", "--no-pci", "-m",
                   "512", "-l", lcores, "--no-telemetry",
                   f"--file-prefix=vrbex{os.getpid()}_{self.number}"]
        for plugin in self.plugins:
            command += ["-d", str(plugin)]
        command += [*eal, *(f"--vdev={v}" for v in vdevs)] + (["--", *args] if args else [])
        with open(log, "wb") as file:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file,
                                       stderr=subprocess.STDOUT)
        process.log = log
        self.running.append(process)
        return process

    def await_true(self, process, condition, what):
        """Waits until the condition holds."""
        end = time.monotonic() + TIME_LIMIT
        while not condition():
            text = process.log.read_text(errors="replace")
            require(process.poll() is None, f"it ended with status {process.returncode}: "
                                            f"{text[-2000:]}")
            require(time.monotonic() < end, f"{what}; it said last: {text[-2000:]}")
            time.sleep(0.05)

    def end(self, process, by=signal.SIGINT):
        process.send_signal(by)
        try:
            process.wait(TIME_LIMIT)
        except subprocess.TimeoutExpired:
            raise Failure("it did not end: " + process.log.read_text()[-1500:])

    def end_all(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.running = []

    def remove(self):
        self.end_all()
        shutil.rmtree(self.secure, ignore_errors=True)
        shutil.rmtree(self.work, ignore_errors=True)
        for folder in Path("/var/run/dpdk").glob(f"vrbex{os.getpid()}_*"):
            shutil.rmtree(folder, ignore_errors=True)


def payloads(frames):
    return [f[14 + 20 + 8:] for f in frames]


SOME = [udp_frame("198.18.1.5", b"frame %03d" % i) for i in range(50)]
OTHERS = [udp_frame("198.18.0.5", b"other %03d" % i) for i in range(40)]


def both_ways(site, name, *args, by=signal.SIGINT, changes_mac=False, more="", **how):
    """What comes in at one port goes out at the other one."""
    vdevs, outs = site.vdevs([SOME, OTHERS], more)
    process = site.start(site.build(name), vdevs, *args, **how)
    site.await_true(process, lambda: len(read_pcap(outs[1])) >= 50 and
                    len(read_pcap(outs[0])) >= 40, "frames are missing")
    site.end(process, by)
    require(payloads(read_pcap(outs[1])) == payloads(SOME), "port 1 has sent other frames")
    require(payloads(read_pcap(outs[0])) == payloads(OTHERS), "port 0 has sent other frames")
    if not changes_mac:
        require(read_pcap(outs[1]) == SOME, "frames were changed")


def test_skeleton(site):
    both_ways(site, "skeleton", by=signal.SIGKILL)


def test_skeleton_and_a_service_core(site):
    """The pollers run on a core of their own."""
    if os.cpu_count() < 2:
        return "needs two processors"
    both_ways(site, "skeleton", by=signal.SIGKILL, more=",pollers=1", lcores="0,1",
              eal=["-S", "1"])
    return None


def test_skeleton_and_no_service_core(site):
    """One that is said to be there, and is not: the program polls after a while."""
    if os.cpu_count() < 2:
        return "needs two processors"
    both_ways(site, "skeleton", by=signal.SIGKILL, more=",pollers=1", eal=["-S", "1"])
    return None


def test_rxtx_callbacks(site):
    both_ways(site, "rxtx_callbacks", by=signal.SIGKILL)


def test_l2fwd(site):
    both_ways(site, "l2fwd", "-p", "3", "-q", "2", "-T", "0", changes_mac=True)


def test_l3fwd(site):
    both_ways(site, "l3fwd", "-p", "3", "-P", "--config=(0,0,0),(1,0,0)", changes_mac=True)


def test_ip_fragmentation_and_reassembly(site):
    """Long datagrams are cut into fragments by one, and put together by the other."""
    whole = [udp_frame("100.20.0.7", bytes([i]) * 3000) for i in range(5)]
    vdevs, outs = site.vdevs([whole, []])
    process = site.start(site.build("ip_fragmentation"), vdevs, "-p", "3", "-q", "2")
    site.await_true(process, lambda: len(read_pcap(outs[1])) >= 15, "fragments are missing")
    site.end(process, signal.SIGKILL)
    fragments = read_pcap(outs[1])
    require(len(fragments) == 15 and max(len(f) for f in fragments) <= 1514,
            f"{[len(f) for f in fragments]}")
    # All of them have the same identification: they are told apart by their source.
    fragments = [f[:26] + bytes([10, 0, 0, i // 3 + 1]) + f[30:] for i, f in enumerate(fragments)]
    fragments = [f[:24] + b"\0\0" + f[26:] for f in fragments]
    fragments = [f[:24] + struct.pack("!H", ip_sum(f[14:34])) + f[26:] for f in fragments]
    vdevs, outs = site.vdevs([fragments, []])
    process = site.start(site.build("ip_reassembly"), vdevs, "-p", "3", "-q", "2",
                         "--maxflows=64")
    site.await_true(process, lambda: len(read_pcap(outs[1])) >= 5, "datagrams are missing")
    site.end(process, signal.SIGKILL)
    require(sorted(payloads(read_pcap(outs[1]))) == sorted(payloads(whole)),
            "what was put together is something else")


def test_flow_filtering(site):
    """A rule of the program's sends one address to queue 1."""
    frames = [udp_frame("192.168.1.1"), udp_frame("192.168.1.2")] * 3
    vdevs, _ = site.vdevs([frames])
    process = site.start(site.build("flow_filtering"), vdevs)
    said = lambda: process.log.read_text(errors="replace")
    site.await_true(process, lambda: said().count("queue=0x") >= 6, "frames are missing")
    site.end(process)
    require(said().count("queue=0x1") == 3 and said().count("queue=0x0") == 3, said()[-800:])


def shmlan(site, number):
    return f"net_shmlan{number},segment=ex,dir={site.work}/lan"


def sender(site, *args):
    """dpdk-testpmd as another host of the segment. It sends until it is ended."""
    return site.start("dpdk-testpmd", [shmlan(site, 9)], "--no-mlockall",
                      "--total-num-mbufs=4096", "--auto-start", "--forward-mode=txonly", *args,
                      lcores="0,1")


def test_link_status_interrupt(site):
    """Link events of the lower port reach the program."""
    if os.cpu_count() < 2:
        return "needs two processors"
    (site.work / "lan").mkdir(exist_ok=True, mode=0o700)
    vdevs = [f"net_verbena0,dev({shmlan(site, 0)})",
             f"net_verbena1,dev(net_shmlan1,segment=ex2,dir={site.work}/lan)"]
    process = site.start(site.build("link_status_interrupt"), vdevs, "-p", "3", "-q", "2", "-T",
                         "0")
    said = lambda: process.log.read_text(errors="replace")
    site.await_true(process, lambda: "Checking link status" in said(), "it did not start")
    other = sender(site)
    site.await_true(process, lambda: re.search(r"Event type: LSC", said()), "no event")
    site.await_true(process, lambda: re.search(r"Port 0 Link [uU]p", said()), "no link")
    before = said().count("Event type")
    site.end(other)
    site.await_true(process, lambda: said().count("Event type") > before, "no second event")
    site.end(process, signal.SIGKILL)
    return None


def sleep_until_frames_come(site, more):
    (site.work / "lan").mkdir(exist_ok=True, mode=0o700)
    vdevs = [f"net_verbena0,dev({shmlan(site, 0)}){more}"]
    process = site.start(site.build("l3fwd-power"), vdevs, "-p", "1", "--config=(0,0,0)",
                         "--interrupt-only", "-P")
    said = lambda: process.log.read_text(errors="replace")
    site.await_true(process, lambda: "L3FWD_POWER: entering" in said() or
                    "entering" in said(), "it did not start")
    other = sender(site, "--txonly-multi-flow", "--burst=4")
    site.await_true(process, lambda: "is waked up from rx interrupt on port 0 queue 0" in said(),
                    "no interrupt woke it")
    site.end(other)
    site.end(process, signal.SIGKILL)


def test_l3fwd_power(site):
    """Rx interrupts of a direct port, and of one with pollers that nobody runs meanwhile."""
    if os.cpu_count() < 2:
        return "needs two processors"
    sleep_until_frames_come(site, "")
    sleep_until_frames_come(site, ",pollers=1")
    return None


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--shmlan", required=True)
    parser.add_argument("pattern", nargs="?", default="", type=re.compile)
    args = parser.parse_args()
    if not (EXAMPLES / "l2fwd/main.c").exists() or shutil.which("cc") is None:
        print("SKIP: DPDK's examples are not installed (Debian: package dpdk-doc)")
        return 77
    tests = {name[5:]: fn for name, fn in globals().items() if name.startswith("test_")}
    failed = []
    site = Site((args.plugin, args.shmlan))
    try:
        for name, fn in tests.items():
            if not re.search(args.pattern, name):
                continue
            began = time.monotonic()
            try:
                skipped = fn(site)
                print(f"{name}: {'skipped: ' + skipped if skipped else 'ok'} "
                      f"({time.monotonic() - began:.1f} s)", flush=True)
            except Failure as failure:
                failed.append(name)
                print(f"{name}: FAILED: {failure}", flush=True)
            finally:
                site.end_all()
    finally:
        site.remove()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
