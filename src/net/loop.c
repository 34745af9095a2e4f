/* The event loop: its inbox (other threads push, the loop's thread takes all at
 * once) and its list of deferred calls. */
#include "net/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/status.h"

static void list_init(struct hpx_later *head)
{
	head->next = head;
	head->prev = head;
}

static void list_append(struct hpx_later *head, struct hpx_later *later)
{
	later->next = head;
	later->prev = head->prev;
	head->prev->next = later;
	head->prev = later;
}

void hpx_later_cancel(struct hpx_later *later)
{
	if (later->next == NULL)
		return;
	HPX_ASSERT(later->next->prev == later && later->prev->next == later);
	later->prev->next = later->next;
	later->next->prev = later->prev;
	later->next = NULL;
	later->prev = NULL;
}

static void do_nothing(uv_idle_t *idle)
{
	(void)idle;
}

/* A call that is deferred while these run has to wait for the next polling, so
 * that a chain of them cannot keep the sockets waiting. */
static void run_deferred(uv_check_t *check)
{
	struct hpx_loop *loop = check->data;
	struct hpx_later now;

	list_init(&now);
	if (loop->deferred.next != &loop->deferred) {
		now = loop->deferred;
		now.next->prev = &now;
		now.prev->next = &now;
		list_init(&loop->deferred);
	}
	loop->is_polled = true;
	while (now.next != &now) {
		struct hpx_later *later = now.next;
		hpx_later_cancel(later);
		later->run(later);
	}
	loop->is_polled = false;
	if (loop->deferred.next == &loop->deferred) {
		uv_check_stop(&loop->run_deferred);
		uv_idle_stop(&loop->no_wait);
	}
}

void hpx_loop_later(struct hpx_loop *loop, struct hpx_later *later)
{
	HPX_ASSERT(later->run != NULL);
	if (later->next != NULL)
		return;
	list_append(&loop->deferred, later);
	uv_check_start(&loop->run_deferred, run_deferred);
	uv_idle_start(&loop->no_wait, do_nothing);
}

/* Only a signal can make the write fail: the counter is far from its end. */
static void wake_up(struct hpx_loop *loop)
{
	const uint64_t one = 1;

	while (write(loop->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/* True: the inbox was empty. The sender that found it so wakes the loop, which takes
 * all there is. */
static bool push(struct hpx_loop *loop, struct hpx_message *message)
{
	struct hpx_message *head = atomic_load_explicit(&loop->inbox, memory_order_relaxed);

	HPX_ASSERT(message->handle != NULL);
	do {
		message->next = head;
	} while (!atomic_compare_exchange_weak_explicit(
		&loop->inbox, &head, message, memory_order_release, memory_order_relaxed));
	return head == NULL;
}

void hpx_loop_post(struct hpx_loop *loop, struct hpx_message *message)
{
	if (push(loop, message))
		wake_up(loop);
}

void hpx_loop_post_unwoken(struct hpx_loop *loop, struct hpx_message *message)
{
	if (push(loop, message))
		atomic_store_explicit(&loop->wake_owed, true, memory_order_relaxed);
}

/* Two threads may find the debt at once: exchanged, it is paid once. */
void hpx_loop_wake_owed(struct hpx_loop *loop)
{
	if (atomic_load_explicit(&loop->wake_owed, memory_order_relaxed) &&
	    atomic_exchange_explicit(&loop->wake_owed, false, memory_order_relaxed))
		wake_up(loop);
}

/* The inbox is a stack, newest first. Turned round, it is in order of arrival. */
static struct hpx_message *take_all(struct hpx_loop *loop)
{
	struct hpx_message *newest =
		atomic_exchange_explicit(&loop->inbox, NULL, memory_order_acquire);
	struct hpx_message *oldest = NULL;

	while (newest != NULL) {
		struct hpx_message *next = newest->next;
		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	return oldest;
}

static bool handle_inbox(struct hpx_loop *loop)
{
	struct hpx_message *message = take_all(loop);
	bool any = message != NULL;

	while (message != NULL) {
		/* Handling may free the message. */
		struct hpx_message *next = message->next;
		message->handle(message);
		message = next;
	}
	return any;
}

/* First the counter, then the inbox: a sender in between wakes the loop again. */
static void on_wake(uv_poll_t *wake, int status, int events)
{
	struct hpx_loop *loop = wake->data;
	uint64_t count;

	(void)status;
	(void)events;
	while (read(loop->wake_fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	handle_inbox(loop);
}

static void end_turn(struct hpx_loop *loop)
{
	if (loop->on_turn_end != NULL)
		loop->on_turn_end(loop);
	loop->turn++;
	loop->boot_us = 0;
}

static void before_poll(uv_prepare_t *prepare)
{
	end_turn(prepare->data);
}

/* While the loop is taken down: whether there was a message. */
static bool take_leftovers(struct hpx_loop *loop)
{
	end_turn(loop);
	return handle_inbox(loop);
}

enum hpx_status hpx_loop_init(struct hpx_loop *loop)
{
	char *buffer = malloc(HPX_LOOP_READ_BYTES);

	if (buffer == NULL)
		return HPX_NOMEM;
	loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (loop->wake_fd < 0)
		goto fail_fd;
	if (uv_loop_init(&loop->uv) != 0)
		goto fail_loop;
	if (uv_poll_init(&loop->uv, &loop->wake, loop->wake_fd) != 0)
		goto fail_wake;
	loop->wake.data = loop;
	uv_poll_start(&loop->wake, UV_READABLE, on_wake);
	uv_check_init(&loop->uv, &loop->run_deferred);
	uv_idle_init(&loop->uv, &loop->no_wait);
	uv_prepare_init(&loop->uv, &loop->before_poll);
	uv_prepare_start(&loop->before_poll, before_poll);
	uv_unref((uv_handle_t *)&loop->before_poll);
	uv_unref((uv_handle_t *)&loop->wake);
	loop->run_deferred.data = loop;
	loop->no_wait.data = loop;
	loop->before_poll.data = loop;
	loop->on_turn_end = NULL;
	loop->turn = 0;
	loop->boot_us = 0;
	loop->is_polled = false;
	atomic_init(&loop->inbox, NULL);
	atomic_init(&loop->wake_owed, false);
	list_init(&loop->deferred);
	loop->read_buffer = buffer;
	loop->tls_buffer = NULL;
	loop->user = NULL;
	return HPX_OK;

fail_wake:
	uv_loop_close(&loop->uv);
fail_loop:
	close(loop->wake_fd);
fail_fd:
	free(buffer);
	return HPX_IO;
}

void hpx_loop_set_turn_end(struct hpx_loop *loop, void (*on_turn_end)(struct hpx_loop *loop))
{
	HPX_ASSERT(on_turn_end != NULL);
	loop->on_turn_end = on_turn_end;
}

void hpx_loop_run(struct hpx_loop *loop)
{
	uv_run(&loop->uv, UV_RUN_DEFAULT);
	end_turn(loop);
}

void hpx_loop_stop(struct hpx_loop *loop)
{
	uv_stop(&loop->uv);
}

static void close_handle(uv_handle_t *handle, void *unused)
{
	(void)unused;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void hpx_loop_done(struct hpx_loop *loop)
{
	while (take_leftovers(loop))
		;
	uv_walk(&loop->uv, close_handle, NULL);
	/* An earlier hpx_loop_stop makes one run return early. */
	while (uv_run(&loop->uv, UV_RUN_DEFAULT) != 0)
		;
	while (take_leftovers(loop))
		;
	int rc = uv_loop_close(&loop->uv);
	HPX_ASSERT(rc == 0);
	close(loop->wake_fd);
	free(loop->read_buffer);
	free(loop->tls_buffer);
}
