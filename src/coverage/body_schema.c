/* The key in a schema: its properties and those of `allOf`, `oneOf` and `anyOf`, through
 * `$ref`, on the first level and inside a member of it. A list of places to look at, no
 * recursion; a schema that refers to itself is looked at once. */
#include "base/status.h"
#include "coverage/coverage.h"
#include "coverage/key_name.h"

/* Schemas looked at for one body. The largest published body has about 150. */
#define PLACES_MAX 1024

struct schema_place {
	struct hpx_value_at schema;
	struct hpx_span member; /* that it is the schema of; ptr NULL: the body itself */
	bool certain;           /* no alternative (oneOf, anyOf) and no optional member */
};

struct schema_search {
	struct hpx_coverage *coverage;
	struct schema_place places[PLACES_MAX];
	size_t count;
	bool parts;
	struct hpx_declared_key *key;
};

static void push(struct schema_search *search, struct hpx_value_at schema, struct hpx_span member,
		 bool certain)
{
	schema = hpx_library_resolve(&search->coverage->library, schema);
	if (!hpx_value_there(schema) || search->count == PLACES_MAX)
		return;
	for (size_t i = 0; i < search->count; i++)
		if (search->places[i].schema.document == schema.document &&
		    search->places[i].schema.node == schema.node &&
		    hpx_span_eq(search->places[i].member, member))
			return;
	search->places[search->count++] = (struct schema_place){ schema, member, certain };
}

static void push_each(struct schema_search *search, const struct schema_place *place,
		      const char *list, bool certain)
{
	struct hpx_value_at one =
		hpx_value_first(hpx_value_member(place->schema, hpx_span_of(list)));
	struct hpx_span member = place->member;
	bool still = place->certain && certain;

	for (; hpx_value_there(one); one = hpx_value_next(one))
		push(search, one, member, still);
}

/* Whether a `required` of this schema names it. */
static bool names_required(struct hpx_value_at schema, struct hpx_span name)
{
	struct hpx_value_at list = hpx_value_member(schema, HPX_SPAN("required"));

	for (struct hpx_value_at one = hpx_value_first(list);
	     hpx_value_is(list, HPX_JSON_ARRAY) && hpx_value_there(one); one = hpx_value_next(one))
		if (hpx_span_eq(hpx_value_text(one), name))
			return true;
	return false;
}

/* Whether any schema of the same level requires it: `required` and `properties` may stand
 * in two parts of an allOf. */
static bool is_required(const struct schema_search *search, struct hpx_span member,
			struct hpx_span name)
{
	for (size_t i = 0; i < search->count; i++) {
		const struct schema_place *place = &search->places[i];
		if (place->certain && hpx_span_eq(place->member, member) &&
		    names_required(place->schema, name))
			return true;
	}
	return false;
}

bool hpx_schema_is_switch(struct hpx_coverage *coverage, struct hpx_value_at schema)
{
	schema = hpx_library_resolve(&coverage->library, schema);
	return hpx_span_eq(hpx_value_member_text(schema, "type"), HPX_SPAN("boolean"));
}

void hpx_schema_read_limits(struct hpx_coverage *coverage, struct hpx_value_at schema,
			    struct hpx_declared_key *key)
{
	uint64_t number;

	schema = hpx_library_resolve(&coverage->library, schema);
	if (hpx_span_u64(hpx_value_member_text(schema, "maxLength"), UINT32_MAX, &number))
		key->bytes_max = number;
	if (hpx_span_u64(hpx_value_member_text(schema, "minLength"), UINT32_MAX, &number))
		key->bytes_min = number;
}

bool hpx_declared_key_better(const struct hpx_declared_key *given,
			     const struct hpx_declared_key *known)
{
	bool given_covers = hpx_key_class_covers(given->class);

	if (given_covers != hpx_key_class_covers(known->class))
		return given_covers;
	if (given_covers && given->required != known->required)
		return given->required;
	return given->class < known->class;
}

static struct hpx_span pointer_to(struct hpx_coverage *coverage, struct hpx_span member,
				  struct hpx_span name)
{
	struct hpx_span pointer =
		member.ptr != NULL ?
			hpx_arena_printf(&coverage->arena, "/%.*s/%.*s", HPX_SPAN_ARG(member),
					 HPX_SPAN_ARG(name)) :
			hpx_arena_printf(&coverage->arena, "/%.*s", HPX_SPAN_ARG(name));

	return pointer.ptr != NULL ? pointer : name;
}

static void take_property(struct schema_search *search, const struct schema_place *place,
			  struct hpx_value_at property, enum hpx_key_mark mark)
{
	struct hpx_span name = hpx_value_name(property);
	bool hidden = search->parts && place->member.ptr != NULL;
	struct hpx_declared_key key = {
		.class = mark == HPX_MARK_STRONG && !hidden ? HPX_CLASS_BODY : HPX_CLASS_WEAK,
		.where = HPX_WHERE_BODY,
		.required = is_required(search, place->member, name) &&
			    (place->member.ptr == NULL ||
			     is_required(search, hpx_span(NULL, 0), place->member)),
		.place = { property.document->path, hpx_value_line(property) },
		.reason = mark == HPX_MARK_WEAK ? HPX_SPAN("a member that may be a key, or only a trace") :
			  hidden                ? HPX_SPAN("a key inside one part of a multipart body") :
						  HPX_SPAN("a member of the body"),
	};

	hpx_schema_read_limits(search->coverage, property, &key);
	if (!hpx_declared_key_better(&key, search->key))
		return;
	key.name = pointer_to(search->coverage, place->member, name);
	*search->key = key;
}

/* Whether a property is a key; otherwise it is looked into, where it is on the first level. */
static void look_at_property(struct schema_search *search, const struct schema_place *place,
			     struct hpx_value_at property)
{
	enum hpx_key_mark mark = hpx_key_mark_of(hpx_value_name(property));

	if (mark != HPX_MARK_NONE && !hpx_schema_is_switch(search->coverage, property))
		take_property(search, place, property, mark);
	else if (place->member.ptr == NULL)
		push(search, property, hpx_value_name(property), true);
}

static void look_at_properties(struct schema_search *search, struct schema_place place)
{
	struct hpx_value_at all = hpx_value_member(place.schema, HPX_SPAN("properties"));

	if (!hpx_value_is(all, HPX_JSON_OBJECT))
		return;
	for (struct hpx_value_at one = hpx_value_first(all); hpx_value_there(one);
	     one = hpx_value_next(one))
		look_at_property(search, &place, one);
}

/* Everything that says something about the same object. */
static void spread(struct schema_search *search)
{
	for (size_t i = 0; i < search->count; i++) {
		struct schema_place place = search->places[i];
		push_each(search, &place, "allOf", true);
		push_each(search, &place, "oneOf", false);
		push_each(search, &place, "anyOf", false);
	}
}

void hpx_schema_find_key(struct hpx_coverage *coverage, struct hpx_value_at schema, bool parts,
			 struct hpx_declared_key *key)
{
	struct schema_search search = { .coverage = coverage, .parts = parts, .key = key };
	size_t looked = 0;

	push(&search, schema, hpx_span(NULL, 0), true);
	while (looked < search.count) {
		/* `required` of the whole level is known before its properties are judged. */
		spread(&search);
		for (size_t end = search.count; looked < end; looked++)
			look_at_properties(&search, search.places[looked]);
	}
	HPX_ASSERT(search.count <= PLACES_MAX);
}
