#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of running processes: `verbena info --pid`, `verbena info`, `verbena top`."""
import re
import signal
import sys
import time

from vrbtest import (Identity, Site, Suite, arguments, free_port, identities, require, wait_until)

RECEIVES = 100


def call(site, *argv, status=0):
    process = site.start([site.command, *argv], verbena=False)
    process.wait(20)
    require(process.status == status, process.describe())
    return process


def waiting_server(site):
    """A program that has posted receives to an SRQ and waits for its client."""
    port = free_port()
    return site.serve(["ibv_srq_pingpong", "-g", 0, "-q", 4, "-r", RECEIVES, "-e", "-p", port],
                      port)


def info_shows_a_process(site):
    server = waiting_server(site)
    out = call(site, "info", "--pid", server.pid).out
    for pattern in (rf"^ibv_srq_pingpon\w*, process {server.pid}, on default$",
                    r"address +198\.18\.",
                    rf"SRQ 1 +{RECEIVES} of {RECEIVES} receives posted, limit 0, 4 QPs, ran dry 0",
                    r"CQ 1 +0 of \d+ completions wait, armed", r"Queue pairs: 4$",
                    r"QP 0x11 +RC, INIT, 0 sends wait, receives by SRQ 1"):
        require(re.search(pattern, out, re.M), f"no '{pattern}' in\n{out}")
    server.kill()


def info_lists_who_is_there(site):
    server = waiting_server(site)
    out = call(site, "info").out
    require(re.search(rf"^  {server.pid} +198\.18\.\S+ +ibv_srq_pingpon", out, re.M), out)
    require("nobody" in call(site, "info", "--segment", "other").out, "another network's is shown")
    server.kill()


def top_shows_rates_and_queues(site):
    server = waiting_server(site)
    out = call(site, "top", "-d", "0.1", "-n", "2").out
    require(len(re.findall(rf"^ibv_srq_pingpon\w* +{server.pid} ", out, re.M)) == 2, out)
    bar = "#" * 20
    require(f"[{bar}] {RECEIVES} of {RECEIVES}, limit 0, 4 QPs, ran dry 0 times" in out, out)
    server.kill()


def dry_queue_is_counted(site, program):
    """A program that lets its SRQ run dry, with a receiver and a sender."""
    process = site.start([site.copy(program), "--seconds", 5])
    pattern = r"ran dry [1-9]\d* times"

    def dry():
        require(process.status is None, process.describe())
        return re.search(pattern, call(site, "top", "-d", "0.05", "-n", "1").out)

    wait_until(dry, 5, "the SRQ has run dry")
    out = call(site, "info", "--pid", process.pid).out
    require(re.search(pattern, out) and re.search(r"tx_nak_rnr +\d", out), out)
    process.kill()


def rates_are_shown_of_busy_processes(site):
    port = free_port()
    argv = ["ibv_srq_pingpong", "-g", 0, "-n", 2000000, "-p", port]
    server = site.serve(argv, port)
    client = site.start([*argv, "127.0.0.1"], name="client")
    wait_until(lambda: re.search(r"rx_packets +\d{3}", call(
        site, "info", "--pid", server.pid).out), 20, "packets are counted")
    before, after = [rates(site, p) for p in (server, client)]
    require(before > 0 and after > 0, "no packets a second")
    require(server.status is None and client.status is None, server.describe())
    for process in (server, client):
        process.kill()


def rates(site, process):
    out = call(site, "top", "-d", "0.3", "-n", "1", "--pid", process.pid).out
    fields = re.search(rf"^\S+ +{process.pid} +\S+ +(\S+) ", out, re.M)
    require(fields and fields.group(1) != "-", out)
    return float(fields.group(1).rstrip("kM"))


def killed_process_is_forgotten(site):
    server = waiting_server(site)
    folder = site.runtime / "verbena/.figures"
    require((folder / str(server.pid)).is_socket(), "there is no socket")
    server.kill(signal.SIGKILL)
    call(site, "info", "--pid", server.pid, status=1)
    require(not list(folder.iterdir()), "what it has left is still there")
    require("no process" in call(site, "top", "-d", "0.1", "-n", "1").out, "it is still shown")


def ending_process_leaves_nothing(site):
    site.run(["ibv_devinfo"])
    require(not list((site.runtime / "verbena/.figures").iterdir()), "a socket is left")


def looking_costs_nothing_afterwards(site):
    server = waiting_server(site)
    call(site, "top", "-d", "0.05", "-n", "20")
    before = server.cpu_seconds()
    time.sleep(1)
    require(server.cpu_seconds() - before <= 0.01, "it goes on using the CPU")
    server.kill()


def others_cannot_look(site):
    """What is root's is not seen by nobody, also where the folder is named."""
    if site.identity.user or "nobody" not in [i.user for i in identities()]:
        return
    server = waiting_server(site)
    with Site(site.verbena, Identity("nobody")) as other:
        env = {"XDG_RUNTIME_DIR": str(site.runtime)}
        process = other.start([other.command, "info", "--pid", server.pid], verbena=False, env=env)
        process.wait(20)
        require(process.status == 1, process.describe())
    server.kill()


def main():
    args = arguments("figures of running processes",
                     (["--stress"], {"required": True, "help": "a program, srq_stress"}))
    suite = Suite()
    for identity in identities():
        for test in (info_shows_a_process, info_lists_who_is_there, top_shows_rates_and_queues,
                     rates_are_shown_of_busy_processes, killed_process_is_forgotten,
                     ending_process_leaves_nothing, looking_costs_nothing_afterwards,
                     others_cannot_look):
            with Site(args.verbena, identity) as site:
                suite.check(f"{test.__name__} as {identity.name}", lambda: test(site))
        with Site(args.verbena, identity) as site:
            suite.check(f"dry_queue_is_counted as {identity.name}",
                        lambda: dry_queue_is_counted(site, args.stress))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
