// Shows that a C++ program can use the client: the header, every struct, and a
// call that comes to nothing because nobody is there.
#include <cstdio>

#include "hapax/client.h"

int main()
{
	char problem[HAPAX_PROBLEM_SIZE];
	hapax_client_options options;
	HAPAX_INIT(&options);
	options.attempts_max = 1;
	hapax_client *client = nullptr;
	if (hapax_client_open(&options, &client, problem) != HAPAX_OK)
		return 1;
	// As a later and an earlier header might have them.
	struct {
		hapax_client_options known;
		long long later;
	} newer;
	newer.known = options;
	newer.known.size = sizeof(newer);
	newer.later = 1;
	hapax_client *other = nullptr;
	if (hapax_client_open(&newer.known, &other, problem) != HAPAX_MISUSE)
		return 1;
	options.size = offsetof(hapax_client_options, backoff_ms);
	if (hapax_client_open(&options, &other, problem) != HAPAX_OK)
		return 1;
	hapax_client_close(other);
	hapax_call *call = nullptr;
	// Port 9 of the loopback: nobody discards anything there any more.
	bool ok = hapax_call_new(client, "POST", "http://127.0.0.1:9/", &call, problem) == HAPAX_OK &&
		  hapax_call_send(call, problem) == HAPAX_OK;
	const hapax_outcome *outcome = hapax_call_outcome(call);
	ok = ok && outcome->kind == HAPAX_GAVE_UP && outcome->doubt == 0 && outcome->attempts == 1;
	if (!ok)
		std::fprintf(stderr, "does not hold: %s\n", problem);
	hapax_call_free(call);
	hapax_client_close(client);
	return ok ? 0 : 1;
}
