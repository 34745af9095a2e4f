/* Every result has a name, and every status of the store a result and a
 * sentence that says what to do. */
#include "lib/result.h"

#include <stdarg.h>
#include <stdio.h>

const char *hapax_result_name(enum hapax_result result)
{
	static const char *const names[] = {
		[HAPAX_OK] = "ok",
		[HAPAX_NOMEM] = "nomem",
		[HAPAX_INVALID] = "invalid",
		[HAPAX_MISUSE] = "misuse",
		[HAPAX_STALE] = "stale",
		[HAPAX_REFUSED] = "refused",
		[HAPAX_CONFLICT] = "conflict",
		[HAPAX_BUSY] = "busy",
		[HAPAX_UNAVAILABLE] = "unavailable",
		[HAPAX_UNCERTAIN] = "uncertain",
	};

	if ((unsigned)result >= sizeof(names) / sizeof(names[0]))
		return "?";
	return names[result];
}

enum hapax_result hpx_result_of(enum hpx_status status)
{
	switch (status) {
	case HPX_OK:
		return HAPAX_OK;
	case HPX_NOMEM:
		return HAPAX_NOMEM;
	case HPX_MISUSE:
		return HAPAX_MISUSE;
	case HPX_INVALID:
	case HPX_TOO_LARGE:
	case HPX_UNSUPPORTED:
		return HAPAX_INVALID;
	case HPX_STALE:
	case HPX_NOT_FOUND:
		return HAPAX_STALE;
	case HPX_REFUSED:
		return HAPAX_REFUSED;
	case HPX_CONFLICT:
		return HAPAX_CONFLICT;
	case HPX_BUSY:
		return HAPAX_BUSY;
	default:
		return HAPAX_UNAVAILABLE;
	}
}

/* What to do about it, where the store's own words do not say that. */
static const char *advice(enum hapax_result result)
{
	switch (result) {
	case HAPAX_OK:
		return "";
	case HAPAX_NOMEM:
		return "there is no memory left";
	case HAPAX_INVALID:
		return "the store cannot take this input";
	case HAPAX_MISUSE:
		return "the call breaks the contract in hapax.h";
	case HAPAX_STALE:
		return "the lease is lost: this attempt may write nothing any more, so roll back; a "
		       "retry has, or gets, a lease of its own";
	case HAPAX_REFUSED:
		return "the operation is not in a state that allows this: it has ended already";
	case HAPAX_CONFLICT:
		return "a job of this name was enqueued with other content: another job needs "
		       "another name";
	case HAPAX_BUSY:
		return "somebody else holds the operation or the file: try again";
	case HAPAX_UNAVAILABLE:
		return "the store cannot be used";
	case HAPAX_UNCERTAIN:
		return "the store did not confirm it in time, and goes on trying";
	}
	return "";
}

enum hapax_result hpx_result_say(enum hapax_result result, char *problem, const char *format, ...)
{
	va_list args;

	if (problem == NULL)
		return result;
	va_start(args, format);
	vsnprintf(problem, HAPAX_PROBLEM_SIZE, format, args);
	va_end(args);
	return result;
}

enum hapax_result hpx_result_bad_struct(const char *name, char *problem)
{
	return hpx_result_say(HAPAX_MISUSE, problem,
			      "struct %s has no size that this library knows, or members that it "
			      "does not know: set it with .size = sizeof(struct %s)",
			      name, name);
}

/* The store's words come last, and are cut to what is left; where they could
 * only say the same again, they are left out. */
enum hapax_result hpx_result_tell(enum hpx_status status, const char *detail, char *problem)
{
	enum hapax_result result = hpx_result_of(status);

	if (detail == NULL || result == HAPAX_STALE || result == HAPAX_CONFLICT)
		detail = "";
	if (detail[0] == '\0' && result == HAPAX_UNAVAILABLE)
		detail = hpx_status_text(status);
	if (detail[0] == '\0')
		return hpx_result_say(result, problem, "%s", advice(result));
	if (result == HAPAX_INVALID || result == HAPAX_MISUSE)
		return hpx_result_say(result, problem, "%s", detail);
	return hpx_result_say(result, problem, "%s: %.400s", advice(result), detail);
}
