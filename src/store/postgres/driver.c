/* The PostgreSQL driver's table, and opening and closing a store. */
#include <stdio.h>
#include <stdlib.h>

#include "base/span.h"
#include "store/postgres/driver.h"

static void free_store(struct hpx_pg_store *s)
{
	hpx_pg_connector_done(&s->connector);
	hpx_pg_close(&s->writer);
	hpx_pg_close(&s->replay);
	free(s->url);
	free(s);
}

static struct hpx_pg_store *new_store(const struct hpx_store_options *options)
{
	struct hpx_pg_store *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->url = strndup(options->url.ptr, options->url.len);
	if (s->url == NULL || hpx_pg_connector_init(&s->connector) != HPX_OK) {
		free(s->url);
		free(s);
		return NULL;
	}
	hpx_store_init(&s->base, &hpx_store_postgres_driver);
	s->serve = options->serve;
	s->event_retention_ms = options->event_retention_ms;
	s->job_retention_ms = options->job_retention_ms;
	s->history_retention_ms = options->history_retention_ms;
	/* A name that is no text has no text in the database either. */
	if (hpx_utf8_valid(options->upstream_name))
		snprintf(s->upstream_name, sizeof(s->upstream_name), "%.*s",
			 HPX_SPAN_ARG(options->upstream_name));
	/* What is there may be another process's commit that nobody heard of. */
	s->unsure = true;
	return s;
}

/* Who may make or change the schema: who says so, and a server, where it may
 * create a store. */
static enum hpx_status ensure_schema(struct hpx_pg_store *s,
				     const struct hpx_store_options *options, char *problem)
{
	struct hpx_pg_schema schema;
	enum hpx_status status = hpx_pg_schema_check(&s->writer, &schema, problem);

	if (status != HPX_OK || schema.from == schema.to)
		return status;
	if (options->install)
		return hpx_pg_schema_migrate(&s->writer, &schema, problem);
	if (schema.from == 0 && !options->create) {
		hpx_store_problem(problem, "%s has no schema \"hapax\": run `hapax migrate --store URL`",
				  s->base.description);
		return HPX_NOT_FOUND;
	}
	if (!options->serve) {
		hpx_store_problem(problem, "%s has schema %u and this hapax needs %u: run "
					   "`hapax migrate --store URL`, or start `hapax serve`",
				  s->base.description, schema.from, schema.to);
		return HPX_UNSUPPORTED;
	}
	return hpx_pg_schema_migrate(&s->writer, &schema, problem);
}

static enum hpx_status connect_store(struct hpx_pg_store *s, char *problem)
{
	enum hpx_status status = hpx_pg_describe(s->url, s->base.description,
						 sizeof(s->base.description), problem);

	if (status == HPX_OK)
		status = hpx_pg_connect(s->url, HPX_PG_WRITER, &s->writer, problem);
	return status;
}

static enum hpx_status postgres_open(const struct hpx_store_options *options,
				     struct hpx_store **ret_store, char *problem)
{
	struct hpx_pg_store *s = new_store(options);
	enum hpx_status status;

	if (s == NULL)
		return HPX_NOMEM;
	status = connect_store(s, problem);
	if (status == HPX_OK)
		status = ensure_schema(s, options, problem);
	if (status == HPX_OK)
		status = hpx_pg_judge_server(&s->writer, s->base.warning,
					     sizeof(s->base.warning), problem);
	if (status == HPX_OK)
		status = hpx_pg_prepare(&s->writer, HPX_PG_WRITER, problem);
	if (status == HPX_OK && s->serve)
		status = hpx_pg_history_settle(s, problem);
	if (status != HPX_OK) {
		free_store(s);
		return status;
	}
	if (s->serve)
		hpx_pg_replay_open(s);
	*ret_store = &s->base;
	return HPX_OK;
}

/* A commit that waits for a standby leaves this server idle meanwhile: a second one beside
 * it costs little. Without a standby the two would only share what one does. */
static enum hpx_status postgres_second(struct hpx_store *store, struct hpx_store **ret_second,
				       char *problem)
{
	const struct hpx_pg_store *first = hpx_pg_of(store);
	struct hpx_store_options options = {
		.url = hpx_span_of(first->url),
		.serve = first->serve,
		.event_retention_ms = first->event_retention_ms,
		.job_retention_ms = first->job_retention_ms,
		.upstream_name = hpx_span_of(first->upstream_name),
	};
	struct hpx_pg_store *s = new_store(&options);
	enum hpx_status status;

	if (s == NULL)
		return HPX_NOMEM;
	status = hpx_pg_connect(s->url, HPX_PG_WRITER, &s->writer, problem);
	if (status == HPX_OK && !hpx_pg_waits_for_standby(&s->writer))
		status = HPX_UNSUPPORTED;
	if (status == HPX_OK)
		status = hpx_pg_prepare(&s->writer, HPX_PG_WRITER, problem);
	if (status != HPX_OK) {
		free_store(s);
		return status;
	}
	hpx_pg_replay_open(s);
	*ret_second = &s->base;
	return HPX_OK;
}

static void postgres_close(struct hpx_store *store)
{
	free_store(hpx_pg_of(store));
}

/* Autovacuum keeps the tables; there is nothing for us to do beside it. */
static enum hpx_status postgres_maintain(struct hpx_store *store, char *problem)
{
	(void)problem;
	hpx_pg_replay_maintain(hpx_pg_of(store));
	return HPX_OK;
}

/* Gateways may serve the database meanwhile. */
static enum hpx_status postgres_migrate(const struct hpx_store_options *options,
					struct hpx_store_migration *ret_migration, char *problem)
{
	struct hpx_pg_store *s = new_store(options);
	struct hpx_pg_schema schema;
	enum hpx_status status;

	if (s == NULL)
		return HPX_NOMEM;
	status = connect_store(s, problem);
	if (status == HPX_OK)
		status = hpx_pg_schema_migrate(&s->writer, &schema, problem);
	if (status == HPX_OK) {
		ret_migration->from = schema.from;
		ret_migration->to = schema.to;
		memcpy(ret_migration->description, s->base.description, sizeof(s->base.description));
	}
	free_store(s);
	return status;
}

const struct hpx_store_driver hpx_store_postgres_driver = {
	.open = postgres_open,
	.close = postgres_close,
	.schema = hpx_pg_schema_number,
	.migrate = postgres_migrate,
	.borrow = hpx_pg_borrow,
	.install = hpx_pg_install,
	.run = hpx_pg_run,
	.recover = hpx_pg_recover,
	.second = postgres_second,
	.maintain = postgres_maintain,
	.reader_open = hpx_pg_reader_open,
	.reader_close = hpx_pg_reader_close,
	.find = hpx_pg_find,
	.list = hpx_pg_list,
	.events = hpx_pg_events,
	.recipe = hpx_pg_recipe,
	.stats = hpx_pg_stats,
	.history = hpx_pg_history,
	.jobs = hpx_pg_jobs,
	.provided = hpx_pg_provided,
	.keyed = hpx_pg_keyed,
	.unkeyed = hpx_pg_unkeyed,
	.question = hpx_pg_question,
	.lanes = hpx_pg_lanes,
	.due = hpx_pg_due,
	.watch = hpx_pg_watch,
	.removals = hpx_pg_removals,
};
