/* Fuzzes what PostgreSQL gives back: rows of operations, answers, jobs and questions that
 * were right, with any of their columns replaced. A row that cannot be read is never
 * executed, an answer that is not the operation's is never given. */
#include <string.h>

#include <openssl/sha.h>

#include "base/status.h"
#include "overrides.h"
#include "store/postgres/outbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COLUMNS_MAX 40
#define NOW_MS 2000000
static char zeroes[32];
static const char integer[8] = { 0, 0, 0, 0, 0, 0, 0, 1 };
static const char moment[8] = { 0, 0, 0, 0, 0, 15, 66, 64 }; /* 1,000,000 */

struct column {
	const char *bytes;
	int len; /* -1: NULL */
};
/* clang-format off */
#define ID { zeroes, 16 }
#define HASH { zeroes, 32 }
#define ONE { integer, 8 }
#define ZERO { zeroes, 8 }
#define TIME { moment, 8 }
#define TEXT(text) { text, sizeof(text) - 1 }
#define NONE { NULL, -1 }
/* clang-format on */

/* An operation in state 1 (in progress), its description, its answer. */
static const struct column operation[] = {
	ID, ID, ID, ID, ID, TIME, ONE, TIME, HASH, HASH, TIME, ZERO, TIME, ONE, ZERO, ZERO, ONE,
	ZERO, ZERO, TEXT(""), TEXT(""), ZERO, ONE, NONE, NONE, TEXT("tenant"), TEXT("scope"),
	TEXT("key"), TEXT("POST"), TEXT("/p"), TEXT("POST /p"), NONE
};
/* A job in state 1 (queued), its body, and a question. */
static const struct column job[] = {
	ONE, ID, ID, ID, ONE, ZERO, ZERO, ZERO, ZERO, ZERO, ID, ZERO, TIME, TIME, TIME, ZERO, ZERO,
	ZERO, TEXT(""), TEXT("name"), TEXT("target"), TEXT("POST"), TEXT("/p"), TEXT("A: b\r\n"),
	TEXT("body"), ID, TIME, ONE, ONE, TIME, TIME, ONE, ZERO
};
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static PGresult *result_of(const struct column *columns, size_t count)
{
	static char name[] = "c";
	PGresAttDesc names[COLUMNS_MAX] = { { .name = NULL } };
	PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);

	HPX_ASSERT(result != NULL && count <= COLUMNS_MAX);
	for (size_t i = 0; i < count; i++) {
		names[i].name = name;
		names[i].format = 1;
	}
	HPX_ASSERT(PQsetResultAttrs(result, (int)count, names) == 1);
	for (size_t i = 0; i < count; i++)
		HPX_ASSERT(PQsetvalue(result, 0, (int)i, (char *)columns[i].bytes, columns[i].len) ==
			   1);
	return result;
}

/* PostgreSQL sends numbers with the great end first. */
static void set(PGresult *result, const struct override *o)
{
	char bytes[8];

	if (o->kind == OVERRIDE_NULL) {
		HPX_ASSERT(PQsetvalue(result, 0, (int)o->column, NULL, -1) == 1);
		return;
	}
	if (o->kind == OVERRIDE_INT) {
		for (int i = 0; i < 8; i++)
			bytes[i] = (char)((uint64_t)o->number >> (56 - 8 * i));
		HPX_ASSERT(PQsetvalue(result, 0, (int)o->column, bytes, 8) == 1);
		return;
	}
	HPX_ASSERT(PQsetvalue(result, 0, (int)o->column, (char *)o->bytes.ptr, (int)o->bytes.len) ==
		   1);
}

/* The digest that makes an answer's column this operation's; otherwise none is ever read. */
static void seal_answer(PGresult *result, int column, const struct hpx_operation_id *id)
{
	struct hpx_span stored = hpx_pg_bytes(result, 0, column);
	unsigned char whole[32 + 256];
	unsigned char digest[32];

	if (stored.ptr == NULL || stored.len < sizeof(digest))
		return;
	size_t rest = stored.len - sizeof(digest);
	memcpy(whole, id->bytes, 32);
	memcpy(whole + 32, stored.ptr + sizeof(digest), rest);
	HPX_ASSERT(SHA256(whole, 32 + rest, digest) != NULL);
	memcpy(PQgetvalue(result, 0, column), digest, sizeof(digest));
}

static void check_answer(const PGresult *result, const struct hpx_record *record)
{
	struct hpx_answer *answer = NULL;
	enum hpx_status status =
		hpx_pg_answer_read(result, 0, HPX_PG_ANSWER_COLUMN, record, &answer);

	HPX_ASSERT(status == HPX_OK || status == HPX_CORRUPT);
	HPX_ASSERT(status == HPX_OK || answer == NULL);
	if (answer != NULL)
		HPX_ASSERT(answer->headers.len + answer->body.len + 36 ==
			   (size_t)PQgetlength(result, 0, HPX_PG_ANSWER_COLUMN));
	HPX_ASSERT(answer != NULL || status == HPX_CORRUPT || !record->kept);
	hpx_answer_free(answer);
}

/* What a retry of the same request gets. */
static void check_decision(const struct hpx_pg_row *read)
{
	static const struct hpx_policy policy = { .retention_ms = 1000, .lease_ms = 1000 };
	const struct hpx_moment now = { .wall_ms = NOW_MS, .lease_ms = NOW_MS };
	struct hpx_ask ask = { .id = read->id, .owner = 7 };
	struct hpx_store_op op = { .verb = HPX_VERB_RESERVE, .id = read->id };
	struct hpx_pg_row row = *read;
	struct hpx_change change;

	memset(ask.token.bytes, 't', sizeof(ask.token.bytes));
	op.reserve.ask = &ask;
	op.reserve.policy = &policy;
	row.locked = true;
	hpx_pg_decide(&row, &op, &now, &change);
	HPX_ASSERT(op.status == HPX_OK);
	if (!row.found.readable) {
		HPX_ASSERT(op.decision.kind == HPX_DECISION_UNKNOWN);
		HPX_ASSERT(change.write == HPX_WRITE_NOTHING);
	}
	/* Without the lock nothing begins, whatever was read. */
	row.locked = false;
	hpx_answer_free(op.reserve.replay);
	op.reserve.replay = NULL;
	hpx_pg_decide(&row, &op, &now, &change);
	HPX_ASSERT(change.write == HPX_WRITE_NOTHING && !hpx_pg_begins(&op));
	hpx_answer_free(op.reserve.replay);
}

static void check_operation(PGresult *result, bool seal)
{
	struct hpx_description description;
	struct hpx_arena arena;
	struct hpx_pg_row row;

	hpx_pg_row_read(result, 0, &row);
	HPX_ASSERT(row.stored && row.found.exists);
	HPX_ASSERT(!row.found.readable || hpx_record_valid(&row.found.record));
	HPX_ASSERT(memchr(row.found.record.point, '\0', sizeof(row.found.record.point)) != NULL);
	check_decision(&row);
	if (seal)
		seal_answer(result, HPX_PG_ANSWER_COLUMN, &row.found.record.id);
	check_answer(result, &row.found.record);
	hpx_arena_init(&arena, 1 << 16);
	(void)hpx_pg_description_read(result, 0, &arena, &description);
	hpx_arena_done(&arena);
}

static void check_job(PGresult *result)
{
	struct hpx_outbox_found found = { .scheduled = false };
	struct hpx_job_entry *entry = hpx_pg_job_read(result, 0);

	HPX_ASSERT(entry != NULL);
	if (entry->readable) {
		HPX_ASSERT(hpx_job_valid(&entry->delivery) && hpx_job_fault(&entry->job) == NULL);
		HPX_ASSERT(entry->delivery.number > 0);
	}
	HPX_ASSERT(memchr(entry->delivery.provider_id, '\0', HPX_PROVIDER_ID_SIZE) != NULL);
	hpx_pg_question_read(result, 0, HPX_PG_JOB_QUESTION_COLUMN, &entry->delivery.mark, &found);
	if (found.scheduled)
		HPX_ASSERT(hpx_pg_evidence_number(found.evidence) <= 2);
	hpx_job_entry_free(entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hpx_span rest = hpx_span(data, size);
	struct override o;

	if (size == 0)
		return 0;
	bool is_job = data[0] & 1;
	size_t count = is_job ? COUNT(job) : COUNT(operation);
	PGresult *result = result_of(is_job ? job : operation, count);
	rest = hpx_span_skip(rest, 1);
	while (take_override(&rest, count, &o))
		set(result, &o);
	if (is_job)
		check_job(result);
	else
		check_operation(result, data[0] & 2);
	PQclear(result);
	return 0;
}
