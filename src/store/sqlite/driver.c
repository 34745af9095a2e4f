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
	hpx_sqlite_making_end(s);
	free(s->comparisons);
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
	s->history_retention_ms = options->history_retention_ms;
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

/* SQLite takes a file for read-only whose header names a format that it does not know.
 * Nothing could be reserved, and the start would wait for ever. */
static enum hpx_status check_writable(struct hpx_sqlite_store *s, char *problem)
{
	if (sqlite3_db_readonly(s->writer.handle, "main") != 1)
		return HPX_OK;
	hpx_store_problem(problem, "%s cannot be written: it may only be read, or its header is damaged. "
				   "Mend its permissions, or restore a backup",
			  s->path);
	return HPX_READ_ONLY;
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
	/* A path without a store, where none is made, gets no lock file either: alone,
	 * it would say that a store was lost. */
	if (!options->create)
		status = hpx_sqlite_file_ensure(s->path, false, problem);
	if (status == HPX_OK && lock)
		status = hpx_sqlite_file_lock(s->path, &s->lock_fd, problem);
	/* A file that is not there yet is nobody's: whoever creates it gives
	 * it its schema. */
	if (status == HPX_OK && options->create && !is_there(s->path, "") && may == HPX_SQLITE_NOT)
		may = HPX_SQLITE_OWN;
	if (status == HPX_OK && options->create)
		status = hpx_sqlite_file_ensure(s->path, true, problem);
	if (status == HPX_OK)
		status = hpx_sqlite_writer_open(s, may, ret_schema, problem);
	return status == HPX_OK && s->serve ? check_writable(s, problem) : status;
}

static enum hpx_status read_generations(struct hpx_sqlite_store *s, char *problem)
{
	enum hpx_status status = hpx_sqlite_generations_refresh(&s->writer);
	enum hpx_status ended;

	if (status == HPX_OK)
		status = hpx_sqlite_damage_start(s, problem);
	if (status == HPX_OK)
		status = hpx_sqlite_do(&s->writer, HPX_SQL_BEGIN_READ);
	if (status != HPX_OK)
		return status;
	status = hpx_sqlite_generations_refresh(&s->writer);
	if (status == HPX_OK)
		status = hpx_sqlite_filters_sync(s);
	if (status == HPX_OK)
		status = hpx_sqlite_damage_sync(s);
	if (status == HPX_OK && atomic_load(&s->damaged))
		snprintf(s->base.warning, sizeof(s->base.warning),
			 "the file is damaged: known keys are answered, new keys are refused until "
			 "`hapax repair`");
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
		status = hpx_sqlite_history_settle(s);
	if (status == HPX_OK && s->serve)
		status = read_generations(s, problem);
	if (status != HPX_OK && problem[0] == '\0')
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

/* Beside a server only to look; what is accepted is accepted under its lock. */
static enum hpx_status sqlite_repair(const struct hpx_store_options *options, bool accept,
				     struct hpx_store_repair *ret_repair, char *problem)
{
	struct hpx_sqlite_store *s = new_store(options);
	struct hpx_sqlite_schema schema;
	enum hpx_status status;

	if (s == NULL)
		return HPX_NOMEM;
	status = open_file(s, options, accept, &schema, problem);
	if (status == HPX_OK)
		status = hpx_sqlite_repair_store(s, accept, ret_repair);
	if (status != HPX_OK && problem[0] == '\0')
		hpx_sqlite_explain(&s->writer, s->path, "cannot be repaired", problem);
	free_store(s);
	return status;
}

/* ---- a connection that stays the application's ---- */

/* A store on a connection that stays the caller's. Each op is a savepoint in
 * whatever transaction is open: it is written whole or not at all, and is
 * committed, or not, with the caller's own rows. */

#define SYNCHRONOUS_FULL 2

static enum hpx_status read_synchronous(sqlite3 *handle, int *ret_level)
{
	sqlite3_stmt *stmt = NULL;
	int code = sqlite3_prepare_v2(handle, "PRAGMA main.synchronous", -1, &stmt, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_step(stmt);
	if (code == SQLITE_ROW)
		*ret_level = sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	return code == SQLITE_ROW ? HPX_OK : hpx_sqlite_status(code);
}

/* A commit that a power failure undoes would make the answer a lie. */
static enum hpx_status make_durable(struct hpx_sqlite_store *s, char *problem)
{
	sqlite3 *handle = s->writer.handle;
	int level = 0;
	enum hpx_status status = read_synchronous(handle, &level);

	if (status == HPX_OK && level < SYNCHRONOUS_FULL)
		status = hpx_sqlite_status(sqlite3_exec(
			handle, "PRAGMA main.synchronous = FULL", NULL, NULL, NULL));
	if (status != HPX_OK)
		hpx_sqlite_explain(&s->writer, s->path, "cannot be made durable", problem);
	return status;
}

static enum hpx_status run_saved(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	enum hpx_status status = hpx_sqlite_do(&s->writer, HPX_SQL_SAVEPOINT);

	if (status != HPX_OK)
		return status;
	status = hpx_sqlite_clock_check(s, &s->writer, false);
	if (status == HPX_OK)
		status = hpx_sqlite_generations_refresh(&s->writer);
	if (status == HPX_OK)
		status = hpx_sqlite_damage_sync(s);
	if (status == HPX_OK)
		status = op->verb == HPX_VERB_RULE ? hpx_sqlite_rule(s, op) : hpx_sqlite_run_one(s, op);
	hpx_sqlite_leases_commit(&s->leases, false);
	if (status == HPX_OK)
		return hpx_sqlite_do(&s->writer, HPX_SQL_RELEASE);
	/* Some errors have ended the whole transaction, and the savepoint. */
	if (hpx_sqlite_do(&s->writer, HPX_SQL_UNDO) == HPX_OK)
		hpx_sqlite_do(&s->writer, HPX_SQL_RELEASE);
	return status;
}

static enum hpx_status borrowed_run(struct hpx_store *store, struct hpx_store_op **ops,
				    size_t count, char *problem)
{
	struct hpx_sqlite_store *s = hpx_sqlite_of(store);
	enum hpx_status status;

	if (count != 1)
		return HPX_MISUSE;
	status = run_saved(s, ops[0]);
	if (status != HPX_OK)
		hpx_sqlite_explain(&s->writer, s->path, "cannot be written", problem);
	return status;
}

static void borrowed_close(struct hpx_store *store)
{
	struct hpx_sqlite_store *s = hpx_sqlite_of(store);

	hpx_sqlite_db_finalize(&s->writer);
	hpx_sqlite_leases_done(&s->leases);
	free(s);
}

static const struct hpx_store_driver borrowed_driver = {
	.close = borrowed_close,
	.run = borrowed_run,
};

static void name_file(struct hpx_sqlite_store *s, sqlite3 *handle)
{
	const char *path = sqlite3_db_filename(handle, "main");

	snprintf(s->path, sizeof(s->path), "%s", path != NULL && *path != '\0' ? path : ":memory:");
	snprintf(s->base.description, sizeof(s->base.description), "sqlite:%s", s->path);
}

enum hpx_status hpx_sqlite_borrow(void *connection, struct hpx_store **ret_store,
				  char *problem)
{
	sqlite3 *handle = connection;
	struct hpx_sqlite_schema schema;
	struct hpx_sqlite_store *s;
	enum hpx_status status;

	if (!sqlite3_get_autocommit(handle)) {
		hpx_store_problem(problem, "the connection is in a transaction: take it before "
					   "BEGIN, once, and keep the handle");
		return HPX_MISUSE;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return HPX_NOMEM;
	if (hpx_sqlite_leases_init(&s->leases) != HPX_OK) {
		free(s);
		return HPX_NOMEM;
	}
	hpx_store_init(&s->base, &borrowed_driver);
	s->borrowed = true;
	hpx_sqlite_boot_id(s->boot_id);
	s->lock_fd = -1;
	s->writer.handle = handle;
	name_file(s, handle);
	status = hpx_sqlite_schema_check(&s->writer, s->path, HPX_SQLITE_NOT, &schema, problem);
	if (status == HPX_OK)
		status = make_durable(s, problem);
	if (status != HPX_OK) {
		borrowed_close(&s->base);
		return status;
	}
	*ret_store = &s->base;
	return HPX_OK;
}

enum hpx_status hpx_sqlite_install(void *connection, char *problem)
{
	sqlite3 *handle = connection;
	struct hpx_sqlite_db db = { .handle = handle };
	const char *path = sqlite3_db_filename(handle, "main");
	struct hpx_sqlite_schema schema;
	enum hpx_status status;

	if (!sqlite3_get_autocommit(handle)) {
		hpx_store_problem(problem, "the connection is in a transaction: install before "
					   "BEGIN");
		return HPX_MISUSE;
	}
	if (path == NULL || *path == '\0')
		path = ":memory:";
	status = hpx_sqlite_schema_check(&db, path, HPX_SQLITE_BESIDE, &schema, problem);
	if (status == HPX_OK)
		status = hpx_sqlite_schema_migrate(&db, path, HPX_SQLITE_BESIDE, &schema, problem);
	return status;
}

/* ---- the table ---- */

const struct hpx_store_driver hpx_store_sqlite_driver = {
	.open = sqlite_open,
	.close = sqlite_close,
	.schema = hpx_sqlite_schema_number,
	.migrate = sqlite_migrate,
	.repair = sqlite_repair,
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
	.history = hpx_sqlite_history,
	.jobs = hpx_sqlite_jobs,
	.provided = hpx_sqlite_provided,
	.keyed = hpx_sqlite_keyed,
	.unkeyed = hpx_sqlite_unkeyed,
	.question = hpx_sqlite_question,
	.lanes = hpx_sqlite_lanes,
	.due = hpx_sqlite_due,
	.removals = hpx_sqlite_removals,
};
