/* Ours, page by page: what happened and the ledger does not have, and, where the
 * ledger is complete, what is unknown and not in it. */
#include "base/bytes.h"
#include "base/clock.h"
#include "cli/jobs.h"
#include "cli/reconcile.h"

#define PAGE 1000
#define PAGE_MAX 1000000
#define NAME_MAX_BYTES 4096
/* What asks nobody has no next question; only the distance of two counts. */
#define CONFIRM_AFTER_MS 60000

/* ---- settling ---- */

/* The rule of the target or route, where a configuration is given. */
static const struct hpx_reconcile_rule *rule_of(const struct hpx_reconciliation *run,
						const struct hpx_subject *subject)
{
	const struct hpx_settings *settings = run->command.settings;
	const struct hpx_reconcile_settings *found = NULL;

	if (settings == NULL)
		return NULL;
	for (size_t i = 0; subject->job != NULL && i < settings->target_count; i++)
		if (hpx_span_eq(settings->targets[i].name, subject->job->job.target))
			found = &settings->targets[i].reconcile;
	for (size_t i = 0; subject->job == NULL && i < settings->route_count; i++)
		if (hpx_span_eq(settings->routes[i].pattern, subject->entry.description.route))
			found = settings->routes[i].target != NULL ?
					&settings->routes[i].target->reconcile :
					&settings->routes[i].reconcile;
	return found != NULL && found->given ? &found->rule : NULL;
}

static struct hpx_difference place_of(uint64_t line, struct hpx_span name)
{
	return (struct hpx_difference){ .line = line, .name = name };
}

/* What follows from a NOT_APPLIED, before it is said. */
static bool can_unapply(const struct hpx_reconciliation *run, const struct hpx_subject *subject,
			struct hpx_reconcile_rule *ret_rule)
{
	const struct hpx_reconcile_rule *rule = rule_of(run, subject);

	*ret_rule = (struct hpx_reconcile_rule){ .confirm_after_ms = CONFIRM_AFTER_MS };
	if (rule != NULL)
		*ret_rule = *rule;
	if (run->settle_after_ms > 0)
		ret_rule->settle_after_ms = run->settle_after_ms;
	return ret_rule->settle_after_ms > 0;
}

static enum hpx_status rule(struct hpx_reconciliation *run, const struct hpx_subject *subject,
			    enum hpx_ruling ruling, const struct hpx_reconcile_rule *by,
			    enum hpx_reconcile_move *ret_move)
{
	const char *file = strrchr(run->ledger, '/') ? strrchr(run->ledger, '/') + 1 : run->ledger;
	int64_t now_ms = hpx_clock_wall_ms();
	struct hpx_ruling_turn turn = {
		.number = subject->job != NULL ? subject->job->delivery.number : 0,
		.finding = { .ruling = ruling,
			     .about_ms = run->to_ms < now_ms ? run->to_ms : now_ms },
		.rule = *by,
	};
	struct hpx_store_op op = {
		.verb = HPX_VERB_RULE,
		.id = subject->job != NULL ? subject->job->delivery.operation :
					     subject->entry.record.id,
		.mark = subject->job != NULL ? subject->job->delivery.mark :
					       subject->entry.record.mark,
		.ruling = &turn,
		.reason = hpx_arena_printf(&run->scratch, "ledger %s: %s", file, run->command.reason),
	};

	hpx_random(&turn.random, sizeof(turn.random));
	if (hpx_operator_write(&run->command, &op) != HPX_EXIT_OK)
		return HPX_CLOSED; /* it was said */
	*ret_move = turn.move;
	return op.status;
}

static bool is_settled(enum hpx_reconcile_move move)
{
	return move == HPX_RECONCILE_SETTLE_APPLIED || move == HPX_RECONCILE_SETTLE_DECLINED ||
	       move == HPX_RECONCILE_SETTLE_NOT_APPLIED;
}

static int apply(struct hpx_reconciliation *run, const struct hpx_subject *subject,
		 enum hpx_ruling ruling, const struct hpx_reconcile_rule *by,
		 struct hpx_difference *place)
{
	enum hpx_reconcile_move move = HPX_RECONCILE_STAY;
	enum hpx_status status = rule(run, subject, ruling, by, &move);

	if (status == HPX_CLOSED)
		return HPX_EXIT_FAILED;
	if (status != HPX_OK)
		return hpx_reconcile_note(run, HPX_GROUP_UNKNOWN, place, subject,
					  "they say %s; not settled: %s", hpx_ruling_name(ruling),
					  hpx_status_text(status));
	place->settled = is_settled(move);
	if (place->settled)
		return hpx_reconcile_note(run, HPX_GROUP_UNKNOWN, place, subject,
					  "settled: %s", hpx_ruling_name(ruling));
	return hpx_reconcile_note(run, HPX_GROUP_UNKNOWN, place, subject,
				  "they say %s; it settles when a later export says so again, both "
				  "after settle_after",
				  hpx_ruling_name(ruling));
}

int hpx_reconcile_settle(struct hpx_reconciliation *run, const struct hpx_subject *subject,
			 enum hpx_ruling ruling, uint64_t line, struct hpx_span name)
{
	struct hpx_difference place = place_of(line, name);
	struct hpx_reconcile_rule by;
	bool unapply = ruling == HPX_RULING_NOT_APPLIED;

	if (!can_unapply(run, subject, &by) && unapply)
		return hpx_reconcile_note(
			run, HPX_GROUP_UNKNOWN, &place, subject,
			"they say not_applied; say --settle-after, or --config with "
			"a reconcile, to let it count");
	if (unapply && run->to == NULL)
		return hpx_reconcile_note(run, HPX_GROUP_UNKNOWN, &place, subject,
					  "they say not_applied; say with --to when that was, to let "
					  "it count");
	if (run->apply == NULL)
		return hpx_reconcile_note(run, HPX_GROUP_UNKNOWN, &place, subject,
					  "they say %s; --apply settles it%s",
					  hpx_ruling_name(ruling),
					  unapply ? " when two exports say so" : "");
	return apply(run, subject, ruling, &by, &place);
}

/* ---- what the ledger does not have ---- */

static bool is_in_time(const struct hpx_reconciliation *run, int64_t created_ms)
{
	return created_ms >= run->from_ms && created_ms < run->to_ms;
}

static int compare(struct hpx_reconciliation *run, const struct hpx_subject *subject)
{
	struct hpx_difference place = place_of(0, (struct hpx_span){ NULL, 0 });
	struct hpx_buffer name;
	bool has = false;

	hpx_buffer_init(&name, NAME_MAX_BYTES);
	enum hpx_status status = hpx_subject_name(run, subject, &name);
	if (status == HPX_OK && name.len > 0)
		status = hpx_seen_has(&run->seen, hpx_buffer_span(&name), &has);
	bool nameless = name.len == 0;
	hpx_buffer_done(&name);
	if (status != HPX_OK)
		return hpx_operator_complain(&run->command, HPX_EXIT_FAILED, "%s",
					     hpx_status_text(status));
	if (subject->standing == HPX_STANDS_HAPPENED)
		run->ours++;
	if (has)
		return HPX_EXIT_OK;
	if (subject->standing == HPX_STANDS_HAPPENED)
		return hpx_reconcile_note(run, HPX_GROUP_WE_ONLY, &place, subject, "%s%s",
					  subject->state,
					  nameless ? "; the target gave no id to look for" : "");
	if (run->complete == NULL || nameless)
		return hpx_reconcile_note(run, HPX_GROUP_UNKNOWN, &place, subject,
					  nameless ? "we have no name to look for" :
						     "it is not in the ledger");
	return hpx_reconcile_settle(run, subject, HPX_RULING_NOT_APPLIED, 0, place.name);
}

static int compare_entry(struct hpx_reconciliation *run, const struct hpx_entry *entry)
{
	struct hpx_subject subject;

	if (!is_in_time(run, entry->record.created_ms) ||
	    (run->route != NULL &&
	     !hpx_span_eq(entry->description.route, hpx_span_of(run->route))))
		return HPX_EXIT_OK;
	hpx_subject_operation(entry, &subject);
	if (subject.standing != HPX_STANDS_HAPPENED && subject.standing != HPX_STANDS_UNKNOWN)
		return HPX_EXIT_OK;
	return compare(run, &subject);
}

/* Those that changed in the page's last millisecond wait for the next page,
 * which begins with all of them: no page's end falls among equals. */
static size_t whole_part(const struct hpx_entry *entries, size_t count, unsigned limit)
{
	int64_t last_ms = count > 0 ? entries[count - 1].record.changed_ms : 0;

	if (count < limit)
		return count;
	while (count > 0 && entries[count - 1].record.changed_ms == last_ms)
		count--;
	return count;
}

/* One page; `*query` moves on. `*ret_more` is false after the last one. */
static int compare_page(struct hpx_reconciliation *run, struct hpx_query *query, bool *ret_more)
{
	struct hpx_entry *entries = NULL;
	size_t count = 0;
	enum hpx_status status =
		hpx_store_list(run->command.reader, query, &run->scratch, &entries, &count);

	*ret_more = false;
	if (status != HPX_OK)
		return hpx_operator_complain_read(&run->command, status);
	size_t whole = whole_part(entries, count, query->limit);
	for (size_t i = 0; i < whole; i++) {
		int code = compare_entry(run, &entries[i]);
		if (code != HPX_EXIT_OK)
			return code;
	}
	if (count < query->limit || entries[count - 1].record.changed_ms < run->from_ms)
		return HPX_EXIT_OK;
	if (whole == 0 && query->limit >= PAGE_MAX)
		return hpx_operator_complain(&run->command, HPX_EXIT_FAILED,
					     "more than %d operations changed in one millisecond",
					     PAGE_MAX);
	query->limit = whole == 0 ? 10 * query->limit : PAGE;
	query->before_ms = entries[count - 1].record.changed_ms + 1;
	*ret_more = true;
	return HPX_EXIT_OK;
}

static int compare_operations(struct hpx_reconciliation *run, enum hpx_state state)
{
	struct hpx_query query = { .state = state, .limit = PAGE };
	bool more = true;
	int code = HPX_EXIT_OK;

	while (more && code == HPX_EXIT_OK) {
		code = compare_page(run, &query, &more);
		hpx_arena_done(&run->scratch);
	}
	return code;
}

/* The job is the callee's. */
static int compare_job(struct hpx_reconciliation *run, struct hpx_job_entry *job)
{
	struct hpx_subject subject;

	job->next = NULL;
	if (!is_in_time(run, job->delivery.created_ms)) {
		hpx_job_entry_free(job);
		return HPX_EXIT_OK;
	}
	enum hpx_status status = hpx_subject_job(run, job, &subject);
	if (status != HPX_OK) {
		hpx_job_entry_free(job);
		return hpx_operator_complain_read(&run->command, status);
	}
	int code = HPX_EXIT_OK;
	if (subject.standing == HPX_STANDS_HAPPENED || subject.standing == HPX_STANDS_UNKNOWN)
		code = compare(run, &subject);
	hpx_subject_done(&subject);
	hpx_arena_done(&run->scratch);
	return code;
}

static int compare_jobs(struct hpx_reconciliation *run, enum hpx_job_state state)
{
	struct hpx_job_query query = { .state = state,
				       .target = hpx_span_of(run->target),
				       .limit = PAGE };
	int code = HPX_EXIT_OK;

	for (;;) {
		struct hpx_job_entry *jobs = NULL;
		enum hpx_status status = hpx_store_jobs(run->command.reader, &query, &jobs);

		if (status != HPX_OK)
			return hpx_operator_complain_read(&run->command, status);
		if (jobs == NULL)
			return HPX_EXIT_OK;
		while (jobs != NULL && code == HPX_EXIT_OK) {
			struct hpx_job_entry *job = jobs;

			jobs = job->next;
			query.before = job->delivery.number;
			code = compare_job(run, job);
		}
		hpx_job_entry_free(jobs);
		if (code != HPX_EXIT_OK)
			return code;
	}
}

int hpx_reconcile_ours(struct hpx_reconciliation *run)
{
	int code = run->is_jobs ? compare_jobs(run, HPX_JOB_DONE) :
				  compare_operations(run, HPX_STATE_COMPLETED);

	if (code != HPX_EXIT_OK)
		return code;
	return run->is_jobs ? compare_jobs(run, HPX_JOB_UNKNOWN) :
			      compare_operations(run, HPX_STATE_UNKNOWN);
}
