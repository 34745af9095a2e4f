/* Templates: pieces of text and variables by turns. Checking and filling in both walk
 * over the pieces with `next`. */
#include "verify/spec.h"

#include <stdio.h>
#include <stdlib.h>

#include "config/suggestion.h"
#include "http/octet.h"

#define NAME_MAX_BYTES 128

static const struct hpx_span variables[] = {
	HPX_SPAN_INIT("uuid"),
	HPX_SPAN_INIT("n"),
	HPX_SPAN_INIT("key"),
};

static const struct hpx_span env_prefix = HPX_SPAN_INIT("env:");

struct template_piece {
	struct hpx_span text;     /* before the variable */
	struct hpx_span variable; /* ptr NULL: none follows */
	bool open;                /* "{{" without "}}" */
};

static size_t find_pair(struct hpx_span text, const char pair[2])
{
	for (size_t i = 0; i + 1 < text.len; i++)
		if (text.ptr[i] == pair[0] && text.ptr[i + 1] == pair[1])
			return i;
	return text.len;
}

static bool next_piece(struct hpx_span *rest, struct template_piece *ret_piece)
{
	if (rest->len == 0)
		return false;
	size_t begin = find_pair(*rest, "{{");
	*ret_piece = (struct template_piece){ .text = hpx_span_first(*rest, begin) };
	*rest = hpx_span_skip(*rest, begin);
	if (rest->len == 0)
		return true;
	*rest = hpx_span_skip(*rest, 2);
	size_t end = find_pair(*rest, "}}");
	ret_piece->open = end == rest->len;
	ret_piece->variable = hpx_span_trim(hpx_span_first(*rest, end));
	*rest = hpx_span_skip(*rest, ret_piece->open ? end : end + 2);
	return true;
}

static bool is_env(struct hpx_span variable)
{
	return hpx_span_starts(variable, env_prefix);
}

static const char *env_value(struct hpx_span variable)
{
	struct hpx_span name = hpx_span_skip(variable, env_prefix.len);
	char text[NAME_MAX_BYTES];

	if (name.len == 0 || name.len >= sizeof(text))
		return NULL;
	memcpy(text, name.ptr, name.len);
	text[name.len] = '\0';
	return getenv(text);
}

static enum hpx_status refuse(char *problem, const char *format, struct hpx_span name)
	__attribute__((format(printf, 2, 0)));
static enum hpx_status refuse(char *problem, const char *format, struct hpx_span name)
{
	snprintf(problem, HPX_TEMPLATE_PROBLEM_SIZE, format,
		 HPX_SPAN_ARG(hpx_span_first(name, NAME_MAX_BYTES / 2)));
	return HPX_INVALID;
}

static enum hpx_status check_env(struct hpx_span variable, enum hpx_template_place place,
				 char *problem)
{
	struct hpx_span name = hpx_span_skip(variable, env_prefix.len);

	if (place != HPX_TEMPLATE_HEADER)
		return refuse(problem, "{{env:%.*s}} stands in headers only, whose values are "
				       "kept out of reports",
			      name);
	const char *value = env_value(variable);
	if (value == NULL)
		return refuse(problem, "the variable %.*s is not set in the environment; "
				       "set it where hapax is started",
			      name);
	if (!hpx_octet_all(hpx_span_of(value), HPX_OCTET_VALUE))
		return refuse(problem, "the variable %.*s has bytes that cannot stand in a "
				       "header",
			      name);
	return HPX_OK;
}

static enum hpx_status refuse_unknown(struct hpx_span variable, char *problem)
{
	struct hpx_suggestion suggestion = { 0 };
	int used = snprintf(problem, HPX_TEMPLATE_PROBLEM_SIZE,
			    "there is no variable {{%.*s}}; ",
			    HPX_SPAN_ARG(hpx_span_first(variable, 40)));

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		hpx_suggestion_consider(&suggestion, variable, variables[i]);
	if (suggestion.word.ptr != NULL)
		snprintf(problem + used, (size_t)(HPX_TEMPLATE_PROBLEM_SIZE - used),
			 "did you mean {{%.*s}}?", HPX_SPAN_ARG(suggestion.word));
	else
		snprintf(problem + used, (size_t)(HPX_TEMPLATE_PROBLEM_SIZE - used),
			 "there are {{uuid}}, {{n}}, {{key}} and, in headers, {{env:NAME}}");
	return HPX_INVALID;
}

static enum hpx_status check_variable(struct hpx_span variable, enum hpx_template_place place,
				      char *problem)
{
	if (is_env(variable))
		return check_env(variable, place, problem);
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (hpx_span_eq(variable, variables[i]))
			return HPX_OK;
	return refuse_unknown(variable, problem);
}

enum hpx_status hpx_template_check(struct hpx_span text, enum hpx_template_place place,
				   char problem[HPX_TEMPLATE_PROBLEM_SIZE])
{
	enum hpx_status status = HPX_OK;
	struct template_piece piece;

	while (status == HPX_OK && next_piece(&text, &piece)) {
		if (piece.open)
			return refuse(problem, "\"{{\" begins a variable, and \"}}\" is missing "
					       "after \"%.*s\"",
				      hpx_span_first(piece.variable, 20));
		if (piece.variable.ptr != NULL)
			status = check_variable(piece.variable, place, problem);
	}
	return status;
}

static struct hpx_span value_of(struct hpx_span variable,
				const struct hpx_template_values *values)
{
	const struct hpx_span by_name[] = { values->uuid, values->n, values->key };

	if (is_env(variable))
		return hpx_span_of(env_value(variable));
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (hpx_span_eq(variable, variables[i]))
			return by_name[i];
	return hpx_span(NULL, 0);
}

static enum hpx_status append_value(struct hpx_span value, enum hpx_template_place place,
				    struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	if (value.ptr == NULL)
		return HPX_INVALID;
	if (place != HPX_TEMPLATE_PATH)
		return hpx_buffer_append(out, value);
	for (size_t i = 0; i < value.len && status == HPX_OK; i++) {
		if (hpx_octet_is(value.ptr[i], HPX_OCTET_UNRESERVED))
			status = hpx_buffer_byte(out, value.ptr[i]);
		else
			status = hpx_buffer_printf(out, "%%%02X", (unsigned char)value.ptr[i]);
	}
	return status;
}

enum hpx_status hpx_template_fill(struct hpx_span text, enum hpx_template_place place,
				  const struct hpx_template_values *values,
				  struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;
	struct template_piece piece;

	while (status == HPX_OK && next_piece(&text, &piece)) {
		status = piece.open ? HPX_INVALID : hpx_buffer_append(out, piece.text);
		if (status == HPX_OK && piece.variable.ptr != NULL)
			status = append_value(value_of(piece.variable, values), place, out);
	}
	return status;
}

bool hpx_template_names_env(struct hpx_span text)
{
	struct template_piece piece;

	while (next_piece(&text, &piece))
		if (piece.variable.ptr != NULL && is_env(piece.variable))
			return true;
	return false;
}

bool hpx_template_varies(struct hpx_span text)
{
	struct template_piece piece;

	while (next_piece(&text, &piece))
		if (piece.variable.ptr != NULL && !is_env(piece.variable))
			return true;
	return false;
}
