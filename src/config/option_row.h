/* How a row of the table of options is written, and the parts that the table
 * has. Only for the files that hold rows. */
#ifndef HPX_CONFIG_OPTION_ROW_H
#define HPX_CONFIG_OPTION_ROW_H

#include "config/option.h"
#include "settings/settings.h"

#define SECOND 1000ull
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* Where a value goes. */
#define IN(type, member) \
	.offset = offsetof(struct type, member), .width = sizeof(((struct type *)0)->member)
#define GLOBAL(member) .place = HPX_PLACE_GLOBAL, IN(hpx_settings, member)
#define POLICY(member) .place = HPX_PLACE_POLICY, .reloadable = true, IN(hpx_route, member)
#define OTHER(type, member) .companion_offset = offsetof(struct type, member)
#define RANGE(least, most) .min = least, .max = most
#define CHOICES(...) \
	.choices = (const char *const[]) \
	{ \
		__VA_ARGS__, NULL \
	}
#define RELOADABLE .reloadable = true
/* A policy's option that decides what becomes of an operation later on. */
#define FIXED_POLICY(member) .place = HPX_PLACE_POLICY, IN(hpx_route, member)
#define TARGET(member) .place = HPX_PLACE_TARGET, IN(hpx_job_target, member)
#define WEBHOOK(member) .place = HPX_PLACE_WEBHOOK, IN(hpx_webhook, member)

struct hpx_option_part {
	const struct hpx_option *rows;
	size_t count;
};

#define HPX_OPTION_PART(rows) \
	{ \
		rows, sizeof(rows) / sizeof((rows)[0]) \
	}

extern const struct hpx_option_part hpx_option_global;
extern const struct hpx_option_part hpx_option_route;
extern const struct hpx_option_part hpx_option_target;
extern const struct hpx_option_part hpx_option_webhook;

#endif
