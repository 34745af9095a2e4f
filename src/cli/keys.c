/* `hapax keys`: looks into the store and settles what a person must settle.
 * It works beside a running `hapax serve` and never creates a store. */
#include "cli/operator_command.h"

static const struct hpx_operator_verb verbs[] = {
	{ .name = "ls",
	  .synopsis = "hapax keys ls [--state STATE] [--key KEY] [--limit N]",
	  .about = "Lists operations, those that changed last first.",
	  .flags = { "state", "key", "limit", "full", "json" },
	  .run = hpx_keys_ls },
	{ .name = "show",
	  .synopsis = "hapax keys show REFERENCE | --key KEY",
	  .about = "Shows all that is known of one operation: its record, its jobs, its history and\n"
		   "the stored answer. REFERENCE may be cut to its first 6 or more digits.",
	  .flags = { "key", "body", "json" },
	  .operands_max = 1,
	  .run = hpx_keys_show },
	{ .name = "resolve",
	  .synopsis = "hapax keys resolve REFERENCE (--applied (--response FILE | --status N) |\n"
		      "                          --not-applied) --reason TEXT",
	  .about = "Settles an operation whose outcome is unknown, after you found out what became\n"
		   "of it. Nothing overrides a completed operation. --force is for a record that\n"
		   "cannot be read.",
	  .flags = { "key", "applied", "not-applied", "response", "status", "reason", "force",
		     "json" },
	  .operands_max = 1,
	  .writes = true,
	  .run = hpx_keys_resolve },
	{ .name = "forget",
	  .synopsis = "hapax keys forget REFERENCE --reason TEXT",
	  .about = "Removes the record of an operation: the next request with its key is executed.\n"
		   "One that is in progress, unknown or unreadable needs --force, because it may\n"
		   "have happened and would then happen twice.",
	  .flags = { "key", "reason", "force", "json" },
	  .operands_max = 1,
	  .writes = true,
	  .run = hpx_keys_forget },
	{ .name = "accept-clock",
	  .synopsis = "hapax keys accept-clock --reason TEXT",
	  .about = "Says that the clock is right as it is now. Records stop expiring when wall\n"
		   "clock and boot clock part ways; this lets them expire again.",
	  .flags = { "reason", "json" },
	  .writes = true,
	  .run = hpx_keys_accept_clock },
};

int hpx_cli_keys(int argc, char **argv)
{
	static const struct hpx_operator_verbs command = {
		.name = "keys",
		.about =
			"Looks into the store, and settles what a person must settle. Works beside a\n"
			"running hapax serve.",
		.verb_names = "ls, show, resolve, forget and accept-clock",
		.verbs = verbs,
		.verb_count = sizeof(verbs) / sizeof(verbs[0]),
	};

	return hpx_operator_run(&command, argc, argv);
}
