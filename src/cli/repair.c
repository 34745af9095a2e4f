/* `hapax repair`: says what of a store's file is damaged and what that means, mends what
 * can be mended without a loss, and notes that a person accepts the rest, so that new
 * keys are taken again. */
#include "cli/operator_command.h"
#include "store/store.h"

static void print_line(void *user, const char *line)
{
	(void)user;
	printf("%s\n", line);
}

/* The command that goes on, for the store that was named. */
static void print_remedy(const char *url)
{
	struct hpx_arena arena;

	hpx_arena_init(&arena, 64 * 1024);
	struct hpx_span store = url != NULL ? hpx_operator_quote(&arena, url) : HPX_SPAN("");
	printf("  hapax repair --accept%s%.*s\n", url != NULL ? " --store " : "", HPX_SPAN_ARG(store));
	hpx_arena_done(&arena);
}

static int report(const struct hpx_store_repair *repair, bool accept, const char *url)
{
	unsigned lost = repair->damaged - repair->mended;

	if (repair->damaged == 0) {
		printf("no damage was found\n");
		return HPX_EXIT_OK;
	}
	if (accept) {
		printf("new keys are taken again; %u of %u damaged tables were mended without a loss\n",
		       repair->mended, repair->damaged);
		return HPX_EXIT_OK;
	}
	printf("%u tables are damaged. Known keys are answered as far as they can be read, new keys are "
	       "refused.\n"
	       "Restore a backup if there is one. Otherwise go on with the rest: an operation whose row is lost\n"
	       "is then executed again when its client retries.\n",
	       lost);
	print_remedy(url);
	return HPX_EXIT_FAILED;
}

int hpx_cli_repair(int argc, char **argv)
{
	const char *url = NULL, *accept = NULL;
	const struct hpx_cli_flag flags[] = {
		{ "store", "URL", "The store; default " HPX_STORE_DEFAULT_URL ".", &url },
		{ "accept", NULL, "Mends what can be mended, and accepts the rest. Stop hapax first.", &accept },
	};
	const struct hpx_cli_usage usage = {
		.synopsis = "hapax repair [--store URL] [--accept]",
		.about = "Looks for damage in the file of a sqlite: store, and says what is "
			 "damaged.\n"
			 "Without --accept nothing is changed, and hapax may go on serving the file.",
		.flags = flags,
		.flag_count = sizeof(flags) / sizeof(flags[0]),
	};
	struct hpx_store_repair repair = { .tell = print_line };
	char problem[HPX_STORE_PROBLEM_SIZE] = "";
	int rest, code;

	if (!hpx_cli_read(&usage, argc, argv, &rest, &code))
		return code;
	struct hpx_store_options options = { .url = hpx_span_of(url ? url : HPX_STORE_DEFAULT_URL) };
	if (!hpx_store_url_can(options.url, HPX_STORE_FILE)) {
		fprintf(stderr, "hapax repair: only sqlite:PATH stores are files of hapax's own\n");
		return HPX_EXIT_USAGE;
	}
	enum hpx_status status = hpx_store_repair(&options, accept != NULL, &repair, problem);
	if (status == HPX_OK)
		return report(&repair, accept != NULL, url);
	if (status == HPX_NOT_FOUND)
		fprintf(stderr, "hapax repair: there is no store at %.*s: name the server's with --store sqlite:PATH\n",
			HPX_SPAN_ARG(options.url));
	else
		fprintf(stderr, "hapax repair: %s\n", *problem ? problem : hpx_status_text(status));
	return HPX_EXIT_FAILED;
}
