/* What happens when we are wrong: say where, and stop. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void hpx_assert_failed(const char *cond, const char *file, int line)
{
	fprintf(stderr, "level=fatal event=assert file=%s line=%d cond=\"%s\"\n",
		file, line, cond);
	abort();
}
