/* The edit distance of two words: Damerau and Levenshtein, by the rows of their
 * table, with neighbours swapped at most once. */
#include "config/suggestion.h"

#include "base/status.h"

#define WORD_MAX 63
/* The distance of a word too many: more than a slip or two in a longer name, so
 * that "upstream_mane" is still "upstream_name". */
#define FURTHER_WORD 3

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* SIZE_MAX where it is more than `most`: a row whose every element is more ends it, and the
 * lengths alone do for nearly all candidates. A configuration full of wrong names is compared
 * with every option. */
static size_t distance_within(struct hpx_span a, struct hpx_span b, size_t most)
{
	size_t rows[3][WORD_MAX + 1];
	size_t *before = rows[0];
	size_t *last = rows[1];
	size_t *row = rows[2];

	if (a.len > WORD_MAX || b.len > WORD_MAX ||
	    (a.len > b.len ? a.len - b.len : b.len - a.len) > most)
		return SIZE_MAX;
	for (size_t j = 0; j <= b.len; j++)
		last[j] = j;
	for (size_t i = 1; i <= a.len; i++) {
		size_t nearest = i;
		row[0] = i;
		for (size_t j = 1; j <= b.len; j++) {
			bool same = hpx_lower(a.ptr[i - 1]) == hpx_lower(b.ptr[j - 1]);
			row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + !same);
			if (i > 1 && j > 1 && hpx_lower(a.ptr[i - 1]) == hpx_lower(b.ptr[j - 2]) &&
			    hpx_lower(a.ptr[i - 2]) == hpx_lower(b.ptr[j - 1]))
				row[j] = least(row[j], before[j - 2] + 1);
			nearest = least(nearest, row[j]);
		}
		/* A swap reaches back over one row, and costs one. */
		if (nearest > most && nearest - most > 1)
			return SIZE_MAX;
		size_t *free_row = before;
		before = last;
		last = row;
		row = free_row;
	}
	HPX_ASSERT(last[b.len] <= a.len + b.len);
	return last[b.len] <= most ? last[b.len] : SIZE_MAX;
}

size_t hpx_edit_distance(struct hpx_span a, struct hpx_span b)
{
	return distance_within(a, b, SIZE_MAX);
}

/* "upstream_url" for "upstream". */
static bool has_further_word(struct hpx_span given, struct hpx_span candidate)
{
	return given.len > candidate.len && hpx_span_istarts(given, candidate) &&
	       (given.ptr[candidate.len] == '_' || given.ptr[candidate.len] == '-');
}

bool hpx_suggestion_consider(struct hpx_suggestion *suggestion, struct hpx_span given,
			     struct hpx_span candidate)
{
	size_t most = candidate.len / 4 + (!suggestion->narrow || candidate.len < 4);
	bool further = has_further_word(given, candidate);
	size_t distance = distance_within(given, candidate, further && most < FURTHER_WORD ? FURTHER_WORD : most);

	if (further)
		distance = least(distance, FURTHER_WORD);
	else if (distance > most || distance >= candidate.len)
		return false;
	if (suggestion->word.ptr != NULL && distance >= suggestion->distance)
		return false;
	suggestion->word = candidate;
	suggestion->distance = distance;
	return true;
}
