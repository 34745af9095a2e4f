/* Names and texts of the results, from the one list; and what happens when we are wrong:
 * say where, and stop. */
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>

const char *hpx_status_name(enum hpx_status status)
{
	switch (status) {
#define X(name, text) \
	case HPX_##name: \
		return #name;
		HPX_STATUS_LIST(X)
#undef X
	}
	return "?";
}

const char *hpx_status_text(enum hpx_status status)
{
	switch (status) {
#define X(name, text) \
	case HPX_##name: \
		return text;
		HPX_STATUS_LIST(X)
#undef X
	}
	return "unknown status";
}

_Noreturn void hpx_assert_failed(const char *cond, const char *file, int line)
{
	fprintf(stderr, "level=fatal event=assert file=%s line=%d cond=\"%s\"\n",
		file, line, cond);
	abort();
}
