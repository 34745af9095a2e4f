/* `hapax demo`: shows a new user in a minute what hapax is for. It plays the story,
 * shows both ledgers, and then keeps running for the user to try; `--once` ends after
 * the story, with 0 only if every step came out right. */
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"
#include "cli/cli.h"
#include "cli/demo.h"

struct demo {
	bool once;
	struct hpx_demo_stage stage;
	struct hpx_demo_report report;
	atomic_bool over; /* the story has ended: Ctrl-C ends the demo with 0 */
	sigset_t signals;
};

/* Ctrl-C at any moment: hapax is killed and the folder removed. The story may be in a wait
 * just then, so this thread does not wait for it. */
static void *run_signals(void *arg)
{
	struct demo *demo = arg;
	int which = 0;

	while (sigwait(&demo->signals, &which) != 0)
		;
	hpx_demo_stage_sweep(&demo->stage);
	fputs("\n", stdout);
	fflush(stdout);
	_exit(atomic_load(&demo->over) && which == SIGINT ? 0 : 128 + which);
}

static bool watch_signals(struct demo *demo)
{
	pthread_t thread;

	sigemptyset(&demo->signals);
	sigaddset(&demo->signals, SIGINT);
	sigaddset(&demo->signals, SIGTERM);
	sigaddset(&demo->signals, SIGHUP);
	/* Before any other thread exists, so that all of them inherit the mask. */
	pthread_sigmask(SIG_BLOCK, &demo->signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (pthread_create(&thread, NULL, run_signals, demo) != 0)
		return false;
	pthread_detach(thread);
	return true;
}

static void print_opening(const struct demo *demo)
{
	printf("Five accidents, each played twice: directly against a payments API that knows\n"
	       "nothing of idempotency keys, and with hapax in front of that API.\n"
	       "\n"
	       "   without:  client ─▶ flaky network ─▶ payments API ─▶ ledger\n"
	       "   with:     client ─▶ flaky network ─▶ hapax ─▶ payments API ─▶ ledger\n"
	       "\n"
	       "hapax runs as: hapax serve --config %s\n",
	       demo->stage.config_path);
}

/* The program's own path: it need not be on the PATH. */
static void find_program(char *path, size_t size)
{
	ssize_t len = readlink("/proc/self/exe", path, size - 1);

	if (len > 0)
		path[len] = '\0';
	else
		snprintf(path, size, "hapax");
}

static void print_try(const struct demo *demo)
{
	const struct hpx_demo_stage *stage = &demo->stage;
	char program[PATH_MAX];

	find_program(program, sizeof(program));
	printf("\nEverything keeps running; Ctrl-C ends it. Try in another terminal:\n"
	       "\n"
	       "  # A payment. Send it again: the same answer, and nothing is paid twice.\n"
	       "  curl -i http://127.0.0.1:%u/payments -H 'Idempotency-Key: \"order-1001\"' \\\n"
	       "    -H 'Content-Type: application/json' -d '{\"amount\": 499, \"currency\": \"EUR\"}'\n"
	       "\n"
	       "  # Without hapax: the same on port %u.\n"
	       "  # To lose the answer, add: -H '" HPX_DEMO_NETWORK_FIELD ": " HPX_DEMO_LOSE_ANSWER "'\n"
	       "  #   on port %u it is lost between client and hapax: a retry gets it;\n"
	       "  #   on port %u it is lost between hapax and the API: the operation is\n"
	       "  #   unknown until a person settles it.\n"
	       "\n"
	       "  # The two ledgers, without and with hapax.\n"
	       "  curl http://127.0.0.1:%u/ledger\n"
	       "  curl http://127.0.0.1:%u/ledger\n"
	       "\n"
	       "  # What hapax knows: this payment, all payments, and the metrics.\n"
	       "  %s keys show --key order-1001 --store %s\n"
	       "  %s keys ls --store %s\n"
	       "  curl http://127.0.0.1:%u/metrics\n",
	       stage->hapax.port, stage->without.network.server.port,
	       stage->with.network.server.port, stage->hapax.port,
	       stage->without.network.server.port, stage->hapax.port,
	       program, stage->store_url, program, stage->store_url,
	       stage->hapax.admin_port);
	fflush(stdout);
}

static int run(struct demo *demo)
{
	char problem[1024];

	hpx_demo_report_init(&demo->report);
	if (!watch_signals(demo)) {
		fputs("hapax demo: no thread can be started\n", stderr);
		return HPX_EXIT_FAILED;
	}
	if (hpx_demo_stage_open(&demo->stage, !demo->once, problem, sizeof(problem)) != HPX_OK) {
		fprintf(stderr, "hapax demo: %s\n", problem);
		return HPX_EXIT_FAILED;
	}
	print_opening(demo);
	hpx_demo_story(&demo->stage, &demo->report);
	HPX_ASSERT(demo->report.count > 0);
	bool right = hpx_demo_report_table(&demo->report);
	printf("\n%s\n", right ? "Every step came out right." :
				 "Not every step came out right: see the marks above.");
	atomic_store(&demo->over, true);
	if (!demo->once) {
		print_try(demo);
		for (;;)
			pause();
	}
	hpx_demo_stage_close(&demo->stage);
	return right ? HPX_EXIT_OK : HPX_EXIT_FAILED;
}

int hpx_cli_demo(int argc, char **argv)
{
	const char *once = NULL;
	const struct hpx_cli_flag flags[] = {
		{ "once", NULL, "Ends after the story, with exit code 0 if every step came out right.",
		  &once },
	};
	const struct hpx_cli_usage usage = {
		.synopsis = "hapax demo [--once]",
		.about = "Starts a small payments API behind a flaky network, and shows what a double\n"
			 "click, a lost answer, a retry storm, a changed amount and a crash do: first\n"
			 "without hapax, then with it. Then the demo keeps running, and prints what to\n"
			 "try with curl.\n"
			 "\n"
			 "Everything runs on 127.0.0.1, in a temporary folder that is removed at the end.",
		.flags = flags,
		.flag_count = 1,
	};
	int rest, code;

	if (!hpx_cli_read(&usage, argc, argv, &rest, &code))
		return code;
	/* libhapax-client asks the proxies of the environment, and none leads to this
	 * machine's own ports. Before any thread exists. */
	setenv("no_proxy", "127.0.0.1", 1);
	/* On the heap, because the signal thread may look at it until the very end. */
	struct demo *demo = calloc(1, sizeof(*demo));
	if (demo == NULL) {
		fputs("hapax demo: out of memory\n", stderr);
		return HPX_EXIT_FAILED;
	}
	demo->once = once != NULL;
	return run(demo);
}
