/* Requests that keys are none of the business of: GET and DELETE. */
#include "verify/rows.h"

/* What is read: `get`, else the GET of the effects, else where the first is. */
static bool what_to_get(struct hpx_judge *judge, struct hpx_sending *ret_sending)
{
	const struct hpx_verify_spec *spec = hpx_verify_spec_of(judge->run);
	bool given = spec->requests[HPX_REQUEST_get].given;
	struct hpx_intent *intent =
		hpx_judge_intend(judge, given ? HPX_REQUEST_get : HPX_REQUEST_main);
	const struct hpx_exchange *first = NULL;

	*ret_sending = (struct hpx_sending){ .intent = intent };
	if (intent == NULL || given)
		return intent != NULL;
	ret_sending->method = HPX_SPAN("GET");
	ret_sending->body = HPX_SPAN("");
	if (spec->effects_path.len > 0) {
		ret_sending->path = hpx_verify_fill(judge->run, intent, spec->effects_path);
		return true;
	}
	first = hpx_judge_do(judge, intent);
	if (first == NULL)
		return false;
	struct hpx_span location = hpx_exchange_field(first, HPX_SPAN("Location"));
	ret_sending->path = location;
	/* Any other form may lead to another host. */
	if (location.len > 1 && location.ptr[0] == '/' && location.ptr[1] != '/')
		return true;
	return hpx_judge_not_applicable(judge, "the description has no request `get`, and the answer no Location that is a path");
}

static bool not_marked(struct hpx_judge *judge, const struct hpx_exchange *exchange)
{
	if (!hpx_judge_is_marked(exchange))
		return true;
	return hpx_judge_broken(judge, "#%u is marked as a replay: %s", exchange->number,
				hpx_judge_words(judge, exchange));
}

/* What a key has to do with a GET of the effects, before and behind an effect. */
struct reading {
	const struct hpx_exchange *before; /* with the key */
	const struct hpx_exchange *bare;   /* behind the effect, without */
	const struct hpx_exchange *after;  /* with the key again */
};

static bool is_stale(struct hpx_judge *judge, const struct hpx_sending *keyed,
		     const struct hpx_sending *bare, struct reading *reading)
{
	for (unsigned i = 0; i <= HPX_JUDGE_LOOKS_MAX; i++) {
		if (i > 0)
			hpx_verify_pause(judge->run, HPX_JUDGE_LOOK_AGAIN_MS);
		reading->bare = hpx_judge_send(judge, bare);
		reading->after = reading->bare != NULL ? hpx_judge_send(judge, keyed) : NULL;
		if (reading->after == NULL || !hpx_exchange_same(reading->before, reading->after) ||
		    hpx_exchange_same(reading->before, reading->bare))
			return false;
	}
	return true;
}

/* With a key of its own a GET sees what happened since it was first sent. False:
 * the verdict is given. */
static bool sees_the_new(struct hpx_judge *judge)
{
	struct hpx_intent *other = hpx_judge_intend(judge, HPX_REQUEST_main);
	struct hpx_intent *intent = other != NULL ? hpx_judge_intend(judge, HPX_REQUEST_main) : NULL;
	struct reading reading = { NULL, NULL, NULL };

	if (intent == NULL)
		return false;
	struct hpx_sending keyed = {
		.intent = other,
		.method = HPX_SPAN("GET"),
		.path = hpx_verify_fill(judge->run, intent,
					hpx_verify_spec_of(judge->run)->effects_path),
		.body = HPX_SPAN(""),
	};
	struct hpx_sending bare = keyed;
	bare.key_values = HPX_RAW_KEY(HPX_SPAN(""));
	reading.before = hpx_judge_send(judge, &keyed);
	if (reading.before == NULL || hpx_judge_do(judge, intent) == NULL ||
	    !hpx_judge_effects(judge, intent, 1))
		return false;
	bool stale = is_stale(judge, &keyed, &bare, &reading);
	if (!stale)
		return reading.after != NULL;
	return hpx_judge_broken(judge, "behind an effect the GET with its key (#%u) is still answered %s, without one (#%u) %s",
				reading.after->number, hpx_judge_words(judge, reading.after),
				reading.bare->number, hpx_judge_words(judge, reading.bare));
}

void hpx_row_get_alone(struct hpx_judge *judge)
{
	struct hpx_sending keyed;

	hpx_judge_expects(judge, "a GET without a key and with one are answered alike, and neither is a replay");
	if (!what_to_get(judge, &keyed))
		return;
	struct hpx_sending bare = keyed;
	bare.key_values = HPX_RAW_KEY(HPX_SPAN(""));
	bare.key_count = 0;
	const struct hpx_exchange *without = hpx_judge_send(judge, &bare);
	if (without == NULL)
		return;
	if (without->status == 400 || without->status == 428) {
		hpx_judge_broken(judge, "without a key the GET (#%u) was answered %s",
				 without->number, hpx_judge_words(judge, without));
		return;
	}
	for (int i = 0; i < 2; i++) {
		const struct hpx_exchange *with = hpx_judge_send(judge, &keyed);

		if (with == NULL || !not_marked(judge, with))
			return;
		if (with->status != without->status) {
			hpx_judge_broken(judge, "with a key the GET (#%u) was answered %s, without one (#%u) %s",
					 with->number, hpx_judge_words(judge, with),
					 without->number, hpx_judge_words(judge, without));
			return;
		}
	}
	if (!hpx_verify_counts(judge->run) || sees_the_new(judge))
		hpx_judge_holds(judge, "%u each time, and no replay", without->status);
}

void hpx_row_delete_alone(struct hpx_judge *judge)
{
	const struct hpx_exchange *answers[3];

	hpx_judge_expects(judge, "a DELETE without a key is not refused for that; with one it is not replayed");
	if (!hpx_judge_has(judge, HPX_REQUEST_delete))
		return;
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_delete);
	if (intent == NULL)
		return;
	struct hpx_sending keyed = { .intent = intent };
	struct hpx_sending bare = { .intent = intent, .key_values = HPX_RAW_KEY(HPX_SPAN("")) };
	for (int i = 0; i < 3; i++) {
		answers[i] = hpx_judge_send(judge, i < 2 ? &keyed : &bare);
		if (answers[i] == NULL || !not_marked(judge, answers[i]))
			return;
	}
	if (answers[2]->status == 400 || answers[2]->status == 422 || answers[2]->status == 428)
		hpx_judge_broken(judge, "without a key the DELETE (#%u) was answered %s",
				 answers[2]->number, hpx_judge_words(judge, answers[2]));
	/* The second and the third both repeat the first: whoever executes them
	 * answers them alike. */
	else if (answers[1]->status != answers[2]->status)
		hpx_judge_broken(judge, "with its key the second DELETE (#%u) was answered %s, like the first; without a key (#%u) %s",
				 answers[1]->number, hpx_judge_words(judge, answers[1]),
				 answers[2]->number, hpx_judge_words(judge, answers[2]));
	else
		hpx_judge_holds(judge, "%u, %u and without a key %u", answers[0]->status,
				answers[1]->status, answers[2]->status);
}
