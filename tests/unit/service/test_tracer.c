/* Shows that the spans that wait are bounded, that a request's spans are kept or dropped
 * together and come out in their order, how a span gets its ids and flags, and that the share
 * is kept. */
#include "../test.h"

#include <stdlib.h>

#include "service/tracer.h"

#define SPANS_MAX 512

static const struct hpx_trace_settings settings = {
	.caller = { .url = "http://127.0.0.1:1/v1/traces" },
	.sample_millionths = HPX_MILLION,
	.spans_max = SPANS_MAX,
};

static size_t take(struct hpx_tracer *tracer, struct hpx_trace_span *out, size_t max)
{
	hpx_thread_lock(&tracer->thread);
	size_t count = hpx_tracer_take(tracer, out, max);
	hpx_thread_unlock(&tracer->thread);
	return count;
}

static void off_without_a_collector(void **state)
{
	struct hpx_trace_settings off = settings;
	struct hpx_tracer *tracer;

	(void)state;
	off.caller.url = NULL;
	assert_int_equal(hpx_tracer_new(&off, &tracer), HPX_OK);
	assert_null(tracer);
	hpx_tracer_free(tracer);
}

/* Three spans at a time into 512 places: 170 requests, then none until there is room. */
static void all_or_none(void **state)
{
	static struct hpx_trace_span out[SPANS_MAX];
	struct hpx_trace_span three[3] = { { .attempt = 0 } };
	struct hpx_tracer *tracer;
	unsigned sent = 0, got = 0;

	(void)state;
	assert_int_equal(hpx_tracer_new(&settings, &tracer), HPX_OK);
	for (unsigned round = 0; round < 5; round++) {
		for (unsigned i = 0; i < 200; i++) {
			uint64_t before = hpx_counter_read(&tracer->dropped);
			for (unsigned n = 0; n < 3; n++)
				three[n].attempt = sent + n;
			hpx_tracer_add(tracer, three, 3);
			if (hpx_counter_read(&tracer->dropped) == before)
				sent += 3;
		}
		assert_int_equal(hpx_counter_read(&tracer->dropped), (round + 1) * 30 * 3);
		for (size_t count; (count = take(tracer, out, 100)) > 0;)
			for (size_t i = 0; i < count; i++)
				assert_int_equal(out[i].attempt, got++);
		assert_int_equal(got, sent);
	}
	assert_int_equal(sent, 5 * 170 * 3);
	hpx_tracer_free(tracer);
}

static void ids_and_flags(void **state)
{
	static const uint8_t zeros[HPX_TRACE_RANDOM_BYTES];
	struct hpx_trace_context parent = { .trace_id = { 7 }, .span_id = { 9 } }, child;

	(void)state;
	for (unsigned flags = 0; flags < 4; flags++) {
		parent.flags = (uint8_t)flags;
		hpx_trace_begin(&settings, &parent, zeros, &child);
		assert_memory_equal(child.trace_id, parent.trace_id, sizeof(child.trace_id));
		assert_int_equal(child.flags, flags);
		assert_int_equal(child.span_id[0], 1);
		assert_ptr_equal(hpx_trace_sent_on(&parent, &child), flags & 1 ? &child : &parent);
	}
	hpx_trace_begin(&settings, NULL, zeros, &child);
	assert_true(hpx_trace_is_given(&child));
	assert_int_equal(child.flags, HPX_TRACE_SAMPLED | HPX_TRACE_RANDOM);
	parent = (struct hpx_trace_context){ .flags = 0 };
	child.flags = 0;
	assert_ptr_equal(hpx_trace_sent_on(&parent, &child), &child);
}

/* The largest and the smallest id, and a share of random ones. */
static void the_share(void **state)
{
	static const uint32_t shares[] = { 0, 1, 250000, 999999, HPX_MILLION };
	uint8_t random[HPX_TRACE_RANDOM_BYTES];
	struct hpx_trace_context context;
	const unsigned tries = 20000;

	(void)state;
	for (size_t s = 0; s < sizeof(shares) / sizeof(shares[0]); s++) {
		struct hpx_trace_settings some = settings;
		unsigned sampled = 0;

		some.sample_millionths = shares[s];
		for (unsigned i = 0; i < tries; i++) {
			hpx_random(random, sizeof(random));
			hpx_trace_begin(&some, NULL, random, &context);
			sampled += hpx_trace_is_sampled(&context);
		}
		/* Nine standard deviations of a share of a quarter are 551. */
		unsigned wanted = (unsigned)((uint64_t)tries * shares[s] / HPX_MILLION);
		if (abs((int)sampled - (int)wanted) > 551)
			fail_msg("share %u: got %u, want %u", shares[s], sampled, wanted);
		memset(random, 0xff, sizeof(random));
		hpx_trace_begin(&some, NULL, random, &context);
		assert_int_equal(hpx_trace_is_sampled(&context), shares[s] == HPX_MILLION);
		memset(random, 0, sizeof(random));
		hpx_trace_begin(&some, NULL, random, &context);
		assert_int_equal(hpx_trace_is_sampled(&context), shares[s] > 0);
	}
}

static void texts_are_cut_between_characters(void **state)
{
	char out[5];

	(void)state;
	HPX_TRACE_PUT(out, HPX_SPAN("abcd"));
	assert_string_equal(out, "abcd");
	HPX_TRACE_PUT(out, HPX_SPAN("abcde"));
	assert_string_equal(out, "abcd");
	HPX_TRACE_PUT(out, HPX_SPAN("abc\xc3\xa9"));
	assert_string_equal(out, "abc");
	HPX_TRACE_PUT(out, HPX_SPAN("a\xe2\x82\xac"));
	assert_string_equal(out, "a\xe2\x82\xac");
	HPX_TRACE_PUT(out, hpx_span(NULL, 0));
	assert_string_equal(out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(off_without_a_collector),
		cmocka_unit_test(all_or_none),
		cmocka_unit_test(ids_and_flags),
		cmocka_unit_test(the_share),
		cmocka_unit_test(texts_are_cut_between_characters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
