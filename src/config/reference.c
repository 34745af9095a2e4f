/* The reference page, from the table: one paragraph per option. */
#include <stdio.h>

#include "config/config.h"
#include "config/unit.h"

static enum hpx_status print_range(const struct hpx_option *option, struct hpx_buffer *out)
{
	char min[HPX_UNIT_SIZE];
	char max[HPX_UNIT_SIZE];

	switch (option->kind) {
	case HPX_OPTION_DURATION:
		hpx_duration_print(option->min, min);
		hpx_duration_print(option->max, max);
		break;
	case HPX_OPTION_SIZE:
		hpx_size_print(option->min, min);
		hpx_size_print(option->max, max);
		break;
	case HPX_OPTION_COUNT:
		snprintf(min, sizeof(min), "%llu", (unsigned long long)option->min);
		snprintf(max, sizeof(max), "%llu", (unsigned long long)option->max);
		break;
	default:
		return hpx_buffer_text(out, hpx_option_kind_words(option->kind));
	}
	return hpx_buffer_printf(out, "%s, %s to %s", hpx_option_kind_words(option->kind), min,
				 max);
}

static enum hpx_status print_values(const struct hpx_option *option, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	if (option->kind != HPX_OPTION_CHOICE) {
		status = print_range(option, out);
		if (status == HPX_OK && option->off)
			status = hpx_buffer_text(out, ", or `off`");
		return status;
	}
	for (size_t i = 0; option->choices[i] != NULL && status == HPX_OK; i++)
		status = hpx_buffer_printf(out, "%s`%s`", i > 0 ? ", " : "", option->choices[i]);
	return status;
}

static enum hpx_status print_default(const struct hpx_option *option, struct hpx_buffer *out)
{
	enum hpx_status status;

	if (option->standard == NULL)
		status = hpx_buffer_text(out, "none");
	else if (option->standard[0] == '\0')
		status = hpx_buffer_text(out, "`[]`");
	else
		status = hpx_buffer_printf(out, "`%s`", option->standard);
	if (status == HPX_OK && option->stripe != NULL)
		status = hpx_buffer_printf(out, " (`%s` under `profile: stripe`)",
					   option->stripe);
	return status;
}

static enum hpx_status print_option(const struct hpx_option *option, struct hpx_buffer *out)
{
	enum hpx_status status =
		hpx_buffer_printf(out, "### `%s`\n\n%s\n\n", option->name, option->text);

	if (status == HPX_OK)
		status = hpx_buffer_text(out, "Value: ");
	if (status == HPX_OK)
		status = print_values(option, out);
	if (status == HPX_OK)
		status = hpx_buffer_text(out, ". Default: ");
	if (status == HPX_OK)
		status = print_default(option, out);
	if (status == HPX_OK && option->example != NULL)
		status = hpx_buffer_printf(out, ". Example: `%s`", option->example);
	if (status == HPX_OK)
		status = hpx_buffer_text(out, option->reloadable ? ". Reloadable." :
								   ". Not reloadable.");
	if (status == HPX_OK && option->flag != NULL)
		status = hpx_buffer_printf(out, " On the command line: `--%s%s%s`.", option->flag,
					   option->flag_value ? " " : "",
					   option->flag_value ? option->flag_value : "");
	return status == HPX_OK ? hpx_buffer_text(out, "\n\n") : status;
}

static enum hpx_status print_place(enum hpx_option_place place, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < hpx_option_count() && status == HPX_OK; i++)
		if (hpx_option_at(i)->place == place)
			status = print_option(hpx_option_at(i), out);
	return status;
}

static const char introduction[] =
	"# Options\n"
	"\n"
	"Generated from the table of options by `hapax check --print-reference`; a test\n"
	"compares the two.\n"
	"\n"
	"The configuration is one YAML file, given with `--config FILE`. Every option but\n"
	"`upstream` has a default, and `hapax serve --upstream URL` needs no file at all.\n"
	"`hapax check --config FILE` says everything that is wrong with a file, with line\n"
	"and column. Flags of the command line win over the file. An option `a.b` is\n"
	"written `a: {b: ...}`, or with `b` on a line of its own below `a:`.\n"
	"\n"
	"- A **duration** is a whole number and a unit: `250ms`, `10s`, `2m`, `24h`, `7d`.\n"
	"- A **size** is a whole number of bytes, or of `KiB`, `MiB`, `GiB` (1024), `KB`,\n"
	"  `MB`, `GB` (1000).\n"
	"- **true or false** may also be written `yes`, `no`, `on`, `off`.\n"
	"- A **pattern** is a method or `*`, a space, an optional host, and a path:\n"
	"  `POST /payments/{id}`, `* /orders/*`, `POST api.example.com/payments`. `{x}` is\n"
	"  one segment, a final `*` the rest. Of several patterns that match, the one with\n"
	"  the more specific path wins, segment by segment (text before `{x}` before `*`),\n"
	"  then one with a host, then one with a method.\n"
	"- **Reloadable** options change on `SIGHUP`. Where another one changed, the reload\n"
	"  is refused, with the names of what changed, and hapax goes on as it was.\n"
	"- Anchors, aliases, tags, unknown options and options given twice are mistakes.\n"
	"\n"
	"## Global options\n"
	"\n";

static const char routes[] =
	"## Route options\n"
	"\n"
	"Given under `defaults` they hold for every request; given in an element of `routes`\n"
	"for the requests that it matches. What a route does not say is as `defaults` has it.\n"
	"\n"
	"```yaml\n"
	"defaults:\n"
	"  retention: 24h\n"
	"routes:\n"
	"  - match: POST /payments\n"
	"    server_error: unknown\n"
	"    concurrent: wait\n"
	"```\n"
	"\n";

enum hpx_status hpx_config_print_reference(struct hpx_buffer *out)
{
	enum hpx_status status = hpx_buffer_text(out, introduction);

	if (status == HPX_OK)
		status = print_place(HPX_PLACE_GLOBAL, out);
	if (status == HPX_OK)
		status = hpx_buffer_text(out, routes);
	if (status == HPX_OK)
		status = print_place(HPX_PLACE_ROUTE, out);
	if (status == HPX_OK)
		status = print_place(HPX_PLACE_POLICY, out);
	if (status == HPX_OK)
		out->len--;   /* no empty line at the end */
	return status;
}
