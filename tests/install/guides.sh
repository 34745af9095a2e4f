#!/bin/sh
# Writes the programs of the guides into a folder, and `build`: the cc lines of the guides, as
# they are printed.
#   guides.sh SOURCE-FOLDER FOLDER
set -eu
source=$1
mkdir -p "$2"
cd "$2"
for name in payments.c shop.c shop_pg.c; do
	# The block that begins with "/* NAME".
	awk -v first="/* $name" '
		/^```/ { inside = 0 }
		inside || index($0, first) == 1 { inside = 1; print }' "$source/docs/guide/library.md" >"$name"
	[ -s "$name" ]
done
cp "$source/examples/client/pay.c" .
grep -h '^cc ' "$source/docs/guide/library.md" "$source/docs/guide/client.md" "$source/examples/client/README.md" >build
[ "$(wc -l <build)" = 4 ]
