# SPDX-License-Identifier: BSD-3-Clause
"""dpdk-testpmd, as Debian has it, with net_verbena as a plugin: its forwarding modes, queues and
tables changed while frames run, ports stopped, closed, attached and detached, flow rules, over
several lower ports.

testpmd.py --plugin librte_net_verbena.so [--shmlan librte_net_shmlan.so] [PATTERN]

PATTERN chooses tests by name. Exit status 77 (skipped) where dpdk-testpmd is not installed.
"""
import argparse
import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROMPT = b"testpmd> "
TIME_LIMIT = 40.0
MBUFS = "--total-num-mbufs=8192"

signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


class Failure(Exception):
    """A test that did not hold; the text says what was seen."""


class Testpmd:
    """One process, at its prompt."""

    def __init__(self, site, vdevs, *args, eal=(), more_lcores=""):
        self.site = site
        cpus = sorted(os.sched_getaffinity(0))[:2]
        lcores = f"0@{cpus[0]},1@{cpus[-1]}{more_lcores}"
        command = ["stdbuf", "-oL", "dpdk-testpmd", "--no-huge", "--no-shconf", "--no-pci",
                   "-m", "256", "--no-telemetry", f"--lcores={lcores}",
                   f"--file-prefix=vrb{os.getpid()}_{site.count()}"]
        for plugin in site.plugins:
            command += ["-d", str(plugin)]
        command += list(eal) + [f"--vdev={v}" for v in vdevs]
        # What one command has sent is there for the next one.
        command += ["--", "-i", "--no-mlockall", "--no-flush-rx", MBUFS, *args]
        self.log = b""
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, bufsize=0)
        self.wait_prompt()

    def wait_prompt(self):
        end = time.monotonic() + TIME_LIMIT
        begin = len(self.log)
        while not self.log[begin:].endswith(PROMPT):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.fail("no prompt came in time")
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                self.fail(f"it ended with status {self.process.wait()}")
            self.log += data
        return self.log[begin:].decode(errors="replace")

    def do(self, *commands):
        """Types commands. Returns what they printed."""
        out = ""
        for command in commands:
            self.process.stdin.write(command.encode() + b"\n")
            out += self.wait_prompt()
        return out

    def refuse(self, text, *words):
        """Fails when one of the words stands in what was printed."""
        for word in words:
            if word in text:
                self.fail(f"'{word}' in the output")

    def fail(self, what):
        text = self.log.decode(errors="replace")
        raise Failure(f"{what}; testpmd said last:\n{text[-2500:]}")

    def stats(self, port=0):
        """The basic figures of a port."""
        out = self.do(f"show port stats {port}")
        return {name.lower().replace("-", "_"): int(value)
                for name, value in re.findall(r"([RT]X-\w+):\s*(\d+)", out)}

    def xstats(self, port=0):
        out = self.do(f"show port xstats {port}")
        return {name: int(value) for name, value in re.findall(r"^(\w+): (\d+)\r?$", out, re.M)}

    def forward(self, mode, seconds=0.3, first=0):
        """Forwards for a while. Returns the frames received and sent by all ports."""
        self.do(f"set fwd {mode}", "clear port stats all",
                "start" + (f" tx_first {first}" if first else ""))
        time.sleep(seconds)
        out = self.do("stop")
        total = out.split("Accumulated")[-1]
        got = {name: int(value) for name, value in
               re.findall(r"([RT]X-packets):\s*(\d+)", total)}
        return got.get("RX-packets", 0), got.get("TX-packets", 0)

    def quit(self):
        """Ends it. Fails unless that goes well."""
        self.process.stdin.write(b"quit\n")
        try:
            out = self.process.communicate(timeout=TIME_LIMIT)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.fail("it did not end")
        self.log += out
        if self.process.returncode != 0:
            self.fail(f"it ended with status {self.process.returncode}")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Site:
    """A private folder, the plugins, and the processes of a test."""

    def __init__(self, plugin, shmlan):
        # EAL loads no plugin from below a folder that others may write to.
        base = os.environ.get("XDG_RUNTIME_DIR") or os.path.expanduser("~")
        self.secure = Path(tempfile.mkdtemp(prefix=".verbena-testpmd.", dir=base))
        self.work = Path(tempfile.mkdtemp(prefix="verbena-testpmd."))
        self.plugins = []
        for p in filter(None, (plugin, shmlan)):
            shutil.copy(p, self.secure)
            self.plugins.append(self.secure / Path(p).name)
        self.shmlan = shmlan is not None
        self.running = []
        self.number = 0

    def count(self):
        self.number += 1
        return self.number

    def testpmd(self, vdevs, *args, **more):
        process = Testpmd.__new__(Testpmd)
        self.running.append(process)
        process.__init__(self, vdevs, *args, **more)
        return process

    def end_all(self):
        for process in self.running:
            if hasattr(process, "process"):
                process.kill()
        self.running = []

    def remove(self):
        self.end_all()
        shutil.rmtree(self.secure, ignore_errors=True)
        shutil.rmtree(self.work, ignore_errors=True)
        for folder in Path("/var/run/dpdk").glob(f"vrb{os.getpid()}_*"):
            shutil.rmtree(folder, ignore_errors=True)


def require(condition, what):
    if not condition:
        raise Failure(what)


# ---- tests ----

# Five echo requests; prints how many were answered.
PING = """
import socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
s.settimeout(3)
got = 0
for seq in range(5):
    body = struct.pack("!HH", 77, seq) + b"verbena!" * 4
    words = struct.unpack("!%dH" % (len(body) // 2), body)
    total = 0x0800 + sum(words)
    total = (total & 0xffff) + (total >> 16)
    total = (total & 0xffff) + (total >> 16)
    s.sendto(struct.pack("!BBH", 8, 0, ~total & 0xffff) + body, (sys.argv[1], 0))
    try:
        while True:
            answer = s.recv(2048)
            if answer[20] == 0 and answer[24:] == body:
                got += 1
                break
    except TimeoutError:
        pass
print(got)
"""

RINGS = ["net_verbena0,dev(net_ring0)", "net_verbena1,dev(net_ring1)"]


def test_modes(site):
    """The forwarding modes that send on what they receive."""
    t = site.testpmd(RINGS)
    for mode in ("io", "mac", "macswap", "csum", "5tswap"):
        received, sent = t.forward(mode, first=4)
        require(received > 1000 and sent > 1000, f"{mode}: {received} received, {sent} sent")
        figures = t.stats(0)
        require(figures["rx_missed"] + figures["rx_errors"] == 0, f"{mode}: {figures}")
    t.do("set burst 1")
    require(t.forward("io", first=4)[0] > 100, "a burst of 1")
    t.do("set burst 512")
    require(t.forward("io", first=4)[0] > 1000, "a burst of 512")
    t.quit()


def test_one_way(site):
    """txonly, flowgen, rxonly, icmpecho: what is sent is received, or counted as lost."""
    t = site.testpmd(["net_verbena0,dev(net_ring0),pollers=1", "net_verbena1,dev(net_null1)"])
    for mode in ("txonly", "flowgen"):
        sent = t.forward(mode, 0.2)[1]
        require(sent > 1000, f"{mode}: {sent} sent")
        t.do("set fwd rxonly", "start")
        time.sleep(0.1)
        t.do("stop")
        # Not more than there was, and nothing lost on the way.
        figures = t.stats(0)
        require(figures["rx_packets"] + figures["rx_missed"] <= figures["tx_packets"],
                f"{mode}: {figures}")
    received = t.forward("rxonly", 0.2)[0]
    require(received > 1000, f"rxonly: {received} received")
    t.forward("icmpecho", 0.1)
    t.quit()


def test_rss(site):
    """Four queues; the table is changed while frames run."""
    t = site.testpmd(["net_verbena0,dev(net_ring0),reta=256,rss_roce=1"], "--rxq=4", "--txq=4",
                     "--rss-udp")
    # Frames with addresses and ports that differ.
    t.do("set fwd flowgen", "start")
    time.sleep(0.3)
    for queue in (0, 3, 1, 2) * 3:
        for first in range(0, 256, 8):
            entries = ",".join(f"({i},{queue})" for i in range(first, first + 8))
            t.refuse(t.do("port config 0 rss reta " + entries), "Failed", "failed", "Bad")
    t.do("stop")
    figures = t.xstats(0)
    busy = [q for q in range(4) if figures.get(f"rx_q{q}_packets", 0) > 0]
    require(len(busy) >= 2, f"queues {busy} got frames: {figures}")
    total = figures["rx_good_packets"]
    each = sum(figures[f"rx_q{q}_packets"] for q in range(4))
    require(each == total, f"{each} by queues, {total} in all")
    out = t.do("show port 0 rss reta 256 (0xffffffffffffffff,0,0,0)")
    require("hash index=5, queue=2" in out, "the table is not as it was set")
    key = "".join(f"{i:02x}" for i in range(1, 41))
    t.refuse(t.do(f"port config 0 rss-hash-key ipv4-udp {key}"), "rror", "ailed")
    require(key.upper() in t.do("show port 0 rss-hash key").upper(), "the key is not as it was set")
    # Across a restart.
    t.do("port stop 0", "port start 0")
    out = t.do("show port 0 rss reta 256 (0xffffffffffffffff,0,0,0)")
    require("hash index=5, queue=2" in out, "the table did not survive a restart")
    t.quit()


def test_shared_rxq(site):
    """Shared queues of two ports, and the mode that is made for them."""
    t = site.testpmd(RINGS, "--rxq=2", "--txq=2", "--rxq-share")
    out = t.do("set fwd txonly", "start")
    time.sleep(0.2)
    out = t.do("stop")
    received, _ = t.forward("shared_rxq", 0.4)
    out = t.do("show port info 0", "show port 0 rxq 0 desc 0 status")
    t.refuse(out, "nvalid")
    require(received > 0, f"{received} received")
    t.quit()


def test_flow(site):
    """Rules made, counted, listed, refused and flushed by hand."""
    t = site.testpmd(["net_verbena0,dev(net_ring0)"], "--rxq=2", "--txq=2")
    out = t.do("flow validate 0 ingress pattern eth / ipv4 / udp / end actions drop / end")
    require("validated" in out, out)
    out = t.do("flow create 0 ingress pattern eth / ipv4 / udp / end actions count / drop / end")
    require("Flow rule #0 created" in out, out)
    out = t.do("flow create 0 ingress pattern eth / ipv6 / end "
               "actions mark id 5 / queue index 1 / end")
    require("Flow rule #1 created" in out, out)
    out = t.do("flow create 0 ingress pattern eth / ipv4 / gre / end actions drop / end")
    require("are matched" in out, out)
    out = t.do("flow create 0 ingress pattern eth / ipv4 / end actions queue index 9 / end")
    require("no such Rx queue" in out, out)
    # testpmd sends UDP over IPv4.
    sent = t.forward("txonly", 0.1)[1]
    require(sent > 0, "nothing was sent")
    received = t.forward("rxonly", 0.2)[0]
    require(received == 0, f"{received} frames came past a rule that drops them")
    hits = re.search(r"hits: (\d+)", t.do("flow query 0 0 count"))
    require(hits and int(hits[1]) > 0, "no hits")
    require("DROP" in t.do("flow list 0"), "the rule is not listed")
    t.do("flow flush 0")
    t.do("flow isolate 0 1", "flow isolate 0 0")
    t.forward("txonly", 0.1)
    require(t.forward("rxonly", 0.2)[0] > 0, "nothing came after the rules were flushed")
    t.quit()


def test_life(site):
    """Stop, start, reset, close, attach, detach, and settings in between."""
    t = site.testpmd(["net_verbena0,dev(net_ring0)"])
    for _ in range(3):
        require(t.forward("io", 0.1, first=1)[0] > 0, "nothing forwarded")
        out = t.do("port stop 0", "port config mtu 0 1400", "port config all rxq 2",
                   "port config all txq 2", "port start 0", "show port info 0")
        t.refuse(out, "Fail", "fail", "Bad")
        require("MTU: 1400" in out, out)
        require("Current number of RX queues: 2" in out, out)
        out = t.do("port stop 0", "port config all rxq 1", "port config all txq 1",
                   "port start 0")
        t.refuse(out, "Fail", "fail")
    t.refuse(t.do("set promisc 0 off", "set promisc 0 on", "set allmulti 0 on"), "rror")
    t.do("port stop 0", "port close 0")
    out = t.do("port attach net_verbena5,dev(net_null5,size=256),reta=64")
    require("is attached" in out, out)
    port = int(re.search(r"Port (\d+) is attached", out)[1])
    out = t.do(f"port start {port}", f"show port info {port}")
    require("Redirection table size: 64" in out, out)
    require(t.forward("rxonly", 0.1)[0] > 0, "nothing received after attaching")
    out = t.do(f"port stop {port}", f"port detach {port}")
    require("is detached" in out, out)
    out = t.do("port attach net_verbena5,dev(net_null5)")
    require("is attached" in out, "it cannot be attached again: " + out)
    out = t.do("port attach net_verbena6,dev(net_not_there)")
    t.refuse(out, "is attached")
    t.quit()


def test_jumbo(site):
    """Frames longer than an mbuf, and frames of many segments."""
    t = site.testpmd(["net_verbena0,dev(net_ring0)", "net_verbena1,dev(net_ring1)"],
                     "--max-pkt-len=9018", "--enable-scatter", "--tx-offloads=0x8000",
                     "--mbuf-size=2176")
    t.do("set txpkts 64,1000,2000,1500,3000")
    sent = t.forward("txonly", 0.1)[1]
    require(sent > 0, "nothing sent")
    received = t.forward("io", 0.2)[0]
    require(received > 100, f"{received} received")
    t.quit()


def test_memif(site):
    """Two processes over net_memif."""
    sock = site.work / "memif.sock"
    a = site.testpmd([f"net_verbena0,dev(net_memif0,role=server,socket={sock},"
                      "socket-abstract=no)"])
    b = site.testpmd([f"net_verbena0,dev(net_memif0,role=client,socket={sock},"
                      "socket-abstract=no)"])
    for _ in range(100):
        if "Link status: up" in b.do("show port info 0"):
            break
        time.sleep(0.05)
    a.do("set fwd rxonly", "clear port stats all", "start")
    sent = b.forward("txonly", 0.3)[1]
    time.sleep(0.2)
    a.do("stop")
    received = a.stats(0)["rx_packets"]
    require(0 < received <= sent, f"{sent} sent, {received} received")
    b.quit()
    a.quit()


def test_shmlan(site):
    """Two ports on a segment of net_shmlan, and link events."""
    if not site.shmlan:
        return "no plugin of net_shmlan"
    vdev = f"net_shmlan{{0}},segment=tp,dir={site.work}"
    t = site.testpmd([f"net_verbena{i},dev({vdev.format(i)})" for i in (0, 1)])
    received, sent = t.forward("io", 0.5, first=4)
    require(received > 100 and sent > 100, f"{received} received, {sent} sent")
    require("Link status: up" in t.do("show port info 0"), "the link is not up")
    t.quit()
    return None


@contextlib.contextmanager
def network():
    """A network of its own for the kernel. Gives its name, or None where that cannot be had."""
    space = f"vrb{os.getpid()}"
    made = os.geteuid() == 0 and shutil.which("ip") is not None and subprocess.run(
        ["ip", "netns", "add", space], stderr=subprocess.DEVNULL).returncode == 0
    try:
        yield space if made else None
    finally:
        if made:
            subprocess.run(["ip", "netns", "del", space], stderr=subprocess.DEVNULL)


def ip(*args):
    done = subprocess.run(["ip", *args], stderr=subprocess.PIPE, text=True)
    require(done.returncode == 0, f"ip {' '.join(args)}: {done.stderr}")


def echo(t, space, interface):
    """The kernel, with an address on the interface, sends echo requests to testpmd."""
    ip("-n", space, "link", "set", interface, "up")
    ip("-n", space, "addr", "add", "198.18.77.1/24", "dev", interface)
    t.do("set fwd icmpecho", "start")
    ping = subprocess.run(["ip", "netns", "exec", space, sys.executable, "-c", PING,
                           "198.18.77.2"], stdout=subprocess.PIPE, text=True)
    t.do("stop")
    require(ping.stdout.strip() == "5", f"{ping.stdout.strip()} of 5 echoes")


@contextlib.contextmanager
def veth(space):
    """A pair of interfaces, one of them in the network. Gives both names."""
    mine, theirs = f"{space}a"[-14:], f"{space}b"[-14:]
    ip("link", "add", mine, "type", "veth", "peer", "name", theirs)
    try:
        ip("link", "set", theirs, "netns", space)
        ip("link", "set", mine, "up")
        yield mine, theirs
    finally:
        subprocess.run(["ip", "link", "del", mine], stderr=subprocess.DEVNULL)


def test_af_packet(site):
    """A kernel interface by a packet socket; direct, and by a poller."""
    with network() as space:
        if space is None:
            return "needs root and network namespaces"
        for more in ("", ",pollers=1"):
            with veth(space) as (mine, theirs):
                t = site.testpmd([f"net_verbena0,dev(net_af_packet0,iface={mine}){more}"])
                echo(t, space, theirs)
                t.quit()
    return None


def test_af_xdp(site):
    """A kernel interface by AF_XDP."""
    with network() as space:
        if space is None:
            return "needs root and network namespaces"
        with veth(space) as (mine, theirs):
            try:
                t = site.testpmd([f"net_verbena0,dev(net_af_xdp0,iface={mine})"])
            except Failure:
                return "this kernel has no AF_XDP"
            echo(t, space, theirs)
            t.quit()
    return None


def test_tap(site):
    """A tap, whose other end the kernel has."""
    with network() as space:
        if space is None or not os.access("/dev/net/tun", os.R_OK | os.W_OK):
            return "needs root, network namespaces and /dev/net/tun"
        name = f"{space}t"[-14:]
        t = site.testpmd([f"net_verbena0,dev(net_tap0,iface={name})"], "--rxq=2", "--txq=2")
        ip("link", "set", name, "netns", space)
        echo(t, space, name)
        t.quit()
    return None


def test_service_core(site):
    """The poller on a service core of its own."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 3 or os.cpu_count() != len(cpus):
        return "needs three processors"
    t = site.testpmd(["net_verbena0,dev(net_ring0),pollers=1"],
                     eal=["-S", "2"], more_lcores=f",2@{cpus[2]}")
    out = t.do("show rxq info 0 0")
    require("service cores" in out, out)
    t.do("set fwd io", "start tx_first 1")
    time.sleep(1.0)
    t.do("stop")
    require(t.stats(0)["rx_packets"] > 32, str(t.stats(0)))
    t.quit()
    return None


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--shmlan")
    parser.add_argument("pattern", nargs="?", default="", type=re.compile)
    args = parser.parse_args()
    if shutil.which("dpdk-testpmd") is None:
        print("SKIP: dpdk-testpmd is not installed (Debian: package dpdk-dev)")
        return 77
    tests = {name[5:]: fn for name, fn in globals().items() if name.startswith("test_")}
    failed = []
    with contextlib.ExitStack() as stack:
        site = Site(args.plugin, args.shmlan)
        stack.callback(site.remove)
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
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
