/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Profiles: what the wire does to packets, and what goes wrong besides.
 */
#include <string.h>

#include <rte_common.h>

#include "sim.h"

const struct profile profiles[] = {
	{
		.name = "lossless",
		.help = "a wire that loses nothing: no timeout and no retransmission may happen",
		.refuse = 10,
		.junk = 20,
		.big = 30,
		.timeout_lo = 17,
		.timeout_hi = 20,
	},
	{
		.name = "lossy",
		.help = "loss, duplication and reordering of up to some per cent",
		.lose = 50,
		.dup = 30,
		.reorder = 50,
		.refuse = 10,
		.junk = 10,
		.small_pool = 50,
		.late_recv = 150,
		.big = 15,
		.timeout_lo = 10,
		.timeout_hi = 14,
	},
	{
		.name = "hostile",
		.help = "the same and worse, with flipped bits, bursts of losses and hardly any "
			"mbufs",
		.lose = 100,
		.dup = 100,
		.reorder = 150,
		.corrupt = 60,
		.burst = 15,
		.refuse = 30,
		.junk = 50,
		.small_pool = 200,
		.late_recv = 200,
		.big = 5,
		.timeout_lo = 11,
		.timeout_hi = 14,
	},
	{
		.name = "rnr",
		.help = "receives that come late: RNR NAKs on a wire that loses nothing",
		.late_recv = 900,
		.refuse = 5,
		.timeout_lo = 17,
		.timeout_hi = 20,
	},
	{
		.name = "rnr-exceeded",
		.help = "receives that never come: the RNR retry count",
		.late_recv = 300,
		.timeout_lo = 14,
		.timeout_hi = 18,
		.rnr = true,
	},
	{
		.name = "faults",
		.help = "failing work requests and dying queue pairs, on a wire that loses nothing",
		.fault = 700,
		.refuse = 10,
		.junk = 10,
		.late_recv = 50,
		.timeout_lo = 14,
		.timeout_hi = 18,
	},
	{
		.name = "faults-lossy",
		.help = "the same on a wire that loses",
		.fault = 700,
		.lose = 50,
		.dup = 50,
		.reorder = 50,
		.late_recv = 50,
		.timeout_lo = 10,
		.timeout_hi = 14,
	},
	{
		.name = "blackout",
		.help = "the wire goes dead in the middle: retry counts and timers",
		.timeout_lo = 10,
		.timeout_hi = 20,
		.blackout = true,
	},
};

const unsigned int n_profiles = RTE_DIM(profiles);

const struct profile *
profile_find(const char *name)
{
	for (unsigned int i = 0; i < n_profiles; i++)
		if (strcmp(profiles[i].name, name) == 0)
			return &profiles[i];
	return NULL;
}
