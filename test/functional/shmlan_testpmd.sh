#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# dpdk-testpmd with the net_shmlan plugin: two ports of one process that forward to each other (io),
# and two processes of which one sends (txonly) and the other one receives (rxonly).
#
#   shmlan_testpmd.sh <librte_net_shmlan.so>
#
# Exit status 77 (skipped) where dpdk-testpmd is not installed.
set -eu
plugin=$1
command -v dpdk-testpmd >/dev/null || {
	echo "SKIP: dpdk-testpmd is not installed (Debian: package dpdk-dev)"
	exit 77
}

work=$(mktemp -d "${TMPDIR:-/tmp}/shmlan-testpmd.XXXXXX")
# EAL loads no plugin from below a directory that others may write to: it is copied out of /tmp.
secure=$(mktemp -d "${XDG_RUNTIME_DIR:-$HOME}/.shmlan-testpmd.XXXXXX")
prefix=shmlan-testpmd-$$
clean() {
	rm -rf "$work" "$secure"
	rmdir "${RUNTIME_DIRECTORY:-/var/run}/dpdk/$prefix"-* 2>/dev/null || true
}
trap clean EXIT
cp "$plugin" "$secure/librte_net_shmlan.so"

# The lcore that forwards is the second one; two processes use a CPU each, where there are two.
cpu=$(($(nproc) > 1))
eal=(--no-huge --no-shconf --no-pci --no-telemetry -m 256 -d "$secure/librte_net_shmlan.so")
vdev() { echo "--vdev=net_shmlan$1,segment=tp,dir=$work"; }

# testpmd <name> <lcores> <ports>... -- <arguments>: reads commands from stdin.
testpmd() {
	local name=$1 lcores=$2
	shift 2
	timeout 100 stdbuf -oL dpdk-testpmd "${eal[@]}" --lcores="$lcores" \
		--file-prefix="$prefix-$name" "$@" --no-mlockall --total-num-mbufs=4096 -i \
		>"$work/$name.log" 2>&1
}
fail() {
	echo "FAIL: $*"
	touch "$work/sent"
	wait
	tail -n 60 "$work"/*.log
	exit 1
}
# Waits until a line appears in a log; goes on in any case, and the figures tell what went wrong.
await() {
	for _ in $(seq 300); do
		grep -qs "$2" "$work/$1.log" && return
		sleep 0.1
	done
}
# The sum of a figure over all ports in a log.
total() {
	sed -n "s/.*$2: *\([0-9]*\).*/\1/p" "$work/$1.log" | awk '{ s += $1 } END { print s + 0 }'
}

# Frames go round between the two ports for as long as it runs. testpmd sends to addresses that
# nobody has, and its ports are promiscuous, so this takes the way of unknown addresses.
{
	await io "^Done"
	echo "show port info 0"
	echo "start tx_first 4"
	sleep 2
	printf '%s\n' stop "show port stats all" "show port xstats 0"
	printf '%s\n' "port stop all" "port close all" quit
} | testpmd io "0@0,1@$cpu" "$(vdev 0)" "$(vdev 1)" -- --forward-mode=io ||
	fail "testpmd io ended with $?"
received=$(total io RX-packets)
[ "$received" -gt 1000 ] || fail "io: only $received frames received"
[ "$(total io TX-errors)" -eq 0 ] || fail "io: $(total io TX-errors) errors"
grep -q "Link status: up" "$work/io.log" || fail "io: the link is not up"
echo "io: $received frames received"

# One process sends what another one receives.
{
	echo start
	while [ ! -e "$work/sent" ]; do sleep 0.1; done
	sleep 0.5
	printf '%s\n' stop "show port stats all" quit
} | testpmd rx "0@$cpu,1@0" "$(vdev 0)" -- --forward-mode=rxonly &
receiver=$!
{
	await tx "^Done"
	await rx "^rxonly packet forwarding"
	echo start
	sleep 2
	printf '%s\n' stop "show port stats all" quit
} | testpmd tx "0@0,1@$cpu" "$(vdev 0)" -- --forward-mode=txonly --txpkts=64,200,1000 ||
	fail "testpmd txonly ended with $?"
touch "$work/sent"
wait $receiver || fail "testpmd rxonly ended with $?"
sent=$(total tx TX-packets)
received=$(total rx RX-packets)
[ "$sent" -gt 1000 ] || fail "txonly: only $sent frames sent"
[ "$sent" -eq "$received" ] || fail "txonly sent $sent frames, rxonly received $received"
echo "txonly, rxonly: $sent frames sent, $received received"

[ ! -e "$work/tp" ] || fail "the segment was left behind"
