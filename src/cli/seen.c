/* Open addressing over truncated hashes; a place of zeros is free. The lowest
 * bit of the last byte is the mark and no part of the name. */
#include "cli/seen.h"

#include <stdlib.h>

#include "base/bytes.h"

#define FIRST_PLACES 1024
#define MARK 1u

static enum hpx_status hash(struct hpx_span name, uint8_t out[HPX_SEEN_SIZE])
{
	uint8_t digest[HPX_SHA256_SIZE];
	struct hpx_sha256 sha;

	hpx_sha256_init(&sha);
	hpx_sha256_add(&sha, name);
	enum hpx_status status = hpx_sha256_done(&sha, digest);
	memcpy(out, digest, HPX_SEEN_SIZE);
	out[HPX_SEEN_SIZE - 1] &= (uint8_t)~MARK;
	return status;
}

static bool is_free(const uint8_t place[HPX_SEEN_SIZE])
{
	static const uint8_t zeros[HPX_SEEN_SIZE];

	return memcmp(place, zeros, HPX_SEEN_SIZE) == 0;
}

static bool is_same(const uint8_t place[HPX_SEEN_SIZE], const uint8_t key[HPX_SEEN_SIZE])
{
	return memcmp(place, key, HPX_SEEN_SIZE - 1) == 0 &&
	       (place[HPX_SEEN_SIZE - 1] & ~MARK) == key[HPX_SEEN_SIZE - 1];
}

/* Where the key is, or would be; there is always a free place. */
static size_t place_of(const struct hpx_seen *seen, const uint8_t key[HPX_SEEN_SIZE])
{
	size_t at = 0;

	memcpy(&at, key, sizeof(at));
	for (at &= seen->place_count - 1;; at = (at + 1) & (seen->place_count - 1))
		if (is_free(seen->places[at]) || is_same(seen->places[at], key))
			return at;
}

void hpx_seen_done(struct hpx_seen *seen)
{
	free(seen->places);
	free(seen->numbers);
	*seen = (struct hpx_seen){ NULL, NULL, 0, 0 };
}

static enum hpx_status grow(struct hpx_seen *seen, bool numbered)
{
	struct hpx_seen larger = { .count = seen->count,
				   .place_count = seen->place_count ? 2 * seen->place_count :
								      FIRST_PLACES };

	larger.places = calloc(larger.place_count, HPX_SEEN_SIZE);
	larger.numbers = numbered ? calloc(larger.place_count, sizeof(*larger.numbers)) : NULL;
	if (larger.places == NULL || (numbered && larger.numbers == NULL)) {
		hpx_seen_done(&larger);
		return HPX_NOMEM;
	}
	for (size_t i = 0; i < seen->place_count; i++) {
		uint8_t key[HPX_SEEN_SIZE];

		if (is_free(seen->places[i]))
			continue;
		memcpy(key, seen->places[i], sizeof(key));
		key[HPX_SEEN_SIZE - 1] &= (uint8_t)~MARK;
		size_t at = place_of(&larger, key);
		memcpy(larger.places[at], seen->places[i], HPX_SEEN_SIZE);
		if (numbered)
			larger.numbers[at] = seen->numbers[i];
	}
	hpx_seen_done(seen);
	*seen = larger;
	return HPX_OK;
}

/* The place of the name, taken now or before. */
static enum hpx_status take(struct hpx_seen *seen, struct hpx_span name, bool numbered,
			    size_t *ret_at)
{
	uint8_t key[HPX_SEEN_SIZE];
	enum hpx_status status = hash(name, key);

	if (status == HPX_OK && 2 * (seen->count + 1) > seen->place_count)
		status = seen->count < HPX_SEEN_MAX ? grow(seen, numbered) : HPX_TOO_LARGE;
	if (status != HPX_OK)
		return status;
	*ret_at = place_of(seen, key);
	if (is_free(seen->places[*ret_at])) {
		memcpy(seen->places[*ret_at], key, HPX_SEEN_SIZE);
		seen->count++;
	}
	return HPX_OK;
}

enum hpx_status hpx_seen_add(struct hpx_seen *seen, struct hpx_span name, bool marked,
			     bool *ret_before)
{
	size_t at;
	enum hpx_status status = take(seen, name, false, &at);

	if (status != HPX_OK)
		return status;
	*ret_before = (seen->places[at][HPX_SEEN_SIZE - 1] & MARK) != 0;
	if (marked)
		seen->places[at][HPX_SEEN_SIZE - 1] |= MARK;
	return HPX_OK;
}

enum hpx_status hpx_seen_has(const struct hpx_seen *seen, struct hpx_span name, bool *ret_has)
{
	uint8_t key[HPX_SEEN_SIZE];
	enum hpx_status status = hash(name, key);

	*ret_has = status == HPX_OK && seen->place_count > 0 &&
		   !is_free(seen->places[place_of(seen, key)]);
	return status;
}

enum hpx_status hpx_seen_put(struct hpx_seen *seen, struct hpx_span name, int64_t number)
{
	size_t at;
	enum hpx_status status = take(seen, name, true, &at);

	if (status == HPX_OK && seen->numbers[at] == 0)
		seen->numbers[at] = number;
	return status;
}

enum hpx_status hpx_seen_number(const struct hpx_seen *seen, struct hpx_span name,
				int64_t *ret_number)
{
	uint8_t key[HPX_SEEN_SIZE];
	enum hpx_status status = hash(name, key);

	if (status != HPX_OK)
		return status;
	if (seen->place_count == 0 || is_free(seen->places[place_of(seen, key)]))
		return HPX_NOT_FOUND;
	*ret_number = seen->numbers[place_of(seen, key)];
	return HPX_OK;
}
