/* Documents from the table of options: the reference page, one paragraph per
 * option; and the sample file, every option explained and commented out with its
 * default. */
#include <stdio.h>

#include "base/status.h"
#include "base/unit.h"
#include "config/config.h"
#include "config/option.h"
#include "config/profile.h"

/* ---- the reference page ---- */

static enum hpx_status print_reference_range(const struct hpx_option *option, struct hpx_buffer *out)
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

static enum hpx_status print_reference_values(const struct hpx_option *option, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	if (option->choices == NULL) {
		status = print_reference_range(option, out);
		if (status == HPX_OK && option->off)
			status = hpx_buffer_text(out, ", or `off`");
		return status;
	}
	if (option->kind == HPX_OPTION_CHOICES)
		status = hpx_buffer_text(out, "list of ");
	for (size_t i = 0; option->choices[i] != NULL && status == HPX_OK; i++)
		status = hpx_buffer_printf(out, "%s`%s`", i > 0 ? ", " : "", option->choices[i]);
	return status;
}

static enum hpx_status print_reference_default(const struct hpx_option *option, struct hpx_buffer *out)
{
	enum hpx_status status;

	if (option->default_value == NULL)
		status = hpx_buffer_text(out, "none");
	else if (option->default_value[0] == '\0')
		status = hpx_buffer_text(out, "`[]`");
	else
		status = hpx_buffer_printf(out, "`%s`", option->default_value);
	const char *word = " (";
	if (status == HPX_OK && option->public_value != NULL) {
		status = hpx_buffer_printf(out, " (`%s` under `limits.preset: public`", option->public_value);
		word = ", ";
	}
	for (int i = 0; i < HPX_PROFILE_COUNT && status == HPX_OK; i++) {
		const char *own = hpx_profile_default((enum hpx_profile)i, option);
		if (own == NULL)
			continue;
		status = hpx_buffer_printf(out, "%s`%s` under `profile: %s`", word, own,
					   hpx_profile_name((enum hpx_profile)i));
		word = ", ";
	}
	return status == HPX_OK && word[0] == ',' ? hpx_buffer_byte(out, ')') : status;
}

static enum hpx_status print_reference_option(const struct hpx_option *option, struct hpx_buffer *out)
{
	enum hpx_status status =
		hpx_buffer_printf(out, "### `%s`\n\n%s\n\n", option->name, option->text);

	if (status == HPX_OK)
		status = hpx_buffer_text(out, "Value: ");
	if (status == HPX_OK)
		status = print_reference_values(option, out);
	if (status == HPX_OK)
		status = hpx_buffer_text(out, ". Default: ");
	if (status == HPX_OK)
		status = print_reference_default(option, out);
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

static enum hpx_status print_reference_place(unsigned place, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < hpx_config_options.count && status == HPX_OK; i++)
		if (hpx_config_options.rows[i].place == place)
			status = print_reference_option(&hpx_config_options.rows[i], out);
	return status;
}

static const char reference_introduction[] =
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
	"  one segment, a final `*` the rest. If several patterns match, the one with the more\n"
	"  specific path wins, segment by segment (text before `{x}` before `*`), then one\n"
	"  with a host, then one with a method.\n"
	"- A **JSON pointer** (RFC 6901) is the way to a value in a JSON body:\n"
	"  `/data/object/id`, with `~1` for `/` and `~0` for `~` in a name.\n"
	"- A relative **path of a file** counts from the directory that hapax is started in.\n"
	"- **Reloadable** options change on `SIGHUP`. If any other option changed, the reload is\n"
	"  refused: the log names the option, and hapax goes on as before.\n"
	"- Anchors, aliases, tags, unknown options and options given twice are mistakes.\n"
	"\n"
	"## Global options\n"
	"\n";

static const char reference_routes[] =
	"## Route options\n"
	"\n"
	"Under `defaults` they hold for every request, in an element of `routes` for the\n"
	"requests that it matches. A route takes from `defaults` what it does not say itself.\n"
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

static const char reference_targets[] =
	"## Targets\n"
	"\n"
	"Targets are external services that jobs are sent to. Each stands under `targets` with\n"
	"a name (1 to 63 of `a-z`, `0-9`, `_` and `-`), which routes and jobs use. At most 64.\n"
	"They need a store that outlives hapax: `sqlite:` or `postgres:`.\n"
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

static const char reference_webhooks[] =
	"## Webhooks\n"
	"\n"
	"By a webhook, an external service tells hapax the outcome of an operation or a job.\n"
	"Each stands under `webhooks` with a name, and is sent to\n"
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

static const char reference_listeners[] =
	"## listen\n"
	"\n"
	"`listen` is one address, or a list of listeners. A listener is an address alone, or a\n"
	"mapping with the options below. [The guide about TLS](../guide/tls.md) has more.\n"
	"\n"
	"```yaml\n"
	"listen:\n"
	"  - unix:/run/hapax/hapax.sock\n"
	"  - address: 0.0.0.0:8443\n"
	"    tls:\n"
	"      certificate: [/etc/hapax/tls/api.pem, /etc/hapax/tls/shop.pem]\n"
	"      key: [/etc/hapax/tls/api.key, /etc/hapax/tls/shop.key]\n"
	"```\n"
	"\n";

/* The text before the options of a place, in the order of the page. */
static const struct {
	const char *text;
	unsigned place;
} reference_sections[] = {
	{ reference_introduction, HPX_PLACE_GLOBAL },
	{ reference_listeners, HPX_PLACE_LISTENER },
	{ reference_routes, HPX_PLACE_ROUTE },
	{ "", HPX_PLACE_POLICY },
	{ reference_targets, HPX_PLACE_TARGET },
	{ reference_webhooks, HPX_PLACE_WEBHOOK },
};

enum hpx_status hpx_config_print_reference(struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < sizeof(reference_sections) / sizeof(reference_sections[0]); i++) {
		if (status == HPX_OK)
			status = hpx_buffer_text(out, reference_sections[i].text);
		if (status == HPX_OK)
			status = print_reference_place(reference_sections[i].place, out);
	}
	HPX_ASSERT(status != HPX_OK || out->len > 0);
	if (status == HPX_OK)
		out->len--; /* no empty line at the end */
	return status;
}

/* ---- the sample file ---- */

/* A line that begins with # and a letter is an option to uncomment; one with #
 * and a space is text. */

#define LINE 79

/* Words of the text in lines of "# ...", `indent` spaces before each. */
static enum hpx_status print_sample_comment(const char *text, int indent, struct hpx_buffer *out)
{
	struct hpx_span rest = hpx_span_of(text);
	struct hpx_span word;
	size_t column = SIZE_MAX;
	enum hpx_status status = HPX_OK;

	while (status == HPX_OK && hpx_span_split(&rest, ' ', &word)) {
		bool fresh = column == SIZE_MAX || column + 1 + word.len > LINE;
		if (fresh && column != SIZE_MAX)
			status = hpx_buffer_byte(out, '\n');
		if (status == HPX_OK)
			status = fresh ? hpx_buffer_printf(out, "%*s# %.*s", indent, "",
							   HPX_SPAN_ARG(word)) :
					 hpx_buffer_printf(out, " %.*s", HPX_SPAN_ARG(word));
		column = fresh ? (size_t)indent + 2 + word.len : column + 1 + word.len;
	}
	return status == HPX_OK ? hpx_buffer_byte(out, '\n') : status;
}

static enum hpx_status print_sample_value(const struct hpx_option *option, struct hpx_span name,
					  int indent, struct hpx_buffer *out)
{
	/* Only `upstream` must be given. */
	bool required = option->kind == HPX_OPTION_UPSTREAM;
	/* The sample has limits.preset: public. */
	const char *value = option->public_value != NULL ? option->public_value : option->default_value;

	HPX_ASSERT(value != NULL || option->example != NULL);
	if (option->sample != NULL)
		return hpx_buffer_printf(out, "%*s%.*s: %s\n", indent, "", HPX_SPAN_ARG(name),
					 option->sample);
	if (value == NULL)
		return hpx_buffer_printf(out, "%*s%s%.*s: %s\n", indent, "",
					 required ? "" : "# ", HPX_SPAN_ARG(name),
					 option->example);
	return hpx_buffer_printf(out, "%*s#%.*s: %s\n", indent, "", HPX_SPAN_ARG(name),
				 value[0] != '\0' ? value : "[]");
}

static enum hpx_status print_sample_option(const struct hpx_option *option, struct hpx_span name,
					   int indent, struct hpx_buffer *out)
{
	enum hpx_status status = print_sample_comment(option->text, indent, out);

	if (status == HPX_OK && option->choices != NULL && option->choices[1] != NULL) {
		status = hpx_buffer_printf(out, "%*s# %s:", indent, "",
					   option->kind == HPX_OPTION_CHOICES ? "A list of" : "One of");
		for (size_t i = 0; option->choices[i] != NULL && status == HPX_OK; i++)
			status = hpx_buffer_printf(out, " %s", option->choices[i]);
		if (status == HPX_OK)
			status = hpx_buffer_byte(out, '\n');
	}
	if (status == HPX_OK && option->public_value != NULL)
		status = hpx_buffer_printf(out, "%*s# Without limits.preset: public, %s.\n", indent, "",
					   option->default_value);
	for (int i = 0; i < HPX_PROFILE_COUNT && status == HPX_OK; i++) {
		const char *own = hpx_profile_default((enum hpx_profile)i, option);
		if (own != NULL)
			status = hpx_buffer_printf(out, "%*s# Under profile: %s, %s.\n", indent, "",
						   hpx_profile_name((enum hpx_profile)i), own);
	}
	if (status == HPX_OK && option->default_value != NULL && option->example != NULL)
		status = hpx_buffer_printf(out, "%*s# For example %s.\n", indent, "",
					   option->example);
	return status == HPX_OK ? print_sample_value(option, name, indent, out) : status;
}

/* How many of its groups an option shares with the one before it. */
static size_t shared_groups(const char *name, const char *before)
{
	size_t count = 0;

	for (size_t i = 0; name[i] != '\0' && name[i] == before[i]; i++)
		count += name[i] == '.';
	return count;
}

/* The names of the groups that an option opens, each deeper than the last, with
 * `mark` before each. `*name` becomes the option's own name, `*indent` its depth. */
static enum hpx_status print_sample_groups(const char *before, const char *mark,
					   struct hpx_span *name, int *indent,
					   struct hpx_buffer *out)
{
	size_t shared = shared_groups(name->ptr, before);
	enum hpx_status status = HPX_OK;
	size_t dot;

	while ((dot = hpx_span_index(*name, '.')) < name->len && status == HPX_OK) {
		if (shared > 0)
			shared--;
		else
			status = hpx_buffer_printf(out, "%s%*s%.*s:\n", mark, *indent, "",
						   (int)dot, name->ptr);
		*name = hpx_span_skip(*name, dot + 1);
		*indent += 2;
	}
	return status;
}

/* All options of one place; those of a group below its name. */
static enum hpx_status print_sample_place(unsigned place, int indent,
					  struct hpx_buffer *out)
{
	const char *before = "";
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < hpx_config_options.count && status == HPX_OK; i++) {
		const struct hpx_option *option = &hpx_config_options.rows[i];
		struct hpx_span name = hpx_span_of(option->name);
		int depth = indent;
		if (option->place != place)
			continue;
		status = hpx_buffer_byte(out, '\n');
		if (status == HPX_OK)
			status = print_sample_groups(before, "", &name, &depth, out);
		if (status == HPX_OK)
			status = print_sample_option(option, name, depth, out);
		before = option->name;
	}
	return status;
}

/* A target or a webhook: its options mean nothing before somebody names one, so
 * all lines are text. */
static enum hpx_status print_sample_service(unsigned place, const char *title,
					    struct hpx_buffer *out)
{
	static const char mark[] = "  # ";
	const char *before = "";
	enum hpx_status status = hpx_buffer_text(out, title);

	for (size_t i = 0; i < hpx_config_options.count && status == HPX_OK; i++) {
		const struct hpx_option *option = &hpx_config_options.rows[i];
		struct hpx_span name = hpx_span_of(option->name);
		bool standard = option->default_value != NULL && option->default_value[0] != '\0';
		int depth = 2;
		if (option->place != place)
			continue;
		status = print_sample_groups(before, mark, &name, &depth, out);
		if (status == HPX_OK)
			status = hpx_buffer_printf(out, "%s%*s%.*s: %s\n", mark, depth, "",
						   HPX_SPAN_ARG(name),
						   standard ? option->default_value : option->example);
		before = option->name;
	}
	return status;
}

static const char sample_introduction[] =
	"# The configuration of hapax: every option, with its default. To set an\n"
	"# option, remove the # right before its name; a # and a space begin an explanation.\n"
	"# A line without # is in force: it must be given, or is better than the default.\n"
	"# `hapax check --config FILE` says what is wrong with a file, and\n"
	"# docs/reference/options.md has the same text with all bounds.\n"
	"# Durations: 250ms, 10s, 2m, 24h, 7d. Sizes: 512, 32KiB, 1MiB, 1GiB.\n";

static const char sample_routes[] =
	"\n"
	"# Requests that need other options than the defaults. A route takes every option\n"
	"# that it does not set from the defaults.\n"
	"routes:\n"
	"  # - match: POST /payments\n"
	"  #   server_error: unknown\n"
	"  #   concurrent: wait\n"
	"  #   fingerprint: {ignore: [/metadata/sent_at], headers: [X-Currency]}\n"
	"  # - match: PUT api.example.com/files/{name}\n"
	"  # - match: POST /search/*\n"
	"  #   key: ignore\n"
	"  # - match: POST /emails\n"
	"  #   deliver: async\n"
	"  #   target: mailer\n";

static const char sample_listeners[] =
	"\n"
	"# listen can be a list of listeners, each with options of its own:\n"
	"  # listen:\n"
	"  # -\n";

static const char sample_targets[] =
	"\n"
	"# External services that jobs are sent to, each under a name of its own, which\n"
	"# routes and jobs give. Only url must be given; of file and env give one.\n"
	"# docs/reference/options.md explains each.\n"
	"targets:\n"
	"  # mailer:\n";

static const char sample_webhooks[] =
	"\n"
	"# Services that may report what became of an operation or a job, each by\n# POST "
	"/.hapax/webhooks/NAME.\n"
	"webhooks:\n"
	"  # bank:\n";

enum hpx_status hpx_config_print_sample(struct hpx_buffer *out)
{
	enum hpx_status status = hpx_buffer_text(out, sample_introduction);

	if (status == HPX_OK)
		status = print_sample_place(HPX_PLACE_GLOBAL, 0, out);
	if (status == HPX_OK)
		status = hpx_buffer_text(out, "\n# For every request whose route does not set "
					      "the option itself.\ndefaults:\n");
	if (status == HPX_OK)
		status = print_sample_place(HPX_PLACE_POLICY, 2, out);
	if (status == HPX_OK)
		status = hpx_buffer_text(out, sample_routes);
	if (status == HPX_OK)
		status = print_sample_service(HPX_PLACE_LISTENER, sample_listeners, out);
	if (status == HPX_OK)
		status = print_sample_service(HPX_PLACE_TARGET, sample_targets, out);
	if (status == HPX_OK)
		status = print_sample_service(HPX_PLACE_WEBHOOK, sample_webhooks, out);
	return status;
}
