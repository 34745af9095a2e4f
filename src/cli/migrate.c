/* `hapax migrate`: brings the schema of a store to the one that this program needs.
 * `hapax serve` does the same when it starts; this command does it beforehand, or creates
 * the store for a service that may not. */
#include "cli/cli.h"
#include "store/store.h"

static int complain(const char *problem, enum hpx_status status)
{
	fprintf(stderr, "hapax migrate: %s\n", *problem ? problem : hpx_status_text(status));
	return HPX_EXIT_FAILED;
}

/* A store opens only when its schema is the one that this program needs. */
static int check(const struct hpx_store_options *options)
{
	char problem[HPX_STORE_PROBLEM_SIZE] = "";
	struct hpx_store *store = NULL;
	enum hpx_status status = hpx_store_open(options, &store, problem);

	if (status != HPX_OK)
		return complain(problem, status);
	printf("%s is up to date\n", hpx_store_can(store, HPX_STORE_FILE) ? options->url.ptr : store->description);
	hpx_store_close(store);
	return HPX_EXIT_OK;
}

static int migrate(const struct hpx_store_options *options)
{
	char problem[HPX_STORE_PROBLEM_SIZE] = "";
	struct hpx_store_migration done;
	enum hpx_status status = hpx_store_migrate(options, &done, problem);

	if (status != HPX_OK)
		return complain(problem, status);
	if (done.from == done.to)
		printf("%s is up to date: schema %u\n", done.description, done.to);
	else if (done.from == 0)
		printf("%s is new: schema %u\n", done.description, done.to);
	else
		printf("%s: schema %u → %u\n", done.description, done.from, done.to);
	return HPX_EXIT_OK;
}

int hpx_cli_migrate(int argc, char **argv)
{
	const char *url = NULL, *only_check = NULL, *beside = NULL;
	const struct hpx_cli_flag flags[] = {
		{ "store", "URL", "The store; default " HPX_STORE_DEFAULT_URL ".", &url },
		{ "check", NULL, "Only says whether the schema is up to date; exit code 1 if not.", &only_check },
		{ "beside", NULL, "Makes hapax's tables in a file that holds an application's own.", &beside },
	};
	const struct hpx_cli_usage usage = {
		.synopsis = "hapax migrate [--store URL] [--check | --beside]",
		.about = "Brings the schema of a store up to date, and creates the store if it is absent.\n"
			 "Stop every hapax that uses a sqlite: file first. Gateways on a postgres://\n"
			 "database may go on.",
		.flags = flags,
		.flag_count = sizeof(flags) / sizeof(flags[0]),
	};
	int rest, code;

	if (!hpx_cli_read(&usage, argc, argv, &rest, &code))
		return code;
	struct hpx_store_options options = { .url = hpx_span_of(url ? url : HPX_STORE_DEFAULT_URL),
					     .create = only_check == NULL,
					     .install = beside != NULL };
	if (!hpx_store_url_can(options.url, HPX_STORE_SCHEMA)) {
		fprintf(stderr, "hapax migrate: only sqlite:PATH and postgres://… stores have a "
				"schema\n");
		return HPX_EXIT_USAGE;
	}
	return only_check != NULL ? check(&options) : migrate(&options);
}
