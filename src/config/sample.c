/* The sample file, from the table: every option, explained, commented out
 * with its default. A line that begins with # and a letter is an option to
 * uncomment; one with # and a space is text. */
#include "config/config.h"

#define LINE 79

/* Words of the text in lines of "# ...", `indent` spaces before each. */
static enum hpx_status print_comment(const char *text, int indent, struct hpx_buffer *out)
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

static enum hpx_status print_value(const struct hpx_option *option, struct hpx_span name,
				   int indent, struct hpx_buffer *out)
{
	/* The one option that must be given. */
	bool required = option->kind == HPX_OPTION_UPSTREAM;
	const char *value = option->default_value;

	if (value == NULL)
		return hpx_buffer_printf(out, "%*s%s%.*s: %s\n", indent, "",
					 required ? "" : "# ", HPX_SPAN_ARG(name),
					 option->example);
	return hpx_buffer_printf(out, "%*s#%.*s: %s\n", indent, "", HPX_SPAN_ARG(name),
				 value[0] != '\0' ? value : "[]");
}

static enum hpx_status print_option(const struct hpx_option *option, struct hpx_span name,
				    int indent, struct hpx_buffer *out)
{
	enum hpx_status status = print_comment(option->text, indent, out);

	if (status == HPX_OK && option->kind == HPX_OPTION_CHOICE && option->choices[1] != NULL) {
		status = hpx_buffer_printf(out, "%*s# One of:", indent, "");
		for (size_t i = 0; option->choices[i] != NULL && status == HPX_OK; i++)
			status = hpx_buffer_printf(out, " %s", option->choices[i]);
		if (status == HPX_OK)
			status = hpx_buffer_byte(out, '\n');
	}
	if (status == HPX_OK && option->stripe_default != NULL)
		status = hpx_buffer_printf(out, "%*s# Under profile: stripe, %s.\n", indent, "",
					   option->stripe_default);
	if (status == HPX_OK && option->default_value != NULL && option->example != NULL)
		status = hpx_buffer_printf(out, "%*s# For example %s.\n", indent, "",
					   option->example);
	return status == HPX_OK ? print_value(option, name, indent, out) : status;
}

/* How many of its groups an option shares with the one before it. */
static size_t shared_groups(const char *name, const char *before)
{
	size_t count = 0;

	for (size_t i = 0; name[i] != '\0' && name[i] == before[i]; i++)
		count += name[i] == '.';
	return count;
}

/* The names of the groups that an option opens, each deeper than the last.
 * What is left of `*name` is the option's own; `*indent` is how deep that is.
 * `mark` stands before each. */
static enum hpx_status print_groups(const char *before, const char *mark,
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
static enum hpx_status print_place(enum hpx_option_place place, int indent,
				   struct hpx_buffer *out)
{
	const char *before = "";
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < hpx_option_count() && status == HPX_OK; i++) {
		const struct hpx_option *option = hpx_option_at(i);
		struct hpx_span name = hpx_span_of(option->name);
		int depth = indent;
		if (option->place != place)
			continue;
		status = hpx_buffer_byte(out, '\n');
		if (status == HPX_OK)
			status = print_groups(before, "", &name, &depth, out);
		if (status == HPX_OK)
			status = print_option(option, name, depth, out);
		before = option->name;
	}
	return status;
}

/* A thing with a name of its own: nothing of it has a meaning before somebody
 * names one, so all of it is text. */
static enum hpx_status print_thing(enum hpx_option_place place, const char *title,
				   struct hpx_buffer *out)
{
	static const char mark[] = "  # ";
	const char *before = "";
	enum hpx_status status = hpx_buffer_text(out, title);

	for (size_t i = 0; i < hpx_option_count() && status == HPX_OK; i++) {
		const struct hpx_option *option = hpx_option_at(i);
		struct hpx_span name = hpx_span_of(option->name);
		bool standard = option->default_value != NULL && option->default_value[0] != '\0';
		int depth = 2;
		if (option->place != place)
			continue;
		status = print_groups(before, mark, &name, &depth, out);
		if (status == HPX_OK)
			status = hpx_buffer_printf(out, "%s%*s%.*s: %s\n", mark, depth, "",
						   HPX_SPAN_ARG(name),
						   standard ? option->default_value : option->example);
		before = option->name;
	}
	return status;
}

static const char introduction[] =
	"# The configuration of hapax: every option, with its default. A # right before\n"
	"# a name is to be removed where another value is wanted; a # and a space explain.\n"
	"# `hapax check --config FILE` says what is wrong with a file, and\n"
	"# docs/reference/options.md has the same text with all bounds.\n"
	"# Durations: 250ms, 10s, 2m, 24h, 7d. Sizes: 512, 32KiB, 1MiB, 1GiB.\n";

static const char routes[] =
	"\n"
	"# Where something other than the defaults is wanted. A route begins as the\n"
	"# defaults are, and may give each of their options itself.\n"
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

static const char targets[] =
	"\n"
	"# Services outside that jobs are sent to, each under a name of its own, which\n"
	"# routes and jobs give. All but url has a default or may be left out, and of\n"
	"# file and env one is enough; docs/reference/options.md explains each.\n"
	"targets:\n"
	"  # mailer:\n";

static const char webhooks[] =
	"\n"
	"# Who may tell what became of something: POST /.hapax/webhooks/NAME.\n"
	"webhooks:\n"
	"  # bank:\n";

enum hpx_status hpx_config_print_sample(struct hpx_buffer *out)
{
	enum hpx_status status = hpx_buffer_text(out, introduction);

	if (status == HPX_OK)
		status = print_place(HPX_PLACE_GLOBAL, 0, out);
	if (status == HPX_OK)
		status = hpx_buffer_text(out, "\n# For every request, where no route says "
					      "otherwise.\ndefaults:\n");
	if (status == HPX_OK)
		status = print_place(HPX_PLACE_POLICY, 2, out);
	if (status == HPX_OK)
		status = hpx_buffer_text(out, routes);
	if (status == HPX_OK)
		status = print_thing(HPX_PLACE_TARGET, targets, out);
	if (status == HPX_OK)
		status = print_thing(HPX_PLACE_WEBHOOK, webhooks, out);
	return status;
}
