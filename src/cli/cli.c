/* Shared by all commands: one reader of arguments, so that they agree on --help, on the
 * look of a mistake and on its exit code; the configuration; JSON; and
 * the pages of a running gateway. */
#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "cli/cli.h"
#include "service/service.h"

/* The width of the column with flags in --help. */
#define COLUMN 26
#define LINE 79
/* A list of 10,000 operations, or an answer's body of 64 MiB with every byte escaped, is
 * below this. */
#define JSON_BYTES_MAX ((size_t)512 << 20)
/* All remarks of one report, each within its own bound. */
#define REPORT_BYTES_MAX ((size_t)256 << 10)

/* Prints the words of `rest` in lines of at most `columns` columns. The first begins at
 * `column`, the others after `indent`. */
static void print_wrapped(struct hpx_span rest, int column, int indent, int columns)
{
	bool begun = false; /* the line has a word */
	struct hpx_span word;

	while (hpx_span_split(&rest, ' ', &word)) {
		if (begun && column + 1 + (int)word.len > columns) {
			printf("\n%*s", indent, "");
			column = indent;
			begun = false;
		}
		printf("%s%.*s", begun ? " " : "", HPX_SPAN_ARG(word));
		column += (int)word.len + begun;
		begun = true;
	}
	putchar('\n');
}

/* The letter of a flag, 0 where it has none. */
static char letter_of(const struct hpx_cli_flag *flag)
{
	return flag->name[1] == ',' ? flag->name[0] : '\0';
}

/* The name of a flag, without its letter. */
static const char *name_of(const struct hpx_cli_flag *flag)
{
	return letter_of(flag) ? flag->name + 2 : flag->name;
}

static bool is_repeatable(const struct hpx_cli_flag *flag)
{
	return flag->value != NULL && strstr(flag->value, "...") != NULL;
}

static void print_flag(const struct hpx_cli_flag *flag)
{
	char letter[] = "-x, ";

	letter[1] = letter_of(flag);
	int width = printf("  %s--%s%s%s", letter[1] ? letter : "", name_of(flag),
			   flag->value ? " " : "", flag->value ? flag->value : "");

	if (width >= COLUMN)
		printf("\n%*s", COLUMN, "");
	else
		printf("%*s", COLUMN - width, "");
	print_wrapped(hpx_span_of(flag->text), COLUMN, COLUMN, LINE);
}

static void print_help(const struct hpx_cli_usage *usage)
{
	static const struct hpx_cli_flag help = { "help", NULL, "Shows this.", NULL };

	printf("Usage: %s\n\n%s\n\n", usage->synopsis, usage->about);
	for (size_t i = 0; i < usage->flag_count; i++)
		if (usage->flags[i].text != NULL)
			print_flag(&usage->flags[i]);
	print_flag(&help);
}

/* Names that other programs have for what a command, verb or flag of hapax does. */
static const char *const synonyms[][2] = {
	{ "list", "ls" },
	{ "get", "show" },
	{ "describe", "show" },
	{ "view", "show" },
	{ "info", "show" },
	{ "cat", "show" },
	{ "rm", "forget" },
	{ "delete", "forget" },
	{ "remove", "forget" },
	{ "del", "forget" },
	{ "rm", "discard" },
	{ "delete", "discard" },
	{ "remove", "discard" },
	{ "del", "discard" },
	{ "drop", "discard" },
	{ "cancel", "discard" },
	{ "settle", "resolve" },
	{ "renew", "extend" },
	{ "resend", "retry" },
	{ "requeue", "retry" },
	{ "redeliver", "retry" },
	{ "run", "serve" },
	{ "start", "serve" },
	{ "server", "serve" },
	{ "proxy", "serve" },
	{ "gateway", "serve" },
	{ "validate", "check" },
	{ "lint", "check" },
	{ "config", "check" },
	{ "worker", "work" },
	{ "workers", "work" },
	{ "operations", "keys" },
	{ "ls", "keys" },
	{ "outbox", "jobs" },
	{ "init", "migrate" },
	{ "upgrade", "migrate" },
	{ "curl", "call" },
	{ "post", "call" },
	{ "request", "call" },
	{ "forget", "discard" },
	{ "discard", "forget" },
	{ "audit", "history" },
	{ "log", "history" },
	{ "db", "store" },
	{ "database", "store" },
	{ "file", "config" },
	{ "conf", "config" },
	{ "port", "listen" },
	{ "bind", "listen" },
	{ "addr", "listen" },
	{ "backend", "upstream" },
	{ "to", "upstream" },
};

void hpx_cli_consider(struct hpx_suggestion *suggestion, struct hpx_span given,
		      const char *candidate)
{
	for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
		if (hpx_span_ieq(given, hpx_span_of(synonyms[i][0])) &&
		    strcmp(candidate, synonyms[i][1]) == 0) {
			suggestion->word = hpx_span_of(candidate);
			suggestion->distance = 0;
			return;
		}
	hpx_suggestion_consider(suggestion, given, hpx_span_of(candidate));
}

/* The flag of that name, or, where there is a letter, of that letter. */
static const struct hpx_cli_flag *find(const struct hpx_cli_usage *usage, struct hpx_span name,
				       char letter)
{
	for (size_t i = 0; i < usage->flag_count; i++) {
		const struct hpx_cli_flag *flag = &usage->flags[i];

		if (letter ? letter == letter_of(flag) :
			     hpx_span_eq(name, hpx_span_of(name_of(flag))))
			return flag;
	}
	return NULL;
}

static void complain_unknown(const struct hpx_cli_usage *usage, const char *command,
			     struct hpx_span name)
{
	struct hpx_suggestion suggestion = { 0 };

	for (size_t i = 0; i < usage->flag_count; i++)
		if (usage->flags[i].text != NULL)
			hpx_cli_consider(&suggestion, name, name_of(&usage->flags[i]));
	fprintf(stderr, "hapax %s: unknown flag --%.*s", command, HPX_SPAN_ARG(name));
	if (suggestion.word.ptr != NULL)
		fprintf(stderr, "; did you mean --%.*s?\n", HPX_SPAN_ARG(suggestion.word));
	else
		fprintf(stderr, "; `hapax %s --help` lists them\n", command);
}

/* The place for the flag's next value. NULL, after a message: it has all it can take. */
static const char **next_place(const struct hpx_cli_flag *flag, const char *command)
{
	size_t max = is_repeatable(flag) ? HPX_CLI_REPEAT_MAX : 1;

	HPX_ASSERT(flag->ret_value != NULL);
	for (size_t i = 0; i < max; i++)
		if (flag->ret_value[i] == NULL)
			return &flag->ret_value[i];
	if (max == 1)
		fprintf(stderr, "hapax %s: --%s is given twice\n", command, name_of(flag));
	else
		fprintf(stderr, "hapax %s: --%s is given more than %zu times\n", command,
			name_of(flag), max);
	return NULL;
}

/* "--upstream --store x": no value is called like a flag of the same command. */
static bool is_known_flag(const struct hpx_cli_usage *usage, const char *text)
{
	return text[0] == '-' && text[1] == '-' && find(usage, hpx_span_of(text + 2), '\0') != NULL;
}

/* Gives the flag at argv[at] its value: `value`, from the same argument, or the next
 * argument. Returns the index behind it; 0, after a message: a mistake. */
static int take_value(const struct hpx_cli_usage *usage, const struct hpx_cli_flag *flag,
		      const char *value, int argc, char **argv, int at)
{
	const char **place = next_place(flag, argv[0]);

	if (place == NULL)
		return 0;
	if (flag->value == NULL && value != NULL) {
		fprintf(stderr, "hapax %s: --%s takes no value\n", argv[0], name_of(flag));
		return 0;
	}
	if (flag->value != NULL && value == NULL) {
		if (at + 1 == argc || is_known_flag(usage, argv[at + 1])) {
			fprintf(stderr, "hapax %s: --%s needs a value: --%s %s\n", argv[0],
				name_of(flag), name_of(flag), flag->value);
			return 0;
		}
		value = argv[++at];
	}
	*place = flag->value == NULL ? "true" : value;
	return at + 1;
}

static int read_flag(const struct hpx_cli_usage *usage, int argc, char **argv, int at)
{
	struct hpx_span text = hpx_span_skip(hpx_span_of(argv[at]), 2);
	struct hpx_span name = hpx_span_first(text, hpx_span_index(text, '='));
	const char *value = name.len < text.len ? text.ptr + name.len + 1 : NULL;
	const struct hpx_cli_flag *flag = find(usage, name, '\0');

	if (flag == NULL) {
		complain_unknown(usage, argv[0], name);
		return 0;
	}
	return take_value(usage, flag, value, argc, argv, at);
}

static int read_letter(const struct hpx_cli_usage *usage, int argc, char **argv, int at)
{
	const struct hpx_cli_flag *flag = find(usage, HPX_SPAN(""), argv[at][1]);

	if (flag == NULL) {
		fprintf(stderr, "hapax %s: unknown flag %s; `hapax %s --help` lists them\n",
			argv[0], argv[at], argv[0]);
		return 0;
	}
	return take_value(usage, flag, argv[at][2] != '\0' ? &argv[at][2] : NULL, argc, argv, at);
}

static bool is_flag(const char *text)
{
	return text[0] == '-' && text[1] != '\0';
}

/* Operands move behind the flags, in their order: `hapax keys show K --json`
 * and `hapax keys show --json K` are the same. */
static void move_back(char **argv, int at, int end)
{
	char *operand = argv[at];

	HPX_ASSERT(at < end);
	for (int i = at; i + 1 < end; i++)
		argv[i] = argv[i + 1];
	argv[end - 1] = operand;
}

static bool wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

/* Returns the index of the first operand; 0, after a message: a mistake. */
static int read_all(const struct hpx_cli_usage *usage, int argc, char **argv)
{
	int at = 1;
	int end = argc;

	HPX_ASSERT(argc >= 1);
	while (at < end) {
		if (strcmp(argv[at], "--") == 0) {
			for (int left = end - at - 1; left > 0; left--)
				move_back(argv, at + 1, argc);
			return at + 1;
		}
		if (!is_flag(argv[at])) {
			move_back(argv, at, argc);
			end--;
		} else {
			at = argv[at][1] == '-' ? read_flag(usage, end, argv, at) :
						  read_letter(usage, end, argv, at);
			if (at == 0)
				return 0;
		}
	}
	HPX_ASSERT(at == end);
	return end;
}

bool hpx_cli_ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static bool looks_like_file(const char *text)
{
	struct stat file;

	return hpx_cli_ends_with(text, ".yaml") || hpx_cli_ends_with(text, ".yml") ||
	       (stat(text, &file) == 0 && S_ISREG(file.st_mode));
}

/* Somebody who names a file without its flag mostly means the configuration. */
static void complain_operand(const struct hpx_cli_usage *usage, const char *command,
			     const char *operand)
{
	const struct hpx_cli_flag *config = find(usage, HPX_SPAN("config"), '\0');

	fprintf(stderr, "hapax %s: \"%s\" is one argument too many", command, operand);
	if (config != NULL && *config->ret_value == NULL && looks_like_file(operand))
		fprintf(stderr, "; a configuration is given as --config %s", operand);
	fputc('\n', stderr);
}

bool hpx_cli_read(const struct hpx_cli_usage *usage, int argc, char **argv, int *ret_rest,
		  int *ret_exit)
{
	if (wants_help(argc, argv)) {
		print_help(usage);
		*ret_exit = HPX_EXIT_OK;
		return false;
	}
	int rest = read_all(usage, argc, argv);
	if (rest > 0 && (size_t)(argc - rest) > usage->operands_max) {
		complain_operand(usage, argv[0], argv[rest + (int)usage->operands_max]);
		rest = 0;
	}
	if (rest == 0) {
		fprintf(stderr, "Usage: %s\n", usage->synopsis);
		*ret_exit = HPX_EXIT_USAGE;
		return false;
	}
	*ret_rest = rest;
	return true;
}

/* ---- the configuration: its flags, and loading it ---- */

size_t hpx_cli_config_flags(struct hpx_config_flags *flags,
			    struct hpx_cli_flag rows[HPX_CONFIG_FLAG_MAX])
{
	const struct hpx_option *option;
	size_t count = 0;

	*flags = (struct hpx_config_flags){ .value = { NULL } };
	for (; (option = hpx_option_flag(&hpx_config_options, count)) != NULL; count++)
		rows[count] = (struct hpx_cli_flag){ option->flag, option->flag_value,
						     option->text, &flags->value[count] };
	return count;
}

int hpx_cli_write(struct hpx_span text, FILE *stream)
{
	size_t written = text.len > 0 ? fwrite(text.ptr, 1, text.len, stream) : 0;

	if (written == text.len && fflush(stream) == 0)
		return HPX_EXIT_OK;
	fprintf(stderr, "hapax: cannot write: %s\n", strerror(errno));
	return HPX_EXIT_FAILED;
}

size_t hpx_cli_columns(void)
{
	struct winsize size;

	return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int hpx_cli_write_wrapped(struct hpx_span text, size_t columns)
{
	struct hpx_span line;

	if (columns == 0)
		return hpx_cli_write(text, stdout);
	while (hpx_span_line(&text, &line)) {
		int indent = 0;

		while ((size_t)indent < line.len && line.ptr[indent] == ' ')
			indent++;
		/* Only what must be broken is: a table keeps its spaces. */
		if (line.len <= columns) {
			printf("%.*s\n", HPX_SPAN_ARG(line));
		} else {
			printf("%*s", indent, "");
			print_wrapped(hpx_span_skip(line, (size_t)indent), indent, indent + 2,
				      (int)columns);
		}
	}
	return hpx_cli_write(HPX_SPAN(""), stdout);
}

/* ---- JSON ---- */

void hpx_cli_json_init(struct hpx_json_writer *json, struct hpx_buffer *out)
{
	hpx_buffer_init(out, JSON_BYTES_MAX);
	hpx_json_writer_init(json, out);
}

int hpx_cli_json_print(struct hpx_json_writer *json, const char *command, const char *problem)
{
	int code = HPX_EXIT_FAILED;
	enum hpx_status status = hpx_json_writer_finish(json);

	if (status == HPX_OK)
		code = hpx_cli_write(hpx_buffer_span(json->out), stdout);
	else
		fprintf(stderr, "hapax %s: %s: %s\n", command, problem, hpx_status_text(status));
	hpx_buffer_done(json->out);
	return code;
}

enum hpx_status hpx_cli_check_tls(struct hpx_settings **settings, struct hpx_config_report *report)
{
	hpx_service_check_tls(*settings, report);
	if (report->mistakes == 0)
		return HPX_OK;
	hpx_settings_unref(*settings);
	*settings = NULL;
	return HPX_INVALID;
}

/* One event for each remark. */
static void log_report(const struct hpx_config_report *report, const char *file)
{
	static const enum hpx_log_level levels[] = { HPX_LOG_ERROR, HPX_LOG_WARN, HPX_LOG_INFO };

	for (size_t i = 0; i < report->count; i++) {
		const struct hpx_config_remark *remark = &report->remarks[i];

		hpx_log(levels[remark->severity], "configuration",
			"severity=%s file=\"%s\" line=%u column=%u option=\"%.*s\" text=\"%.*s\"",
			hpx_config_severity_name(remark->severity), file != NULL ? file : "",
			remark->line, remark->column, HPX_SPAN_ARG(remark->option),
			HPX_SPAN_ARG(remark->message));
	}
	if (report->left_out > 0)
		hpx_log(HPX_LOG_ERROR, "configuration", "left_out=%zu", report->left_out);
}

/* For a person who looks at standard error. */
static void print_report(const struct hpx_config_report *report, const char *file)
{
	struct hpx_buffer text;

	hpx_buffer_init(&text, REPORT_BYTES_MAX);
	if (hpx_config_report_print(report, file, &text) != HPX_OK)
		fprintf(stderr, "hapax: the configuration cannot be shown: %s\n",
			hpx_status_text(HPX_NOMEM));
	if (text.len > 0)
		hpx_log_lines(hpx_buffer_span(&text));
	hpx_buffer_done(&text);
}

static enum hpx_status load(const struct hpx_config_flags *flags, bool as_events,
			    struct hpx_settings **ret_settings)
{
	struct hpx_config_report report;
	const char *file = hpx_config_path(flags);

	hpx_config_report_init(&report);
	enum hpx_status status = hpx_config_load(flags, &report, ret_settings);
	if (status == HPX_OK)
		hpx_config_warn_server_error(*ret_settings, false, &report);
	if (status == HPX_OK && !flags->without_secrets)
		status = hpx_cli_check_tls(ret_settings, &report);
	/* Whoever parses each line of standard error has all of them as JSON. */
	bool json = status == HPX_OK && !flags->without_secrets && (*ret_settings)->log_format == HPX_LOG_JSON;
	if (json && !as_events)
		hpx_log_set_format(HPX_LOG_JSON);
	if (json || as_events)
		log_report(&report, file);
	else if (status != HPX_OK || !flags->without_secrets)
		print_report(&report, file);
	hpx_config_report_done(&report);
	return status;
}

struct hpx_settings *hpx_cli_load(const struct hpx_config_flags *flags)
{
	struct hpx_settings *settings = NULL;
	enum hpx_status status = load(flags, false, &settings);

	if (status != HPX_OK && status != HPX_INVALID)
		fprintf(stderr, "hapax: the configuration cannot be read: %s\n",
			hpx_status_text(status));
	return settings;
}

struct hpx_settings *hpx_cli_load_again(const struct hpx_config_flags *flags)
{
	struct hpx_settings *settings = NULL;
	enum hpx_status status = load(flags, true, &settings);

	if (status != HPX_OK)
		hpx_log(HPX_LOG_ERROR, "reload_refused",
			"reason=\"%s; the old configuration stays in force\"",
			status == HPX_INVALID ? "the configuration has mistakes" :
						hpx_status_text(status));
	return settings;
}

/* ---- the admin listener of a running gateway ---- */

#define FETCH_TIMEOUT_MS 10000L

static size_t take_piece(char *piece, size_t size, size_t count, void *user)
{
	return hpx_buffer_append(user, hpx_span(piece, size * count)) == HPX_OK ? size * count : 0;
}

static CURLcode set_address(CURL *curl, const char *admin, const char *path)
{
	char url[1024];

	if (strncmp(admin, "unix:", 5) == 0) {
		CURLcode code = curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, admin + 5);
		admin = "http://localhost";
		if (code != CURLE_OK)
			return code;
	}
	size_t len = strlen(admin);
	while (len > 0 && admin[len - 1] == '/')
		len--;
	int n = snprintf(url, sizeof(url), "%s%.*s%s", strstr(admin, "://") != NULL ? "" : "http://",
			 (int)len, admin, path);
	return n > 0 && (size_t)n < sizeof(url) ? curl_easy_setopt(curl, CURLOPT_URL, url) :
						  CURLE_URL_MALFORMAT;
}

static CURLcode set_options(CURL *curl, const char *admin, const char *path, struct hpx_buffer *page)
{
	CURLcode code = set_address(curl, admin, path);

	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, FETCH_TIMEOUT_MS);
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_piece);
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_WRITEDATA, page);
	return code;
}

const char *hpx_cli_fetch(const char *admin, const char *path, struct hpx_buffer *page)
{
	CURL *curl = curl_easy_init();
	CURLcode code = curl != NULL ? set_options(curl, admin, path, page) : CURLE_OUT_OF_MEMORY;

	if (code == CURLE_OK)
		code = curl_easy_perform(curl);
	curl_easy_cleanup(curl);
	return code == CURLE_OK ? NULL : curl_easy_strerror(code);
}
