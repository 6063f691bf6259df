#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs Debian's programs between two processes many times in a row, as root and as nobody: a hang or
# a failure in a hundred runs is one too many.
#
#   test/functional/repeat.sh N [--quick] [GROUP...]
#
# A GROUP is a program, such as ib_send_lat, or all. With --quick each program is run in one way
# only.
# VERBENA names the command; the one of build/ when it is not set.
set -eu
[ $# -ge 1 ] || { sed -n '3,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
turns=$1
shift
exec /usr/bin/python3 -B "$here/pairs.py" --repeat "$turns" \
	--verbena "${VERBENA:-$here/../../build/app/verbena/verbena}" "${@:-all}"
