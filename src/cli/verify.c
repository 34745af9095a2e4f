/* `hapax verify`: the flags and the description. */
#include "cli/verify.h"

#include "cli/cli.h"

_Static_assert(HPX_VERIFY_REPEAT_MAX == HPX_CLI_REPEAT_MAX, "one list of values for a flag");
_Static_assert(HPX_VERIFY_FAILED == HPX_EXIT_FAILED && HPX_VERIFY_MISTAKEN == HPX_EXIT_USAGE,
	       "one set of exit codes");

#define REPORT_BYTES_MAX ((size_t)256 << 10)

struct verification {
	struct hpx_verify_flags options;
	const char *file, *dry_run, *list;
	struct hpx_verify_output output;
	struct hpx_verify_spec spec;
};

static size_t list_flags(struct verification *v, struct hpx_cli_flag flags[HPX_CLI_FLAGS_MAX])
{
	const struct hpx_cli_flag own[] = {
		{ "file", "FILE", "A description in YAML, with all of this and more requests.",
		  &v->file },
		{ "dry-run", NULL, "Says what would be sent, and opens no connection.",
		  &v->dry_run },
		{ "list", NULL, "Lists the rows.", &v->list },
		{ "json", NULL, "Prints the report as JSON.", &v->output.json },
		{ "junit", "FILE", "Writes JUnit's XML, for CI.", &v->output.junit },
		{ "log", "FILE", "Writes every exchange, one JSON object a line.", &v->output.log },
		{ "all", NULL, "Explains every row, not only the broken ones.", &v->output.all },
	};
	size_t count = 0;

	for (size_t i = 0; i < hpx_verify_option_count; i++) {
		const struct hpx_verify_option *option = &hpx_verify_options[i];

		if (option->flag != NULL)
			flags[count++] = (struct hpx_cli_flag){ option->flag, option->value,
								option->text,
								v->options.values[i] };
	}
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		flags[count++] = own[i];
	return count;
}

static int complain(const char *what, const char *cause, int code)
{
	fprintf(stderr, "hapax verify: %s%s\n", what, cause);
	return code;
}

/* ---- the description ---- */

static int load(struct verification *v)
{
	struct hpx_config_report report;
	struct hpx_buffer text;

	hpx_config_report_init(&report);
	hpx_buffer_init(&text, REPORT_BYTES_MAX);
	enum hpx_status status =
		hpx_verify_spec_load(v->file, &v->options, &report, &v->spec);
	hpx_config_report_print(&report, v->file, &text);
	hpx_cli_write(hpx_buffer_span(&text), stderr);
	hpx_buffer_done(&text);
	hpx_config_report_done(&report);
	if (status == HPX_OK)
		return HPX_EXIT_OK;
	if (status == HPX_INVALID)
		return complain("nothing was sent; `hapax verify --help` shows how it is called",
				"", HPX_EXIT_USAGE);
	return complain("the description cannot be read: ", hpx_status_text(status),
			HPX_EXIT_FAILED);
}

static int plan(const struct verification *v)
{
	enum hpx_status status = hpx_verify_print_plan(&v->spec);

	if (status == HPX_OK)
		return HPX_EXIT_OK;
	return complain("the plan cannot be made: ", hpx_status_text(status), HPX_EXIT_FAILED);
}

static int verify(struct verification *v)
{
	int code = load(v);

	if (code == HPX_EXIT_OK)
		code = v->dry_run != NULL ? plan(v) : hpx_verify_judge(&v->spec, &v->output);
	hpx_verify_spec_done(&v->spec);
	return code;
}

int hpx_cli_verify(int argc, char **argv)
{
	struct verification v = { .file = NULL };
	struct hpx_cli_flag flags[HPX_CLI_FLAGS_MAX];
	const struct hpx_cli_usage usage = {
		.synopsis = "hapax verify URL -d BODY [FLAGS], or hapax verify --file FILE",
		.about = "Judges an API that claims idempotency, from outside: sends real requests (to a\n"
			 "test server, with test credentials), retries them, repeats them at the same\n"
			 "moment, cuts them off, and says row by row what holds. Exit code 0 if every\n"
			 "required row holds, 1 if not, 2 if the description is mistaken.",
		.flags = flags,
		.flag_count = list_flags(&v, flags),
		.operands_max = 1,
	};
	int rest, code;

	if (!hpx_cli_read(&usage, argc, argv, &rest, &code))
		return code;
	if (v.list != NULL) {
		hpx_verify_print_list();
		return HPX_EXIT_OK;
	}
	/* The URL is the first of the options. */
	if (rest < argc)
		v.options.values[0][0] = argv[rest];
	return verify(&v);
}
