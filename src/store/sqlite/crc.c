/* Checks of rows: CRC-32 over columns, however the machine keeps its numbers. */
#include <zlib.h>

#include "store/sqlite/driver.h"

void hpx_sqlite_crc_fixed(struct hpx_sqlite_crc *crc, const void *bytes, size_t len)
{
	if (len != 0)
		crc->value = crc32_z(crc->value, bytes, len);
}

void hpx_sqlite_crc_int(struct hpx_sqlite_crc *crc, int64_t value)
{
	unsigned char bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)((uint64_t)value >> (8 * i));
	hpx_sqlite_crc_fixed(crc, bytes, sizeof(bytes));
}

void hpx_sqlite_crc_span(struct hpx_sqlite_crc *crc, struct hpx_span bytes)
{
	hpx_sqlite_crc_int(crc, (int64_t)bytes.len);
	hpx_sqlite_crc_fixed(crc, bytes.ptr, bytes.len);
}
