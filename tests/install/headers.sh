#!/bin/sh
# Shows that every public header is installed, compiles alone in C11 and in C++11
# without a warning, and says of every function, struct and enum since when it is
# there.
#   headers.sh BUILD-FOLDER COMPILER... [-- C++-COMPILER...]
set -eu
build=$1
shift
cc='' cxx=''
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	cc="$cc $1"
	shift
done
[ $# -eq 0 ] || { shift; cxx=$*; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
meson install -C "$build" --destdir "$root" --no-rebuild --quiet
folder=$(dirname "$(find "$root" -name hapax.h)")
warn='-Wall -Wextra -Wpedantic -Werror -fsyntax-only'

# Tells what stands without "Since" in the comment right before it.
undated() {
	awk '
		/^\/\*/ { comment = ""; inside = 1 }
		inside { comment = comment $0 }
		/\*\/$/ && inside { inside = 0; next }
		inside { next }
		/^$/ { comment = "" }
		/^HAPAX_API / || /^(struct|enum) hapax[a-z_]*( \{|;)$/ {
			if (comment !~ /Since [0-9]+\.[0-9]+/) print FILENAME ": " $0
		}' "$@"
}

got=$(cd "$folder" && ls)
want='client.h
common.h
hapax.h'
[ "$got" = "$want" ] || { printf 'installed are:\n%s\nwant\n%s\n' "$got" "$want" >&2; exit 1; }
for header in common.h hapax.h client.h; do
	echo "#include <hapax/$header>" >"$root/alone.c"
	cp "$root/alone.c" "$root/alone.cpp"
	$cc -std=c11 $warn -I"$folder/.." "$root/alone.c"
	[ -z "$cxx" ] || $cxx -std=c++11 $warn -I"$folder/.." "$root/alone.cpp"
done
missing=$(undated "$folder"/*.h)
[ -z "$missing" ] || { printf 'no release is named for:\n%s\n' "$missing" >&2; exit 1; }
