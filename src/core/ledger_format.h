/* What ledger.c and its two formats share. */
#ifndef HPX_CORE_LEDGER_FORMAT_H
#define HPX_CORE_LEDGER_FORMAT_H

#include "core/ledger.h"

/* Keeps "line N: ..." and gives HPX_LEDGER_FAILED; line 0: without it. */
enum hpx_ledger_step hpx_ledger_fail(struct hpx_ledger *ledger, uint64_t line,
				     const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Adds a byte to the record, or fails. */
enum hpx_ledger_step hpx_ledger_keep(struct hpx_ledger *ledger, char c);

/* Adds a column's name to the list for an error: "a, b, c", cut where it
 * gets long. */
void hpx_ledger_list(struct hpx_ledger *ledger, struct hpx_span name);

/* Each takes one byte: HPX_LEDGER_MORE, HPX_LEDGER_RECORD when it was the last
 * of a record, or HPX_LEDGER_FAILED. */
enum hpx_ledger_step hpx_ledger_csv_byte(struct hpx_ledger *ledger, char c,
					 struct hpx_ledger_record *ret_record);
enum hpx_ledger_step hpx_ledger_json_byte(struct hpx_ledger *ledger, char c,
					  struct hpx_ledger_record *ret_record);
/* Nothing follows: also HPX_LEDGER_END. */
enum hpx_ledger_step hpx_ledger_csv_end(struct hpx_ledger *ledger,
					struct hpx_ledger_record *ret_record);
enum hpx_ledger_step hpx_ledger_json_end(struct hpx_ledger *ledger,
					 struct hpx_ledger_record *ret_record);

enum hpx_status hpx_ledger_json_init(struct hpx_ledger *ledger);

#endif
