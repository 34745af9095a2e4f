/* A run that never was: a spec, a dialect and a few exchanges, so that reports
 * can be made of findings that a test writes down. Nothing can be sent in it. */
#ifndef HPX_TESTS_UNIT_VERIFY_MADE_UP_H
#define HPX_TESTS_UNIT_VERIFY_MADE_UP_H

#include "verify/row.h"

#define MADE_UP_EXCHANGES 3

struct hpx_verify {
	struct hpx_verify_spec spec;
	enum hpx_dialect dialect;
	struct hpx_verify_exchange exchanges[MADE_UP_EXCHANGES];
};

#endif
