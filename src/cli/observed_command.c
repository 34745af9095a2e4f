/* `hapax observed`: says in words what a gateway that observes has seen, out of its
 * metrics and its list of operations. What is counted, and where, is src/gateway/. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "cli/cli.h"
#include "gateway/meter.h"

#define PAGE_BYTES_MAX ((size_t)32 << 20)
#define TENANTS_MAX 1024
#define NAME_SIZE 256
/* Lines of a list for people; --json has all. */
#define LISTED_MAX 20

struct observed_route {
	char name[NAME_SIZE];
	uint64_t would[HPX_OBSERVED_COUNT];
};

struct observed_tenant {
	char name[NAME_SIZE];
	uint64_t duplicates;
	uint64_t mismatches; /* among the duplicates */
};

struct observed {
	struct observed_route routes[HPX_METER_ROUTES];
	size_t route_count;
	struct observed_tenant tenants[TENANTS_MAX];
	size_t tenant_count;
	uint64_t total[HPX_OBSERVED_COUNT]; /* over all routes */
	bool known;                         /* the page has the metric */
	json_t *operations;                 /* of /api/v1/coverage; NULL: not read */
};

static const char *const would_names[] = {
#define X(name) #name,
	HPX_OBSERVED_LIST(X)
#undef X
};

/* What a count means, for one request and for many, and what it would have got. */
static const struct {
	const char *one;
	const char *many;
	const char *with_hapax;
} sentences[HPX_OBSERVED_COUNT] = {
	[HPX_OBSERVED_created] = { "had a new key", "had new keys", "passed on, and its answer stored" },
	[HPX_OBSERVED_replay] = { "was a retry that the service executed again",
				  "were retries that the service executed again",
				  "the stored answer; nothing is executed" },
	[HPX_OBSERVED_in_progress] = { "came while the first with its key was running",
				       "came while the first with their key was running",
				       "409, or with concurrent: wait the first answer" },
	[HPX_OBSERVED_mismatch] = { "had the key of another request", "had the key of another request",
				    "422, unless only white space or the order of JSON differs" },
	[HPX_OBSERVED_key_missing] = { "had no key", "had no key",
				       "400, unless the route says key: optional" },
	[HPX_OBSERVED_key_invalid] = { "had a malformed key, or a new one that the route refuses",
				       "had malformed keys, or new ones that the route refuses",
				       "400" },
	[HPX_OBSERVED_too_old] = { "had a new key and too old a time", "had new keys and too old a time",
				   "400 by the route's max_age" },
	[HPX_OBSERVED_key_personal] = { "had an address or a card number in its key",
					"had an address or a card number in their keys",
					"its key is stored, unless the route says key_refuse: [email, card]" },
	[HPX_OBSERVED_unauthenticated] = { "named no caller that hapax can tell from others",
					   "named no caller that hapax can tell from others",
					   "401, until the option tenant says who is calling" },
	[HPX_OBSERVED_bad_request] = { "was a request that two servers may read differently",
				       "were requests that two servers may read differently",
				       "400" },
};

/* ---- reading the metrics ---- */

/* The value of a label, unescaped; false: there is none, or it does not fit. */
static bool label(struct hpx_span sample, const char *name, char out[NAME_SIZE])
{
	char begin[32];
	size_t n = 0;

	snprintf(begin, sizeof(begin), "%s=\"", name);
	struct hpx_span wanted = hpx_span_of(begin);
	while (sample.len > 0 && !hpx_span_starts(sample, wanted))
		sample = hpx_span_skip(sample, 1);
	sample = hpx_span_skip(sample, wanted.len);
	for (size_t i = 0; i < sample.len && n + 1 < NAME_SIZE; i++) {
		if (sample.ptr[i] == '"') {
			out[n] = '\0';
			return true;
		}
		if (sample.ptr[i] == '\\' && i + 1 < sample.len)
			i++;
		out[n++] = sample.ptr[i];
	}
	return false;
}

/* The number behind the labels; what is no number counts as none. */
static uint64_t value_of(struct hpx_span sample)
{
	uint64_t value = 0;
	size_t i = sample.len;

	while (i > 0 && sample.ptr[i - 1] != ' ')
		i--;
	for (; i < sample.len && sample.ptr[i] >= '0' && sample.ptr[i] <= '9'; i++) {
		if (value > (UINT64_MAX - 9) / 10)
			return UINT64_MAX;
		value = value * 10 + (uint64_t)(sample.ptr[i] - '0');
	}
	return value;
}

static struct observed_route *route_row(struct observed *seen, const char *name)
{
	for (size_t i = 0; i < seen->route_count; i++)
		if (strcmp(seen->routes[i].name, name) == 0)
			return &seen->routes[i];
	if (seen->route_count == HPX_METER_ROUTES)
		return NULL;
	struct observed_route *row = &seen->routes[seen->route_count++];
	snprintf(row->name, sizeof(row->name), "%s", name);
	return row;
}

static struct observed_tenant *tenant_row(struct observed *seen, const char *name)
{
	for (size_t i = 0; i < seen->tenant_count; i++)
		if (strcmp(seen->tenants[i].name, name) == 0)
			return &seen->tenants[i];
	if (seen->tenant_count == TENANTS_MAX)
		return &seen->tenants[TENANTS_MAX - 1]; /* the last row is shared */
	struct observed_tenant *row = &seen->tenants[seen->tenant_count++];
	snprintf(row->name, sizeof(row->name), "%s", name);
	return row;
}

static void take_observed(struct observed *seen, struct hpx_span sample)
{
	char route[NAME_SIZE], would[NAME_SIZE];

	if (!label(sample, "route", route) || !label(sample, "would", would))
		return;
	struct observed_route *row = route_row(seen, route);
	for (size_t o = 0; row != NULL && o < HPX_OBSERVED_COUNT; o++)
		if (strcmp(would, would_names[o]) == 0) {
			row->would[o] += value_of(sample);
			seen->total[o] += value_of(sample);
			seen->known = true;
		}
}

static void take_tenant(struct observed *seen, struct hpx_span sample, bool mismatches)
{
	char tenant[NAME_SIZE];
	uint64_t value = value_of(sample);

	if (value == 0 || !label(sample, "tenant", tenant))
		return;
	struct observed_tenant *row = tenant_row(seen, tenant);
	if (mismatches)
		row->mismatches += value;
	else
		row->duplicates += value;
}

static void take_metrics(struct observed *seen, struct hpx_span page)
{
	struct hpx_span line;

	while (hpx_span_split(&page, '\n', &line)) {
		if (hpx_span_starts(line, HPX_SPAN("hapax_observed_total{")))
			take_observed(seen, line);
		else if (hpx_span_starts(line, HPX_SPAN("hapax_duplicates_total{")))
			take_tenant(seen, line, false);
		else if (hpx_span_starts(line, HPX_SPAN("hapax_mismatch_total{")))
			take_tenant(seen, line, true);
	}
}

/* ---- words ---- */

static uint64_t prevented(const struct observed *seen)
{
	return seen->total[HPX_OBSERVED_replay] + seen->total[HPX_OBSERVED_in_progress];
}

/* Every request once: a personal key is counted beside what else the request was. */
static uint64_t requests_of(const uint64_t would[HPX_OBSERVED_COUNT])
{
	uint64_t count = 0;

	for (size_t o = 0; o < HPX_OBSERVED_COUNT; o++)
		count += o != HPX_OBSERVED_key_personal ? would[o] : 0;
	return count;
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void print_routes(const struct observed *seen)
{
	for (size_t i = 0; i < seen->route_count; i++) {
		const struct observed_route *row = &seen->routes[i];
		uint64_t count = requests_of(row->would);

		if (count == 0)
			continue;
		printf("\n%s: %llu request%s\n", row->name, (unsigned long long)count, plural(count));
		for (size_t o = 0; o < HPX_OBSERVED_COUNT; o++)
			if (row->would[o] > 0)
				printf("  %llu %s\n    with hapax: %s\n", (unsigned long long)row->would[o],
				       row->would[o] == 1 ? sentences[o].one : sentences[o].many,
				       sentences[o].with_hapax);
	}
}

static int by_duplicates(const void *a, const void *b)
{
	const struct observed_tenant *left = a, *right = b;

	return left->duplicates > right->duplicates ? -1 : left->duplicates < right->duplicates;
}

static void print_tenants(const struct observed *seen)
{
	if (seen->tenant_count == 0)
		return;
	printf("\nRequests with a known key, by tenant\n");
	for (size_t i = 0; i < seen->tenant_count && i < LISTED_MAX; i++) {
		const struct observed_tenant *row = &seen->tenants[i];

		printf("  %llu  %s", (unsigned long long)row->duplicates, row->name);
		if (row->mismatches > 0)
			printf(" (%llu with another body)", (unsigned long long)row->mismatches);
		printf("\n");
	}
	if (seen->tenant_count > LISTED_MAX)
		printf("  and %zu more tenants: --json lists them\n", seen->tenant_count - LISTED_MAX);
}

static void print_operations(const struct observed *seen)
{
	size_t index, listed = 0;
	json_t *operation;

	json_array_foreach(seen->operations, index, operation)
	{
		json_int_t unkeyed = json_integer_value(json_object_get(operation, "unkeyed"));
		json_int_t keyed = json_integer_value(json_object_get(operation, "keyed"));

		if (unkeyed == 0)
			continue;
		if (listed++ == 0)
			printf("\nOperations that get requests without a key\n");
		if (listed <= LISTED_MAX)
			printf("  %lld of %lld  %s %s\n", (long long)unkeyed, (long long)(keyed + unkeyed),
			       json_string_value(json_object_get(operation, "method")),
			       json_string_value(json_object_get(operation, "path")));
	}
	if (listed > LISTED_MAX)
		printf("  and %zu more: --json lists them\n", listed - LISTED_MAX);
}

static void print_words(const struct observed *seen)
{
	uint64_t count = requests_of(seen->total), kept = prevented(seen);

	if (count == 0) {
		printf("Nothing was observed yet. Requests are observed by a gateway that runs with\n"
		       "--observe, or on a route with observe: true, since its start.\n");
		return;
	}
	printf("%llu request%s observed since the start of the gateway.\n"
	       "hapax would have prevented at least %llu second execution%s.\n",
	       (unsigned long long)count, count == 1 ? " was" : "s were", (unsigned long long)kept,
	       plural(kept));
	print_routes(seen);
	print_tenants(seen);
	print_operations(seen);
}

/* ---- JSON ---- */

static int print_json(const struct observed *seen)
{
	struct hpx_json_writer json;
	struct hpx_buffer out;
	size_t index;
	json_t *operation;

	hpx_cli_json_init(&json, &out);
	hpx_json_begin_object(&json, NULL);
	hpx_json_put_number(&json, "requests", requests_of(seen->total));
	hpx_json_put_number(&json, "prevented", prevented(seen));
	hpx_json_begin_array(&json, "routes");
	for (size_t i = 0; i < seen->route_count; i++) {
		hpx_json_begin_object(&json, NULL);
		hpx_json_put_text(&json, "route", seen->routes[i].name);
		for (size_t o = 0; o < HPX_OBSERVED_COUNT; o++)
			hpx_json_put_number(&json, would_names[o], seen->routes[i].would[o]);
		hpx_json_end_object(&json);
	}
	hpx_json_end_array(&json);
	hpx_json_begin_array(&json, "tenants");
	for (size_t i = 0; i < seen->tenant_count; i++) {
		hpx_json_begin_object(&json, NULL);
		hpx_json_put_text(&json, "tenant", seen->tenants[i].name);
		hpx_json_put_number(&json, "duplicates", seen->tenants[i].duplicates);
		hpx_json_put_number(&json, "mismatches", seen->tenants[i].mismatches);
		hpx_json_end_object(&json);
	}
	hpx_json_end_array(&json);
	hpx_json_begin_array(&json, "operations");
	json_array_foreach(seen->operations, index, operation)
	{
		const char *method = json_string_value(json_object_get(operation, "method"));
		const char *path = json_string_value(json_object_get(operation, "path"));

		hpx_json_begin_object(&json, NULL);
		hpx_json_put_text(&json, "method", method != NULL ? method : "");
		hpx_json_put_text(&json, "path", path != NULL ? path : "");
		for (int k = 0; k < 2; k++) {
			const char *name = k == 0 ? "keyed" : "unkeyed";
			json_int_t value = json_integer_value(json_object_get(operation, name));

			hpx_json_put_number(&json, name, value > 0 ? (uint64_t)value : 0);
		}
		hpx_json_end_object(&json);
	}
	hpx_json_end_array(&json);
	hpx_json_end_object(&json);
	return hpx_cli_json_print(&json, "observed", "the report cannot be written");
}

/* ---- the command ---- */

/* NULL, or what is wrong with the gateway. */
static const char *read_gateway(struct observed *seen, const char *admin)
{
	struct hpx_buffer page, list;

	hpx_buffer_init(&page, PAGE_BYTES_MAX);
	hpx_buffer_init(&list, PAGE_BYTES_MAX);
	const char *problem = hpx_cli_fetch(admin, "/metrics", &page);
	if (problem == NULL)
		problem = hpx_cli_fetch(admin, "/api/v1/coverage", &list);
	if (problem == NULL) {
		json_t *whole = json_loadb(list.ptr, list.len, JSON_REJECT_DUPLICATES, NULL);

		take_metrics(seen, hpx_buffer_span(&page));
		seen->operations = json_incref(json_object_get(whole, "operations"));
		json_decref(whole);
		if (!seen->known || !json_is_array(seen->operations))
			problem = "is no admin listener of hapax serve";
	}
	hpx_buffer_done(&page);
	hpx_buffer_done(&list);
	return problem;
}

static int run(const char *admin, bool json)
{
	struct observed *seen = calloc(1, sizeof(*seen));
	int code = HPX_EXIT_FAILED;

	if (seen == NULL) {
		fprintf(stderr, "hapax observed: out of memory\n");
		return HPX_EXIT_FAILED;
	}
	const char *problem = read_gateway(seen, admin);
	qsort(seen->tenants, seen->tenant_count, sizeof(seen->tenants[0]), by_duplicates);
	if (problem != NULL) {
		fprintf(stderr,
			"hapax observed: %s: %s\nIs the gateway running, and is this its admin address "
			"(--admin, option admin)?\n",
			admin, problem);
	} else if (json) {
		code = print_json(seen);
	} else {
		print_words(seen);
		code = HPX_EXIT_OK;
	}
	json_decref(seen->operations);
	free(seen);
	return code;
}

int hpx_cli_observed(int argc, char **argv)
{
	const char *admin = NULL;
	const char *json = NULL;
	const struct hpx_cli_flag flags[] = {
		{ "admin", "URL", "The gateway's admin listener; 127.0.0.1:8081 by default. Also unix:PATH.",
		  &admin },
		{ "json", NULL, "Prints JSON instead of text.", &json },
	};
	const struct hpx_cli_usage usage = {
		.synopsis = "hapax observed [--admin URL] [--json]",
		.about = "Says what a running gateway has observed since its start: which "
			 "retries it\n"
			 "would have prevented, and which requests it would have refused, by\n"
			 "route, by tenant, and by operation.",
		.flags = flags,
		.flag_count = sizeof(flags) / sizeof(flags[0]),
	};
	int rest;
	int exit_code;

	if (!hpx_cli_read(&usage, argc, argv, &rest, &exit_code))
		return exit_code;
	return run(admin != NULL ? admin : "127.0.0.1:8081", json != NULL);
}
