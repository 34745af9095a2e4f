/* The report: everything that the demo prints of its story, and none of what happens in
 * it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"
#include "cli/demo.h"

#define INDENT "   "

enum colour { PLAIN,
	      BOLD,
	      DIM,
	      RED,
	      GREEN };

static const char *escape(const struct hpx_demo_report *report, enum colour which)
{
	static const char *const codes[] = { "\033[0m", "\033[1m", "\033[2m", "\033[31m",
					     "\033[32m" };
	return report->colour ? codes[which] : "";
}

void hpx_demo_report_init(struct hpx_demo_report *report)
{
	const char *no_colour = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	*report = (struct hpx_demo_report){ 0 };
	report->colour = isatty(STDOUT_FILENO) && (no_colour == NULL || *no_colour == '\0') &&
			 (term == NULL || strcmp(term, "dumb") != 0);
	/* The reader of a pipe sees each line when it happens, too. */
	setvbuf(stdout, NULL, _IOLBF, 0);
}

void hpx_demo_report_title(const struct hpx_demo_report *report, unsigned number,
			   const char *title)
{
	printf("\n%s%u. %s%s\n", escape(report, BOLD), number, title, escape(report, PLAIN));
}

void hpx_demo_report_text(const char *text)
{
	struct hpx_span rest = hpx_span_of(text);
	struct hpx_span line;

	while (hpx_span_split(&rest, '\n', &line))
		printf(INDENT "%.*s\n", HPX_SPAN_ARG(line));
}

void hpx_demo_report_command(const struct hpx_demo_report *report, const char *command)
{
	printf(INDENT "  %s$ %s%s\n", escape(report, DIM), command, escape(report, PLAIN));
}

void hpx_demo_report_output(struct hpx_span output)
{
	struct hpx_span line;

	while (hpx_span_split(&output, '\n', &line))
		if (line.len > 0)
			printf(INDENT "  %.*s\n", HPX_SPAN_ARG(line));
}

static bool same(const struct hpx_demo_sum *a, const struct hpx_demo_sum *b)
{
	return a->payments == b->payments && a->cents == b->cents;
}

static const char *mark(const struct hpx_demo_report *report, bool good, char *out,
			size_t size)
{
	snprintf(out, size, "%s%s%s", escape(report, good ? GREEN : RED), good ? "✓" : "✗",
		 escape(report, PLAIN));
	return out;
}

void hpx_demo_report_side(const struct hpx_demo_report *report, const char *name,
			  const char *saw, const struct hpx_demo_sum *intended,
			  const struct hpx_demo_sum *sum)
{
	char sign[32];

	printf(INDENT "%-15s%s\n", name, saw);
	printf(INDENT "%-15s%s ledger: %" PRIu64 " payment%s, %" PRIu64 ".%02" PRIu64 "\n", "",
	       mark(report, same(intended, sum), sign, sizeof(sign)), sum->payments,
	       sum->payments == 1 ? "" : "s", sum->cents / 100, sum->cents % 100);
}

void hpx_demo_report_trouble(const struct hpx_demo_report *report, const char *what)
{
	printf(INDENT "%s✗ %s%s\n", escape(report, RED), what, escape(report, PLAIN));
}

static void print_sum(const struct hpx_demo_sum *sum)
{
	char amount[32];

	snprintf(amount, sizeof(amount), "%" PRIu64 ".%02" PRIu64, sum->cents / 100,
		 sum->cents % 100);
	printf(" %5" PRIu64 " %9s", sum->payments, amount);
}

static void print_row(const struct hpx_demo_report *report, const struct hpx_demo_result *row)
{
	char sign[32];

	HPX_ASSERT(row->intended.payments > 0);
	printf(INDENT "%-24s", row->title);
	print_sum(&row->intended);
	print_sum(&row->without);
	printf(" %s", mark(report, same(&row->intended, &row->without), sign, sizeof(sign)));
	print_sum(&row->with);
	printf(" %s\n", mark(report, same(&row->intended, &row->with), sign, sizeof(sign)));
}

static void add(struct hpx_demo_sum *to, const struct hpx_demo_sum *sum)
{
	to->payments += sum->payments;
	to->cents += sum->cents;
}

bool hpx_demo_report_table(const struct hpx_demo_report *report)
{
	struct hpx_demo_result total = { .title = "together" };
	bool right = report->count > 0;

	HPX_ASSERT(report->count <= HPX_DEMO_STEPS_MAX);
	printf("\n%sThe two ledgers, side by side%s (payments and amount)\n",
	       escape(report, BOLD), escape(report, PLAIN));
	printf(INDENT "%s%-24s%16s%16s  %16s%s\n", escape(report, DIM), "", "intended",
	       "without hapax", "with hapax", escape(report, PLAIN));
	for (unsigned i = 0; i < report->count; i++) {
		const struct hpx_demo_result *row = &report->results[i];

		print_row(report, row);
		add(&total.intended, &row->intended);
		add(&total.without, &row->without);
		add(&total.with, &row->with);
		right = right && row->right;
	}
	print_row(report, &total);
	return right;
}
