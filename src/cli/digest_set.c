/* Open addressing over truncated digests; a place of zeros is free. The lowest bit of the
 * last byte is the mark and no part of the digest. */
#include "cli/digest_set.h"
#include "base/status.h"

#include <stdlib.h>

#include "base/bytes.h"

#define FIRST_PLACES 1024
#define MARK 1u

static enum hpx_status hash(struct hpx_span name, uint8_t out[HPX_DIGEST_SIZE])
{
	uint8_t digest[HPX_SHA256_SIZE];
	struct hpx_sha256 sha;

	hpx_sha256_init(&sha);
	hpx_sha256_add(&sha, name);
	enum hpx_status status = hpx_sha256_done(&sha, digest);
	memcpy(out, digest, HPX_DIGEST_SIZE);
	out[HPX_DIGEST_SIZE - 1] &= (uint8_t)~MARK;
	return status;
}

static bool is_free(const uint8_t place[HPX_DIGEST_SIZE])
{
	static const uint8_t zeros[HPX_DIGEST_SIZE];

	return memcmp(place, zeros, HPX_DIGEST_SIZE) == 0;
}

static bool is_same(const uint8_t place[HPX_DIGEST_SIZE], const uint8_t key[HPX_DIGEST_SIZE])
{
	return memcmp(place, key, HPX_DIGEST_SIZE - 1) == 0 &&
	       (place[HPX_DIGEST_SIZE - 1] & ~MARK) == key[HPX_DIGEST_SIZE - 1];
}

/* The place where the key is, or would be; there is always a free place. */
static size_t place_of(const struct hpx_digest_set *set, const uint8_t key[HPX_DIGEST_SIZE])
{
	size_t at = 0;

	HPX_ASSERT(set->place_count > 0 && 2 * set->count <= set->place_count);
	memcpy(&at, key, sizeof(at));
	for (at &= set->place_count - 1;; at = (at + 1) & (set->place_count - 1))
		if (is_free(set->places[at]) || is_same(set->places[at], key))
			return at;
}

void hpx_digest_set_done(struct hpx_digest_set *set)
{
	free(set->places);
	free(set->numbers);
	*set = (struct hpx_digest_set){ NULL, NULL, 0, 0 };
}

static enum hpx_status grow(struct hpx_digest_set *set, bool numbered)
{
	struct hpx_digest_set larger = { .count = set->count,
					 .place_count = set->place_count ? 2 * set->place_count :
									   FIRST_PLACES };

	larger.places = calloc(larger.place_count, HPX_DIGEST_SIZE);
	larger.numbers = numbered ? calloc(larger.place_count, sizeof(*larger.numbers)) : NULL;
	if (larger.places == NULL || (numbered && larger.numbers == NULL)) {
		hpx_digest_set_done(&larger);
		return HPX_NOMEM;
	}
	for (size_t i = 0; i < set->place_count; i++) {
		uint8_t key[HPX_DIGEST_SIZE];

		if (is_free(set->places[i]))
			continue;
		memcpy(key, set->places[i], sizeof(key));
		key[HPX_DIGEST_SIZE - 1] &= (uint8_t)~MARK;
		size_t at = place_of(&larger, key);
		memcpy(larger.places[at], set->places[i], HPX_DIGEST_SIZE);
		if (numbered)
			larger.numbers[at] = set->numbers[i];
	}
	hpx_digest_set_done(set);
	*set = larger;
	return HPX_OK;
}

/* Finds the place of the name, or takes one for it. */
static enum hpx_status take(struct hpx_digest_set *set, struct hpx_span name, bool numbered,
			    size_t *ret_at)
{
	uint8_t key[HPX_DIGEST_SIZE];
	enum hpx_status status = hash(name, key);

	if (status == HPX_OK && 2 * (set->count + 1) > set->place_count)
		status = set->count < HPX_DIGEST_SET_MAX ? grow(set, numbered) : HPX_TOO_LARGE;
	if (status != HPX_OK)
		return status;
	*ret_at = place_of(set, key);
	if (is_free(set->places[*ret_at])) {
		memcpy(set->places[*ret_at], key, HPX_DIGEST_SIZE);
		set->count++;
	}
	HPX_ASSERT(2 * set->count <= set->place_count);
	return HPX_OK;
}

enum hpx_status hpx_digest_set_add(struct hpx_digest_set *set, struct hpx_span name, bool marked,
				   bool *ret_before)
{
	size_t at;

	HPX_ASSERT(set->numbers == NULL);
	enum hpx_status status = take(set, name, false, &at);

	if (status != HPX_OK)
		return status;
	*ret_before = (set->places[at][HPX_DIGEST_SIZE - 1] & MARK) != 0;
	if (marked)
		set->places[at][HPX_DIGEST_SIZE - 1] |= MARK;
	return HPX_OK;
}

enum hpx_status hpx_digest_set_has(const struct hpx_digest_set *set, struct hpx_span name,
				   bool *ret_has)
{
	uint8_t key[HPX_DIGEST_SIZE];
	enum hpx_status status = hash(name, key);

	*ret_has = status == HPX_OK && set->place_count > 0 &&
		   !is_free(set->places[place_of(set, key)]);
	return status;
}

enum hpx_status hpx_digest_set_put(struct hpx_digest_set *set, struct hpx_span name, int64_t number)
{
	size_t at;

	HPX_ASSERT(set->numbers != NULL || set->count == 0);
	enum hpx_status status = take(set, name, true, &at);
	if (status == HPX_OK && set->numbers[at] == 0)
		set->numbers[at] = number;
	return status;
}

enum hpx_status hpx_digest_set_number(const struct hpx_digest_set *set, struct hpx_span name,
				      int64_t *ret_number)
{
	uint8_t key[HPX_DIGEST_SIZE];
	enum hpx_status status = hash(name, key);

	if (status != HPX_OK)
		return status;
	if (set->place_count == 0 || is_free(set->places[place_of(set, key)]))
		return HPX_NOT_FOUND;
	HPX_ASSERT(set->numbers != NULL);
	*ret_number = set->numbers[place_of(set, key)];
	return HPX_OK;
}
