/* Results and the sentences that go with them. */
#include <stdarg.h>
#include <stdio.h>

#include "client/client.h"

enum hapax_result hpx_client_say(enum hapax_result result, char *problem, const char *format, ...)
{
	va_list args;

	if (problem == NULL)
		return result;
	va_start(args, format);
	vsnprintf(problem, HAPAX_PROBLEM_SIZE, format, args);
	va_end(args);
	return result;
}

enum hapax_result hpx_client_ok(char *problem)
{
	if (problem != NULL)
		problem[0] = '\0';
	return HAPAX_OK;
}

enum hapax_result hpx_client_nomem(char *problem)
{
	return hpx_client_say(HAPAX_NOMEM, problem, "there is no memory left");
}
