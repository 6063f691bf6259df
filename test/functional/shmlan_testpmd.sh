#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# dpdk-testpmd with the net_shmlan plugin: two ports of one process that forward to each other (io), and two processes
# of which one sends (txonly) and the other one receives (rxonly).
#
#   shmlan_testpmd.sh <librte_net_shmlan.so>
#
# Exit status 77 (skipped) where dpdk-testpmd is not installed.
set -eu
plugin=$1
command -v dpdk-testpmd >/dev/null || { echo "SKIP: dpdk-testpmd is not installed (Debian: dpdk-dev, dpdk)"; exit 77; }

work=$(mktemp -d "${TMPDIR:-/tmp}/shmlan-testpmd.XXXXXX")
# EAL loads no plugin from below a directory that others may write to, so it is copied out of /tmp.
secure=$(mktemp -d "${XDG_RUNTIME_DIR:-$HOME}/.shmlan-testpmd.XXXXXX")
prefix=shmlan-testpmd-$$
trap 'rm -rf "$work" "$secure"; rmdir "${RUNTIME_DIRECTORY:-/var/run}"/dpdk/$prefix-* 2>/dev/null || true' EXIT
cp "$plugin" "$secure/librte_net_shmlan.so"

# The lcore that forwards is the second one; two processes use a CPU each, where there are two.
cpu=$(($(nproc) > 1))
# testpmd <name> <lcores> <vdevs...> -- <arguments of testpmd>: commands are read from stdin.
testpmd() {
	local name=$1 lcores=$2
	shift 2
	timeout 60 dpdk-testpmd --no-huge --no-shconf --no-pci --no-telemetry -m 256 --lcores="$lcores" --file-prefix="$prefix-$name" \
		-d "$secure/librte_net_shmlan.so" "$@" --no-mlockall --total-num-mbufs=4096 -i >"$work/$name.log" 2>&1
}
fail() { echo "FAIL: $*"; touch "$work/sent"; wait; tail -n 60 "$work"/*.log; exit 1; }
# The sum of a figure over all ports in a log.
total() { sed -n "s/.*$2: *\([0-9]*\).*/\1/p" "$work/$1.log" | awk '{ s += $1 } END { print s + 0 }'; }

vdev() { echo "--vdev=net_shmlan$1,segment=tp,dir=$work"; }

# Frames go round between the two ports for as long as it runs. testpmd sends to addresses that nobody has, and
# its ports are promiscuous, so this takes the way of unknown addresses.
{ sleep 1; echo "show port info 0"; echo "start tx_first 4"; sleep 2; echo stop; echo "show port stats all"; echo "show port xstats 0";
  echo "port stop all"; echo "port close all"; echo quit; } |
	testpmd io "0@0,1@$cpu" "$(vdev 0)" "$(vdev 1)" -- --forward-mode=io || fail "testpmd io ended with $?"
[ "$(total io RX-packets)" -gt 10000 ] || fail "io: only $(total io RX-packets) frames received"
[ "$(total io TX-errors)" -eq 0 ] || fail "io: $(total io TX-errors) errors"
grep -q "Link status: up" "$work/io.log" || fail "io: the link is not up"
echo "io: $(total io RX-packets) frames received"

# One process sends what another one receives.
{ sleep 1; echo start; while [ ! -e "$work/sent" ]; do sleep 0.1; done; sleep 0.5; echo stop; echo "show port stats all"; echo quit; } |
	testpmd rx "0@$cpu,1@0" "$(vdev 0)" -- --forward-mode=rxonly &
receiver=$!
{ sleep 2; echo start; sleep 2; echo stop; echo "show port stats all"; echo quit; } |
	testpmd tx "0@0,1@$cpu" "$(vdev 0)" -- --forward-mode=txonly --txpkts=64,200,1000 || fail "testpmd txonly ended with $?"
touch "$work/sent"
wait $receiver || fail "testpmd rxonly ended with $?"
sent=$(total tx TX-packets)
received=$(total rx RX-packets)
[ "$sent" -gt 10000 ] || fail "txonly: only $sent frames sent"
[ "$sent" -eq "$received" ] || fail "txonly sent $sent frames, rxonly received $received"
echo "txonly, rxonly: $sent frames sent, $received received"

[ ! -e "$work/tp" ] || fail "the segment was left behind"
