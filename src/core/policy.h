/* What a route wants: the choices that the design leaves to the operator. */
#ifndef HPX_CORE_POLICY_H
#define HPX_CORE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

enum hpx_key_rule { HPX_KEY_REQUIRED,
		    HPX_KEY_OPTIONAL,
		    HPX_KEY_IGNORE };
enum hpx_scope_rule { HPX_SCOPE_PATH,
		      HPX_SCOPE_ROUTE,
		      HPX_SCOPE_TENANT };
/* A 5xx other than 502, 503 with Retry-After, 504. */
enum hpx_server_error { HPX_SERVER_ERROR_RETRY,
			HPX_SERVER_ERROR_REPLAY,
			HPX_SERVER_ERROR_UNKNOWN };
/* A lease, or an answer, that was lost. `resume` goes on after the last recovery
 * point; it needs an upstream that is fenced or honours keys itself. */
enum hpx_on_lost { HPX_ON_LOST_UNKNOWN,
		   HPX_ON_LOST_RESUME };
/* Whose word ends an attempt: the upstream's HTTP answer, or only what the
 * application committed in its own transaction. */
enum hpx_completes { HPX_COMPLETES_UPSTREAM,
		     HPX_COMPLETES_APPLICATION };
/* A retry while the first request is under way. */
enum hpx_concurrent { HPX_CONCURRENT_CONFLICT,
		      HPX_CONCURRENT_WAIT,
		      HPX_CONCURRENT_ACCEPTED };
/* now: the request goes upstream and its answer comes back; async: it is kept
 * as a job for a target, and answered with 202. */
enum hpx_deliver { HPX_DELIVER_NOW,
		   HPX_DELIVER_ASYNC };
enum hpx_keep { HPX_KEEP_ANSWER,
		HPX_KEEP_STATUS };

/* Whether a request may go over a connection that has carried others. */
enum hpx_reuse { HPX_REUSE_ALLOW,
		 HPX_REUSE_NEVER };

struct hpx_policy {
	enum hpx_key_rule key;
	enum hpx_scope_rule scope;
	enum hpx_server_error server_error;
	enum hpx_on_lost on_lost;
	enum hpx_completes completes;
	bool fenced;             /* the upstream refuses what an old attempt still sends */
	int64_t honours_keys_ms; /* how long the upstream itself remembers keys; 0: not */
	enum hpx_concurrent concurrent;
	enum hpx_keep keep;
	enum hpx_reuse reuse;
	enum hpx_deliver deliver;
	int64_t retention_ms;
	int64_t lease_ms;
	int64_t wait_ms;
};

const char *hpx_key_rule_name(enum hpx_key_rule rule);
const char *hpx_scope_rule_name(enum hpx_scope_rule rule);
const char *hpx_server_error_name(enum hpx_server_error choice);
const char *hpx_on_lost_name(enum hpx_on_lost choice);
const char *hpx_completes_name(enum hpx_completes choice);
const char *hpx_concurrent_name(enum hpx_concurrent choice);
const char *hpx_deliver_name(enum hpx_deliver choice);
const char *hpx_keep_name(enum hpx_keep choice);

#endif
