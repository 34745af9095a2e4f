/* The functions that judge the rows, one for each; rows_*.c has them by family. */
#ifndef HPX_VERIFY_ROWS_H
#define HPX_VERIFY_ROWS_H

#include "verify/judge.h"

#define X(name, weight, guarantee, also, group, needs, title, why, sends) \
	void hpx_row_##name(struct hpx_check *check);
HPX_ROW_LIST(X)
#undef X

#endif
