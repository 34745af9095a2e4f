/* The settings of a process: one immutable object, filled by config/, shared by all
 * threads, and exchanged as a whole when the configuration is reloaded. A request
 * keeps the settings that it began with. */
#ifndef HPX_SETTINGS_SETTINGS_H
#define HPX_SETTINGS_SETTINGS_H

#include <stdatomic.h>

#include "base/address.h"
#include "base/arena.h"
#include "base/log.h"
#include "core/decision.h"
#include "core/fingerprint.h"
#include "core/jwt.h"
#include "core/pacing.h"
#include "http/cors.h"
#include "http/problem.h"
#include "settings/external_service.h"

struct hpx_http_head;

enum hpx_profile { HPX_PROFILE_IETF,
		   HPX_PROFILE_STRIPE,
		   HPX_PROFILE_PAYPAL,
		   HPX_PROFILE_SQUARE,
		   HPX_PROFILE_COUNT };

/* `key_from`: where a request carries its key. */
enum hpx_key_place { HPX_KEY_IN_HEADER,
		     HPX_KEY_IN_BODY,
		     HPX_KEY_IN_QUERY };

struct hpx_key_source {
	enum hpx_key_place place;
	struct hpx_span name; /* a header, an RFC 6901 pointer, or a query parameter */
};

#define HPX_KEY_SOURCES_MAX 4

/* In their order; empty: settings.key_header alone. */
struct hpx_key_sources {
	struct hpx_key_source at[HPX_KEY_SOURCES_MAX];
	size_t count;
};

/* ietf: a String of RFC 9651 or the bare bytes; strict: the String only;
 * bare: the bytes as they are, as Stripe takes them. */
enum hpx_key_syntax { HPX_KEY_SYNTAX_IETF,
		      HPX_KEY_SYNTAX_STRICT,
		      HPX_KEY_SYNTAX_BARE };

enum hpx_tenant_from {
	HPX_TENANT_AUTOMATIC,     /* the default: credentials, and the table of caller fields */
	HPX_TENANT_AUTHORIZATION, /* Authorization and X-Api-Key, nothing else */
	HPX_TENANT_CREDENTIAL,    /* a named header, hashed */
	HPX_TENANT_HEADER,        /* from a trusted peer or over a unix socket only */
	HPX_TENANT_COOKIE,
	HPX_TENANT_ANONYMOUS,   /* one tenant for all */
	HPX_TENANT_SUBREQUEST,  /* a service says who the credentials belong to */
	HPX_TENANT_JWT,         /* a signed token, verified here */
	HPX_TENANT_CERTIFICATE, /* a name in the client's verified certificate */
};

/* Whether a request without any credential is the anonymous tenant's: where the
 * request is local, always, or never. */
enum hpx_anonymous { HPX_ANONYMOUS_LOCAL,
		     HPX_ANONYMOUS_ALLOW,
		     HPX_ANONYMOUS_REFUSE };

/* `tenant: {from: jwt}`. */
struct hpx_jwt_settings {
	const char *keys; /* the path of a JWK Set, or its URL; NULL: not given */
	bool keys_by_url;
	struct hpx_jwt_rule rule;
	int64_t refresh_ms; /* the keys are read again after this time */
	unsigned cache_entries_max;
};

/* `tenant`: what names the caller of a request. */
struct hpx_tenant_settings {
	enum hpx_tenant_from from;
	struct hpx_span name;         /* of the header or cookie */
	enum hpx_anonymous anonymous; /* REFUSE with SUBREQUEST and JWT, ALLOW with ANONYMOUS */
	const struct hpx_span *with;  /* headers that are part of the name; lower case, sorted */
	size_t with_count;
	const struct hpx_span *ignore; /* headers that are not looked at; the same */
	size_t ignore_count;
	unsigned certificate;             /* from CERTIFICATE: enum hpx_certificate_name */
	struct hpx_subrequest subrequest; /* from SUBREQUEST; the caller's ca_file and times
					   * are also those of the keys of JWT */
	struct hpx_jwt_settings jwt;      /* from JWT */
};

enum hpx_tls_version { HPX_TLS_1_2,
		       HPX_TLS_1_3 };

/* TLS on one side of a connection. Without a certificate a listener speaks none. */
struct hpx_tls_settings {
	const char *const *certificates; /* files: a certificate, then those that vouch for it */
	size_t certificate_count;
	const char *const *keys; /* one for each certificate, in the same order */
	size_t key_count;
	const char *ca;   /* who may vouch for the other side; NULL: a listener asks for no
			 * certificate, towards the upstream the system's authorities count */
	const char *name; /* upstream: whose certificate it must be; NULL: the host of its URL */
	enum hpx_tls_version min_version;
};

/* One of `listen`. */
struct hpx_listener_settings {
	struct hpx_address address;
	struct hpx_tls_settings tls;
	bool proxy_protocol; /* connections begin with a PROXY header */
	unsigned line;       /* in the configuration file, for messages; 0: the command line */
	unsigned column;
};

/* A network of trusted peers: 10.0.0.0/8, ::1/128, or one address. */
struct hpx_network {
	uint8_t bytes[16];    /* IPv4 as ::ffff:a.b.c.d */
	unsigned prefix_bits; /* of 128 */
};

/* `limits.tenant`, `limits.key`, `limits.peer`: rates, each a budget of its own.
 * X(name, name in metrics and in RateLimit fields). */
#define HPX_RATE_LIST(X) \
	X(NEW_KEYS, new_keys) \
	X(REPLAYS, replays) \
	X(STATUS_READS, status_reads) \
	X(KEY_REQUESTS, key_requests) \
	X(PEER_NEW_KEYS, peer_new_keys) \
	X(ACTIVE_KEYS, active_keys) /* by the route's retention; settings.active_keys_max */ \
	X(STORED, stored)           /* in KiB, the same; settings.stored_bytes_max */

enum hpx_rate_kind {
#define X(name, text) HPX_RATE_##name,
	HPX_RATE_LIST(X)
#undef X
		HPX_RATE_COUNT
};

enum hpx_limit_preset { HPX_PRESET_NONE,
			HPX_PRESET_PUBLIC };

enum hpx_segment_kind { HPX_SEGMENT_REST,
			HPX_SEGMENT_ANY,
			HPX_SEGMENT_LITERAL };

struct hpx_segment {
	enum hpx_segment_kind kind;
	struct hpx_span text; /* literal, normalised; or the name in {x} */
};

/* `key_storage`: the copy of a key that people see. Operations are found by their id
 * either way. */
enum hpx_key_storage { HPX_KEY_STORAGE_PLAIN,
		       HPX_KEY_STORAGE_HASH };

/* `max_age`: how old a request may be that begins something new. */
struct hpx_age_limit {
	struct hpx_span header; /* says when the client made the request; ptr NULL: no limit */
	int64_t within_ms;
	int64_t skew_ms; /* how far the two clocks may be apart */
};

struct hpx_route {
	struct hpx_span pattern; /* as written: "POST /payments/{id}" */
	struct hpx_span method;  /* ptr NULL: any */
	struct hpx_span host;    /* lower case, without port; ptr NULL: any */
	const struct hpx_segment *segments;
	size_t segment_count;
	struct hpx_policy policy;
	struct hpx_key_sources key_from;
	struct hpx_key_demand key_demand;
	enum hpx_key_storage key_storage;
	bool matched_by_key;            /* by a webhook or a probe: reservations are indexed by key */
	struct hpx_span amount_request; /* JSON pointer, for the same index; ptr NULL */
	struct hpx_age_limit max_age;
	bool server_error_given; /* given here, in defaults or by a profile */
	bool observe;
	struct hpx_recipe recipe;
	struct hpx_recipe_id recipe_id;
	struct hpx_span target_name;
	const struct hpx_job_target *target; /* NULL unless deliver: async */
	struct hpx_reconcile_settings reconcile;
	unsigned line; /* in the configuration file, for messages */
	unsigned column;
	unsigned number; /* the index in settings->routes, for metrics */
};

/* The upstream's name within every key, unless given. */
#define HPX_UPSTREAM_DEFAULT "default"

/* The access log: a line for each request. */
enum hpx_access_wanted {
	HPX_ACCESS_LOG_AUTO, /* text on a terminal, nothing otherwise */
	HPX_ACCESS_LOG_OFF,
	HPX_ACCESS_LOG_TEXT,
	HPX_ACCESS_LOG_JSON,
};

struct hpx_settings {
	atomic_uint references;
	struct hpx_arena arena; /* holds every string and list below */

	/* Not reloadable. */
	struct hpx_address listen;                     /* as one value; see `listeners` */
	const struct hpx_listener_settings *listeners; /* at least one; their files can change */
	size_t listener_count;
	struct hpx_address admin;
	struct hpx_tls_settings admin_tls;
	bool has_admin; /* admin: off turns it off */
	struct hpx_address upstream;
	struct hpx_tls_settings upstream_tls;
	struct hpx_span upstream_name; /* part of every scope; never the URL */
	struct hpx_span store;
	bool store_create;
	unsigned loops; /* 0: one per core */
	enum hpx_profile profile;
	struct hpx_tenant_settings tenant;
	const struct hpx_job_target *targets;
	size_t target_count;
	const struct hpx_webhook *webhooks;
	size_t webhook_count;
	bool work;                        /* jobs and reconciliation inside serve */
	unsigned deliveries_max;          /* under way at once, all targets */
	int64_t job_retention_ms;         /* of finished jobs */
	struct hpx_trace_settings traces; /* the sampling can be reloaded */
	unsigned connections_max;         /* client connections, all loops together */
	unsigned waiters_max;             /* waiting requests in all */
	unsigned waiters_per_operation_max;
	size_t bodies_bytes_max; /* request and answer bodies in memory, together */
	size_t cache_bytes_max;  /* completed answers in memory; 0: none */
	unsigned cache_entries_max;
	uint64_t free_bytes_min;
	int64_t event_retention_ms;
	int64_t history_retention_ms; /* of what is left of finished operations; 0: nothing is */
	bool core_dumps;

	/* Reloadable. */
	enum hpx_log_level log_level;
	enum hpx_log_format log_format;
	enum hpx_access_wanted access_log;
	const char *access_log_file; /* NULL: standard output */
	const struct hpx_network *trusted_peers;
	size_t trusted_peer_count;
	struct hpx_span key_header; /* Idempotency-Key */
	enum hpx_key_syntax key_syntax;
	unsigned mismatch_status; /* 422; 400 under profile stripe */
	enum hpx_problem_shape errors;
	bool drop_underscores; /* header names with `_` do not travel */
	bool own_paths;
	struct hpx_cors cors;
	bool observe;
	size_t head_bytes_max;
	unsigned fields_max;
	size_t request_body_bytes_max;
	size_t response_body_bytes_max;
	int64_t head_timeout_ms;       /* a request's head, from its first byte */
	int64_t body_timeout_ms;       /* between two bytes of a request's body */
	int64_t whole_body_timeout_ms; /* of a body that is held in memory */
	uint64_t body_rate_min;        /* bytes a second; 0: none */
	int64_t keep_alive_ms;         /* an idle client connection */
	int64_t connect_timeout_ms;
	int64_t send_timeout_ms;
	int64_t first_byte_timeout_ms;
	int64_t idle_timeout_ms;  /* between two bytes of an answer; 0: none */
	int64_t whole_timeout_ms; /* of a guarded exchange */
	int64_t reuse_idle_ms;
	int64_t reuse_quarantine_ms;       /* after a stray byte of the upstream */
	unsigned upstream_connections_max; /* per loop, as the queue */
	unsigned upstream_queue_max;       /* of each kind of request */
	unsigned pass_share;               /* percent of those connections */
	unsigned tunnel_share;
	int64_t queue_timeout_ms;
	int64_t store_timeout_ms; /* how long a client waits for the store */
	int64_t drain_ms;
	int64_t sweep_every_ms;
	int64_t reap_every_ms;
	unsigned reap_batch;

	enum hpx_limit_preset limit_preset;
	struct hpx_rate rates[HPX_RATE_ACTIVE_KEYS]; /* a count of 0: no limit */
	unsigned active_keys_max;                    /* of a tenant; 0: no limit */
	uint64_t stored_bytes_max;                   /* the same */

	struct hpx_route fallback; /* `defaults`: where no route matches */
	struct hpx_route *routes;  /* most specific first */
	size_t route_count;
};

struct hpx_settings *hpx_settings_new(void);
struct hpx_settings *hpx_settings_ref(struct hpx_settings *settings);
void hpx_settings_unref(struct hpx_settings *settings);

/* Whether a listener speaks TLS. */
static inline bool hpx_tls_given(const struct hpx_tls_settings *tls)
{
	return tls->certificate_count > 0;
}
/* Whether clients can connect by unix sockets only. */
bool hpx_settings_only_unix(const struct hpx_settings *settings);

/* By its name; NULL where the settings have no such target. */
const struct hpx_job_target *hpx_settings_find_target(const struct hpx_settings *settings,
						      struct hpx_span name);
/* By its pattern as it is written, `defaults` included; NULL where the settings
 * have no such route. Of two routes with one pattern, the first one. */
const struct hpx_route *hpx_settings_find_route(const struct hpx_settings *settings,
						struct hpx_span pattern);

/* Parses "POST /payments/{id}", "PUT /x/y", "POST api.example.com/pay" into
 * method, host and segments (strings into `arena`); * stands for any method,
 * and as the last segment for the rest. `*ret_reason` (may be in `arena`) says
 * what is wrong. Safe methods are never guarded, so naming one is an error, as
 * is another spelling of a known method. */
enum hpx_status hpx_route_parse(struct hpx_span text, struct hpx_arena *arena,
				struct hpx_route *route, const char **ret_reason);
/* Sorts so that the more specific comes first; ties keep their order.
 * Returns the index of a route that can never match because an equal one
 * stands before it, or `count`. */
size_t hpx_route_sort(struct hpx_route *routes, size_t count);
/* Whether the two match exactly the same requests (names in {x} aside). */
bool hpx_route_same(const struct hpx_route *a, const struct hpx_route *b);
/* The route for a request; `settings->fallback` where none matches. `host`
 * is the Host field's value (port and case do not matter). */
const struct hpx_route *hpx_route_match(const struct hpx_settings *settings,
					struct hpx_span method, struct hpx_span host,
					struct hpx_span path);
/* The method that this one is another spelling of, in the registry or in a
 * route; itself where it is written as it should be. */
struct hpx_span hpx_route_method_meant(const struct hpx_settings *settings,
				       struct hpx_span method);
/* Whether this request is guarded at all: methods that are neither safe nor
 * idempotent are, idempotent ones where a route names that very method, nothing
 * where the key is ignored. */
bool hpx_route_guards(const struct hpx_route *route, struct hpx_span method);
/* Whether the key may stand in the body, so that it is known only when the body is there. */
bool hpx_route_key_in_body(const struct hpx_route *route);

bool hpx_network_parse(struct hpx_span text, struct hpx_network *ret_network);
/* Below, `peer` is the peer of a connection as hpx_transport_peer gives it: the address of
 * the socket, or the one that a PROXY header has named; "unix" for a unix socket. */

/* "unix" is always trusted. */
bool hpx_peer_trusted(const struct hpx_settings *settings, const char *peer);
/* Whether it is on this machine: a loopback address, or "unix". */
bool hpx_peer_is_local(const char *peer);
/* The address that a request comes from, for limits and logs: the peer of its connection,
 * or where that is a trusted one, the last address of X-Forwarded-For that is not. len 0:
 * only trusted peers are known (they are exempt from limits). The text is the head's or
 * `peer` itself. */
struct hpx_span hpx_peer_of(const struct hpx_settings *settings, const struct hpx_http_head *head,
			    const char *peer);
/* The network that such an address stands for where callers are counted: an IPv4 address
 * itself, of IPv6 its /64. False: it is no address. */
bool hpx_peer_network(struct hpx_span address, uint8_t ret_network[16]);

#endif
