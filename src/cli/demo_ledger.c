/* Lines of tab-separated columns, each written in one call and read back from
 * the file, so that nothing but the file decides. */
#include "cli/demo_ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

#define LINE_MAX_BYTES 1024

enum hpx_status hpx_demo_ledger_open(struct hpx_demo_ledger *ledger, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0)
		return HPX_IO;
	*ledger = (struct hpx_demo_ledger){ .fd = fd };
	pthread_mutex_init(&ledger->lock, NULL);
	return hpx_cond_init(&ledger->grown);
}

void hpx_demo_ledger_close(struct hpx_demo_ledger *ledger)
{
	close(ledger->fd);
	pthread_cond_destroy(&ledger->grown);
	pthread_mutex_destroy(&ledger->lock);
}

static enum hpx_status append_locked(struct hpx_demo_ledger *ledger,
				     struct hpx_demo_payment *payment)
{
	char line[LINE_MAX_BYTES];
	int n = snprintf(line, sizeof(line), "pay_%" PRIu64 "\t%.*s\t%" PRIu64 "\t%.*s\t%.*s\n",
			 ledger->payments + 1, HPX_SPAN_ARG(payment->order), payment->cents,
			 HPX_SPAN_ARG(payment->key), HPX_SPAN_ARG(payment->operation));

	if (n < 0 || (size_t)n >= sizeof(line))
		return HPX_TOO_LARGE;
	if (ledger->bytes + (size_t)n > HPX_DEMO_LEDGER_BYTES_MAX)
		return HPX_FULL;
	if (write(ledger->fd, line, (size_t)n) != n)
		return HPX_IO;
	ledger->bytes += (size_t)n;
	payment->number = ++ledger->payments;
	pthread_cond_broadcast(&ledger->grown);
	return HPX_OK;
}

enum hpx_status hpx_demo_ledger_append(struct hpx_demo_ledger *ledger,
				       struct hpx_demo_payment *payment)
{
	pthread_mutex_lock(&ledger->lock);
	enum hpx_status status = append_locked(ledger, payment);
	pthread_mutex_unlock(&ledger->lock);
	return status;
}

enum hpx_status hpx_demo_ledger_wait(struct hpx_demo_ledger *ledger, uint64_t payments,
				     int64_t timeout_ms)
{
	int64_t until_ms = hpx_clock_boot_ms() + timeout_ms;

	pthread_mutex_lock(&ledger->lock);
	while (ledger->payments < payments && hpx_clock_boot_ms() < until_ms)
		hpx_cond_wait_until(&ledger->grown, &ledger->lock, until_ms);
	bool there = ledger->payments >= payments;
	pthread_mutex_unlock(&ledger->lock);
	return there ? HPX_OK : HPX_TIMEOUT;
}

uint64_t hpx_demo_ledger_count(struct hpx_demo_ledger *ledger)
{
	pthread_mutex_lock(&ledger->lock);
	uint64_t payments = ledger->payments;
	pthread_mutex_unlock(&ledger->lock);
	return payments;
}

enum hpx_status hpx_demo_ledger_read(struct hpx_demo_ledger *ledger, struct hpx_buffer *out)
{
	off_t at = 0;

	for (;;) {
		enum hpx_status status = hpx_buffer_reserve(out, 4096);
		if (status != HPX_OK)
			return status;
		ssize_t n = pread(ledger->fd, out->ptr + out->len, 4096, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return HPX_IO;
		if (n == 0)
			return HPX_OK;
		out->len += (size_t)n;
		at += n;
	}
}

static bool parse_line(struct hpx_span line, struct hpx_demo_payment *ret_payment)
{
	struct hpx_demo_payment payment = { 0 };
	struct hpx_span prefix = HPX_SPAN("pay_");
	struct hpx_span id, cents;

	if (!hpx_span_split(&line, '\t', &id) ||
	    !hpx_span_split(&line, '\t', &payment.order) ||
	    !hpx_span_split(&line, '\t', &cents) ||
	    !hpx_span_split(&line, '\t', &payment.key) ||
	    !hpx_span_split(&line, '\t', &payment.operation) || line.ptr != NULL)
		return false;
	if (!hpx_span_starts(id, prefix) ||
	    !hpx_span_u64(hpx_span_skip(id, prefix.len), UINT64_MAX, &payment.number) ||
	    !hpx_span_u64(cents, UINT64_MAX, &payment.cents))
		return false;
	*ret_payment = payment;
	return true;
}

bool hpx_demo_ledger_next(struct hpx_span *text, struct hpx_demo_payment *ret_payment)
{
	struct hpx_span line;

	while (hpx_span_split(text, '\n', &line))
		if (parse_line(line, ret_payment))
			return true;
	return false;
}

enum hpx_status hpx_demo_ledger_sum(struct hpx_demo_ledger *ledger, struct hpx_span order,
				    struct hpx_demo_sum *ret_sum)
{
	struct hpx_demo_payment payment;
	struct hpx_demo_sum sum = { 0, 0 };
	struct hpx_buffer text;

	hpx_buffer_init(&text, HPX_DEMO_LEDGER_BYTES_MAX + 4096);
	enum hpx_status status = hpx_demo_ledger_read(ledger, &text);
	struct hpx_span rest = hpx_buffer_span(&text);
	while (status == HPX_OK && hpx_demo_ledger_next(&rest, &payment)) {
		if (!hpx_span_eq(payment.order, order))
			continue;
		sum.payments++;
		sum.cents += payment.cents;
	}
	hpx_buffer_done(&text);
	if (status == HPX_OK)
		*ret_sum = sum;
	return status;
}
