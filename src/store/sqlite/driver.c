/* The SQLite driver's table, and opening and closing a store. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/sqlite/driver.h"

static void free_store(struct hpx_sqlite_store *s)
{
	hpx_sqlite_db_close(&s->keeper);
	hpx_sqlite_db_close(&s->writer);
	hpx_sqlite_removal_counter_unmap(s);
	/* Last: whoever takes the lock finds a database that nobody uses. */
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	pthread_mutex_destroy(&s->keeper_mutex);
	hpx_sqlite_filters_done(&s->filters);
	hpx_sqlite_leases_done(&s->leases);
	hpx_id_filter_free(s->making.filter);
	free(s);
}

/* The locks of it: all of them, or none. */
static enum hpx_status init_locks(struct hpx_sqlite_store *s)
{
	if (hpx_sqlite_filters_init(&s->filters) != HPX_OK)
		return HPX_NOMEM;
	if (hpx_sqlite_leases_init(&s->leases) == HPX_OK) {
		if (pthread_mutex_init(&s->keeper_mutex, NULL) == 0)
			return HPX_OK;
		hpx_sqlite_leases_done(&s->leases);
	}
	hpx_sqlite_filters_done(&s->filters);
	return HPX_NOMEM;
}

static struct hpx_sqlite_store *new_store(const struct hpx_store_options *options)
{
	struct hpx_sqlite_store *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	if (init_locks(s) != HPX_OK) {
		free(s);
		return NULL;
	}
	hpx_sqlite_generations_init(s);
	hpx_store_init(&s->base, &hpx_store_sqlite_driver);
	hpx_sqlite_boot_id(s->boot_id);
	s->lock_fd = -1;
	s->serve = options->serve;
	s->lost = options->lost;
	s->lost_user = options->lost_user;
	s->free_bytes_min = options->free_bytes_min;
	s->event_retention_ms = options->event_retention_ms;
	s->job_retention_ms = options->job_retention_ms;
	return s;
}

static bool is_there(const char *path, const char *suffix)
{
	char name[PATH_MAX + 8];

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	return access(name, F_OK) == 0;
}

/* A server leaves its lock file behind: where that is alone, a store was lost. */
static void warn_of_loss(struct hpx_sqlite_store *s)
{
	if (is_there(s->path, ".lock") && !is_there(s->path, ""))
		snprintf(s->base.warning, sizeof(s->base.warning),
			 "the store's file is gone, and a new, empty one is made: retries of "
			 "earlier requests are executed again; if that is not meant, stop, put "
			 "the file back, and say store_create: never");
}

/* Path, lock, file, writer: in that order, so that only the server of a file,
 * or who is asked to install it, ever creates or migrates it. */
static enum hpx_status open_file(struct hpx_sqlite_store *s,
				 const struct hpx_store_options *options, bool lock,
				 struct hpx_sqlite_schema *ret_schema, char *problem)
{
	enum hpx_sqlite_migrate may = options->install ? HPX_SQLITE_BESIDE :
				      lock             ? HPX_SQLITE_OWN :
							 HPX_SQLITE_NOT;
	enum hpx_status status = hpx_sqlite_file_find(options->url, s->path, problem);

	if (status != HPX_OK)
		return status;
	snprintf(s->base.description, sizeof(s->base.description), "sqlite:%s", s->path);
	if (s->serve && options->create)
		warn_of_loss(s);
	if (lock)
		status = hpx_sqlite_file_lock(s->path, &s->lock_fd, problem);
	/* A file that is not there yet is nobody's: whoever creates it gives
	 * it its schema. */
	if (status == HPX_OK && options->create && !is_there(s->path, "") && may == HPX_SQLITE_NOT)
		may = HPX_SQLITE_OWN;
	if (status == HPX_OK)
		status = hpx_sqlite_file_ensure(s->path, options->create, problem);
	if (status == HPX_OK)
		status = hpx_sqlite_writer_open(s, may, ret_schema, problem);
	return status;
}

static enum hpx_status read_generations(struct hpx_sqlite_store *s)
{
	enum hpx_status status = hpx_sqlite_do(&s->writer, HPX_SQL_BEGIN_READ);
	enum hpx_status ended;

	if (status != HPX_OK)
		return status;
	status = hpx_sqlite_generations_refresh(&s->writer);
	if (status == HPX_OK)
		status = hpx_sqlite_filters_sync(s);
	ended = hpx_sqlite_do(&s->writer, HPX_SQL_COMMIT);
	return status != HPX_OK ? status : ended;
}

/* What the server does before it serves: what the dead left is lost at once,
 * and only then are the clocks of this boot the anchor. */
static enum hpx_status take_over(struct hpx_sqlite_store *s, char *problem)
{
	bool rebooted = false;
	enum hpx_status status = hpx_sqlite_clock_check(s, &s->writer, false);

	if (status == HPX_OK && s->serve)
		status = hpx_sqlite_clock_rebooted(s, &rebooted);
	if (status == HPX_OK && s->serve)
		status = hpx_sqlite_sweep_dead(s, rebooted ? HPX_SQLITE_REBOOTED :
							     HPX_SQLITE_ORPHANED);
	if (status == HPX_OK && s->serve)
		status = hpx_sqlite_clock_check(s, &s->writer, true);
	if (status == HPX_OK && s->serve)
		status = read_generations(s);
	if (status != HPX_OK)
		hpx_sqlite_explain(&s->writer, s->path, "cannot be taken over", problem);
	return status;
}

static void keep_text(struct hpx_span text, char out[HPX_STORE_UPSTREAM_SIZE])
{
	snprintf(out, HPX_STORE_UPSTREAM_SIZE, "%.*s",
		 HPX_SPAN_ARG(hpx_span_first(text, HPX_STORE_UPSTREAM_SIZE - 1)));
}

/* Whether the row is already what it should be; what it was before is told. */
static enum hpx_status compare_upstream(struct hpx_sqlite_store *s,
					const struct hpx_store_options *options, bool *ret_same)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_UPSTREAM);

	*ret_same = false;
	hpx_sqlite_bind_text(&stmt, options->upstream_name);
	if (hpx_sqlite_next(&stmt)) {
		struct hpx_span name = hpx_sqlite_bytes(&stmt, 0);
		struct hpx_span url = hpx_sqlite_bytes(&stmt, 1);

		if (!hpx_span_eq(name, options->upstream_name))
			keep_text(name, s->base.upstream_name_before);
		else if (!hpx_span_eq(url, options->upstream_url))
			keep_text(url, s->base.upstream_url_before);
		else
			*ret_same = true;
	}
	return hpx_sqlite_end(&stmt);
}

/* One gateway has the file, so that keys go on under the same name wherever the
 * upstream has moved; but somebody may have mistaken another service for it. */
static enum hpx_status note_upstream(struct hpx_sqlite_store *s,
				     const struct hpx_store_options *options, char *problem)
{
	bool same = true;
	enum hpx_status status = HPX_OK;

	if (s->serve && options->upstream_name.len > 0)
		status = compare_upstream(s, options, &same);
	if (status == HPX_OK && !same) {
		struct hpx_sqlite_statement stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_PUT_UPSTREAM);

		hpx_sqlite_bind_text(&stmt, options->upstream_name);
		hpx_sqlite_bind_text(&stmt, options->upstream_url);
		hpx_sqlite_bind_int(&stmt, hpx_store_moment(&s->base).wall_ms);
		status = hpx_sqlite_finish(&stmt);
	}
	if (status != HPX_OK)
		hpx_sqlite_explain(&s->writer, s->path, "cannot be taken over", problem);
	return status;
}

static enum hpx_status sqlite_open(const struct hpx_store_options *options,
				   struct hpx_store **ret_store, char *problem)
{
	struct hpx_sqlite_store *s = new_store(options);
	struct hpx_sqlite_schema schema;
	enum hpx_status status;

	if (s == NULL)
		return HPX_NOMEM;
	status = open_file(s, options, options->serve, &schema, problem);
	if (status == HPX_OK)
		status = take_over(s, problem);
	if (status == HPX_OK)
		status = note_upstream(s, options, problem);
	if (status == HPX_OK && s->serve)
		hpx_sqlite_removal_counter_map(s);
	if (status != HPX_OK) {
		free_store(s);
		return status;
	}
	*ret_store = &s->base;
	return HPX_OK;
}

static void sqlite_close(struct hpx_store *store)
{
	free_store(hpx_sqlite_of(store));
}

/* Under the server's lock. */
static enum hpx_status sqlite_migrate(const struct hpx_store_options *options,
				      struct hpx_store_migration *ret_migration, char *problem)
{
	struct hpx_sqlite_store *s = new_store(options);
	struct hpx_sqlite_schema schema;
	enum hpx_status status;

	if (s == NULL)
		return HPX_NOMEM;
	status = open_file(s, options, true, &schema, problem);
	free_store(s);
	if (status != HPX_OK)
		return status;
	ret_migration->from = schema.from;
	ret_migration->to = schema.to;
	snprintf(ret_migration->description, sizeof(ret_migration->description), "%.*s",
		 HPX_SPAN_ARG(options->url));
	return HPX_OK;
}

const struct hpx_store_driver hpx_store_sqlite_driver = {
	.open = sqlite_open,
	.close = sqlite_close,
	.migrate = sqlite_migrate,
	.borrow = hpx_sqlite_borrow,
	.install = hpx_sqlite_install,
	.run = hpx_sqlite_run,
	.recover = hpx_sqlite_recover,
	.maintain = hpx_sqlite_maintain,
	.reader_open = hpx_sqlite_reader_open,
	.reader_close = hpx_sqlite_reader_close,
	.peek = hpx_sqlite_peek,
	.find = hpx_sqlite_find,
	.list = hpx_sqlite_list,
	.events = hpx_sqlite_events,
	.recipe = hpx_sqlite_recipe,
	.stats = hpx_sqlite_stats,
	.jobs = hpx_sqlite_jobs,
	.question = hpx_sqlite_question,
	.lanes = hpx_sqlite_lanes,
	.due = hpx_sqlite_due,
	.removals = hpx_sqlite_removals,
};
