/* The ledger of the demo's payments API: a file, one line for each payment
 * that was made. What it holds is the truth that the demo is judged by. */
#ifndef HPX_CLI_DEMO_LEDGER_H
#define HPX_CLI_DEMO_LEDGER_H

#include <pthread.h>

#include "base/buffer.h"

#define HPX_DEMO_LEDGER_BYTES_MAX ((size_t)1024 * 1024)

struct hpx_demo_ledger {
	int fd;
	uint64_t payments;
	size_t bytes;
	pthread_mutex_t lock;
	pthread_cond_t grown;
};

/* One line. None of the texts holds a tab or a line end; absent is "-". */
struct hpx_demo_payment {
	uint64_t number; /* 1, 2, 3 …: given by append */
	struct hpx_span order;
	uint64_t cents;
	struct hpx_span key;
	struct hpx_span operation; /* the Hapax-Operation it came with */
};

enum hpx_status hpx_demo_ledger_open(struct hpx_demo_ledger *ledger, const char *path);
void hpx_demo_ledger_close(struct hpx_demo_ledger *ledger);

/* HPX_FULL at the bound. */
enum hpx_status hpx_demo_ledger_append(struct hpx_demo_ledger *ledger,
				       struct hpx_demo_payment *payment);
/* Waits until there are at least `payments` lines. */
enum hpx_status hpx_demo_ledger_wait(struct hpx_demo_ledger *ledger, uint64_t payments,
				     int64_t timeout_ms);
uint64_t hpx_demo_ledger_count(struct hpx_demo_ledger *ledger);

/* The whole file. */
enum hpx_status hpx_demo_ledger_read(struct hpx_demo_ledger *ledger, struct hpx_buffer *out);
/* Takes the first line off `*text`; false at its end. A line that is not one
 * of ours is skipped. */
bool hpx_demo_ledger_next(struct hpx_span *text, struct hpx_demo_payment *ret_payment);

struct hpx_demo_sum {
	uint64_t payments;
	uint64_t cents;
};
/* What was paid for one order. */
enum hpx_status hpx_demo_ledger_sum(struct hpx_demo_ledger *ledger, struct hpx_span order,
				    struct hpx_demo_sum *ret_sum);

#endif
