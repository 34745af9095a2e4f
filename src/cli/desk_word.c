/* A person's word: one op of the store, with the person's name and reason. It
 * works beside a running server, whose own writes it waits for. */
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/desk.h"

/* Whoever became root with sudo is still themselves. */
struct hpx_span hpx_desk_actor(struct hpx_desk *desk)
{
	const char *name = getenv("SUDO_USER");
	char login[64];

	if (name == NULL || *name == '\0')
		name = getlogin_r(login, sizeof(login)) == 0 ? login : NULL;
	if (name == NULL) {
		struct passwd *entry = getpwuid(getuid());
		name = entry ? entry->pw_name : NULL;
	}
	struct hpx_span copy = name ? hpx_arena_dup(&desk->arena, hpx_span_of(name)) :
				      hpx_arena_printf(&desk->arena, "uid %u", (unsigned)getuid());
	return copy.ptr != NULL ? copy : HPX_SPAN("unnamed");
}

int hpx_desk_say(struct hpx_desk *desk, struct hpx_store_op *op)
{
	char problem[HPX_STORE_PROBLEM_SIZE] = "";
	struct hpx_store_op *ops[] = { op };

	op->actor = hpx_desk_actor(desk);
	if (op->reason.ptr == NULL)
		op->reason = hpx_span_of(desk->reason);
	enum hpx_status status = hpx_store_run(desk->store, ops, 1, problem);
	if (status == HPX_OK)
		return HPX_EXIT_OK;
	if (status == HPX_BUSY)
		return hpx_desk_complain(desk, HPX_EXIT_FAILED,
					 "the store is busy with other writes; try again");
	return hpx_desk_complain(desk, HPX_EXIT_FAILED,
				 "the store failed (%s); look whether it was written before you "
				 "try again",
				 problem[0] ? problem : hpx_status_text(status));
}
