/* Profiles: whole sets of defaults, so that hapax behaves as a known API does. */
#ifndef HPX_CONFIG_PROFILE_H
#define HPX_CONFIG_PROFILE_H

#include "config/option.h"
#include "settings/settings.h"

const char *hpx_profile_name(enum hpx_profile profile);
/* By its name; HPX_PROFILE_IETF, which changes nothing, where there is none. */
enum hpx_profile hpx_profile_of(struct hpx_span name);
/* The default under that profile; NULL: the option's own. */
const char *hpx_profile_default(enum hpx_profile profile, const struct hpx_option *option);

#endif
