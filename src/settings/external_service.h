/* What the configuration says of services outside: targets that jobs are sent
 * to, probes that are asked what became of something, webhooks that tell it
 * unasked, and the service that says who a caller is. Part of the settings;
 * strings live in their arena. Whatever holds a credential is never printed. */
#ifndef HPX_SETTINGS_OUTSIDE_H
#define HPX_SETTINGS_OUTSIDE_H

#include "core/pacing.h"
#include "core/reconcile.h"
#include "core/signature.h"

/* Where a credential comes from: one of the two, or neither. The secret itself
 * never stands in the configuration file. */
struct hpx_credentials {
	struct hpx_span header; /* Authorization */
	const char *file;       /* NULL: not from a file */
	struct hpx_span env;    /* the variable's name; ptr NULL: none */
};

/* How one asks a service. */
struct hpx_caller {
	const char *url; /* http(s)://host[:port][/prefix], no '/' at its end */
	struct hpx_credentials credentials;
	/* What was read of the credentials: a line "Name: value\r\n", or nothing.
	 * Secret. */
	struct hpx_span headers;
	const char *ca_file; /* NULL: the system's */
	int64_t connect_timeout_ms;
	int64_t timeout_ms;
};

/* A GET that tells what became of an operation or a job. */
struct hpx_probe {
	bool given;
	struct hpx_caller caller;
	/* Behind the caller's URL; {operation}, {provider_id} and {key} (the one
	 * that the service was sent) are replaced, percent-encoded. A route's
	 * has no {provider_id}. */
	struct hpx_span get;
	struct hpx_ruling_mapping mapping;
	unsigned concurrency; /* questions of one process under way at once */
	unsigned per_second;  /* of one process */
};

/* `reconcile`, of a route or of a target. The rule has its defaults where
 * nothing was given, too; settle_after has none and is then 0. */
struct hpx_reconcile_settings {
	bool given;
	struct hpx_reconcile_rule rule; /* settle_after and so on */
	struct hpx_probe probe;         /* not given: webhooks alone */
};

/* `targets`: a service that jobs name. */
struct hpx_job_target {
	struct hpx_span name;
	struct hpx_caller caller;
	struct hpx_span key_header; /* Idempotency-Key */
	unsigned concurrency;
	uint32_t attempts_max;
	struct hpx_backoff backoff;
	int64_t retry_after_max_ms;
	int64_t honours_keys_ms;     /* 0: it does not */
	struct hpx_span provider_id; /* JSON pointer into its answer; ptr NULL: none */
	struct hpx_breaker_rule breaker;
	struct hpx_reconcile_settings reconcile;
	unsigned line; /* in the configuration file, for messages */
};

/* `webhooks`: POST /.hapax/webhooks/<name>. */
struct hpx_webhook {
	struct hpx_span name;
	const char *secret_file;                 /* NULL: not from a file */
	struct hpx_span secret_env;              /* the variable's name; ptr NULL: none */
	struct hpx_signature_settings signature; /* its keys are secret */
	struct hpx_span operation;               /* JSON pointer to the operation's reference; ptr NULL */
	struct hpx_span provider_id;             /* JSON pointer to the provider's id; ptr NULL */
	struct hpx_span target;                  /* it speaks of this one's jobs only; ptr NULL: of all */
	struct hpx_ruling_mapping mapping;
	int64_t settle_after_ms; /* for a NOT_APPLIED that it says */
	size_t body_bytes_max;
	unsigned per_second; /* more is 429 */
	unsigned line;
};

/* `tenant: {from: subrequest}`. */
struct hpx_subrequest {
	struct hpx_caller caller; /* the whole URL; it has no credentials of its own */
	struct hpx_span header;   /* of its answer: names the tenant */
	int64_t cache_ms;         /* 0: no cache */
	unsigned cache_entries_max;
};

#endif
