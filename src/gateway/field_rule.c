/* The rules about header names. Names are compared without case. WSGI, CGI and
 * FastCGI pass both X-Y and X_Y on as HTTP_X_Y: to them the two names are one. */
#include "gateway/field_rule.h"

#include "gateway/caller_field.h"
#include "gateway/tenant.h"
#include "http/field.h"

/* How many bytes of a name a message shows. */
#define SHOWN_MAX 64
/* No name that hapax acts on is longer; of a longer one, the beginning can
 * still be that of a family. */
#define DASHED_MAX 128

static char folded(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c + ('a' - 'A'));
	return c == '_' ? '-' : c;
}

/* Whether the two are one header to a reader that takes `_` for `-`. */
static bool reads_alike(struct hpx_span a, struct hpx_span b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (folded(a.ptr[i]) != folded(b.ptr[i]))
			return false;
	return true;
}

static bool has_underscore(struct hpx_span name)
{
	return hpx_span_index(name, '_') < name.len;
}

static bool is_among(struct hpx_span name, const struct hpx_span *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (hpx_span_ieq(name, names[i]))
			return true;
	return false;
}

/* Names that count under every configuration. Of a family (a prefix) every name
 * counts, except names with an underscore: those are the twins of other names of the
 * family. */
static bool is_always(struct hpx_span name)
{
	static const struct hpx_span names[] = {
		HPX_SPAN_INIT("host"),
		HPX_SPAN_INIT("authorization"),
		HPX_SPAN_INIT("cookie"),
		HPX_SPAN_INIT("x-api-key"),
		HPX_SPAN_INIT("origin"),
		HPX_SPAN_INIT("prefer"),
		HPX_SPAN_INIT("expect"),
		HPX_SPAN_INIT("idempotency-key"),
		HPX_SPAN_INIT("forwarded"),
		HPX_SPAN_INIT("transfer-encoding"),
	};
	static const struct hpx_span families[] = {
		HPX_SPAN_INIT("content-"),
		HPX_SPAN_INIT("x-forwarded-"),
		HPX_SPAN_INIT("hapax-"),
	};

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (hpx_span_istarts(name, families[i]))
			return !has_underscore(name);
	return is_among(name, names, sizeof(names) / sizeof(names[0])) ||
	       is_among(name, hpx_method_override, HPX_METHOD_OVERRIDE_COUNT);
}

static bool has_tenant_header(const struct hpx_settings *settings)
{
	return settings->tenant.from == HPX_TENANT_HEADER ||
	       settings->tenant.from == HPX_TENANT_CREDENTIAL;
}

/* Headers that name the tenant, or would if they were alone. A header that only looks
 * like a credential is no part of the tenant and is not acted on; but the service
 * that names tenants gets it. */
static bool names_tenant(const struct hpx_settings *settings, struct hpx_span name)
{
	const char *twin = NULL;

	if (!hpx_tenant_looks_at(settings, name))
		return false;
	return settings->tenant.from == HPX_TENANT_SUBREQUEST ||
	       hpx_caller_field_of(name, &twin) != HPX_CALLER_SUSPECT ||
	       is_among(name, settings->tenant.with, settings->tenant.with_count) ||
	       (has_tenant_header(settings) && hpx_span_ieq(name, settings->tenant.name));
}

/* The names that stand in the configuration, one by one; ptr NULL behind the
 * last. */
static struct hpx_span configured(const struct hpx_settings *settings,
				  const struct hpx_route *route, size_t n)
{
	if (n == 0)
		return settings->key_header;
	n--;
	if (n < route->key_from.count)
		return route->key_from.at[n].place == HPX_KEY_IN_HEADER ? route->key_from.at[n].name :
									  settings->key_header;
	n -= route->key_from.count;
	if (has_tenant_header(settings) && n-- == 0)
		return settings->tenant.name;
	if (n < settings->tenant.with_count)
		return settings->tenant.with[n];
	n -= settings->tenant.with_count;
	if (n < route->recipe.header_count)
		return route->recipe.headers[n];
	return (struct hpx_span){ NULL, 0 };
}

static bool is_configured(const struct hpx_settings *settings, const struct hpx_route *route,
			  struct hpx_span name, bool (*equal)(struct hpx_span, struct hpx_span))
{
	struct hpx_span other;

	for (size_t n = 0; (other = configured(settings, route, n)).ptr != NULL; n++)
		if (equal(name, other))
			return true;
	return false;
}

static bool same_name(struct hpx_span a, struct hpx_span b)
{
	return hpx_span_ieq(a, b);
}

enum hpx_field_standing hpx_field_standing(const struct hpx_settings *settings,
					   const struct hpx_route *route, struct hpx_span name)
{
	char text[DASHED_MAX];
	struct hpx_span dashed = { text, name.len < sizeof(text) ? name.len : sizeof(text) };

	if (is_always(name) || is_configured(settings, route, name, same_name) ||
	    names_tenant(settings, name))
		return HPX_FIELD_ACTED_ON;
	if (is_configured(settings, route, name, reads_alike))
		return HPX_FIELD_TWIN;
	if (!has_underscore(name))
		return HPX_FIELD_FREE;
	for (size_t i = 0; i < dashed.len; i++)
		text[i] = folded(name.ptr[i]);
	return is_always(dashed) || names_tenant(settings, dashed) ? HPX_FIELD_TWIN :
								     HPX_FIELD_FREE;
}

/* Out of memory, the refusal has a shorter text. */
static const char *words(struct hpx_span text, const char *otherwise)
{
	return text.ptr != NULL ? text.ptr : otherwise;
}

static const char *connection_fault(const struct hpx_settings *settings,
				    const struct hpx_route *route, struct hpx_span list,
				    struct hpx_arena *arena)
{
	static const struct hpx_span usual[] = { HPX_SPAN_INIT("close"),
						 HPX_SPAN_INIT("keep-alive"),
						 HPX_SPAN_INIT("upgrade") };
	struct hpx_span option;

	while (hpx_span_split(&list, ',', &option)) {
		option = hpx_span_trim(option);
		if (is_among(option, usual, sizeof(usual) / sizeof(usual[0])) ||
		    hpx_field_standing(settings, route, option) == HPX_FIELD_FREE)
			continue;
		return words(hpx_arena_printf(
				     arena, "Connection names %.*s, which would not be sent on; hapax acts "
					    "on it, so it must be",
				     HPX_SPAN_ARG(hpx_span_first(option, SHOWN_MAX))),
			     "Connection names a header that hapax acts on");
	}
	return NULL;
}

static const char *twin_fault(struct hpx_span name, struct hpx_arena *arena)
{
	return words(hpx_arena_printf(
			     arena, "servers that take _ for - read the header %.*s as one that hapax "
				    "acts on; send it with the other sign, or not at all%s",
			     HPX_SPAN_ARG(hpx_span_first(name, SHOWN_MAX)),
			     has_underscore(name) ?
				     "; or the operator writes underscore_headers: drop" :
				     ""),
		     "a header's name has _ where one that hapax acts on has -");
}

static bool is_underscored(struct hpx_span name, struct hpx_span other)
{
	(void)name;
	return has_underscore(other);
}

const char *hpx_field_rule_fault(const struct hpx_settings *settings,
				 const struct hpx_route *route,
				 const struct hpx_http_head *head, struct hpx_arena *arena)
{
	/* Only then can a name without an underscore be a twin. */
	bool all = is_configured(settings, route, settings->key_header, is_underscored);

	for (size_t i = 0; i < head->field_count; i++) {
		const struct hpx_field *field = &head->fields[i];
		enum hpx_field_name known = hpx_field_name_at(head, i);
		/* No name that has a number has an underscore. */
		bool underscore = known == HPX_NAME_OTHER && has_underscore(field->name);
		const char *fault = NULL;
		if (known == HPX_NAME_CONNECTION)
			fault = connection_fault(settings, route, field->value, arena);
		else if ((all || underscore) && !(underscore && settings->drop_underscores) &&
			 hpx_field_standing(settings, route, field->name) == HPX_FIELD_TWIN)
			fault = twin_fault(field->name, arena);
		if (fault != NULL)
			return fault;
	}
	return NULL;
}

/* Cookie may come in several fields (RFC 9113 §8.2.3 has them joined), and all of
 * them are looked at. */
static bool is_single(const struct hpx_settings *settings, enum hpx_field_name known,
		      struct hpx_span name)
{
	return known == HPX_NAME_CONTENT_TYPE || known == HPX_NAME_AUTHORIZATION ||
	       known == HPX_NAME_ORIGIN ||
	       (known != HPX_NAME_COOKIE && names_tenant(settings, name));
}

/* A hash that is the same for all names that read alike (FNV-1a): many long names are
 * told apart without comparing each with each. */
static uint32_t hash_of(struct hpx_span name)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < name.len; i++)
		hash = (hash ^ (unsigned char)folded(name.ptr[i])) * 16777619u;
	return hash;
}

const char *hpx_field_rule_repeated(const struct hpx_settings *settings,
				    const struct hpx_http_head *head, struct hpx_arena *arena)
{
	struct {
		uint32_t hash;
		struct hpx_span name;
	} seen[HPX_HTTP_FIELDS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < head->field_count && count < HPX_HTTP_FIELDS_MAX; i++) {
		struct hpx_span name = head->fields[i].name;
		if (!is_single(settings, hpx_field_name_at(head, i), name))
			continue;
		uint32_t hash = hash_of(name);
		size_t j = 0;
		while (j < count && !(seen[j].hash == hash && reads_alike(seen[j].name, name)))
			j++;
		if (j < count)
			return words(hpx_arena_printf(
					     arena, "%.*s is sent more than once, and two servers may "
						    "read two different ones; send one",
					     HPX_SPAN_ARG(hpx_span_first(name, SHOWN_MAX))),
				     "a header that says whose the request is, or what, is sent twice");
		seen[count].hash = hash;
		seen[count++].name = name;
	}
	return NULL;
}

bool hpx_field_rule_drops(const struct hpx_settings *settings, const struct hpx_route *route,
			  struct hpx_span name)
{
	return settings->drop_underscores && has_underscore(name) &&
	       hpx_field_standing(settings, route, name) != HPX_FIELD_ACTED_ON;
}
