/* The parts of `hapax verify`. Apart from cli.h, because rows are not among
 * what the other commands know. */
#ifndef HPX_CLI_VERIFY_H
#define HPX_CLI_VERIFY_H

#include "verify/spec.h"

/* Exit codes, as cli.h has them. */
#define HPX_VERIFY_HOLDS 0
#define HPX_VERIFY_FAILED 1
#define HPX_VERIFY_MISTAKEN 2

/* Which reports are wanted; NULL: not this one. */
struct hpx_verify_output {
	const char *json;
	const char *junit; /* a file */
	const char *log;   /* a file */
	const char *all;
};

/* Runs the rows and reports. An exit code. */
int hpx_verify_judge(const struct hpx_verify_spec *spec, const struct hpx_verify_output *output);

/* Each row with what it shows. */
void hpx_verify_print_list(void);
/* The requests as they would go out, with their variables filled in and
 * without credentials; what each row sends; the bounds. Opens no socket. */
enum hpx_status hpx_verify_print_plan(const struct hpx_verify_spec *spec);

#endif
