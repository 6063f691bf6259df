# SPDX-License-Identifier: BSD-3-Clause
"""One sample of one measurement: which programs are run, and what their figures mean.

Every sample is in microseconds or in MiB/s. What the programs print:
  perftest    bandwidth in MiB/s (2^20 bytes); latency is half of a round trip, for reads a whole
              one; the columns taken are the median of all iterations and the 99th percentile
  qperf       bandwidth in bytes/s; tcp_lat is half of a round trip
  ucx_perftest  "MB/s" are MiB/s; tag_lat and ucp_put_lat are half of a round trip, ucp_get with one
              operation at a time is a whole one
A TCP read is a request and its answer: two times half a round trip.
"""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "functional"))
from vrbtest import Failure, free_port  # noqa: E402

MIB = 1 << 20
SAMPLE_SECONDS = 60.0


class Measurement:
    """A contender's program for one test.

    sample() returns {"value": x, "rate": messages/s}, and "tail" where the program tells: the
    latency within which 99 of 100 are.
    """

    def __init__(self, contender, title):
        self.contender, self.title = contender, title

    def sample(self, site, size, pin, options):
        raise NotImplementedError


def iterations(kind, size):
    """Enough for a fraction of a second, few enough that a slow one ends in time."""
    if kind == "lat":
        return max(500, min(20000, (64 << 20) // size))
    return max(300, min(300000, (512 << 20) // size))


def taskset(pin, side):
    return ("taskset", "-c", str(pin[side])) if pin else ()


class Perftest(Measurement):
    """A program of perftest over Verbena."""

    def __init__(self, program):
        super().__init__("verbena", program)
        self.kind = program.rsplit("_", 1)[1]

    def sample(self, site, size, pin, options):
        port = free_port()
        argv = [self.title, "-F", "-p", port, "-s", size, "-n", iterations(self.kind, size)]
        if self.kind == "bw":
            argv.append("-N")  # the peak costs a clock reading for each message
        server = site.serve(argv, port, options=options, before=taskset(pin, 0))
        client = site.start([*argv, "127.0.0.1"], options, before=taskset(pin, 1))
        for process in (client, server):
            if process.wait(SAMPLE_SECONDS):
                raise Failure(f"{server.describe()}\n{client.describe()}")
        rows = re.findall(r"^\s*(\d+\s+\d+\s+[\d.\s]+)$", client.out, re.M)
        if not rows:
            raise Failure(client.describe())
        row = [float(x) for x in rows[-1].split()]
        if self.kind == "bw":
            return {"value": row[3], "rate": row[4] * 1e6}
        return {"value": row[4], "rate": 0.0, "tail": row[7]}


class Qperf(Measurement):
    """TCP over the kernel's loopback."""

    def __init__(self, test, factor=1.0):
        super().__init__("tcp", test)
        self.factor = factor

    def sample(self, site, size, pin, options):
        port = free_port()
        server = site.serve(["qperf", "-lp", port], port, verbena=False, before=taskset(pin, 0))
        client = site.start(["qperf", "-lp", port, "-uu", "-v", "-t", 1, "-m", size, "127.0.0.1",
                             self.title], verbena=False, before=taskset(pin, 1))
        status = client.wait(SAMPLE_SECONDS)
        server.kill()
        found = dict(re.findall(r"^ *(\w+) += +([\d.]+)", client.out, re.M))
        if status or not {"bw", "latency"} & set(found):
            raise Failure(client.describe())
        if "bw" in found:
            value = float(found["bw"])
            return {"value": value / MIB, "rate": value / size}
        return {"value": float(found["latency"]) / 1000 * self.factor, "rate": 0.0}


class Ucx(Measurement):
    """UCX with one transport only."""

    def __init__(self, contender, transports, test, kind, extra=()):
        super().__init__(contender, test)
        self.transports, self.kind, self.extra = transports, kind, extra

    def sample(self, site, size, pin, options):
        port = free_port()
        env = {"UCX_TLS": self.transports, "UCX_WARN_UNUSED_ENV_VARS": "n"}
        count = iterations(self.kind, size)
        if self.contender == "ucx-tcp" and self.title == "ucp_get":
            count = max(100, count // 200)  # each takes a millisecond
        server = site.serve(["ucx_perftest", "-p", port], port, verbena=False, env=env,
                            before=taskset(pin, 0))
        client = site.start(["ucx_perftest", "127.0.0.1", "-p", port, "-t", self.title, "-s", size,
                             "-n", count, "-w", max(10, count // 10), *self.extra, "-f", "-v"],
                            verbena=False, env=env, before=taskset(pin, 1))
        for process in (client, server):
            if process.wait(SAMPLE_SECONDS):
                raise Failure(f"{server.describe()}\n{client.describe()}")
        last = client.out.strip().splitlines()[-1].split(",")
        if len(last) != 8:
            raise Failure(client.describe())
        if self.kind == "bw":
            return {"value": float(last[5]), "rate": float(last[7])}
        return {"value": float(last[1]), "rate": 0.0}


def ucx_pair(test, kind, extra=()):
    return [Ucx("ucx-shm", "posix,self", test, kind, extra),
            Ucx("ucx-tcp", "tcp,self", test, kind, extra)]


# Each test: Verbena first, then its peers. A peer that stands in several tests is sampled once.
TCP_BW, TCP_LAT = Qperf("tcp_bw"), Qperf("tcp_lat")
TESTS = {
    "write_bw": [Perftest("ib_write_bw"), TCP_BW, *ucx_pair("ucp_put_bw", "bw")],
    "read_bw": [Perftest("ib_read_bw"), TCP_BW, *ucx_pair("ucp_get", "bw")],
    "send_bw": [Perftest("ib_send_bw"), TCP_BW, *ucx_pair("tag_bw", "bw")],
    "write_lat": [Perftest("ib_write_lat"), TCP_LAT, *ucx_pair("ucp_put_lat", "lat")],
    "read_lat": [Perftest("ib_read_lat"), Qperf("tcp_lat", 2.0),
                 *ucx_pair("ucp_get", "lat", ("-O", "1"))],
    "send_lat": [Perftest("ib_send_lat"), TCP_LAT, *ucx_pair("tag_lat", "lat")],
}
