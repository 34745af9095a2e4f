/* A store on a connection that stays the caller's: each op is one call of an
 * SQL function, part of whatever transaction is open there. Only libpq's plain
 * calls are used, which leave nothing behind on the connection; no setting is
 * changed, nothing is prepared, nothing is committed or rolled back. */
#include <stdio.h>
#include <stdlib.h>

#include "base/span.h"
#include "store/postgres/driver.h"

struct borrowed {
	struct hpx_store base;
	PGconn *conn;
};

/* ---- the connection ---- */

enum hpx_status hpx_pg_judge_borrowed(PGconn *conn, char *problem)
{
	if (conn == NULL || PQstatus(conn) != CONNECTION_OK) {
		hpx_store_problem(problem, "the connection is lost");
		return HPX_UNAVAILABLE;
	}
	if (PQpipelineStatus(conn) != PQ_PIPELINE_OFF) {
		hpx_store_problem(problem, "the connection is in pipeline mode: leave it first");
		return HPX_MISUSE;
	}
	switch (PQtransactionStatus(conn)) {
	case PQTRANS_IDLE:
	case PQTRANS_INTRANS:
		return HPX_OK;
	case PQTRANS_INERROR:
		hpx_store_problem(problem, "the transaction has failed: roll it back");
		return HPX_INVALID;
	case PQTRANS_ACTIVE:
		hpx_store_problem(problem, "the connection has a query under way: take its "
					   "results first");
		return HPX_MISUSE;
	default:
		hpx_store_problem(problem, "the connection is lost");
		return HPX_UNAVAILABLE;
	}
}

/* The server speaks the session's language, in its encoding; our own sentences
 * are ASCII. */
static void make_utf8(char *text)
{
	if (hpx_utf8_valid(hpx_span_of(text)))
		return;
	for (; *text != '\0'; text++)
		if ((unsigned char)*text > 0x7f)
			*text = '?';
}

enum hpx_status hpx_pg_borrowed_fault(PGconn *conn, const PGresult *result, char *problem)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	enum hpx_status status = hpx_pg_status_of(state);

	if (PQstatus(conn) != CONNECTION_OK || primary == NULL) {
		hpx_pg_explain("PostgreSQL", PQerrorMessage(conn), problem);
		status = HPX_UNAVAILABLE;
	} else if (hpx_pg_is_ops_own(status)) {
		hpx_store_problem(problem, "%s", primary);
	} else {
		hpx_store_problem(problem, "PostgreSQL: %s (SQLSTATE %s)", primary,
				  state != NULL ? state : "?");
	}
	make_utf8(problem);
	return status;
}

/* ---- the driver's slots ---- */

static enum hpx_status run_call(struct hpx_pg_call *call)
{
	const struct hpx_pg_params *p = &call->params;
	enum hpx_status status = hpx_pg_call_say(call);
	int formats[HPX_PG_PARAMS_MAX];
	PGresult *result;

	if (status != HPX_OK)
		return status;
	for (int i = 0; i < p->count; i++)
		formats[i] = 1;
	result = PQexecParams(call->conn, hpx_pg_call_sql(call->op->verb), p->count, NULL, p->value,
			      p->length, formats, 1);
	if (PQresultStatus(result) == PGRES_TUPLES_OK)
		status = hpx_pg_call_read(call, result);
	else
		status = hpx_pg_borrowed_fault(call->conn, result, call->problem);
	PQclear(result);
	return status;
}

static enum hpx_status judge(const struct hpx_pg_call *call)
{
	if (hpx_pg_call_sql(call->op->verb) != NULL)
		return hpx_pg_judge_borrowed(call->conn, call->problem);
	hpx_store_problem(call->problem, "this needs a store with a connection of its own");
	return HPX_UNSUPPORTED;
}

/* The caller's mistakes and the operation's state are the op's; what is left is
 * the store's. */
static enum hpx_status borrowed_run(struct hpx_store *store, struct hpx_store_op **ops,
				    size_t count, char *problem)
{
	struct hpx_pg_call call = { .conn = ((struct borrowed *)store)->conn, .problem = problem };
	enum hpx_status status;

	if (count != 1)
		return HPX_MISUSE;
	call.op = ops[0];
	status = judge(&call);
	if (status == HPX_OK)
		status = run_call(&call);
	if (status != HPX_OK && status != HPX_MISUSE && status != HPX_UNSUPPORTED &&
	    !hpx_pg_is_ops_own(status))
		return status;
	call.op->status = status;
	return HPX_OK;
}

static void borrowed_close(struct hpx_store *store)
{
	free(store);
}

static const struct hpx_store_driver borrowed_driver = {
	.run = borrowed_run,
	.close = borrowed_close,
};

/* Which functions are there, and whether this role may call them: all that a
 * borrower needs of the schema. From the catalog, where nothing can fail and
 * so end a transaction. */
#define CHECK_SQL \
	"SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE') " \
	"AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE') " \
	"FROM pg_catalog.pg_namespace n LEFT JOIN pg_catalog.pg_proc p " \
	"ON p.pronamespace OPERATOR(pg_catalog.=) n.oid " \
	"AND p.proname OPERATOR(pg_catalog.=) 'begin' " /* text, text, text, bytea, bigint, bigint, text, bytea */ \
	"AND p.proargtypes OPERATOR(pg_catalog.=) " \
	"'25 25 25 17 20 20 25 17' " \
	"WHERE n.nspname OPERATOR(pg_catalog.=) 'hapax'"

static enum hpx_status judge_schema(const PGresult *result, char *problem)
{
	if (PQntuples(result) != 1) {
		hpx_store_problem(problem, "the database has no schema \"hapax\": run `hapax "
					   "migrate`, or install it");
		return HPX_NOT_FOUND;
	}
	if (PQgetisnull(result, 0, 0)) {
		hpx_store_problem(problem, "the database's hapax functions are not this version's: "
					   "run `hapax migrate`, or install them");
		return HPX_UNSUPPORTED;
	}
	if (*PQgetvalue(result, 0, 0) != 't') {
		hpx_store_problem(problem, "this role may not call hapax's functions: GRANT "
					   "hapax_application to it");
		return HPX_READ_ONLY;
	}
	return HPX_OK;
}

static enum hpx_status check_schema(PGconn *conn, char *problem)
{
	PGresult *result = PQexec(conn, CHECK_SQL);
	enum hpx_status status = PQresultStatus(result) == PGRES_TUPLES_OK ?
					 judge_schema(result, problem) :
					 hpx_pg_borrowed_fault(conn, result, problem);

	PQclear(result);
	return status;
}

enum hpx_status hpx_pg_borrow(void *connection, struct hpx_store **ret_store,
			      char *problem)
{
	struct borrowed *b;
	enum hpx_status status = hpx_pg_judge_borrowed(connection, problem);

	if (status == HPX_OK)
		status = hpx_pg_check_server(connection, problem);
	if (status == HPX_OK)
		status = check_schema(connection, problem);
	if (status != HPX_OK)
		return status;
	b = calloc(1, sizeof(*b));
	if (b == NULL)
		return HPX_NOMEM;
	hpx_store_init(&b->base, &borrowed_driver);
	b->conn = connection;
	snprintf(b->base.description, sizeof(b->base.description), "postgres:%s", PQdb(connection));
	*ret_store = &b->base;
	return HPX_OK;
}
