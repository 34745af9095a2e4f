/* A fake run: a spec, a dialect and a few exchanges, so that reports can be made of
 * results that a test writes down. Nothing can be sent in it. */
#ifndef HPX_TESTS_UNIT_VERIFY_FAKE_RUN_H
#define HPX_TESTS_UNIT_VERIFY_FAKE_RUN_H

#include "verify/row.h"

#define FAKE_RUN_EXCHANGES 3

struct hpx_verify {
	struct hpx_verify_spec spec;
	enum hpx_dialect dialect;
	struct hpx_verify_exchange exchanges[FAKE_RUN_EXCHANGES];
};

#endif
