/* bench-fill URL COUNT RETENTION_SECONDS [--spread] [--tombstone SECONDS] [--unknown ROUTE]:
 * puts operations into a store, through the store itself, so that they are in every way
 * like those of a gateway that served so many requests, whatever the schema is. They are
 * completed and expire RETENTION_SECONDS later. --spread: they expire evenly over that
 * time, the first ones at once, so that whoever opens the store next has something to
 * reap. --tombstone: each leaves one of that time behind. --unknown: they are of that
 * route, their outcome was lost, and nothing of them expires.
 *
 * Nothing else may serve the store meanwhile. Says how far it is: on a terminal in one
 * line that is written anew, else a number per line on stdout. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "core/fingerprint.h"
#include "store/store.h"

/* Larger than a committer's, so that few syncs are waited for. */
#define BATCH 2000
#define MAINTAIN_EVERY 20000
#define RETENTION_LEAST_MS 1000
#define SAY_EVERY_MS 500
#define COUNT_MAX 1000000000
#define RETENTION_MAX_S (3650u * 86400u)

struct row {
	struct hpx_ask ask;
	struct hpx_policy policy;
	struct hpx_description description;
	char key[48];
	struct hpx_record record; /* as it was reserved */
	struct hpx_store_op op;
};

struct fill {
	struct hpx_store *store;
	struct hpx_recipe_id recipe;
	struct hpx_answer *answer;
	uint64_t count;
	int64_t retention_ms;
	bool spread;
	uint64_t tombstone_s;  /* 0: none */
	struct hpx_span route; /* of those whose outcome was lost; empty: completed */
	int64_t began_ms;
	int64_t said_ms;
	char problem[HPX_STORE_PROBLEM_SIZE];
	struct row rows[BATCH];
	struct hpx_store_op *ops[BATCH];
};

static const struct hpx_span tenant = HPX_SPAN_INIT("bearer:bench-fill");
static const struct hpx_span scope = HPX_SPAN_INIT("payments POST /payments");

/* What the gateway keeps of the upstream's answer. */
static struct hpx_answer *make_answer(void)
{
	return hpx_answer_new(201, true,
			      HPX_SPAN("Server: nginx\r\nContent-Type: application/json\r\n"),
			      HPX_SPAN("{\"id\":\"pay_1001\",\"state\":\"succeeded\",\"amount\":4990,"
				       "\"currency\":\"EUR\"}\n"));
}

static int64_t retention_of(const struct fill *fill, uint64_t number)
{
	double share = fill->spread ? (double)number / (double)fill->count : 1.0;
	int64_t retention_ms = (int64_t)((double)fill->retention_ms * share);

	return retention_ms < RETENTION_LEAST_MS ? RETENTION_LEAST_MS : retention_ms;
}

static enum hpx_status make_row(struct fill *fill, struct row *row, uint64_t number)
{
	static const uint8_t tenant_hash[HPX_SHA256_SIZE] = { 1 };
	int len = snprintf(row->key, sizeof(row->key), "filled-%016llx", (unsigned long long)number);

	row->description = (struct hpx_description){
		.tenant = tenant,
		.scope = scope,
		.key = hpx_span(row->key, (size_t)len),
		.method = HPX_SPAN("POST"),
		.path = HPX_SPAN("/payments"),
		.route = fill->route.len > 0 ? fill->route : HPX_SPAN("*"),
	};
	row->policy = (struct hpx_policy){ .retention_ms = retention_of(fill, number),
					   .lease_ms = 30000,
					   .tombstone_ms = (int64_t)fill->tombstone_s * 1000,
					   .wait_ms = 10000 };
	row->ask = (struct hpx_ask){ .recipe = fill->recipe, .owner = fill->store->owner };
	memcpy(row->ask.tenant, tenant_hash, sizeof(tenant_hash));
	hpx_random(row->ask.fingerprint, sizeof(row->ask.fingerprint));
	hpx_token_make(&row->ask.token);
	return hpx_operation_id(tenant, scope, row->description.key, &row->ask.id);
}

static enum hpx_status run(struct fill *fill, size_t count)
{
	enum hpx_status status;

	for (size_t i = 0; i < count; i++)
		fill->ops[i] = &fill->rows[i].op;
	status = hpx_store_run(fill->store, fill->ops, count, fill->problem);
	for (size_t i = 0; i < count && status == HPX_OK; i++)
		status = fill->rows[i].op.status;
	return status;
}

static enum hpx_status reserve(struct fill *fill, uint64_t first, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct row *row = &fill->rows[i];
		enum hpx_status status = make_row(fill, row, first + i);

		if (status != HPX_OK)
			return status;
		row->op = (struct hpx_store_op){
			.verb = HPX_VERB_RESERVE,
			.id = row->ask.id,
			.token = row->ask.token,
			.reserve.ask = &row->ask,
			.reserve.policy = &row->policy,
			.reserve.description = &row->description,
			.actor = HPX_SPAN("gateway"),
		};
	}
	return run(fill, count);
}

/* The op that ends a reserved row; a completion says what its reservation said, as the
 * gateway's does. */
static struct hpx_store_op make_end(struct fill *fill, struct row *row)
{
	struct hpx_store_op op = {
		.verb = fill->route.len > 0 ? HPX_VERB_MARK_UNKNOWN : HPX_VERB_COMPLETE,
		.id = row->ask.id,
		.token = row->ask.token,
		.actor = HPX_SPAN("gateway"),
	};

	row->record = row->op.decision.record;
	if (op.verb == HPX_VERB_COMPLETE) {
		op.complete.answer = fill->answer;
		op.complete.believed = &row->record;
		op.complete.row = row->op.reserve.row;
	}
	return op;
}

static enum hpx_status end(struct fill *fill, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct row *row = &fill->rows[i];

		if (row->op.decision.kind != HPX_DECISION_EXECUTE)
			return HPX_CONFLICT;
		row->op = make_end(fill, row);
	}
	return run(fill, count);
}

static void say(struct fill *fill, uint64_t done)
{
	int64_t now_ms = hpx_clock_boot_ms();
	double seconds = (double)(now_ms - fill->began_ms) / 1000.0;
	double left = done > 0 ? seconds / (double)done * (double)(fill->count - done) : 0.0;

	if (now_ms < fill->said_ms + SAY_EVERY_MS && done < fill->count)
		return;
	fill->said_ms = now_ms;
	if (isatty(STDOUT_FILENO))
		printf("\r%llu of %llu, %.0f s left \033[K%s", (unsigned long long)done,
		       (unsigned long long)fill->count, left, done == fill->count ? "\n" : "");
	else
		printf("%llu\n", (unsigned long long)done);
	fflush(stdout);
}

static enum hpx_status fill_all(struct fill *fill)
{
	enum hpx_status status = HPX_OK;

	for (uint64_t done = 0; done < fill->count && status == HPX_OK;) {
		size_t count = fill->count - done < BATCH ? (size_t)(fill->count - done) : BATCH;

		status = reserve(fill, done, count);
		if (status == HPX_OK)
			status = end(fill, count);
		done += count;
		if (status == HPX_OK && (done % MAINTAIN_EVERY == 0 || done == fill->count))
			status = hpx_store_maintain(fill->store, fill->problem);
		say(fill, done);
	}
	return status;
}

/* A record's recipe is known before the record. */
static enum hpx_status know_recipe(struct fill *fill)
{
	struct hpx_recipe recipe = { .version = 1 };
	struct hpx_buffer text;
	struct hpx_store_op op = { .verb = HPX_VERB_RECIPE };
	struct hpx_store_op *ops[] = { &op };
	enum hpx_status status;

	hpx_buffer_init(&text, HPX_RECIPE_TEXT_MAX);
	status = hpx_recipe_print(&recipe, &text);
	if (status == HPX_OK)
		status = hpx_recipe_id(&recipe, &fill->recipe);
	if (status == HPX_OK) {
		op.recipe.id = fill->recipe;
		op.recipe.text = hpx_buffer_span(&text);
		status = hpx_store_run(fill->store, ops, 1, fill->problem);
	}
	hpx_buffer_done(&text);
	return status == HPX_OK ? op.status : status;
}

static enum hpx_status fill_store(struct fill *fill, const char *url)
{
	struct hpx_store_options options = { .url = hpx_span_of(url), .create = true, .serve = true };
	enum hpx_status status = hpx_store_open(&options, &fill->store, fill->problem);

	if (status != HPX_OK)
		return status;
	fill->answer = make_answer();
	status = fill->answer != NULL ? know_recipe(fill) : HPX_NOMEM;
	if (status == HPX_OK)
		status = fill_all(fill);
	hpx_answer_free(fill->answer);
	hpx_store_close(fill->store);
	return status;
}

/* The words behind the three numbers. */
static bool read_words(struct fill *fill, char **words)
{
	for (; *words != NULL; words++) {
		if (strcmp(*words, "--spread") == 0)
			fill->spread = true;
		else if (strcmp(*words, "--tombstone") == 0 && words[1] != NULL &&
			 hpx_span_u64(hpx_span_of(words[1]), RETENTION_MAX_S, &fill->tombstone_s))
			words++;
		else if (strcmp(*words, "--unknown") == 0 && words[1] != NULL)
			fill->route = hpx_span_of(*++words);
		else
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct fill *fill = calloc(1, sizeof(*fill));
	uint64_t seconds;
	enum hpx_status status;

	if (fill == NULL || argc < 4 ||
	    !hpx_span_u64(hpx_span_of(argv[2]), COUNT_MAX, &fill->count) ||
	    !hpx_span_u64(hpx_span_of(argv[3]), RETENTION_MAX_S, &seconds) ||
	    !read_words(fill, argv + 4)) {
		fprintf(stderr, "bench-fill URL COUNT RETENTION_SECONDS [--spread] [--tombstone SECONDS] [--unknown ROUTE]\n");
		free(fill);
		return 2;
	}
	fill->retention_ms = (int64_t)seconds * 1000;
	fill->began_ms = hpx_clock_boot_ms();
	status = fill_store(fill, argv[1]);
	if (status != HPX_OK)
		fprintf(stderr, "bench-fill: %s (%s)\n", hpx_status_text(status), fill->problem);
	free(fill);
	return status == HPX_OK ? 0 : 1;
}
