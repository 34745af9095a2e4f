/* Authorisation subrequests under way, the requests that wait for each, and the cache
 * of identities. The lock covers the table of inquiries, the cache, and
 * request->identity.inquiry of all waiting requests. The answer comes on the engine's
 * thread and reaches each request through the inbox of its own loop. */
#include "gateway/subrequest.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "gateway/steps.h"
#include "http/field.h"
#include "http/write.h"

#define BUCKETS 256
#define HEADER_BYTES_MAX HPX_EGRESS_HEAD_BYTES_MAX
/* A refusal is cached for this long at most: a service may learn of new credentials a
 * moment after their first use. */
#define REFUSAL_CACHE_MS 2000

/* One subrequest. The engine holds it until it is answered. */
struct hpx_inquiry {
	struct hpx_subrequests *all;
	struct hpx_inquiry *next; /* in its bucket */
	uint8_t digest[HPX_SHA256_SIZE];
	struct hpx_request *waiting;
	struct hpx_settings *settings;
	struct hpx_buffer headers; /* credentials */
	struct hpx_egress_request egress;
};

struct hpx_subrequests {
	struct hpx_egress *egress;
	pthread_mutex_t lock;
	struct hpx_inquiry *inquiries[BUCKETS];
	struct hpx_identities *identities; /* NULL: nothing is remembered */
	bool down;                         /* the last inquiry was not answered */
	struct hpx_counter results[HPX_SUBREQUEST_COUNT];
};

const char *hpx_subrequest_result_name(enum hpx_subrequest_result result)
{
	static const char *const names[] = {
#define X(name) #name,
		HPX_SUBREQUEST_LIST(X)
#undef X
	};
	return names[result];
}

struct hpx_subrequests *hpx_subrequests_new(struct hpx_egress *egress,
					    const struct hpx_subrequest *settings)
{
	struct hpx_subrequests *all = calloc(1, sizeof(*all));

	if (all == NULL)
		return NULL;
	if (pthread_mutex_init(&all->lock, NULL) != 0) {
		free(all);
		return NULL;
	}
	all->egress = egress;
	if (settings->cache_ms > 0) {
		all->identities = hpx_identities_new(settings->cache_entries_max);
		if (all->identities == NULL) {
			hpx_subrequests_free(all);
			return NULL;
		}
	}
	return all;
}

void hpx_subrequests_free(struct hpx_subrequests *subrequests)
{
	if (subrequests == NULL)
		return;
	hpx_identities_free(subrequests->identities);
	pthread_mutex_destroy(&subrequests->lock);
	free(subrequests);
}

uint64_t hpx_subrequests_count(const struct hpx_subrequests *subrequests,
			       enum hpx_subrequest_result result)
{
	return hpx_counter_read(&subrequests->results[result]);
}

/* ---- the inquiry ---- */

/* Whether the service gets this header, and its answer is cached under it:
 * Authorization, X-Api-Key, Cookie, every other header that may name a caller, and
 * `tenant.with`. */
static bool is_sent_on(const struct hpx_tenant_source *source, struct hpx_span name)
{
	return !hpx_span_ieq(name, HPX_SPAN("Host")) &&
	       hpx_tenant_looks_at(source->settings, name);
}

/* A header that is there twice: the service might read one, the upstream the other.
 * Cookies may come in several fields. */
static const struct hpx_field *find_twice(const struct hpx_tenant_source *source)
{
	const struct hpx_http_head *head = source->head;

	for (size_t i = 1; i < head->field_count; i++) {
		struct hpx_span name = head->fields[i].name;
		if (!is_sent_on(source, name) || hpx_span_ieq(name, HPX_SPAN("Cookie")))
			continue;
		if (hpx_field_find(head, name) != &head->fields[i])
			return &head->fields[i];
	}
	return NULL;
}

static enum hpx_status add_credential(struct hpx_sha256 *hash, struct hpx_buffer *out,
				      struct hpx_span name, struct hpx_span value)
{
	hpx_sha256_part(hash, name);
	hpx_sha256_part(hash, value);
	return hpx_write_field(out, name, value);
}

enum hpx_status hpx_subrequest_credentials(const struct hpx_tenant_source *source,
					   struct hpx_buffer *out,
					   uint8_t ret_digest[HPX_SHA256_SIZE],
					   const char **ret_reason)
{
	const struct hpx_http_head *head = source->head;
	const struct hpx_field *twice = find_twice(source);
	struct hpx_sha256 hash;
	enum hpx_status status = HPX_OK;

	if (twice != NULL) {
		struct hpx_span reason = hpx_arena_printf(
			source->arena, "%.*s is sent more than once; send one credential",
			HPX_SPAN_ARG(hpx_span_first(twice->name, 64)));
		*ret_reason = reason.ptr;
		return reason.ptr != NULL ? HPX_INVALID : HPX_NOMEM;
	}
	hpx_sha256_init(&hash);
	for (size_t i = 0; i < head->field_count && status == HPX_OK; i++)
		if (is_sent_on(source, head->fields[i].name))
			status = add_credential(&hash, out, head->fields[i].name,
						head->fields[i].value);
	/* Its own Host is the service's. */
	if (status == HPX_OK && hpx_tenant_looks_at(source->settings, HPX_SPAN("Host")))
		status = add_credential(&hash, out, HPX_SPAN("X-Original-Host"), source->host);
	enum hpx_status hashed = hpx_sha256_done(&hash, ret_digest);
	return status == HPX_OK ? hashed : status;
}

/* Method, URI and address of the request, for the service's log. The answer is cached
 * without them. */
static enum hpx_status write_origin(struct hpx_request *request, struct hpx_buffer *out)
{
	const struct hpx_target *target = &request->head.target;
	struct hpx_span uri = target->path;
	bool is_unix = hpx_span_eq(hpx_span_of(request->head.peer), HPX_SPAN("unix"));

	if (target->query.ptr != NULL)
		uri = hpx_arena_printf(&request->arena, "%.*s?%.*s", HPX_SPAN_ARG(target->path),
				       HPX_SPAN_ARG(target->query));
	if (uri.ptr == NULL)
		return HPX_NOMEM;
	enum hpx_status status =
		hpx_write_field(out, HPX_SPAN("X-Original-Method"), request->head.http.method);
	if (status == HPX_OK)
		status = hpx_write_field(out, HPX_SPAN("X-Original-URI"), uri);
	if (status != HPX_OK || is_unix)
		return status;
	struct hpx_span before = { NULL, 0 };
	if (hpx_peer_trusted(request->settings, request->head.peer))
		before = hpx_field_combined(&request->head.http, HPX_SPAN("X-Forwarded-For"),
					    &request->arena);
	return hpx_buffer_printf(out, "X-Forwarded-For: %.*s%s%s\r\n", HPX_SPAN_ARG(before),
				 before.len > 0 ? ", " : "", request->head.peer);
}

static struct hpx_inquiry **bucket_of(struct hpx_subrequests *all, const uint8_t *digest)
{
	return &all->inquiries[digest[HPX_SHA256_SIZE - 1] % BUCKETS];
}

static struct hpx_inquiry *find_inquiry(struct hpx_subrequests *all, const uint8_t *digest)
{
	struct hpx_inquiry *inquiry = *bucket_of(all, digest);

	while (inquiry != NULL && memcmp(inquiry->digest, digest, HPX_SHA256_SIZE) != 0)
		inquiry = inquiry->next;
	return inquiry;
}

static void unlink_inquiry(struct hpx_inquiry *inquiry)
{
	struct hpx_inquiry **at = bucket_of(inquiry->all, inquiry->digest);

	HPX_ASSERT(*at != NULL);
	while (*at != inquiry)
		at = &(*at)->next;
	*at = inquiry->next;
}

static void free_inquiry(struct hpx_inquiry *inquiry)
{
	hpx_egress_request_done(&inquiry->egress);
	hpx_buffer_done(&inquiry->headers);
	hpx_settings_unref(inquiry->settings);
	free(inquiry);
}

/* ---- the answer ---- */

static void remember(struct hpx_inquiry *inquiry, const struct hpx_identity *identity)
{
	int64_t for_ms = inquiry->settings->tenant.subrequest.cache_ms;

	if (inquiry->all->identities == NULL || identity->kind == HPX_IDENTITY_UNAVAILABLE)
		return;
	if (identity->kind != HPX_IDENTITY_NAMED && for_ms > REFUSAL_CACHE_MS)
		for_ms = REFUSAL_CACHE_MS;
	hpx_identities_put(inquiry->all->identities, inquiry->digest, identity,
			   hpx_clock_boot_ms() + for_ms);
}

static void count_answer(struct hpx_subrequests *all, enum hpx_identity_kind kind)
{
	static const enum hpx_subrequest_result results[] = {
		[HPX_IDENTITY_UNAVAILABLE] = HPX_SUBREQUEST_unavailable,
		[HPX_IDENTITY_NAMED] = HPX_SUBREQUEST_named,
		[HPX_IDENTITY_UNAUTHENTICATED] = HPX_SUBREQUEST_unauthenticated,
		[HPX_IDENTITY_FORBIDDEN] = HPX_SUBREQUEST_forbidden,
	};

	hpx_counter_add(&all->results[results[kind]], 1);
}

/* Logs when the service stops answering, and when it answers again. */
static void tell_change(struct hpx_inquiry *inquiry, bool down, bool was_down)
{
	if (down && !was_down)
		hpx_log(HPX_LOG_ERROR, "subrequest_down",
			"status=%u reason=\"%s\" effect=\"requests that need a tenant are refused\"",
			inquiry->egress.status,
			inquiry->egress.problem[0] != '\0' ? inquiry->egress.problem :
							     "its answer names no caller and no refusal");
	else if (!down && was_down)
		hpx_log(HPX_LOG_INFO, "subrequest_up", "reason=\"callers are known again\"");
}

/* Ends the subrequest: every request that waits is told, on its own loop. */
static void conclude(struct hpx_inquiry *inquiry, const struct hpx_identity *identity)
{
	struct hpx_subrequests *all = inquiry->all;
	bool down = identity->kind == HPX_IDENTITY_UNAVAILABLE;
	struct hpx_request *request;

	count_answer(all, identity->kind);
	pthread_mutex_lock(&all->lock);
	bool was_down = all->down;
	all->down = down;
	remember(inquiry, identity);
	unlink_inquiry(inquiry);
	request = inquiry->waiting;
	for (struct hpx_request *r = request; r != NULL; r = r->identity.inquiry_next)
		r->identity.inquiry = NULL;
	pthread_mutex_unlock(&all->lock);
	while (request != NULL) {
		/* Once posted, it may be gone. */
		struct hpx_request *next = request->identity.inquiry_next;
		request->identity.caller = *identity;
		hpx_resume_post(&request->identity.inquired);
		request = next;
	}
	tell_change(inquiry, down, was_down);
	free_inquiry(inquiry);
}

/* On the engine's thread. */
static void answered(struct hpx_egress_request *egress)
{
	struct hpx_inquiry *inquiry = egress->user;
	struct hpx_identity identity = { .kind = HPX_IDENTITY_UNAVAILABLE };

	if (egress->end == HPX_EGRESS_ANSWERED)
		hpx_identity_read(egress->status, hpx_buffer_span(&egress->headers_in),
				  inquiry->settings->tenant.subrequest.header, &identity);
	conclude(inquiry, &identity);
}

/* ---- the request ---- */

enum hpx_next hpx_step_tenant_unavailable(struct hpx_request *request)
{
	struct hpx_refusal refusal = { .retry_after_s = 1 };

	return hpx_tenant_missing(request, HPX_PROBLEM_tenant_unavailable, &refusal);
}

static enum hpx_next named(struct hpx_request *request)
{
	const struct hpx_tenant_source source = hpx_tenant_source_of(request);
	struct hpx_refusal refusal = { .detail = NULL };
	enum hpx_status status = HPX_NOMEM;

	HPX_ASSERT(request->identity.caller.kind == HPX_IDENTITY_NAMED);
	request->identity.tenant = hpx_arena_printf(&request->arena, "sub:%.*s",
						    (int)request->identity.caller.name_len, request->identity.caller.name);
	if (request->identity.tenant.ptr != NULL)
		status = hpx_tenant_add_with(&source, &request->identity.tenant, &refusal.detail);
	if (status == HPX_INVALID)
		return hpx_tenant_missing(request, HPX_PROBLEM_unauthenticated, &refusal);
	return status == HPX_OK ? hpx_tenant_found(request) : HPX_NEXT_TENANT_UNAVAILABLE;
}

enum hpx_next hpx_step_identified(struct hpx_request *request)
{
	const struct hpx_identity *identity = &request->identity.caller;
	struct hpx_refusal refusal = { .detail = NULL };

	switch (identity->kind) {
	case HPX_IDENTITY_NAMED:
		return named(request);
	case HPX_IDENTITY_UNAUTHENTICATED:
		refusal.detail = "The service that knows the callers does not know these "
				 "credentials. Nothing was sent on.";
		return hpx_tenant_missing(request, HPX_PROBLEM_unauthenticated, &refusal);
	case HPX_IDENTITY_FORBIDDEN:
		return hpx_tenant_missing(request, HPX_PROBLEM_forbidden, &refusal);
	case HPX_IDENTITY_UNAVAILABLE:
		break;
	}
	return HPX_NEXT_TENANT_UNAVAILABLE;
}

/* With the lock. */
static void join(struct hpx_request *request, struct hpx_inquiry *inquiry)
{
	HPX_ASSERT(request->identity.inquiry == NULL && inquiry->all != NULL);
	request->identity.inquiry = inquiry;
	request->identity.inquiry_next = inquiry->waiting;
	inquiry->waiting = request;
	hpx_resume_arm(&request->identity.inquired, request);
}

void hpx_subrequest_leave(struct hpx_request *request)
{
	struct hpx_subrequests *all = request->shard->gateway->subrequests;
	bool found = false;

	if (all == NULL)
		return;
	pthread_mutex_lock(&all->lock);
	if (request->identity.inquiry != NULL) {
		struct hpx_request **at = &request->identity.inquiry->waiting;
		while (*at != request)
			at = &(*at)->identity.inquiry_next;
		*at = request->identity.inquiry_next;
		request->identity.inquiry = NULL;
		found = true;
	}
	pthread_mutex_unlock(&all->lock);
	if (found)
		hpx_resume_disarm(&request->identity.inquired);
}

/* NULL when out of memory, or the fields do not fit. Takes `headers` over. */
static struct hpx_inquiry *make_inquiry(struct hpx_request *request, struct hpx_buffer *headers,
					const uint8_t digest[HPX_SHA256_SIZE])
{
	const struct hpx_caller *caller = &request->settings->tenant.subrequest.caller;
	struct hpx_inquiry *inquiry = calloc(1, sizeof(*inquiry));

	if (inquiry == NULL || write_origin(request, headers) != HPX_OK ||
	    hpx_buffer_append(headers, caller->headers) != HPX_OK) {
		hpx_buffer_done(headers);
		free(inquiry);
		return NULL;
	}
	inquiry->all = request->shard->gateway->subrequests;
	memcpy(inquiry->digest, digest, HPX_SHA256_SIZE);
	inquiry->settings = hpx_settings_ref(request->settings);
	inquiry->headers = *headers;
	inquiry->egress = (struct hpx_egress_request){
		.url = caller->url,
		.method = "GET",
		.headers = hpx_buffer_span(&inquiry->headers),
		.reuse = true, /* a GET: twice is as good as once */
		.connect_timeout_ms = caller->connect_timeout_ms,
		.timeout_ms = caller->timeout_ms,
		.answer_bytes_max = 1, /* nobody reads its body */
		.ca_file = caller->ca_file,
		.done = answered,
		.user = inquiry,
	};
	return inquiry;
}

static enum hpx_next ask(struct hpx_request *request, struct hpx_buffer *headers,
			 const uint8_t digest[HPX_SHA256_SIZE])
{
	struct hpx_subrequests *all = request->shard->gateway->subrequests;
	struct hpx_identity nobody = { .kind = HPX_IDENTITY_UNAVAILABLE };
	struct hpx_inquiry *inquiry = make_inquiry(request, headers, digest);

	if (inquiry == NULL)
		return HPX_NEXT_TENANT_UNAVAILABLE;
	pthread_mutex_lock(&all->lock);
	struct hpx_inquiry *other = find_inquiry(all, digest);
	join(request, other != NULL ? other : inquiry);
	if (other == NULL) {
		struct hpx_inquiry **bucket = bucket_of(all, digest);
		inquiry->next = *bucket;
		*bucket = inquiry;
	}
	pthread_mutex_unlock(&all->lock);
	if (other != NULL) {
		hpx_counter_add(&all->results[HPX_SUBREQUEST_shared], 1);
		free_inquiry(inquiry);
	} else if (all->egress == NULL ||
		   hpx_egress_submit(all->egress, &inquiry->egress) != HPX_OK) {
		conclude(inquiry, &nobody);
	}
	return hpx_request_await(request, HPX_WAIT_QUERY, &request->identity.inquired,
				 request->settings->tenant.subrequest.caller.timeout_ms,
				 HPX_NEXT_IDENTIFIED, HPX_NEXT_TENANT_UNAVAILABLE);
}

static bool is_known(struct hpx_request *request, const uint8_t digest[HPX_SHA256_SIZE])
{
	struct hpx_subrequests *all = request->shard->gateway->subrequests;
	bool known;

	pthread_mutex_lock(&all->lock);
	known = all->identities != NULL &&
		hpx_identities_find(all->identities, digest, hpx_clock_boot_ms(),
				    &request->identity.caller);
	pthread_mutex_unlock(&all->lock);
	if (known)
		hpx_counter_add(&all->results[HPX_SUBREQUEST_cached], 1);
	return known;
}

enum hpx_next hpx_subrequest_ask(struct hpx_request *request)
{
	struct hpx_refusal refusal = { .detail = NULL };
	uint8_t digest[HPX_SHA256_SIZE];
	struct hpx_buffer headers;

	if (request->shard->gateway->subrequests == NULL)
		return HPX_NEXT_TENANT_UNAVAILABLE;
	hpx_buffer_init(&headers, HEADER_BYTES_MAX);
	const struct hpx_tenant_source source = hpx_tenant_source_of(request);
	enum hpx_status status =
		hpx_subrequest_credentials(&source, &headers, digest, &refusal.detail);
	if (status == HPX_OK && !is_known(request, digest))
		return ask(request, &headers, digest);
	hpx_buffer_done(&headers);
	if (status == HPX_OK)
		return HPX_NEXT_IDENTIFIED;
	if (status == HPX_INVALID && refusal.detail != NULL)
		return hpx_tenant_missing(request, HPX_PROBLEM_unauthenticated, &refusal);
	return HPX_NEXT_TENANT_UNAVAILABLE;
}

/* ---- identities ---- */

#define WAYS 4

struct identity_entry {
	uint8_t digest[HPX_SHA256_SIZE];
	int64_t until_ms; /* in the past: free */
	struct hpx_identity identity;
};

struct hpx_identities {
	size_t set_count;
	struct identity_entry entries[];
};

/* ---- the answer ---- */

static bool is_name(struct hpx_span value)
{
	if (value.len > HPX_IDENTITY_NAME_MAX)
		return false;
	for (size_t i = 0; i < value.len; i++)
		if (value.ptr[i] <= ' ' || value.ptr[i] > '~')
			return false;
	return true;
}

/* How often the header is there, and its value. */
static unsigned find_header(struct hpx_span headers, struct hpx_span header,
			    struct hpx_span *ret_value)
{
	struct hpx_field_line line;
	unsigned count = 0;

	while (hpx_field_line_next(&headers, &line)) {
		if (line.name.ptr == NULL || !hpx_span_ieq(line.name, header))
			continue;
		*ret_value = line.value;
		count++;
	}
	return count;
}

void hpx_identity_read(unsigned status, struct hpx_span headers, struct hpx_span header,
		       struct hpx_identity *ret_identity)
{
	struct hpx_span name = { NULL, 0 };
	struct hpx_identity identity = { .kind = HPX_IDENTITY_UNAVAILABLE };

	if (status == 401) {
		identity.kind = HPX_IDENTITY_UNAUTHENTICATED;
	} else if (status == 403) {
		identity.kind = HPX_IDENTITY_FORBIDDEN;
	} else if (status >= 200 && status < 300) {
		unsigned count = find_header(headers, header, &name);
		if (count <= 1 && name.len == 0)
			identity.kind = HPX_IDENTITY_UNAUTHENTICATED;
		else if (count == 1 && is_name(name))
			identity.kind = HPX_IDENTITY_NAMED;
	}
	if (identity.kind == HPX_IDENTITY_NAMED) {
		memcpy(identity.name, name.ptr, name.len);
		identity.name_len = (uint8_t)name.len;
	}
	*ret_identity = identity;
}

/* ---- the cache ---- */

struct hpx_identities *hpx_identities_new(unsigned entries_max)
{
	size_t sets = entries_max / WAYS > 0 ? entries_max / WAYS : 1;
	struct hpx_identities *identities =
		calloc(1, sizeof(*identities) + sets * WAYS * sizeof(struct identity_entry));

	if (identities != NULL)
		identities->set_count = sets;
	return identities;
}

void hpx_identities_free(struct hpx_identities *identities)
{
	free(identities);
}

static struct identity_entry *set_of(struct hpx_identities *identities,
				     const uint8_t digest[HPX_SHA256_SIZE])
{
	uint32_t word;

	memcpy(&word, digest, sizeof(word));
	return &identities->entries[word % identities->set_count * WAYS];
}

static bool is_it(const struct identity_entry *entry, const uint8_t digest[HPX_SHA256_SIZE])
{
	return entry->until_ms != 0 && hpx_bytes_same(entry->digest, digest, HPX_SHA256_SIZE);
}

bool hpx_identities_find(struct hpx_identities *identities,
			 const uint8_t digest[HPX_SHA256_SIZE], int64_t now_ms,
			 struct hpx_identity *ret_identity)
{
	const struct identity_entry *set = set_of(identities, digest);

	for (size_t i = 0; i < WAYS; i++) {
		if (!is_it(&set[i], digest) || set[i].until_ms <= now_ms)
			continue;
		*ret_identity = set[i].identity;
		return true;
	}
	return false;
}

void hpx_identities_put(struct hpx_identities *identities, const uint8_t digest[HPX_SHA256_SIZE],
			const struct hpx_identity *identity, int64_t until_ms)
{
	struct identity_entry *set = set_of(identities, digest);
	struct identity_entry *place = &set[0];

	for (size_t i = 1; i < WAYS; i++)
		if (set[i].until_ms < place->until_ms)
			place = &set[i];
	for (size_t i = 0; i < WAYS; i++)
		if (is_it(&set[i], digest))
			place = &set[i];
	memcpy(place->digest, digest, HPX_SHA256_SIZE);
	place->until_ms = until_ms;
	place->identity = *identity;
}
