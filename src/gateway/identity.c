/* The cache is sets of four: a credential's hash says which set, and within it
 * the one that ends first makes room. Refusals are remembered for a short time
 * only, so whoever tries credentials at random pushes out other refusals
 * before anybody's name. */
#include "gateway/identity.h"

#include <stdlib.h>

#include "http/field.h"

#define WAYS 4

struct entry {
	uint8_t digest[HPX_SHA256_SIZE];
	int64_t until_ms; /* in the past: free */
	struct hpx_identity identity;
};

struct hpx_identities {
	size_t set_count;
	struct entry entries[];
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
		calloc(1, sizeof(*identities) + sets * WAYS * sizeof(struct entry));

	if (identities != NULL)
		identities->set_count = sets;
	return identities;
}

void hpx_identities_free(struct hpx_identities *identities)
{
	free(identities);
}

static struct entry *set_of(struct hpx_identities *identities,
			    const uint8_t digest[HPX_SHA256_SIZE])
{
	uint32_t word;

	memcpy(&word, digest, sizeof(word));
	return &identities->entries[word % identities->set_count * WAYS];
}

static bool is_it(const struct entry *entry, const uint8_t digest[HPX_SHA256_SIZE])
{
	return entry->until_ms != 0 && hpx_bytes_same(entry->digest, digest, HPX_SHA256_SIZE);
}

bool hpx_identities_find(struct hpx_identities *identities,
			 const uint8_t digest[HPX_SHA256_SIZE], int64_t now_ms,
			 struct hpx_identity *ret_identity)
{
	const struct entry *set = set_of(identities, digest);

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
	struct entry *set = set_of(identities, digest);
	struct entry *place = &set[0];

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
