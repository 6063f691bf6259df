/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands about the prompt itself, and about the device as a whole.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <cmdline.h>
#include <rte_ether.h>

#include "backend.h"
#include "commands.h"
#include "grammar.h"
#include "wait.h"

/* ---- help ---- */

static void
print_command(const struct tp_cmd *cmd, bool options)
{
	char buf[1024];

	tp_usage(cmd, buf, sizeof(buf));
	tp_print("%s\n    %s\n", buf, cmd->help);
	for (const struct tp_arg *a = cmd->args; options && a != NULL && a->name != NULL; a++) {
		tp_placeholder(a, buf, sizeof(buf));
		tp_print("    %-12s %s: %s\n", a->name, buf, a->help);
	}
}

static int
help_all(const struct tp_call *call)
{
	for (int f = 0; tp_families[f] != NULL; f++)
		tp_print("%-10s %s\n", tp_families[f]->name, tp_families[f]->help);
	tp_print(
		"\n\"help srq\" shows the commands of a line above, \"help srq create\" one with "
		"its "
		"options.\nTab completes, ? shows what can follow, the arrows fetch earlier lines, "
		"Ctrl-C ends\na command that runs, Ctrl-D or quit the program.\n");
	return 0;
}

static int
help_some(const struct tp_call *call)
{
	unsigned int shown = 0, literals;
	struct tp_words w;
	struct tp_pattern p;

	tp_split(&w, tp_text(call, "command"));
	for (int f = 0; tp_families[f] != NULL; f++) {
		const struct tp_family *family = tp_families[f];
		bool whole = w.num == 1 && strcmp(w.word[0], family->name) == 0;

		if (whole)
			tp_print("%s: %s\n\n", family->name, family->help);
		for (unsigned int i = 0; i < family->num; i++) {
			tp_pattern(&family->cmds[i], &p);
			tp_match(&p, w.word, w.num, &literals);
			if (!whole && literals < w.num)
				continue;
			print_command(&family->cmds[i], !whole);
			shown++;
		}
	}
	if (shown == 0)
		return tp_refuse(-ENOENT, "there is no command \"%s\" (help lists all)",
			tp_text(call, "command"));
	return 0;
}

static const struct tp_arg help_args[] = {
	{.name = "command", .type = TP_REST, .help = "the command, or its first words"}, {NULL}};

/* ---- the program ---- */

static int
quit(const struct tp_call *call)
{
	if (tp_cmdline_current() != NULL)
		cmdline_quit(tp_cmdline_current());
	tp_quit = true;
	return 0;
}

static int
sleep_ms(const struct tp_call *call)
{
	if (tp_wait(tp_num(call, "ms", 0)))
		return tp_refuse(-EINTR, "interrupted");
	return 0;
}

static const struct tp_arg sleep_args[] = {
	{.name = "ms", .type = TP_NUM, .max = 3600000, .help = "milliseconds"}, {NULL}};

const char *
tp_gid_text(const union vrb_gid *gid, char *buf)
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};

	if (memcmp(gid->raw, mapped, sizeof(mapped)) == 0)
		inet_ntop(AF_INET, &gid->raw[12], buf, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, gid->raw, buf, INET6_ADDRSTRLEN);
	return buf;
}

static int
device_show(const struct tp_call *call)
{
	char text[INET6_ADDRSTRLEN];
	struct tp_device dev;

	tp_device(&dev);
	rte_ether_format_addr(text, sizeof(text), (struct rte_ether_addr *)dev.mac);
	tp_row("port", "%u", dev.port_id);
	tp_row("name", "%s", dev.port);
	tp_row("over", "%s", dev.driver);
	tp_row("mac", "%s", text);
	tp_row("gid0", "%s", tp_gid_text(&dev.gid[0], text));
	tp_row("gid1", "%s", tp_gid_text(&dev.gid[1], text));
	tp_row("mtu", "%u", dev.port_mtu);
	tp_row("path-mtu", "%u", dev.max_mtu);
	tp_row("link", "%s", dev.link_up ? "up" : "down");
	tp_row_end();
	return 0;
}

static int
device_stats(const struct tp_call *call)
{
	const struct vrb_stats *s = vrb_engine_stats(tp_engine());
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{"rx-packets", s->rx_packets},
		{"rx-bytes", s->rx_bytes},
		{"tx-packets", s->tx_packets},
		{"tx-bytes", s->tx_bytes},
		{"rx-not-roce", s->rx_not_roce},
		{"rx-malformed", s->rx_malformed},
		{"rx-icrc", s->rx_icrc},
		{"rx-opcode", s->rx_opcode},
		{"rx-no-qp", s->rx_no_qp},
		{"rx-qp-state", s->rx_qp_state},
		{"rx-wrong-peer", s->rx_wrong_peer},
		{"rx-pkey", s->rx_pkey},
		{"rx-qkey", s->rx_qkey},
		{"rx-no-recv", s->rx_no_recv},
		{"rx-dropped", s->rx_dropped},
		{"rx-duplicate", s->rx_duplicate},
		{"rx-out-of-order", s->rx_out_of_order},
		{"tx-acks", s->tx_acks},
		{"tx-nak-sequence", s->tx_nak_seq},
		{"tx-nak-rnr", s->tx_nak_rnr},
		{"tx-nak-error", s->tx_nak_error},
		{"rx-acks", s->rx_acks},
		{"rx-nak-sequence", s->rx_nak_seq},
		{"rx-nak-rnr", s->rx_nak_rnr},
		{"rx-nak-error", s->rx_nak_error},
		{"timeouts", s->timeouts},
		{"retransmitted", s->retransmitted},
		{"read-gaps", s->read_gaps},
		{"no-mbuf", s->no_mbuf},
		{"cq-overruns", s->cq_overruns},
		{"direct-writes", s->direct_writes},
		{"direct-reads", s->direct_reads},
		{"direct-bytes", s->direct_bytes},
	};

	for (unsigned int i = 0; i < RTE_DIM(rows); i++)
		tp_print("%s %" PRIu64 "\n", rows[i].name, rows[i].value);
	return 0;
}

static const struct tp_cmd base_cmds[] = {
	{"help", "shows the commands there are", NULL, help_all},
	{"help <command>", "shows one command or all that begin alike, with their options",
		help_args, help_some},
	{"sleep <ms>", "waits, in a file of commands", sleep_args, sleep_ms},
	{"quit", "destroys all objects and ends the program", NULL, quit},
};

static const struct tp_cmd device_cmds[] = {
	{"device show", "shows the addresses and the port of the RoCE device", NULL, device_show},
	{"device stats", "shows the counters of the RoCE engine, each by its cause", NULL,
		device_stats},
};

const struct tp_family tp_base_family = TP_FAMILY("help", "help, sleep, quit", base_cmds);
const struct tp_family tp_device_family =
	TP_FAMILY("device", "the RoCE device: its addresses and counters", device_cmds);

bool tp_quit;
