/* Killing the server under test, and starting it again: by the commands of the
 * description. */
#include <stdio.h>

#include "base/clock.h"
#include "verify/effect.h"
#include "verify/state.h"

#define POLL_MS 20

static bool never(void *user)
{
	return user != NULL;
}

/* Until it ends; HPX_TIMEOUT: it is ended. */
static enum hpx_status await_end(struct hpx_verify *run, struct hpx_shell *command)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + (int64_t)run->spec->settle_ms;

	while (hpx_shell_runs(command)) {
		if (hpx_clock_boot_ms() >= deadline_ms || run->stopped)
			return HPX_TIMEOUT;
		hpx_verify_poll(run, never, NULL, POLL_MS);
	}
	return HPX_OK;
}

enum hpx_status hpx_verify_crash(struct hpx_verify *run, char problem[HPX_VERIFY_PROBLEM_SIZE])
{
	char how[HPX_VERIFY_PROBLEM_SIZE - 64];
	struct hpx_shell command;
	enum hpx_status status = hpx_shell_start(&command, run->spec->crash_cmd);

	if (status != HPX_OK) {
		snprintf(problem, HPX_VERIFY_PROBLEM_SIZE, "the crash command cannot be run");
		return status;
	}
	status = await_end(run, &command);
	if (status != HPX_OK || !hpx_shell_is_good(&command)) {
		hpx_shell_explain(&command, how, sizeof(how));
		snprintf(problem, HPX_VERIFY_PROBLEM_SIZE, "the crash command failed: %s", how);
		status = status != HPX_OK ? status : HPX_UNAVAILABLE;
	}
	hpx_shell_end(&command);
	return status;
}

/* A connection, made and closed: not counted as a request. */
static bool takes_connections(struct hpx_verify *run)
{
	struct hpx_verify_host again = run->host;
	char problem[HPX_VERIFY_PROBLEM_SIZE];

	if (again.address_size == 0)
		return hpx_verify_open(run, problem) == HPX_OK;
	return hpx_verify_host_try(&again, (int64_t)run->spec->answer_timeout_ms, problem) ==
	       HPX_OK;
}

/* What a server that has come up is asked: something that the description says
 * only reads. A GET of the request's own path might do something. False: there is
 * nothing. */
static bool what_to_ask(struct hpx_verify *run, struct hpx_request_variant *ret_question)
{
	static const struct hpx_span no_key;
	bool counts = hpx_verify_counts_effects(run);

	if (!counts && !run->spec->requests[HPX_REQUEST_get].given)
		return false;
	*ret_question = (struct hpx_request_variant){ .key_values = &no_key };
	ret_question->op =
		hpx_verify_op_draft(run, counts ? HPX_REQUEST_main : HPX_REQUEST_get);
	if (ret_question->op == NULL || !counts)
		return ret_question->op != NULL;
	ret_question->method = HPX_SPAN("GET");
	ret_question->path = hpx_verify_op_path(run, ret_question->op, run->spec->effects_path);
	ret_question->body = HPX_SPAN("");
	ret_question->content_type = HPX_SPAN("");
	return ret_question->path.ptr != NULL;
}

/* A server error says that it is not up yet, whatever it will say later. */
static bool answers(struct hpx_verify *run, const struct hpx_request_variant *question)
{
	const struct hpx_verify_exchange *exchange = hpx_verify_send(run, question);

	return exchange->end == HPX_EXCHANGE_ANSWERED && exchange->status < 500;
}

static enum hpx_status refuse(struct hpx_verify *run, char *problem, const char *what)
{
	char how[HPX_VERIFY_PROBLEM_SIZE - 128];

	hpx_shell_explain(&run->server, how, sizeof(how));
	snprintf(problem, HPX_VERIFY_PROBLEM_SIZE, "%s; the start command: %s", what, how);
	return HPX_UNAVAILABLE;
}

static enum hpx_status await_server(struct hpx_verify *run, char *problem)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + (int64_t)run->spec->settle_ms;
	struct hpx_request_variant question;
	bool asks = what_to_ask(run, &question);

	for (;;) {
		if (!hpx_shell_runs(&run->server) && !hpx_shell_is_good(&run->server))
			return refuse(run, problem, "the server did not start");
		bool listens = takes_connections(run);
		if (listens && (!asks || answers(run, &question)))
			return HPX_OK;
		if (hpx_verify_stop_reason(run) != NULL)
			return refuse(run, problem, hpx_verify_stop_reason(run));
		if (hpx_clock_boot_ms() >= deadline_ms)
			return refuse(run, problem,
				      listens ? "the server did not answer a GET in time" :
						"the server took no connection in time");
		hpx_verify_poll_for(run, POLL_MS);
	}
}

enum hpx_status hpx_verify_start_again(struct hpx_verify *run,
				       char problem[HPX_VERIFY_PROBLEM_SIZE])
{
	/* What an earlier start left in the foreground would hold the port. */
	hpx_shell_end(&run->server);
	enum hpx_status status = hpx_shell_start(&run->server, run->spec->start_cmd);
	if (status != HPX_OK) {
		snprintf(problem, HPX_VERIFY_PROBLEM_SIZE, "the start command cannot be run");
		return status;
	}
	return await_server(run, problem);
}
