// Shows that a C++ program can use the library: the header, every struct, and an
// operation from its beginning to its replay.
#include <cstdio>
#include <cstring>
#include <string>

#include "hapax/hapax.h"

static int failures;

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	std::fprintf(stderr, "does not hold: %s\n", what);
	failures++;
}
#define CHECK(condition) check((condition), #condition)

int main()
{
	char problem[HAPAX_PROBLEM_SIZE];
	hapax *handle = nullptr;
	CHECK(hapax_open("memory:", nullptr, &handle, problem) == HAPAX_OK);

	const std::string body = "{\"amount\": 499}";
	hapax_request request;
	HAPAX_INIT(&request);
	request.method = "POST";
	request.path = "/payments";
	request.content_type = "application/json";
	request.body = body.data();
	request.body_len = body.size();
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
	CHECK(::hapax_fingerprint(&request, fingerprint) == HAPAX_OK);

	// A struct and a function share this name: the struct is said to be one.
	struct hapax_begin begin;
	HAPAX_INIT(&begin);
	begin.tenant = "tenant";
	begin.scope = "POST /payments";
	begin.key = "key";
	begin.fingerprint = fingerprint;
	hapax_operation operation;
	HAPAX_INIT(&operation);
	CHECK(hapax_begin(handle, &begin, &operation, problem) == HAPAX_OK);
	CHECK(operation.verdict == HAPAX_EXECUTE);

	hapax_answer answer;
	HAPAX_INIT(&answer);
	answer.status = 201;
	answer.headers = "Content-Type: text/plain";
	answer.body = "done";
	answer.body_len = 4;
	CHECK(hapax_complete(handle, operation.lease, &answer, problem) == HAPAX_OK);
	hapax_operation_clear(&operation);

	CHECK(hapax_begin(handle, &begin, &operation, problem) == HAPAX_OK);
	CHECK(operation.verdict == HAPAX_REPLAY);
	CHECK(operation.answer->body_len == 4 && std::memcmp(operation.answer->body, "done", 4) == 0);
	CHECK(HAPAX_HAS(operation.answer, body_len));
	hapax_operation_clear(&operation);

	// As a later header might have it: known members count, others must be 0.
	struct {
		struct hapax_begin known;
		long long later;
	} newer;
	newer.known = begin;
	newer.known.size = sizeof(newer);
	newer.later = 1;
	CHECK(hapax_begin(handle, &newer.known, &operation, problem) == HAPAX_MISUSE);
	newer.later = 0;
	CHECK(hapax_begin(handle, &newer.known, &operation, problem) == HAPAX_OK);
	hapax_operation_clear(&operation);
	// As an earlier one might have had it: what it lacks is the default.
	begin.size = offsetof(struct hapax_begin, lease_ms);
	CHECK(hapax_begin(handle, &begin, &operation, problem) == HAPAX_OK);
	hapax_operation_clear(&operation);
	begin.size = 0;
	CHECK(hapax_begin(handle, &begin, &operation, problem) == HAPAX_MISUSE);
#if !HAPAX_VERSION_AT_LEAST(0, 1, 0)
	CHECK(!"the version can be compared by the preprocessor");
#endif
	hapax_close(handle);
	return failures == 0 ? 0 : 1;
}
