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

	if (option->default_value == NULL)
		status = hpx_buffer_text(out, "none");
	else if (option->default_value[0] == '\0')
		status = hpx_buffer_text(out, "`[]`");
	else
		status = hpx_buffer_printf(out, "`%s`", option->default_value);
	if (status == HPX_OK && option->stripe_default != NULL)
		status = hpx_buffer_printf(out, " (`%s` under `profile: stripe`)",
					   option->stripe_default);
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
	"- A **JSON pointer** (RFC 6901) is the way to a value in a JSON body:\n"
	"  `/data/object/id`, with `~1` for `/` and `~0` for `~` in a name.\n"
	"- A relative **path of a file** counts from the directory that hapax is started in.\n"
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

static const char targets[] =
	"## Targets\n"
	"\n"
	"Services outside that jobs are sent to, under `targets`, each with a name of its own\n"
	"(1 to 63 of `a-z`, `0-9`, `_` and `-`) that routes and jobs give. At most 64. They need\n"
	"a store that outlives hapax: `sqlite:` or `postgres:`.\n"
	"\n"
	"```yaml\n"
	"tenant: {from: subrequest, url: \"http://127.0.0.1:9001/verify\", header: X-Tenant}\n"
	"routes:\n"
	"  - match: POST /emails\n"
	"    deliver: async\n"
	"    target: mailer\n"
	"targets:\n"
	"  mailer:\n"
	"    url: https://mail.example/api\n"
	"    credentials: {file: /etc/hapax/mailer.credential}\n"
	"    honours_keys: 24h\n"
	"    provider_id: /id\n"
	"```\n"
	"\n";

static const char webhooks[] =
	"## Webhooks\n"
	"\n"
	"Who may tell what became of something, under `webhooks`, each with a name of its own:\n"
	"`POST /.hapax/webhooks/NAME`. They need `own_paths` and a store that outlives hapax.\n"
	"\n"
	"```yaml\n"
	"webhooks:\n"
	"  bank:\n"
	"    scheme: stripe\n"
	"    secret_file: /etc/hapax/bank.secret\n"
	"    operation: /data/metadata/operation\n"
	"    verdict: /data/status\n"
	"    applied: [succeeded]\n"
	"    declined: [failed]\n"
	"    not_applied: [not_found]\n"
	"    settle_after: 2m\n"
	"```\n"
	"\n";

/* What stands before the options of a place, in the order of the page. */
static const struct {
	const char *text;
	enum hpx_option_place place;
} sections[] = {
	{ introduction, HPX_PLACE_GLOBAL },
	{ routes, HPX_PLACE_ROUTE },
	{ "", HPX_PLACE_POLICY },
	{ targets, HPX_PLACE_TARGET },
	{ webhooks, HPX_PLACE_WEBHOOK },
};

enum hpx_status hpx_config_print_reference(struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		if (status == HPX_OK)
			status = hpx_buffer_text(out, sections[i].text);
		if (status == HPX_OK)
			status = print_place(sections[i].place, out);
	}
	if (status == HPX_OK)
		out->len--; /* no empty line at the end */
	return status;
}
