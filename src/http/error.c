/* Texts and answers of the errors, from the one list. */
#include "http/error.h"

unsigned hpx_http_error_status(enum hpx_http_error error)
{
	switch (error) {
#define X(name, status, text) \
	case HPX_HTTP_ERROR_##name: \
		return status;
		HPX_HTTP_ERROR_LIST(X)
#undef X
	}
	return 400;
}

const char *hpx_http_error_text(enum hpx_http_error error)
{
	switch (error) {
#define X(name, status, text) \
	case HPX_HTTP_ERROR_##name: \
		return text;
		HPX_HTTP_ERROR_LIST(X)
#undef X
	}
	return "the message is malformed";
}
