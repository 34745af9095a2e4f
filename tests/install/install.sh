#!/bin/sh
# Shows that what is installed is enough, and that the guide is right: the
# programs of docs/guide/library.md are built with nothing but pkg-config from an
# installation in a folder of its own, with the shared library and with the
# static one, and do what the guide says. Its cc lines are run as they are printed.
#   install.sh BUILD-FOLDER SOURCE-FOLDER COMPILER...
set -eu
build=$1 source=$2
shift 2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# expect OUTPUT COMMAND: in a folder of its own, where nothing was done yet.
expect() {
	mkdir "$root/run"
	got=$(cd "$root/run" && LD_LIBRARY_PATH=$libraries "$2")
	rm -r "$root/run"
	if [ "$got" != "$1" ]; then
		printf '%s: got\n%s\nwant\n%s\n' "$2" "$got" "$1" >&2
		exit 1
	fi
}

meson install -C "$build" --destdir "$root" --no-rebuild --quiet
PKG_CONFIG_PATH=$(dirname "$(find "$root" -name hapax.pc)")
export PKG_CONFIG_PATH
libraries=$(dirname "$(find "$root" -name libhapax.a)")
hapax_flags=$(PKG_CONFIG_SYSROOT_DIR=$root pkg-config --cflags hapax)
hapax_libs=$(PKG_CONFIG_SYSROOT_DIR=$root pkg-config --libs hapax)
other_flags=$(pkg-config --cflags sqlite3 libpq)
other_libs=$(pkg-config --libs sqlite3 libpq libcrypto zlib)
payments='paying
201
replaying: paid
201
422'
shop='201
201 again'

"$(dirname "$0")/guides.sh" "$source" "$root"
warn='-Wall -Wextra -Werror'
"$@" $warn "$root/payments.c" -o "$root/payments" $hapax_flags $hapax_libs
LD_LIBRARY_PATH=$libraries ldd "$root/payments" | grep -q "libhapax.so.0 => $libraries"
expect "$payments" "$root/payments"
"$@" $warn "$root/shop.c" -o "$root/shop" $hapax_flags $other_flags $hapax_libs $other_libs
expect "$shop" "$root/shop"
"$@" $warn -c "$root/shop_pg.c" -o "$root/shop_pg.o" $hapax_flags $other_flags

"$@" "$root/payments.c" -o "$root/static" $hapax_flags -L"$libraries" -l:libhapax.a $other_libs \
	-lpthread
if ldd "$root/static" | grep -q libhapax; then
	echo "the static program needs the shared library" >&2
	exit 1
fi
expect "$payments" "$root/static"

# By the lines of the guides, as they are printed.
(cd "$root" && rm payments shop && PKG_CONFIG_SYSROOT_DIR=$root sh -e ./build && [ -x pay ])
expect "$payments" "$root/payments"
expect "$shop" "$root/shop"
