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
	hapax_request request = {};
	request.method = "POST";
	request.path = "/payments";
	request.content_type = "application/json";
	request.body = body.data();
	request.body_len = body.size();
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
	CHECK(::hapax_fingerprint(&request, fingerprint) == HAPAX_OK);

	// A struct and a function share this name: the struct is said to be one.
	struct hapax_begin begin = {};
	begin.tenant = "tenant";
	begin.scope = "POST /payments";
	begin.key = "key";
	begin.fingerprint = fingerprint;
	hapax_operation operation;
	CHECK(hapax_begin(handle, &begin, &operation, problem) == HAPAX_OK);
	CHECK(operation.verdict == HAPAX_EXECUTE);

	hapax_answer answer = {};
	answer.status = 201;
	answer.headers = "Content-Type: text/plain";
	answer.body = "done";
	answer.body_len = 4;
	CHECK(hapax_complete(handle, operation.lease, &answer, problem) == HAPAX_OK);
	hapax_operation_clear(&operation);

	CHECK(hapax_begin(handle, &begin, &operation, problem) == HAPAX_OK);
	CHECK(operation.verdict == HAPAX_REPLAY);
	CHECK(operation.answer.body_len == 4 && std::memcmp(operation.answer.body, "done", 4) == 0);
	hapax_operation_clear(&operation);
	hapax_close(handle);
	return failures == 0 ? 0 : 1;
}
