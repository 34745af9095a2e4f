/* Pays an order once, however often it is started and however it ends: the key
 * and the request are on the disk before the first byte leaves, and what an
 * earlier run left unfinished is sent first.
 *
 *	PAY_TOKEN=… pay URL ORDER AMOUNT */
#include <stdio.h>
#include <stdlib.h>

#include <hapax/client.h>

static char problem[HAPAX_PROBLEM_SIZE];

static int complain(void)
{
	fprintf(stderr, "%s\n", problem);
	return EXIT_FAILURE;
}

static int send_call(struct hapax_call *call)
{
	char token[512];

	/* Never written down: a call that is resumed is given it again. */
	snprintf(token, sizeof(token), "Bearer %s", getenv("PAY_TOKEN"));
	if (hapax_call_header(call, "Authorization", token, problem) != HAPAX_OK ||
	    hapax_call_send(call, problem) != HAPAX_OK)
		return complain();
	const struct hapax_outcome *outcome = hapax_call_outcome(call);
	if (outcome->kind != HAPAX_DONE) {
		fprintf(stderr, "%s: %s\n",
			outcome->doubt ? "it may have happened" : "it did not happen",
			outcome->reason);
		return EXIT_FAILURE;
	}
	printf("%u after %u attempts: %.*s\n", outcome->status, outcome->attempts,
	       (int)outcome->body_len, (const char *)outcome->body);
	/* An answer that nobody got is asked for again by the next run. */
	if (fflush(stdout) != 0 || hapax_call_confirm(call, problem) != HAPAX_OK)
		return EXIT_FAILURE;
	return outcome->status < 300 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int finish_earlier(struct hapax_client *client)
{
	struct hapax_entry *entries;
	size_t count;
	int code = EXIT_SUCCESS;

	if (hapax_client_entries(client, 0, &entries, &count, problem) != HAPAX_OK)
		return complain();
	for (struct hapax_entry *entry = entries; entry != NULL && code == EXIT_SUCCESS;
	     entry = entry->next) {
		struct hapax_call *call = NULL;

		code = hapax_call_resume(client, entry->id, &call, problem) == HAPAX_OK ?
			       send_call(call) :
			       complain();
		hapax_call_free(call);
	}
	hapax_entries_free(entries);
	return code;
}

static int pay(struct hapax_client *client, const char *url, const char *order, const char *amount)
{
	struct hapax_call *call = NULL;
	char body[128];
	int len = snprintf(body, sizeof(body),
			   "{\"customer\": \"cus_1\", \"amount\": %.20s, \"currency\": \"EUR\"}",
			   amount);
	int code = EXIT_FAILURE;

	/* There is one payment per order, so its number is the best key there is. */
	if (hapax_call_new(client, "POST", url, &call, problem) != HAPAX_OK ||
	    hapax_call_key(call, order, problem) != HAPAX_OK ||
	    hapax_call_header(call, "Content-Type", "application/json", problem) != HAPAX_OK ||
	    hapax_call_body(call, body, (size_t)len, problem) != HAPAX_OK)
		complain();
	else
		code = send_call(call);
	hapax_call_free(call);
	return code;
}

int main(int argc, char **argv)
{
	const struct hapax_client_options options = {
		.size = sizeof(options),
		.journal = "payments.journal",
		.confirm = 1,
	};
	struct hapax_client *client;

	if (argc != 4 || getenv("PAY_TOKEN") == NULL) {
		fprintf(stderr, "Usage: PAY_TOKEN=... pay URL ORDER AMOUNT\n");
		return 2;
	}
	if (hapax_client_open(&options, &client, problem) != HAPAX_OK)
		return complain();
	int code = finish_earlier(client);
	if (code == EXIT_SUCCESS)
		code = pay(client, argv[1], argv[2], argv[3]);
	hapax_client_close(client);
	return code;
}
