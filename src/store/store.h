/* The store: where operations are made durable. A driver is a const table of
 * functions (struct hpx_store_driver); this header is the contract of every slot.
 * Callers use the thin hpx_store_* wrappers, where time is measured and tests inject
 * faults.
 *
 * There are two ways in:
 *  - ops (struct hpx_store_op), in batches, from one thread (the committer); a batch
 *    is durable in one transaction;
 *  - readers, one per thread, which see what is committed and wait for no write.
 */
#ifndef HPX_STORE_STORE_H
#define HPX_STORE_STORE_H

#include <limits.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/metric.h"
#include "core/decision.h"
#include "core/job.h"
#include "core/reconcile.h"

struct hpx_store;
struct hpx_store_reader;

/* A stored answer, one heap block. `headers` is the kept fields as they go on
 * the wire ("Name: value\r\n" each). */
struct hpx_answer {
	uint32_t status;
	bool kept;
	struct hpx_span headers;
	struct hpx_span body;
};
/* NULL when out of memory. */
struct hpx_answer *hpx_answer_new(uint32_t status, bool kept, struct hpx_span headers,
				  struct hpx_span body);
void hpx_answer_free(struct hpx_answer *answer);

/* What an operation is for people, besides its record. RESERVE borrows the spans from
 * the request. */
struct hpx_description {
	struct hpx_span tenant; /* the tenant's name */
	struct hpx_span scope;
	struct hpx_span key;
	struct hpx_span method;
	struct hpx_span path;
	struct hpx_span route; /* the pattern that matched */
};

/* A delivery owed to an external service, named once per operation reference.
 * `headers` is lines as they go on the wire. */
struct hpx_job {
	struct hpx_span name;
	struct hpx_span target;
	struct hpx_span method;
	struct hpx_span path;
	struct hpx_span headers;
	struct hpx_span body;
};
/* NULL: it can be stored; else what is wrong with it, for people. */
const char *hpx_job_fault(const struct hpx_job *job);

/* A job and where its delivery stands, one heap block: hpx_job_entry_free. */
struct hpx_job_entry {
	struct hpx_job_entry *next;
	struct hpx_delivery delivery;
	struct hpx_job job;
	bool readable;       /* false: the row cannot be read; it counts as unknown */
	uint32_t body_check; /* the driver's own: of headers and body, which it may have left out */
	char bytes[];        /* what `job` points to */
};
/* Made by drivers; NULL when out of memory. Frees the whole list. */
struct hpx_job_entry *hpx_job_entry_new(const struct hpx_delivery *delivery,
					const struct hpx_job *job);
void hpx_job_entry_free(struct hpx_job_entry *list);

/* CLAIM: how many jobs of one target may be taken, and how. */
struct hpx_claim {
	struct hpx_span target;
	unsigned room; /* at most so many now */
	int64_t lease_ms;
	int64_t honours_keys_ms; /* 0: not */
	uint32_t attempts_max;
};

/* JOB: what becomes of one job. */
struct hpx_job_update {
	int64_t number;
	enum hpx_job_move move; /* any but CLAIM and SWEEP */
	uint32_t attempts_max;
	int64_t delay_ms; /* POSTPONE, LOSE */
	uint32_t status;  /* HTTP status seen, 0 if none */
	struct hpx_span provider_id;
	/* DELIVER, APPLY of a job that answers: the operation's answer. NULL
	 * with APPLY: it happened, and nobody knows what was said. */
	const struct hpx_answer *answer;
	bool force;  /* RETRY: also an unknown one; DISCARD: also one that cannot be read */
	bool unsent; /* POSTPONE: given back untried; it costs no attempt */
};

/* An operation, or (delivery.number != 0) a job, whose outcome is unknown; one heap
 * block: hpx_unsettled_free. */
struct hpx_unsettled {
	struct hpx_unsettled *next;
	struct hpx_record record; /* of the operation, also for a job */
	struct hpx_description description;
	struct hpx_delivery delivery; /* number 0: the operation itself */
	struct hpx_span job_name;
	struct hpx_span target;
	struct hpx_reconcile reconcile;
	enum hpx_ruling evidence; /* said before it was unknown; UNCLEAR: nothing */
	bool scheduled;           /* false: nobody has looked at it yet */
	char bytes[];
};
/* Made by drivers: a copy with its own strings; NULL when out of memory. */
struct hpx_unsettled *hpx_unsettled_new(const struct hpx_unsettled *from);
void hpx_unsettled_free(struct hpx_unsettled *list);

/* A question that is due: about an operation, or about a job of it. */
struct hpx_due {
	struct hpx_operation_id id;
	struct hpx_mark mark; /* of the reference; for people */
	int64_t number;       /* the job's; 0: the operation itself */
	bool evidence;        /* something was said before it was unknown */
	int64_t at_ms;        /* since when; wall */
	int64_t lease_ms;     /* CLAIM_UNKNOWN: nobody else gets it for so long */
};

/* Whom questions wait for: a route's pattern, or HPX_LANE_TARGET and the name of
 * a target. */
#define HPX_LANE_TARGET "target:"
struct hpx_lane_due {
	struct hpx_span name;
	int64_t at_ms; /* its first question; wall */
};

/* LANE: what the configuration says of a lane, for those who have none. */
struct hpx_lane_settings {
	struct hpx_span upstream; /* the name that scopes begin with; empty: everybody's */
	struct hpx_span name;
	int64_t settle_after_ms; /* 0: not given */
	int64_t confirm_after_ms;
	bool matched_by_key; /* its reservations bring a route_key from now on */
};
/* Requests that are under way, and gateways that are being restarted one after the other,
 * may still reserve without a route_key: so long they are looked for. */
#define HPX_KEYED_LATER_MS ((int64_t)10 * 60 * 1000)

/* RESERVE, of a route that is matched by the client's key: what finds the operation by that
 * key alone, over all tenants. The hash is hpx_route_key_hash's. */
#define HPX_ROUTE_KEY_HASH_SIZE 16
#define HPX_ROUTE_KEY_AMOUNT_MAX 64
struct hpx_route_key {
	uint8_t hash[HPX_ROUTE_KEY_HASH_SIZE];
	struct hpx_span amount; /* as the request has it; empty: none */
};
enum hpx_status hpx_route_key_hash(struct hpx_span upstream, struct hpx_span route,
				   struct hpx_span key, uint8_t ret_hash[static HPX_ROUTE_KEY_HASH_SIZE]);

/* What became of something that was said about an outcome. X(name, text) — the text is
 * what hapax.settle gives. */
#define HPX_SETTLEMENT_LIST(X) \
	X(IGNORED, "ignored") /* nothing is open that it could settle */ \
	X(SETTLED, "settled") \
	X(KEPT, "kept")           /* as evidence, or as the first of two */ \
	X(TOO_EARLY, "too_early") /* "not applied" about a moment that does not count */

enum hpx_settlement {
#define X(name, text) HPX_SETTLEMENT_##name,
	HPX_SETTLEMENT_LIST(X)
#undef X
		HPX_SETTLEMENT_COUNT
};
const char *hpx_settlement_name(enum hpx_settlement settlement);

/* RULE: what somebody says of an operation, or of a job of it. */
struct hpx_ruling_update {
	int64_t number; /* the job's; 0: the operation itself */
	struct hpx_received_ruling received;
	struct hpx_reconcile_rule rule;
	/* The rule is the store's, of the lane (LANE): the submitter has no configuration.
	 * The operation itself is meant, and the moment is now. HPX_UNSUPPORTED: "not
	 * applied", and the lane's settle_after is not known. */
	bool stored_rule;
	uint64_t random;                 /* for the jitter */
	const struct hpx_answer *answer; /* APPLIED, DECLINED: what retries get; NULL:
					       * that it happened (the status that was seen), or was declined (402) */
	/* Out. */
	enum hpx_reconcile_move move; /* STAY also where it was only kept as evidence */
	enum hpx_settlement settlement;
};

/* What an application saves with a recovery point. */
#define HPX_POINT_DATA_MAX ((size_t)1 << 20)

/* No expiry is later: the year 2286. Sums of times stay far from the end of their range. */
#define HPX_EXPIRES_MAX_MS INT64_C(10000000000000)

/* What holds of a verb, whichever driver runs it. */
enum hpx_trait {
	/* The submitter waits for the answer and can ask again: while the store is
	 * down, the op is refused. Every other op carries something that must not
	 * be lost, and is tried again. */
	HPX_TRAIT_ASKS = 1 << 0,
	/* May end an attempt: requests that wait for the operation are woken. */
	HPX_TRAIT_WAKES = 1 << 1,
	/* A person removes a record, settles it anew or changes its time: the op names
	 * the record's reference (`mark`), and every cache must drop the operation. */
	HPX_TRAIT_REMOVES = 1 << 2,
	/* Of jobs and rulings: HPX_UNSUPPORTED where a driver keeps no outbox. */
	HPX_TRAIT_OUTBOX = 1 << 3,
};

/* X(name, traits): one write each; the sweeps and reaps a bounded number. */
#define HPX_VERB_LIST(X) \
	/* Decide; write what the decision says. */ \
	X(RESERVE, HPX_TRAIT_ASKS | HPX_TRAIT_WAKES) \
	/* The answer, or the mark "happened, not kept". */ \
	X(COMPLETE, HPX_TRAIT_WAKES) \
	/* Proved not executed. */ \
	X(FAIL, HPX_TRAIT_WAKES) \
	/* The same; a first attempt leaves no record. */ \
	X(RELEASE, HPX_TRAIT_WAKES) \
	/* The outcome is unknown. */ \
	X(MARK_UNKNOWN, HPX_TRAIT_WAKES) \
	/* The lease goes on. */ \
	X(RENEW, 0) \
	/* Only the application could complete: it has, or never will. */ \
	X(CONCLUDE, HPX_TRAIT_WAKES) \
	/* A phase is done: `point`, and the `data` the next one needs. */ \
	X(ADVANCE, 0) \
	/* `job` is owed; the same again is no second one. */ \
	X(ENQUEUE, 0) \
	/* The provider's own id of what the attempt does. */ \
	X(PROVIDER_ID, 0) \
	/* Only reads: the recovery point of the attempt's lease, and its data. */ \
	X(READ_POINT, HPX_TRAIT_ASKS) \
	/* A person settles an unknown outcome: apply or unapply. */ \
	X(RESOLVE, HPX_TRAIT_WAKES | HPX_TRAIT_REMOVES) \
	/* A person removes a record. */ \
	X(FORGET, HPX_TRAIT_WAKES | HPX_TRAIT_REMOVES) \
	/* A person lets a record expire later. */ \
	X(EXTEND, HPX_TRAIT_REMOVES) \
	/* A person says that an operation happened which this store, an older copy, does \
	 * not know: a completed record without an answer. REFUSED where the key has a live \
	 * record; the same again changes nothing. */ \
	X(RESTORE, 0) \
	/* Another request came with the operation's key: an event, once for each reference. \
	 * The record stays as it is. */ \
	X(NOTE_MISUSE, 0) \
	/* Up to `limit` lost leases become what on_lost says. */ \
	X(SWEEP, HPX_TRAIT_WAKES) \
	/* Up to `limit` expired records are deleted; finished jobs too. */ \
	X(REAP, 0) \
	/* Due jobs begin to be sent. */ \
	X(CLAIM, HPX_TRAIT_OUTBOX) \
	/* One job moves, and its operation with it. */ \
	X(JOB, HPX_TRAIT_WAKES | HPX_TRAIT_OUTBOX) \
	/* Up to `limit` lost claims of jobs. */ \
	X(SWEEP_JOBS, HPX_TRAIT_WAKES | HPX_TRAIT_OUTBOX) \
	/* Takes those of `due` that are still unknown: nobody else gets them for their lease_ms. */ \
	X(CLAIM_UNKNOWN, HPX_TRAIT_OUTBOX) \
	/* Somebody says what became of an unknown outcome. */ \
	X(RULE, HPX_TRAIT_WAKES | HPX_TRAIT_OUTBOX) \
	/* Nobody can be asked about those of `due`: they are a person's. */ \
	X(ESCALATE, HPX_TRAIT_OUTBOX) \
	/* What the configuration says of a lane is made known. */ \
	X(LANE, HPX_TRAIT_OUTBOX) \
	/* Only reads: the record (one that is unreadable counts as unknown). */ \
	X(FIND, HPX_TRAIT_ASKS) \
	/* A recipe's text is made known (no-op if it is). */ \
	X(RECIPE, 0) \
	/* A person accepts the clock as it is now. */ \
	X(ACCEPT_CLOCK, 0)

enum hpx_verb {
#define X(name, traits) HPX_VERB_##name,
	HPX_VERB_LIST(X)
#undef X
		HPX_VERB_COUNT
};
/* The events that verbs with HPX_TRAIT_REMOVES leave, as SQL: how drivers find
 * what caches must drop. */
#define HPX_SQL_REMOVAL_EVENTS \
	"'forgotten', 'resolved_applied', 'resolved_not_applied', 'extended'"
/* As log lines have it. */
const char *hpx_verb_name(enum hpx_verb verb);
bool hpx_verb_has(enum hpx_verb verb, enum hpx_trait trait);

/* What a sweep changed. */
struct hpx_touched {
	struct hpx_operation_id id;
	enum hpx_state state; /* SWEEP: what the operation is now */
};

/* The arguments and results of the verbs that share theirs. */
struct hpx_op_end {
	uint32_t status_seen;      /* the upstream's HTTP status, or 0 */
	enum hpx_last_error error; /* NONE: by the status, or by the verb */
};
struct hpx_op_sweep {
	unsigned limit;
	/* Room for `limit` from the submitter, or NULL; out: `count` are filled. */
	struct hpx_touched *touched;
	unsigned count; /* out: how many were lost */
	bool more;      /* out: there may be more, however many were lost */
};
struct hpx_op_due {
	const struct hpx_due *due;
	size_t due_count;
	struct hpx_unsettled *unsettled; /* out, CLAIM_UNKNOWN: the receiver frees them */
	unsigned count;                  /* out */
};

/* One op of a batch: a verb with that verb's own arguments and results.
 *
 * The submitter fills the verb, the arguments and `done`, and keeps everything
 * they point to alive and untouched until the op is done. The store clears the
 * results before each run and the driver fills them; they count when `status` is
 * HPX_OK, and pointers among them are the submitter's to free. Which member of the
 * union is meant, the verb says: code that is reached by several verbs switches on
 * the verb, code of one verb asserts it. */
struct hpx_store_op {
	enum hpx_verb verb;
	/* Out. BUSY: not now, somebody else holds the row. */
	enum hpx_status status;
	/* In, where one operation is meant; RESERVE has its own in `ask`. */
	struct hpx_operation_id id;
	/* In. Of the attempt; JOB: of the claim; CLAIM: of what it takes, made anew for
	 * each CLAIM, so that one that is run again finds what it took (void: it does not). */
	struct hpx_token token;
	struct hpx_mark mark;   /* in; RESOLVE, FORGET, EXTEND, RESTORE, NOTE_MISUSE, RULE: the reference's */
	struct hpx_span actor;  /* in, for the event: "gateway", "sweeper", a person's name */
	struct hpx_span reason; /* in, for the event */
	/* Out: RESERVE's decision; after every other move, and FIND, only the record. */
	struct hpx_decision decision;
	int64_t judged_ms; /* out, about one operation: when, by the store's wall clock */
	union {
		struct {
			const struct hpx_ask *ask;
			const struct hpx_policy *policy;
			const struct hpx_description *description; /* or NULL */
			const struct hpx_job *job;                 /* deliver: async: the delivery; else NULL */
			const struct hpx_route_key *route_key;     /* of a route matched by key; else NULL */
			bool look;                                 /* begins no attempt; NOT_FOUND where it would */
			/* Out. */
			int64_t row;               /* where the driver keeps the record, for COMPLETE; or 0 */
			struct hpx_answer *replay; /* REPLAY: NULL where nothing is kept */
		} reserve;
		struct {
			const struct hpx_answer *answer;
			/* The record as its RESERVE gave it, so that a driver need not look
			 * where it still is that; or NULL. With it, `row` of that RESERVE. */
			const struct hpx_record *believed;
			int64_t row;
			int64_t retention_ms; /* at least so long; 0: the record's own */
			bool already;         /* out: it was completed before */
		} complete;
		struct hpx_op_end fail, release, mark_unknown;
		struct {
			int64_t lease_ms;
		} renew;
		struct {
			struct hpx_op_end end;
			bool already; /* out: it was completed before */
		} conclude;
		struct {
			struct hpx_span point;
			struct hpx_span data;
		} advance;
		struct {
			const struct hpx_job *job; /* CONFLICT: another job has its name */
		} enqueue;
		struct {
			struct hpx_span text; /* hpx_provider_id_valid */
		} provider_id;
		struct {
			struct hpx_buffer data; /* out; the point is the record's */
		} read_point;
		struct {
			bool applied;
			bool force;                      /* also a row that cannot be read */
			const struct hpx_answer *answer; /* applied: what retries get; or NULL */
		} resolve;
		struct {
			bool force;
		} forget;
		struct {
			int64_t until_ms; /* wall; nothing changes where it expires later anyway */
		} extend;
		struct {
			uint32_t status_seen; /* that the provider's export tells of; 0: none */
			int64_t retention_ms;
			int64_t tombstone_ms;
		} restore;
		struct hpx_op_sweep sweep, sweep_jobs;
		struct {
			unsigned limit;
			unsigned count; /* out */
			bool more;      /* out: there may be more, however many it took */
		} reap;
		struct {
			const struct hpx_claim *claims;
			size_t claim_count;
			struct hpx_job_entry *jobs; /* out */
			unsigned count;             /* out: how many jobs moved */
		} claim;
		struct {
			const struct hpx_job_update *update;
			/* Out: the job, without headers and body; NULL where its row could not be
			 * read, and was removed. */
			struct hpx_job_entry *after;
		} job;
		struct hpx_op_due claim_unknown, escalate;
		struct {
			struct hpx_ruling_update *update;
		} rule;
		struct {
			struct hpx_recipe_id id;
			struct hpx_span text;
		} recipe;
		struct {
			const struct hpx_lane_settings *settings;
		} lane;
	};
	/* The committer's, but `done` and `user`, which are the submitter's. */
	struct hpx_store_op *next;
	void (*done)(struct hpx_store_op *op); /* called once, on the committer's thread */
	void *user;
	unsigned tries;
	int64_t due_ms; /* boot clock: when it is tried again */
};

/* An operation as people see it; strings from the arena. */
struct hpx_entry {
	struct hpx_record record;
	struct hpx_description description;
	bool readable; /* false: the row cannot be read; it counts as unknown */
};

struct hpx_event {
	int64_t at_ms;
	uint32_t attempt;
	struct hpx_span what; /* a move's name */
	struct hpx_span actor;
	struct hpx_span reason;
	uint32_t status;
};

/* How far a walk over all operations has come; the driver's. Zeroes: not begun. */
struct hpx_walk {
	int64_t part;
	int64_t number;
	uint8_t id[HPX_OPERATION_ID_SIZE];
	bool ended; /* out: there is nothing behind it */
};

/* Which operations. Without `walk` a list is for people: those that changed last first,
 * among the newest, of which a bounded number is looked at. With it a list misses none:
 * they come in the store's own order, about `limit` at a time, and `*walk` moves on. */
struct hpx_query {
	enum hpx_state state;      /* HPX_STATE_COUNT: any */
	struct hpx_span key;       /* ptr NULL: any; over all tenants, stored as it is or as its hash */
	struct hpx_span tenant;    /* ptr NULL: any */
	struct hpx_span route;     /* the pattern; ptr NULL: any */
	enum hpx_last_error error; /* HPX_LAST_ERROR_NONE: any, or none */
	int64_t since_ms;          /* begun at this time or later; 0: any */
	unsigned limit;
	struct hpx_walk *walk;    /* NULL: the newest */
	struct hpx_span key_hash; /* for drivers, where there is a key: what key_storage: hash stores */
};

/* How far a list looked. */
struct hpx_looked {
	uint64_t operations; /* at so many, about */
	bool all;            /* whatever matches is in the list */
	int64_t back_to_ms;  /* not all: what is newer than this was looked at; wall, 0 unknown */
};

/* What is left of a finished operation, for people: the operation itself while it is
 * there, else what the reaper left behind. Strings from the arena. */
struct hpx_history_entry {
	struct hpx_operation_id id;
	struct hpx_mark mark;
	enum hpx_state state; /* COMPLETED or FAILED_RETRYABLE */
	uint32_t attempt;
	uint32_t status; /* 0: nobody saw one */
	int64_t created_ms;
	int64_t changed_ms;                 /* when it ended */
	int64_t expires_ms;                 /* 0: it is reaped */
	struct hpx_description description; /* of a reaped one without its scope */
};

/* Which; newest first, by when the operation began. */
struct hpx_history_query {
	int64_t since_ms;       /* at or after; wall */
	int64_t until_ms;       /* before */
	struct hpx_span tenant; /* ptr NULL: any; the tenant's name */
	struct hpx_span key;    /* ptr NULL: any */
	/* The same key as key_storage: hash keeps it, wanted too; ptr NULL: is not. */
	struct hpx_span key_hashed;
	enum hpx_state state; /* HPX_STATE_NONE: any */
	uint32_t status_min;
	uint32_t status_max; /* 0: any status */
	size_t limit;
	size_t look_max; /* of the operations that are there, and of those that were reaped */
};

struct hpx_history {
	struct hpx_history_entry *entries;
	size_t count;
	size_t looked;        /* entries and rows that were looked at */
	bool more;            /* there are more than `limit` */
	bool cut;             /* of operations that are there, look_max was reached: some may be missing */
	bool cut_reaped;      /* of reaped ones, look_max was reached: what began before */
	int64_t reached_ms;   /* this was not looked at; wall */
	int64_t retention_ms; /* how long entries stay; 0: none is written */
};

/* Which jobs; newest first. */
struct hpx_job_query {
	enum hpx_job_state state;                 /* HPX_JOB_STATE_COUNT: any */
	struct hpx_span target;                   /* ptr NULL: any */
	const struct hpx_operation_id *operation; /* NULL: any */
	struct hpx_span provider_id;              /* ptr NULL: any */
	int64_t number;                           /* 0: any */
	int64_t before;                           /* numbers below this; 0: any */
	unsigned limit;
};

/* Which operation is meant. */
struct hpx_reference {
	struct hpx_operation_id id;
	struct hpx_mark mark;
};

/* Which operations of a route have a key. */
struct hpx_key_query {
	struct hpx_span upstream;
	struct hpx_span route; /* the pattern */
	uint8_t hash[HPX_ROUTE_KEY_HASH_SIZE];
	int64_t retention_ms; /* the route's: before it is over, a large store is not searched */
};
struct hpx_key_match {
	struct hpx_reference reference;
	char amount[HPX_ROUTE_KEY_AMOUNT_MAX + 1];
};
struct hpx_key_matches {
	struct hpx_key_match of[2]; /* two are as good as many */
	size_t count;
	/* Operations of the route may live that were reserved before it was matched by key:
	 * the only match need not be the only operation. */
	bool hidden;
};

/* When an unknown is asked about next; wall. */
struct hpx_next_question {
	int64_t at_ms; /* 0: nobody has looked at it yet */
	bool person;   /* nobody is asked any more */
};

struct hpx_store_stats {
	uint64_t operations[HPX_STATE_COUNT];
	uint64_t jobs[HPX_JOB_STATE_COUNT];
	int64_t oldest_queued_ms;  /* wall: when the job that waits longest was due; 0: none */
	uint64_t dead_operations;  /* unknown, and nobody is asked any more */
	uint64_t dead_jobs;        /* dead, or unknown and nobody is asked any more */
	int64_t oldest_unknown_ms; /* wall time of the move; 0: none */
	uint64_t free_bytes;       /* of the file system; UINT64_MAX: not known */
	/* Changes of operations that the store wrote beside the old version, and those that
	 * went elsewhere and cost an index entry; 0 where there is no such difference. */
	uint64_t updates_hot;
	uint64_t updates_moved;
};

/* What a store has left to write into, as it was looked at last. Pages that are
 * free inside the file count as space: they are written again before the file
 * grows, and never given back. But every page goes through the log first, and the
 * log is of the disk: a quarter of what is wanted must be free there, however many
 * pages are free inside. While little of the disk is free the log is cut five
 * times a second, so that quarter is what may be written in between. */
#define HPX_SPACE_LOG_SHARE 4
enum hpx_space {
	HPX_SPACE_ENOUGH,
	HPX_SPACE_LOW,     /* disk and file together have less than wanted */
	HPX_SPACE_LOG_LOW, /* the disk alone has too little for the log */
};
struct hpx_store_space {
	_Atomic uint64_t wanted_bytes; /* 0: nobody looks */
	_Atomic uint64_t disk_bytes;   /* free on the file system, and not owed by the log to
					    * the file */
	_Atomic uint64_t file_bytes;   /* free inside the file */
	_Atomic uint64_t log_bytes;    /* the size of the log's file */
	_Atomic int state;             /* enum hpx_space */
};
enum hpx_space hpx_space_judge(uint64_t disk_bytes, uint64_t file_bytes, uint64_t wanted_bytes);

/* Operations whose record a person removed, or settled anew. */
#define HPX_REMOVALS_MAX 1024
struct hpx_removals {
	bool all; /* any may be removed: which ones is not known */
	size_t count;
	struct hpx_operation_id ids[HPX_REMOVALS_MAX];
};

/* Further apart than this, and the wall clock was set. */
#define HPX_CLOCK_PARTED_MS 60000

/* What stores of a driver have in common, for those who must not know drivers by
 * name. The table of drivers in store.c says which driver has which. */
enum hpx_capability {
	/* Outlives the process, and other processes can open it. */
	HPX_STORE_PERSISTS = 1 << 0,
	/* Any number of processes serve it at a time, for several services: each
	 * service says its name. Without it, one process serves the store, and
	 * nobody else ends that process's attempts. */
	HPX_STORE_SHARED = 1 << 1,
	/* A file: the path stands behind the URL's scheme. */
	HPX_STORE_FILE = 1 << 2,
	/* Keeps jobs and asks about unknown outcomes: the verbs of HPX_TRAIT_OUTBOX. */
	HPX_STORE_OUTBOX = 1 << 3,
	/* A reader can decide without waiting for a network (peek), and the store goes
	 * by this machine's clocks. */
	HPX_STORE_LOCAL = 1 << 4,
	/* Tells what people removed, so that answers may be cached. */
	HPX_STORE_TELLS_REMOVALS = 1 << 5,
	/* Has a schema that can be brought up to date: hpx_store_migrate. */
	HPX_STORE_SCHEMA = 1 << 6,
};

/* The URL of a store in a file, before the path; and the one used where none is
 * given. */
#define HPX_STORE_FILE_URL "sqlite:"
#define HPX_STORE_DEFAULT_URL HPX_STORE_FILE_URL "hapax.db"

/* Of the driver that the URL names; false for one that no driver reads. */
bool hpx_store_url_can(struct hpx_span url, enum hpx_capability capability);
/* Whether the URL has the form that its driver needs; the driver reads the rest. */
bool hpx_store_url_valid(struct hpx_span url);
/* HPX_STORE_FILE: the path as it was given; else an empty span. */
struct hpx_span hpx_store_url_path(struct hpx_span url);

/* Whose connection an application lends: the type of its client library. */
enum hpx_lent_connection {
	HPX_LENT_NONE,
	HPX_LENT_SQLITE3, /* sqlite3 * */
	HPX_LENT_PGCONN,  /* PGconn * */
};

struct hpx_store_options {
	struct hpx_span url;        /* as hpx_store_url_valid() says */
	bool create;                /* false: an absent file is an error */
	bool serve;                 /* take the server's lock, own leases, sweep dead owners' */
	bool install;               /* make the tables, or bring them up to date, beside whatever else
					   * is there; a server does so only in what is hapax's already, or new */
	uint64_t free_bytes_min;    /* below (enum hpx_space): RESERVE is refused with HPX_FULL */
	int64_t event_retention_ms; /* 0: events stay for ever */
	int64_t job_retention_ms;   /* of jobs that are done or discarded; 0: for ever */
	/* serve: how long the store keeps what is left of finished operations, from when they
	 * began; 0: nothing is left. Told to the store, which holds it for whoever reaps. */
	int64_t history_retention_ms;
	/* serve: whom it is for. Where one process has the store, another address than
	 * before is told; where services may share it, `lanes` and `due` give what is of
	 * this name (no space in it; scopes begin with it) and what is everybody's:
	 * jobs, and what applications began. Empty: nobody in particular. */
	struct hpx_span upstream_name;
	struct hpx_span upstream_url;
	/* serve: what a dead owner left, each once its loss is durable: a lease
	 * (HPX_VERB_SWEEP) or the claim of a job (HPX_VERB_SWEEP_JOBS). May be NULL. */
	void (*lost)(void *user, enum hpx_verb verb, const struct hpx_touched *touched);
	void *lost_user;
};

#define HPX_STORE_UPSTREAM_SIZE 336

/* The slots. Every function that can fail returns a status; a driver never
 * logs: `problem` (at least HPX_STORE_PROBLEM_SIZE) gets a sentence for people
 * where something is wrong. */
#define HPX_STORE_PROBLEM_SIZE 512

struct hpx_store_migration {
	unsigned from; /* the schema's number before; 0: there was none */
	unsigned to;
	char description[PATH_MAX + 16]; /* of the store, for people; no password */
};

/* What was found to be damaged in a store; `tell` gets a line for people each. */
struct hpx_store_repair {
	void (*tell)(void *user, const char *line);
	void *user;
	unsigned damaged; /* out: tables */
	unsigned mended;  /* out: of these, without a loss */
};

struct hpx_store_driver {
	/* Opens, migrates (serve) or checks the schema's version, recovers:
	 * with `serve`, what a dead owner left is lost at once (where there can
	 * be only one; among many, only a lease tells who is dead). */
	enum hpx_status (*open)(const struct hpx_store_options *options,
				struct hpx_store **ret_store, char *problem);
	void (*close)(struct hpx_store *store);

	/* NULL without HPX_STORE_SCHEMA: the number of the schema that this program needs. */
	unsigned (*schema)(void);

	/* NULL without HPX_STORE_SCHEMA. Brings the schema to the one this program
	 * needs, and creates the store where options->create says so. HPX_BUSY where
	 * only one process may serve the store and one does. */
	enum hpx_status (*migrate)(const struct hpx_store_options *options,
				   struct hpx_store_migration *ret_migration, char *problem);

	/* NULL where a server looks after its own files. Looks at everything; with `accept`,
	 * under the server's lock, mends what can be mended and notes that a person accepts
	 * the rest: new keys are taken again. */
	enum hpx_status (*repair)(const struct hpx_store_options *options, bool accept,
				  struct hpx_store_repair *ret_repair, char *problem);

	/* NULL where applications lend no connection. A store on a connection that
	 * stays the application's: run() takes one op and is part of whatever
	 * transaction is open there; only run and close; one thread at a time. And the
	 * tables made beside whatever else is there, or brought up to date. */
	enum hpx_status (*borrow)(void *connection, struct hpx_store **ret_store, char *problem);
	enum hpx_status (*install)(void *connection, char *problem);

	/* Runs the ops in order, in one transaction, and fills each op's out
	 * part. HPX_OK: all of them are durable (each op's own status may still
	 * say STALE, REFUSED …). Otherwise nothing is known of any of them: the
	 * caller runs each again alone; tokens tell what did commit. An op whose
	 * own status is BUSY did nothing and is to be run again later. An op that
	 * wrote nothing and rests on no row written in this batch may be let go
	 * before the commit, by hpx_store_release(store, &ops[i]): a replay
	 * does not wait for anybody's fsync. */
	enum hpx_status (*run)(struct hpx_store *store, struct hpx_store_op **ops, size_t count,
			       char *problem);

	/* After a failed run: makes the store usable again if it can be (opens
	 * it anew, and a checkpoint must succeed). */
	enum hpx_status (*recover)(struct hpx_store *store, char *problem);

	/* NULL where transactions come one after the other whoever begins them. A second
	 * writer of the same store: its run() and recover() may be called by another thread
	 * beside the first one's, for operations that the first has not under way. It has
	 * no readers. HPX_UNSUPPORTED where two batches at once would not pay here. After
	 * recover(), a writer doubts what it reads until a commit of its own has proved it. */
	enum hpx_status (*second)(struct hpx_store *store, struct hpx_store **ret_second,
				  char *problem);

	/* Whatever keeps writes cheap (checkpoints); called from a thread of
	 * its own, beside run(). Never stalls run(). */
	enum hpx_status (*maintain)(struct hpx_store *store, char *problem);

	/* Readers see what is durable, without waiting for a write. */
	enum hpx_status (*reader_open)(struct hpx_store *store, struct hpx_store_reader **ret_reader);
	void (*reader_close)(struct hpx_store_reader *reader);
	/* NULL without HPX_STORE_LOCAL: then a RESERVE tells everything. The
	 * decision a RESERVE would make, where it needs no write and no
	 * lease: HPX_OK with REPLAY, IN_PROGRESS, UNKNOWN, MISMATCH or
	 * REFINGERPRINT in `*ret_decision` (and the answer of a REPLAY, NULL
	 * where nothing of it is kept);
	 * HPX_NOT_FOUND: only a RESERVE can tell. */
	enum hpx_status (*peek)(struct hpx_store_reader *reader, const struct hpx_ask *ask,
				const struct hpx_policy *policy, struct hpx_decision *ret_decision,
				struct hpx_answer **ret_replay);
	/* One operation by id, with its stored answer if asked for. */
	enum hpx_status (*find)(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
				struct hpx_arena *arena, struct hpx_entry *ret_entry,
				struct hpx_answer **ret_answer);
	enum hpx_status (*list)(struct hpx_store_reader *reader, const struct hpx_query *query,
				struct hpx_arena *arena, struct hpx_entry **ret_entries,
				size_t *ret_count, struct hpx_looked *ret_looked);
	enum hpx_status (*events)(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
				  struct hpx_arena *arena, struct hpx_event **ret_events,
				  size_t *ret_count);
	enum hpx_status (*recipe)(struct hpx_store_reader *reader, const struct hpx_recipe_id *id,
				  struct hpx_arena *arena, struct hpx_span *ret_text);
	enum hpx_status (*stats)(struct hpx_store_reader *reader, struct hpx_store_stats *ret_stats);
	/* NULL without HPX_STORE_PERSISTS. Each finished operation once, whether it is there
	 * or was reaped. */
	enum hpx_status (*history)(struct hpx_store_reader *reader,
				   const struct hpx_history_query *query, struct hpx_arena *arena,
				   struct hpx_history *ret_history);
	/* NULL without HPX_STORE_OUTBOX, like question, lanes and due. */
	enum hpx_status (*jobs)(struct hpx_store_reader *reader, const struct hpx_job_query *query,
				struct hpx_job_entry **ret_jobs);
	/* NULL without HPX_STORE_OUTBOX. Operations that PROVIDER_ID gave this id, at most
	 * `max`. */
	enum hpx_status (*provided)(struct hpx_store_reader *reader, struct hpx_span provider_id,
				    struct hpx_reference *references, size_t max,
				    size_t *ret_count);
	/* NULL without HPX_STORE_OUTBOX. Operations with this route_key, and since when the
	 * route's reservations bring one (0: they do not); and whether an operation of the
	 * route that began before `since_ms` has none. */
	enum hpx_status (*keyed)(struct hpx_store_reader *reader, const struct hpx_key_query *query,
				 struct hpx_key_matches *ret_matches, int64_t *ret_since_ms);
	enum hpx_status (*unkeyed)(struct hpx_store_reader *reader, const struct hpx_key_query *query,
				   int64_t since_ms, bool *ret_any);
	enum hpx_status (*question)(struct hpx_store_reader *reader,
				    const struct hpx_operation_id *id,
				    struct hpx_next_question *ret_question);
	/* Lanes that have a question, each with its first one, and the questions
	 * of a lane that are due, longest first: found by an index, however many
	 * there are. Only an CLAIM_UNKNOWN takes them. What was due before `from_ms`
	 * is left out, so that whoever takes many need not pass by what it took. */
	enum hpx_status (*lanes)(struct hpx_store_reader *reader, struct hpx_arena *arena,
				 struct hpx_lane_due **ret_lanes, size_t *ret_count);
	enum hpx_status (*due)(struct hpx_store_reader *reader, struct hpx_span lane,
			       int64_t from_ms, struct hpx_due *due, size_t max,
			       size_t *ret_count);
	/* NULL without HPX_STORE_SHARED. Which of
	 * these operations are neither in progress nor pending (any more), whoever ended them;
	 * `ret_ended` has room for `count`. */
	enum hpx_status (*watch)(struct hpx_store_reader *reader,
				 const struct hpx_operation_id *ids, size_t count,
				 bool *ret_ended);
	/* NULL without HPX_STORE_TELLS_REMOVALS. What people removed or settled (FORGET,
	 * RESOLVE), in whichever process, since this reader was asked last; it
	 * must be asked again within a minute. `all`: the first time, and where
	 * there are too many, or the history does not reach back. Each removal is
	 * reported by the first query that begins after its commit. What jobs and
	 * rulings end (JOB, RULE, REAP) was not completed before: it is not reported. */
	enum hpx_status (*removals)(struct hpx_store_reader *reader,
				    struct hpx_removals *ret_removals);
};

/* Where a test may let a call fail: before it ran, or after ("an error was
 * reported although it was committed"). */
enum hpx_store_point {
	HPX_STORE_RUN_BEFORE,
	HPX_STORE_RUN_AFTER,
	HPX_STORE_RECOVER_BEFORE,
	HPX_STORE_RECOVER_AFTER,
	HPX_STORE_PEEK_BEFORE,
};

/* Every driver's store begins with this. */
struct hpx_store {
	const struct hpx_store_driver *driver;
	unsigned capabilities;    /* enum hpx_capability; none on a borrowed connection */
	struct hpx_store *second; /* the second writer; closed with this store. NULL: none */
	struct hpx_store *first;  /* of a second writer: what is counted is counted there */
	/* The committer's: an op is settled before its batch is committed. */
	void (*released)(void *user, struct hpx_store_op *op);
	void *released_user;
	uint64_t owner;                  /* this process, random, made at open */
	char description[PATH_MAX + 16]; /* for the log: "sqlite:/the/absolute/path"; no password */
	char warning[256];               /* for the log, once: what an operator should know; "" */
	/* For the log, once, where this store remembers whom it was served for:
	 * under the same name, the other URL of before; or, where that name is
	 * new to it, the name of before. "": nothing is different. */
	char upstream_url_before[HPX_STORE_UPSTREAM_SIZE];
	char upstream_name_before[HPX_STORE_UPSTREAM_SIZE];
	/* Tests only, set before threads start (the shifts at any time): what
	 * a call shall return instead of its own result (HPX_OK: its own), and
	 * how far the clocks are off. */
	enum hpx_status (*fault)(void *user, enum hpx_store_point point);
	void *fault_user;
	_Atomic int64_t wall_shift_ms;
	_Atomic int64_t lease_shift_ms;
	_Atomic bool expiry_held; /* wall and boot clock have parted */
	/* How far the wall clock was ahead of the lease clock when it was last
	 * believed (0: not compared). Looked at with every moment: a clock that
	 * was just set must not expire anything before the next thorough look. */
	_Atomic int64_t ahead_ms;
	_Atomic bool space_low;       /* not HPX_SPACE_ENOUGH: RESERVE begins nothing */
	struct hpx_store_space space; /* what that rests on */
	/* Counts what people remove (FORGET, RESOLVE), in whichever process, when
	 * it is committed and before they are told. While it stands, nothing was
	 * removed that the last query for removals did not report. NULL: nobody
	 * counts, and such news is as old as that query. */
	const _Atomic uint64_t *removal_count;
	struct hpx_counter errors;       /* failed runs */
	struct hpx_counter lost_at_open; /* leases of dead owners, found when opening to serve */
	struct hpx_histogram commit_us;
	struct hpx_histogram batch_ops;
};
/* A route of which every operation has its route_key; so it stays. */
#define HPX_KEYED_ROUTES_MAX 16
struct hpx_keyed_route {
	uint8_t hash[HPX_ROUTE_KEY_HASH_SIZE];
	int64_t since_ms;
};
struct hpx_store_reader {
	struct hpx_store *store;
	struct hpx_keyed_route keyed[HPX_KEYED_ROUTES_MAX];
	unsigned keyed_count; /* ever noted; the oldest makes room */
};

/* For drivers: the common part made ready, and the moment at which an op is
 * judged. HAPAX_TEST_WALL_SHIFT_MS (test builds only) shifts the wall clock
 * of a whole process. */
void hpx_store_init(struct hpx_store *store, const struct hpx_store_driver *driver);
struct hpx_moment hpx_store_moment(struct hpx_store *store);
/* Writes the sentence for people; cut to its size. */
void hpx_store_problem(char *problem, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Picks the driver by the URL's scheme. `problem` may be NULL in all of these. */
enum hpx_status hpx_store_open(const struct hpx_store_options *options,
			       struct hpx_store **ret_store, char *problem);
void hpx_store_close(struct hpx_store *store);
/* Opens the second writer where it pays, before a committer is started; without one the
 * first does everything. */
void hpx_store_open_second(struct hpx_store *store);
static inline bool hpx_store_can(const struct hpx_store *store, enum hpx_capability capability)
{
	return (store->capabilities & capability) != 0;
}
/* Every driver that has a schema, by its scheme, and the schema's number. */
void hpx_store_each_schema(void (*tell)(void *user, const char *scheme, unsigned number),
			   void *user);
/* HPX_UNSUPPORTED where the store has no schema. */
enum hpx_status hpx_store_migrate(const struct hpx_store_options *options,
				  struct hpx_store_migration *ret_migration, char *problem);
/* HPX_UNSUPPORTED where the store is not a file. */
enum hpx_status hpx_store_repair(const struct hpx_store_options *options, bool accept,
				 struct hpx_store_repair *ret_repair, char *problem);
/* For libhapax: hpx_store_driver's borrow and install. */
enum hpx_status hpx_store_borrow(enum hpx_lent_connection kind, void *connection,
				 struct hpx_store **ret_store, char *problem);
enum hpx_status hpx_store_install(enum hpx_lent_connection kind, void *connection, char *problem);
enum hpx_status hpx_store_run(struct hpx_store *store, struct hpx_store_op **ops, size_t count,
			      char *problem);
/* Frees an op's results and clears them. */
void hpx_store_op_drop(struct hpx_store_op *op);
/* For drivers, inside run(): settles the op and takes it out of the batch
 * (`*op` becomes NULL). Does nothing where nobody listens. */
void hpx_store_release(struct hpx_store *store, struct hpx_store_op **op);
enum hpx_status hpx_store_recover(struct hpx_store *store, char *problem);
enum hpx_status hpx_store_maintain(struct hpx_store *store, char *problem);
enum hpx_status hpx_store_reader_open(struct hpx_store *store, struct hpx_store_reader **ret_reader);
void hpx_store_reader_close(struct hpx_store_reader *reader);
enum hpx_status hpx_store_peek(struct hpx_store_reader *reader, const struct hpx_ask *ask,
			       const struct hpx_policy *policy, struct hpx_decision *ret_decision,
			       struct hpx_answer **ret_replay);
enum hpx_status hpx_store_find(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
			       struct hpx_arena *arena, struct hpx_entry *ret_entry,
			       struct hpx_answer **ret_answer);
enum hpx_status hpx_store_list(struct hpx_store_reader *reader, const struct hpx_query *query,
			       struct hpx_arena *arena, struct hpx_entry **ret_entries,
			       size_t *ret_count, struct hpx_looked *ret_looked);
/* For drivers: sorts, those that changed last first; drops what is there twice and what is
 * beyond the limit. */
void hpx_entries_newest(struct hpx_entry *entries, size_t *count, unsigned limit);
/* Whether an entry is what the query wants; one that cannot be read is unknown. */
bool hpx_entry_matches(const struct hpx_entry *entry, const struct hpx_query *query);
enum hpx_status hpx_store_events(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
				 struct hpx_arena *arena, struct hpx_event **ret_events,
				 size_t *ret_count);
enum hpx_status hpx_store_recipe(struct hpx_store_reader *reader, const struct hpx_recipe_id *id,
				 struct hpx_arena *arena, struct hpx_span *ret_text);
enum hpx_status hpx_store_stats(struct hpx_store_reader *reader, struct hpx_store_stats *ret_stats);
/* HPX_UNSUPPORTED where the store keeps none. */
enum hpx_status hpx_store_history(struct hpx_store_reader *reader,
				  const struct hpx_history_query *query, struct hpx_arena *arena,
				  struct hpx_history *ret_history);
enum hpx_status hpx_store_jobs(struct hpx_store_reader *reader, const struct hpx_job_query *query,
			       struct hpx_job_entry **ret_jobs);
enum hpx_status hpx_store_provided(struct hpx_store_reader *reader, struct hpx_span provider_id,
				   struct hpx_reference *references, size_t max,
				   size_t *ret_count);
enum hpx_status hpx_store_keyed(struct hpx_store_reader *reader, const struct hpx_key_query *query,
				struct hpx_key_matches *ret_matches);
enum hpx_status hpx_store_question(struct hpx_store_reader *reader,
				   const struct hpx_operation_id *id,
				   struct hpx_next_question *ret_question);
enum hpx_status hpx_store_lanes(struct hpx_store_reader *reader, struct hpx_arena *arena,
				struct hpx_lane_due **ret_lanes, size_t *ret_count);
enum hpx_status hpx_store_due(struct hpx_store_reader *reader, struct hpx_span lane,
			      int64_t from_ms, struct hpx_due *due, size_t max, size_t *ret_count);
enum hpx_status hpx_store_watch(struct hpx_store_reader *reader, const struct hpx_operation_id *ids,
				size_t count, bool *ret_ended);
/* How many people removed so far; 0 where nobody counts. */
static inline uint64_t hpx_store_removal_count(const struct hpx_store *store)
{
	return store->removal_count != NULL ? atomic_load(store->removal_count) : 0;
}
enum hpx_status hpx_store_removals(struct hpx_store_reader *reader,
				   struct hpx_removals *ret_removals);

#endif
