/* initdb and postgres as children of the test program. */
#include "cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "fixture.h"

#define START_MS 60000

static struct {
	char folder[64];
	char bin[PATH_MAX];
	pid_t pid;
	PGconn *conn;
} cluster;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "the test's PostgreSQL: %s\n", what);
	exit(1);
}

/* With what the program wrote, and where: the folder stays for a person to look at. */
static _Noreturn void die_with_log(const char *what, const char *log)
{
	char path[sizeof(cluster.folder) + 32], piece[4096];
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", cluster.folder, log);
	fprintf(stderr, "the test's PostgreSQL: %s; %s:\n", what, path);
	FILE *file = fopen(path, "re");
	while (file != NULL && (len = fread(piece, 1, sizeof(piece), file)) > 0)
		fwrite(piece, 1, len, stderr);
	exit(1);
}

/* $HAPAX_PG_BIN, or the newest that Debian installed. */
static bool find_programs(void)
{
	const char *given = getenv("HAPAX_PG_BIN");
	glob_t found = { .gl_pathc = 0 };

	if (given != NULL && *given != '\0') {
		snprintf(cluster.bin, sizeof(cluster.bin), "%s", given);
	} else if (glob("/usr/lib/postgresql/*/bin", 0, NULL, &found) == 0) {
		snprintf(cluster.bin, sizeof(cluster.bin), "%s",
			 found.gl_pathv[found.gl_pathc - 1]);
		globfree(&found);
	}
	return cluster.bin[0] != '\0';
}

/* PostgreSQL refuses to run as root. */
static struct passwd *unprivileged(void)
{
	struct passwd *user = NULL;

	if (geteuid() != 0)
		return NULL;
	user = getpwnam("postgres");
	if (user == NULL)
		user = getpwnam("nobody");
	if (user == NULL)
		die("no unprivileged user to run it as");
	return user;
}

/* argv[0] becomes the program's full path: PostgreSQL looks for its other programs
 * beside that, and where it is a bare name, on the PATH, where Debian has none. */
static pid_t spawn(char *argv[], const char *log)
{
	struct passwd *user = unprivileged();
	char path[PATH_MAX + 64], program[PATH_MAX + 64];
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if (user != NULL && (setgroups(0, NULL) != 0 || setgid(user->pw_gid) != 0 ||
			     setuid(user->pw_uid) != 0))
		_exit(126);
	/* However the test ends, its database ends with it. */
	prctl(PR_SET_PDEATHSIG, SIGQUIT);
	if (getppid() != parent)
		_exit(126);
	snprintf(path, sizeof(path), "%s/%s", cluster.folder, log);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(fd, 1);
	dup2(fd, 2);
	snprintf(program, sizeof(program), "%s/%s", cluster.bin, argv[0]);
	argv[0] = program;
	execv(program, argv);
	fprintf(stderr, "%s: %s\n", program, strerror(errno));
	_exit(127);
}

static void init(const char *data)
{
	char *argv[] = { (char *)"initdb", (char *)"-D", (char *)data, (char *)"-A",
			 (char *)"trust", (char *)"-U", (char *)"hapax", (char *)"-E",
			 (char *)"UTF8", (char *)"--locale=C", (char *)"--no-sync", NULL };
	int status = -1;

	waitpid(spawn(argv, "initdb.log"), &status, 0);
	if (status != 0)
		die_with_log("initdb failed", "initdb.log");
}

static void await_ready(const char *url)
{
	int64_t until_ms = hpx_clock_boot_ms() + START_MS;

	while (PQping(url) != PQPING_OK) {
		if (waitpid(cluster.pid, NULL, WNOHANG) != 0)
			die_with_log("it did not start", "postgres.log");
		if (hpx_clock_boot_ms() > until_ms)
			die_with_log("it did not start in time", "postgres.log");
		poll(NULL, 0, 10);
	}
}

static void run(const char *data)
{
	char *argv[] = { (char *)"postgres", (char *)"-D", (char *)data, (char *)"-k",
			 cluster.folder, (char *)"-c", (char *)"listen_addresses=",
			 (char *)"-c", (char *)"shared_buffers=32MB", (char *)"-c",
			 (char *)"max_wal_size=128MB", (char *)"-c",
			 (char *)"log_min_messages=fatal", NULL };

	cluster.pid = spawn(argv, "postgres.log");
}

bool cluster_start(void)
{
	struct passwd *user = unprivileged();
	char data[96], url[160];

	if (!find_programs()) {
		print_message("SKIPPED: PostgreSQL is not installed (set HAPAX_PG_BIN)\n");
		return false;
	}
	fixture_folder(cluster.folder, sizeof(cluster.folder));
	if (user != NULL && chown(cluster.folder, user->pw_uid, user->pw_gid) != 0)
		die("its folder cannot be given away");
	snprintf(data, sizeof(data), "%s/data", cluster.folder);
	init(data);
	run(data);
	cluster_url(url, sizeof(url));
	await_ready(url);
	cluster.conn = cluster_connect();
	return true;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
	(void)info;
	(void)kind;
	(void)place;
	return remove(path);
}

void cluster_stop(void)
{
	if (cluster.pid <= 0)
		return;
	PQfinish(cluster.conn);
	kill(cluster.pid, SIGQUIT);
	waitpid(cluster.pid, NULL, 0);
	cluster.pid = 0;
	nftw(cluster.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void cluster_url(char *url, size_t size)
{
	snprintf(url, size, "postgres://hapax@/postgres?host=%s", cluster.folder);
}

PGconn *cluster_connect(void)
{
	char url[160];

	cluster_url(url, sizeof(url));
	PGconn *conn = PQconnectdb(url);
	if (PQstatus(conn) != CONNECTION_OK)
		die(PQerrorMessage(conn));
	/* "schema … does not exist, skipping" is nobody's news. */
	PQclear(PQexec(conn, "SET client_min_messages = error"));
	return conn;
}

PGresult *cluster_ask(PGconn *conn, const char *sql)
{
	PGresult *result = PQexec(conn, sql);
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
		print_error("%s: %s", sql, PQerrorMessage(conn));
		PQclear(result);
		fail();
	}
	return result;
}

void cluster_sql(const char *sql)
{
	PQclear(cluster_ask(cluster.conn, sql));
}
