/* The settings of external services: targets that jobs are sent to, probes that say
 * what became of an operation, webhooks that say so unasked, the service that names the
 * tenant of a request, and the collector of traces. Strings live in the arena of the settings. A member
 * that holds a credential is never printed. */
#ifndef HPX_SETTINGS_EXTERNAL_SERVICE_H
#define HPX_SETTINGS_EXTERNAL_SERVICE_H

#include "core/decision.h"
#include "core/pacing.h"
#include "core/reconcile.h"
#include "core/reconstruct.h"
#include "core/signature.h"

/* Where a credential comes from: a file, a variable, or neither. The secret itself
 * is never in the configuration file. */
struct hpx_credentials {
	struct hpx_span header; /* Authorization */
	const char *file;       /* NULL: not from a file */
	struct hpx_span env;    /* the variable's name; ptr NULL: none */
};

/* How a service is called. */
struct hpx_caller {
	const char *url; /* http(s)://host[:port][/prefix], no '/' at its end */
	struct hpx_credentials credentials;
	/* The credentials as they were read: a line "Name: value\r\n", or nothing.
	 * Secret. */
	struct hpx_span headers;
	const char *ca_file; /* NULL: the system's */
	int64_t connect_timeout_ms;
	int64_t timeout_ms;
};

/* A GET that tells the outcome of an operation or a job. */
struct hpx_probe {
	bool given;
	struct hpx_caller caller;
	/* Appended to the caller's URL. {operation}, {provider_id} and {key} (the key
	 * that the service was sent) are replaced, percent-encoded. The probe of a route
	 * has no {provider_id}. */
	struct hpx_span get;
	struct hpx_ruling_mapping mapping;
	/* With {key} in a route's probe: JSON pointers into the probe's answer and into the
	 * client's request. Nothing is settled where these amounts differ; ptr NULL. */
	struct hpx_span amount;
	struct hpx_span amount_request;
	struct hpx_answer_rule answer; /* of an operation that was applied */
	unsigned concurrency;          /* calls of one process under way at once */
	unsigned per_second;           /* of one process */
};

/* `reconcile` of a route or of a target. The rule has its defaults also where
 * nothing was given; settle_after has none and is then 0. */
struct hpx_reconcile_settings {
	bool given;
	struct hpx_reconcile_rule rule; /* settle_after and so on */
	struct hpx_probe probe;         /* not given: webhooks alone */
};

/* `targets`: a service that jobs are sent to. */
struct hpx_job_target {
	struct hpx_span name;
	struct hpx_caller caller;
	struct hpx_span key_header; /* Idempotency-Key */
	unsigned concurrency;
	uint32_t attempts_max;
	struct hpx_backoff backoff;
	int64_t retry_after_max_ms;
	int64_t honours_keys_ms; /* how long the target remembers a key; 0: not at all */
	enum hpx_server_error server_error;
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
	/* JSON pointer to the client's key, which counts only on this route, where it selects
	 * one operation; ptr NULL. With `amount` (in the message) and `amount_request` (in the
	 * request's body) only where both are the same. */
	struct hpx_span key;
	struct hpx_span route;
	struct hpx_span amount;
	struct hpx_span amount_request;
	struct hpx_span target; /* whose jobs it is about; ptr NULL: of all targets */
	struct hpx_ruling_mapping mapping;
	struct hpx_answer_rule answer; /* of an operation that was applied */
	int64_t settle_after_ms;       /* for a ruling of NOT_APPLIED */
	size_t body_bytes_max;
	unsigned per_second; /* more is 429 */
	unsigned line;
};

/* `tenant: {from: subrequest}`. */
struct hpx_subrequest {
	struct hpx_caller caller; /* with the whole URL, and without credentials of its own */
	struct hpx_span header;   /* of the answer; names the tenant */
	int64_t cache_ms;         /* 0: no cache */
	unsigned cache_entries_max;
};

#define HPX_MILLION 1000000u

/* `traces`: where spans are sent, and which. */
struct hpx_trace_settings {
	struct hpx_caller caller;   /* with the whole URL; url NULL: traces are off */
	uint32_t sample_millionths; /* of the requests that bring no decision of their own */
	struct hpx_span service_name;
	unsigned spans_max; /* in memory, waiting to be sent */
};

#endif
