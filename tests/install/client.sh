#!/bin/sh
# Shows that the installed client is enough: the example is built with nothing but
# pkg-config from an installation in a folder of its own, with the shared library
# and with the static one, in C and in C++, needs no libpq, and says
# what is wrong.
#   client.sh BUILD-FOLDER SOURCE-FOLDER COMPILER... [-- C++-COMPILER...]
set -eu
build=$1 source=$2
shift 2
cc='' cxx=''
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	cc="$cc $1"
	shift
done
[ $# -eq 0 ] || { shift; cxx=$*; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# run PROGRAM: a URL that nothing can be sent to is refused, in words.
run() {
	mkdir "$root/run"
	got=$(cd "$root/run" && PAY_TOKEN=t LD_LIBRARY_PATH=$libraries timeout 60 \
		"$1" ftp://127.0.0.1:9/ order-1 100 2>&1 || echo "exit $?")
	rm -r "$root/run"
	want='the URL is neither http:// nor https://
exit 1'
	if [ "$got" != "$want" ]; then
		printf '%s: got\n%s\nwant\n%s\n' "$1" "$got" "$want" >&2
		exit 1
	fi
}

meson install -C "$build" --destdir "$root" --no-rebuild --quiet
PKG_CONFIG_PATH=$(dirname "$(find "$root" -name hapax-client.pc)")
export PKG_CONFIG_PATH
libraries=$(dirname "$(find "$root" -name libhapax-client.a)")
flags=$(PKG_CONFIG_SYSROOT_DIR=$root pkg-config --cflags hapax-client)
libs=$(PKG_CONFIG_SYSROOT_DIR=$root pkg-config --libs hapax-client)
other=$(pkg-config --libs libcurl sqlite3 libssl libcrypto zlib)
warn='-Wall -Wextra -Werror'

$cc $warn "$source/examples/client/pay.c" -o "$root/pay" $flags $libs
LD_LIBRARY_PATH=$libraries ldd "$root/pay" >"$root/needs"
grep -q "libhapax-client.so.0 => $libraries" "$root/needs"
if readelf -d "$libraries/libhapax-client.so.0" | grep -q 'NEEDED.*libpq'; then
	echo "the client needs libpq" >&2
	exit 1
fi
run "$root/pay"

$cc "$source/examples/client/pay.c" -o "$root/static" $flags -L"$libraries" \
	-l:libhapax-client.a $other -lpthread
if ldd "$root/static" | grep -q libhapax; then
	echo "the static program needs the shared library" >&2
	exit 1
fi
run "$root/static"

if [ -n "$cxx" ]; then
	$cxx -std=c++11 $warn "$source/tests/unit/client/test_cpp.cpp" -o "$root/cpp" $flags $libs
	LD_LIBRARY_PATH=$libraries "$root/cpp"
fi
