/* The engine of egress.h: an inbox that any thread fills, a queue of requests that wait
 * for a free transfer, and the transfers under way. Only the engine's own thread
 * touches the queue and the transfers. A request moves
 *
 *   inbox ──▶ waiting ──▶ running ──▶ done
 *
 * 1. At most running_max transfers are running.
 * 2. `done` is called once for each request that was accepted, never under the mutex.
 * 3. The thread ends only when nothing waits or runs. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "egress/transfer.h"

/* How long the thread sleeps where nothing wakes it sooner. */
#define SLEEP_MS 60000

struct request_queue {
	struct hpx_egress_request *first;
	struct hpx_egress_request *last;
};

struct hpx_egress {
	struct hpx_egress_options options;
	CURLM *multi;
	pthread_t thread;
	pthread_mutex_t mutex;
	/* Under the mutex. */
	struct request_queue inbox;
	bool stopping;
	int64_t stop_until_ms;
	/* Only the engine's thread. */
	struct request_queue waiting;
	struct hpx_transfer *running;
	unsigned running_count;
};

static void queue_append(struct request_queue *queue, struct request_queue more)
{
	if (more.first == NULL)
		return;
	if (queue->first == NULL)
		queue->first = more.first;
	else
		queue->last->next = more.first;
	queue->last = more.last;
}

static struct hpx_egress_request *queue_take(struct request_queue *queue)
{
	struct hpx_egress_request *request = queue->first;

	queue->first = request->next;
	request->next = NULL;
	return request;
}

static void end_unsent(struct hpx_egress_request *request, const char *why)
{
	request->end = HPX_EGRESS_NOT_SENT;
	hpx_egress_request_set_problem(request, "%s", why);
	request->done(request);
}

static void end_transfer(struct hpx_egress *egress, struct hpx_transfer *transfer, CURLcode code)
{
	struct hpx_egress_request *request = transfer->request;

	if (transfer->prev != NULL)
		transfer->prev->next = transfer->next;
	else
		egress->running = transfer->next;
	if (transfer->next != NULL)
		transfer->next->prev = transfer->prev;
	HPX_ASSERT(egress->running_count > 0);
	egress->running_count--;
	curl_multi_remove_handle(egress->multi, transfer->easy);
	hpx_transfer_end(transfer, code);
	request->done(request);
}

static void end_all(struct hpx_egress *egress, const char *why)
{
	while (egress->running != NULL) {
		egress->running->abort_reason = why;
		end_transfer(egress, egress->running, CURLE_ABORTED_BY_CALLBACK);
	}
}

static void begin(struct hpx_egress *egress, struct hpx_egress_request *request)
{
	const char *problem;

	HPX_ASSERT(egress->running_count < egress->options.running_max);
	struct hpx_transfer *transfer = hpx_transfer_new(request, &problem);
	if (transfer == NULL) {
		end_unsent(request, problem);
		return;
	}
	transfer->next = egress->running;
	if (transfer->next != NULL)
		transfer->next->prev = transfer;
	egress->running = transfer;
	egress->running_count++;
	CURLMcode code = curl_multi_add_handle(egress->multi, transfer->easy);
	if (code == CURLM_OK)
		return;
	transfer->abort_reason = curl_multi_strerror(code);
	end_transfer(egress, transfer, CURLE_FAILED_INIT);
}

static bool has_room(const struct hpx_egress *egress)
{
	return egress->waiting.first != NULL &&
	       egress->running_count < egress->options.running_max;
}

/* Returns whether any transfer had finished. */
static bool end_finished(struct hpx_egress *egress)
{
	struct hpx_transfer *transfer;
	const CURLMsg *message;
	bool any = false;
	int left;

	while ((message = curl_multi_info_read(egress->multi, &left)) != NULL) {
		/* Another libcurl may have other messages. */
		if (message->msg != CURLMSG_DONE)
			continue;
		/* The message is gone once its handle is removed. */
		CURLcode code = message->data.result;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
		end_transfer(egress, transfer, code);
		any = true;
	}
	return any;
}

/* A failure of the multi handle itself (no memory) belongs to no single request: all
 * transfers end. Returns whether there was none. */
static bool check_multi(struct hpx_egress *egress, CURLMcode code)
{
	if (code != CURLM_OK)
		end_all(egress, curl_multi_strerror(code));
	return code == CURLM_OK;
}

/* Takes the requests over that have come; false when it is time to end. */
static bool take_inbox(struct hpx_egress *egress, int64_t *ret_sleep_ms)
{
	bool stopping;

	pthread_mutex_lock(&egress->mutex);
	queue_append(&egress->waiting, egress->inbox);
	egress->inbox.first = NULL;
	stopping = egress->stopping;
	int64_t left_ms = stopping ? egress->stop_until_ms - hpx_clock_boot_ms() : SLEEP_MS;
	pthread_mutex_unlock(&egress->mutex);

	while (stopping && egress->waiting.first != NULL)
		end_unsent(queue_take(&egress->waiting), "the engine was stopped");
	*ret_sleep_ms = left_ms < SLEEP_MS ? left_ms : SLEEP_MS;
	return !stopping || (egress->running != NULL && left_ms > 0);
}

static void *run(void *user)
{
	struct hpx_egress *egress = user;
	int64_t sleep_ms;
	int count;

	while (take_inbox(egress, &sleep_ms)) {
		while (has_room(egress))
			begin(egress, queue_take(&egress->waiting));
		if (!check_multi(egress, curl_multi_perform(egress->multi, &count)))
			continue;
		/* There is room for waiting requests now, or the last transfer has ended. */
		if (end_finished(egress))
			continue;
		/* libcurl wakes sooner for its own timeouts, and for a wakeup. */
		check_multi(egress, curl_multi_poll(egress->multi, NULL, 0, (int)sleep_ms, NULL));
	}
	end_all(egress, "the engine was stopped");
	HPX_ASSERT(egress->running_count == 0 && egress->waiting.first == NULL);
	return NULL;
}

enum hpx_status hpx_egress_submit(struct hpx_egress *egress,
				  struct hpx_egress_request *request)
{
	hpx_egress_request_reset(request);
	enum hpx_status status = hpx_egress_request_check(request);
	if (status != HPX_OK)
		return status;

	pthread_mutex_lock(&egress->mutex);
	bool stopping = egress->stopping;
	bool first = egress->inbox.first == NULL;
	if (!stopping)
		queue_append(&egress->inbox, (struct request_queue){ request, request });
	pthread_mutex_unlock(&egress->mutex);
	/* The thread takes the whole inbox: one wakeup serves all that follow. */
	if (!stopping && first)
		curl_multi_wakeup(egress->multi);
	return stopping ? HPX_CLOSED : HPX_OK;
}

/* libcurl counts its users: init and cleanup come in pairs. Any thread may call them
 * where the library says so (CURL_VERSION_THREADSAFE). */
static enum hpx_status begin_libcurl(void)
{
	const int needed = CURL_VERSION_THREADSAFE | CURL_VERSION_SSL | CURL_VERSION_ASYNCHDNS;
	const curl_version_info_data *libcurl = curl_version_info(CURLVERSION_NOW);

	if ((libcurl->features & needed) != needed ||
	    !hpx_span_starts(hpx_span_of(libcurl->ssl_version), HPX_SPAN("OpenSSL/")))
		return HPX_UNSUPPORTED;
	return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? HPX_OK : HPX_NOMEM;
}

static enum hpx_status open_multi(struct hpx_egress *egress)
{
	egress->multi = curl_multi_init();
	if (egress->multi == NULL)
		return HPX_NOMEM;
	curl_multi_setopt(egress->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
	curl_multi_setopt(egress->multi, CURLMOPT_MAXCONNECTS, (long)egress->options.running_max);
	return hpx_thread_start(&egress->thread, run, egress);
}

enum hpx_status hpx_egress_start(const struct hpx_egress_options *options,
				 struct hpx_egress **ret_egress)
{
	HPX_ASSERT(options->running_max > 0);
	enum hpx_status status = begin_libcurl();
	if (status != HPX_OK)
		return status;
	struct hpx_egress *egress = calloc(1, sizeof(*egress));
	if (egress == NULL) {
		curl_global_cleanup();
		return HPX_NOMEM;
	}
	egress->options = *options;
	pthread_mutex_init(&egress->mutex, NULL);
	status = open_multi(egress);
	if (status == HPX_OK)
		*ret_egress = egress;
	else
		hpx_egress_free(egress);
	return status;
}

void hpx_egress_stop(struct hpx_egress *egress, int64_t grace_ms)
{
	pthread_mutex_lock(&egress->mutex);
	HPX_ASSERT(!egress->stopping);
	egress->stopping = true;
	egress->stop_until_ms = hpx_clock_boot_ms() + grace_ms;
	pthread_mutex_unlock(&egress->mutex);
	curl_multi_wakeup(egress->multi);
	pthread_join(egress->thread, NULL);
}

void hpx_egress_free(struct hpx_egress *egress)
{
	if (egress == NULL)
		return;
	curl_multi_cleanup(egress->multi);
	pthread_mutex_destroy(&egress->mutex);
	free(egress);
	curl_global_cleanup();
}
