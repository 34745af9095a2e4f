/* Names and texts of the results, from the one list. */
#include "base/status.h"

const char *hpx_status_name(enum hpx_status status)
{
	switch (status) {
#define X(name, text) \
	case HPX_##name: \
		return #name;
		HPX_STATUS_LIST(X)
#undef X
	}
	return "?";
}

const char *hpx_status_text(enum hpx_status status)
{
	switch (status) {
#define X(name, text) \
	case HPX_##name: \
		return text;
		HPX_STATUS_LIST(X)
#undef X
	}
	return "unknown status";
}
