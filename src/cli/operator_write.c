/* A person's word: one op of the store, with the person's name and reason. It
 * works beside a running server, whose own writes it waits for. */
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/operator_command.h"

/* Whoever became root with sudo is still themselves. */
struct hpx_span hpx_operator_actor(struct hpx_operator_command *command)
{
	const char *name = getenv("SUDO_USER");
	char login[64];

	if (name == NULL || *name == '\0')
		name = getlogin_r(login, sizeof(login)) == 0 ? login : NULL;
	if (name == NULL) {
		struct passwd *entry = getpwuid(getuid());
		name = entry ? entry->pw_name : NULL;
	}
	struct hpx_span copy = name ? hpx_arena_dup(&command->arena, hpx_span_of(name)) :
				      hpx_arena_printf(&command->arena, "uid %u", (unsigned)getuid());
	return copy.ptr != NULL ? copy : HPX_SPAN("unnamed");
}

int hpx_operator_write(struct hpx_operator_command *command, struct hpx_store_op *op)
{
	char problem[HPX_STORE_PROBLEM_SIZE] = "";
	struct hpx_store_op *ops[] = { op };

	op->actor = hpx_operator_actor(command);
	if (op->reason.ptr == NULL)
		op->reason = hpx_span_of(command->reason);
	enum hpx_status status = hpx_store_run(command->store, ops, 1, problem);
	if (status == HPX_OK)
		return HPX_EXIT_OK;
	if (status == HPX_BUSY)
		return hpx_operator_complain(command, HPX_EXIT_FAILED,
					     "the store is busy with other writes; try again");
	return hpx_operator_complain(command, HPX_EXIT_FAILED,
				     "the store failed (%s); look whether it was written before you "
				     "try again",
				     problem[0] ? problem : hpx_status_text(status));
}
