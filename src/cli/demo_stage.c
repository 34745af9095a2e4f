/* Building the demo's parts in order, and taking them down in the reverse. */
#include "cli/demo_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* The parts in the order in which they are built; `built` counts them. */
enum part { FOLDER,
	    WITHOUT_API,
	    WITHOUT_NETWORK,
	    WITH_API,
	    BEHIND,
	    HAPAX,
	    WITH_NETWORK };

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
	(void)info;
	(void)kind;
	(void)at;
	return remove(path);
}

/* Holds the folder for this demo: false where it is somebody else's, or another
 * demo's that is running. */
static bool hold_folder(struct hpx_demo_stage *stage)
{
	struct stat info;
	int fd = open(stage->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (fstat(fd, &info) != 0 || info.st_uid != geteuid() || (info.st_mode & 077) != 0 ||
	    flock(fd, LOCK_EX | LOCK_NB) != 0) {
		close(fd);
		return false;
	}
	stage->folder_fd = fd;
	return true;
}

/* hapax-demo, which the README names. What a demo that was killed left there is
 * removed: a reader would take its store for this one's. */
static bool take_known_folder(struct hpx_demo_stage *stage)
{
	if (mkdir(stage->folder, 0700) == 0)
		return hold_folder(stage);
	if (errno != EEXIST || !hold_folder(stage))
		return false;
	nftw(stage->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	close(stage->folder_fd);
	stage->folder_fd = -1;
	return mkdir(stage->folder, 0700) == 0 && hold_folder(stage);
}

/* `known`: the one that the README names, unless somebody has it. */
static enum hpx_status make_folder(struct hpx_demo_stage *stage, bool known)
{
	const char *tmp = getenv("TMPDIR");

	if (tmp == NULL || *tmp != '/' || strlen(tmp) > 1024)
		tmp = "/tmp";
	snprintf(stage->folder, sizeof(stage->folder), "%s/hapax-demo", tmp);
	if (!known || !take_known_folder(stage)) {
		snprintf(stage->folder, sizeof(stage->folder), "%s/hapax-demo-XXXXXX", tmp);
		if (mkdtemp(stage->folder) == NULL) {
			stage->folder[0] = '\0';
			return HPX_IO;
		}
	}
	snprintf(stage->config_path, PATH_MAX, "%s/hapax.yaml", stage->folder);
	snprintf(stage->log_path, PATH_MAX, "%s/hapax.log", stage->folder);
	snprintf(stage->store_url, PATH_MAX, "sqlite:%s/hapax.db", stage->folder);
	return HPX_OK;
}

static enum hpx_status write_config(const struct hpx_demo_stage *stage)
{
	FILE *file = fopen(stage->config_path, "wxe");

	if (file == NULL)
		return HPX_IO;
	fprintf(file,
		"listen: 127.0.0.1:%u\n"
		"admin: 127.0.0.1:%u\n"
		"upstream: http://127.0.0.1:%u\n"
		"store: %s\n"
		"routes:\n"
		"  - match: POST /payments\n"
		"    concurrent: wait\n"
		"    server_error: unknown\n",
		stage->hapax.port, stage->hapax.admin_port, stage->behind.server.port,
		stage->store_url);
	return fclose(file) == 0 ? HPX_OK : HPX_IO;
}

/* The right to the known ports; -1 where another demo on this machine has it. hapax
 * is killed and started again in the story: between the two, its port is free, and
 * another demo would take it. */
static int hold_ports(void)
{
	static const char name[] = "\0hapax-demo";
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(at.sun_path, name, sizeof(name) - 1);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&at,
			    (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
					sizeof(name) - 1)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static enum hpx_status start_hapax(struct hpx_demo_stage *stage, bool known)
{
	stage->hapax.port = hpx_demo_port(known ? 8080 : 0);
	stage->hapax.admin_port = hpx_demo_port(known ? 8081 : 0);
	stage->hapax.config_path = stage->config_path;
	stage->hapax.log_path = stage->log_path;
	enum hpx_status status = write_config(stage);
	return status == HPX_OK ? hpx_demo_child_start(&stage->hapax) : status;
}

static enum hpx_status build(struct hpx_demo_stage *stage, enum part part, bool known)
{
	bool known_ports = stage->ports_fd >= 0;
	char ledger[PATH_MAX];

	snprintf(ledger, sizeof(ledger), "%s/ledger-%s", stage->folder,
		 part == WITHOUT_API ? "without" : "with");
	switch (part) {
	case FOLDER:
		return make_folder(stage, known);
	case WITHOUT_API:
		return hpx_demo_api_start(&stage->without.api, 0, ledger);
	case WITHOUT_NETWORK:
		return hpx_demo_network_start(&stage->without.network, known_ports ? 9000 : 0,
					      stage->without.api.server.port);
	case WITH_API:
		return hpx_demo_api_start(&stage->with.api, 0, ledger);
	case BEHIND:
		return hpx_demo_network_start(&stage->behind, 0, stage->with.api.server.port);
	case HAPAX:
		return start_hapax(stage, known_ports);
	case WITH_NETWORK:
		return hpx_demo_network_start(&stage->with.network, known_ports ? 8082 : 0,
					      stage->hapax.port);
	}
	return HPX_MISUSE;
}

/* The last of what hapax had to say, before its log is removed. */
static void read_log_tail(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;

	if (fd >= 0) {
		off_t end = lseek(fd, 0, SEEK_END);
		off_t from = end > (off_t)size - 1 ? end - ((off_t)size - 1) : 0;
		n = pread(fd, out, size - 1, from);
		close(fd);
	}
	out[n > 0 ? n : 0] = '\0';
}

static void explain(const struct hpx_demo_stage *stage, enum part part, enum hpx_status status,
		    char *problem, size_t problem_size)
{
	char tail[700];

	if (part == FOLDER) {
		snprintf(problem, problem_size,
			 "no folder can be made for its files (%s); set TMPDIR to one where it can",
			 strerror(errno));
	} else if (part == HAPAX) {
		read_log_tail(stage->log_path, tail, sizeof(tail));
		snprintf(problem, problem_size, "hapax serve did not start (%s); it said:\n%s",
			 hpx_status_text(status), tail);
	} else {
		snprintf(problem, problem_size, "a part of it could not be started: %s",
			 hpx_status_text(status));
	}
}

enum hpx_status hpx_demo_stage_open(struct hpx_demo_stage *stage, bool known,
				    char *problem, size_t problem_size)
{
	stage->built = 0;
	stage->folder_fd = -1;
	stage->ports_fd = known ? hold_ports() : -1;
	stage->without.name = "without hapax";
	stage->without.guarded = false;
	stage->with.name = "with hapax";
	stage->with.guarded = true;
	hpx_demo_child_init(&stage->hapax);
	for (enum part part = FOLDER; part <= WITH_NETWORK; part++) {
		enum hpx_status status = build(stage, part, known);
		if (status != HPX_OK) {
			explain(stage, part, status, problem, problem_size);
			hpx_demo_stage_close(stage);
			return status;
		}
		stage->built = (unsigned)part + 1;
	}
	return HPX_OK;
}

void hpx_demo_stage_sweep(struct hpx_demo_stage *stage)
{
	hpx_demo_child_end(&stage->hapax);
	if (stage->folder[0] != '\0')
		nftw(stage->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* First what answers, then what waits for answers. */
void hpx_demo_stage_close(struct hpx_demo_stage *stage)
{
	hpx_demo_child_end(&stage->hapax);
	if (stage->built > WITHOUT_API)
		hpx_demo_api_stop(&stage->without.api);
	if (stage->built > WITH_API)
		hpx_demo_api_stop(&stage->with.api);
	if (stage->built > WITHOUT_NETWORK)
		hpx_demo_network_stop(&stage->without.network);
	if (stage->built > BEHIND)
		hpx_demo_network_stop(&stage->behind);
	if (stage->built > WITH_NETWORK)
		hpx_demo_network_stop(&stage->with.network);
	hpx_demo_stage_sweep(stage);
	if (stage->folder_fd >= 0)
		close(stage->folder_fd);
	if (stage->ports_fd >= 0)
		close(stage->ports_fd);
	stage->folder_fd = stage->ports_fd = -1;
}
