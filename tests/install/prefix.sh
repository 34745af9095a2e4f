#!/bin/sh
# Shows that `make install` installs what the packages have, below any prefix: the unit names
# the program and the configuration of that prefix, pkg-config is enough to build a program
# with each library, and it runs. The tree and DESTDIR have a space in their paths.
#   prefix.sh FOLDER DEBS   where it builds (a folder below it, removed at the end); the packages of `make deb`
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
debs=$(cd "$2" && pwd)
work=$(mktemp -d "$(cd "$1" && pwd)/prefix.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
die() { echo "prefix.sh: $1" >&2; exit 1; }
tree="$work/a tree" stage="$work/a stage" prefix=$work/prefix

install_it() {
	make -C "$tree" install "$@" >"$work/log" 2>&1 || { tail -20 "$work/log"; die "make install $* failed"; }
}
# The paths of the packages, as this prefix has them. Debian has its own places for a unit, the
# shells' completions and what every package must say of itself.
packaged() {
	for package in hapax libhapax0 libhapax-dev libhapax-client0 libhapax-client-dev; do
		dpkg-deb --fsys-tarfile "$debs/${package}"_*.deb | tar -t
	done | sed -e '/\/$/d' -e 's|^\.||' -e 's|^/usr||' -e '/^\/share\/doc\/[^/]*\/[^/]*$/d' \
		-e '/^\/share\/lintian/d' -e 's|\(/man./.*\)\.gz$|\1|' -e 's|/zsh/vendor-completions/|/zsh/site-functions/|' \
		-e 's|/completions/hapax$|/completions/hapax.bash|' -e 's|/examples/\(.*\)\.gz$|/examples/\1|' | sort
}
# names PROGRAM CONFIGURATION UNIT: they stand in each command of the unit, and no others do.
names() {
	grep -E '^Exec.*hapax' "$3" | grep -v "$1 .*--config $2" && die "$(basename "$3") names something else"
	grep -q "^ExecStart=.*$1 " "$3" || die "$(basename "$3") does not name $1"
}

mkdir "$tree"
(cd "$source" && git archive HEAD) | tar -x -C "$tree"

# ---- into a stage, for a prefix of its own ----
install_it PREFIX=/opt/hapax DESTDIR="$stage"
(cd "$stage/opt/hapax" && find . ! -type d) | sed 's|^\.||' | sort >"$work/installed"
packaged >"$work/packaged"
diff "$work/packaged" "$work/installed" || die "make install (>) and the packages (<) have other files"
for unit in hapax.service hapax-reconcile.service; do
	names /opt/hapax/bin/hapax /opt/hapax/etc/hapax/hapax.yaml "$stage/opt/hapax/lib/systemd/system/$unit"
done
[ "$(ls "$stage")" = opt ] || die "something is installed outside of the prefix: $(ls "$stage")"

# ---- for /usr: as the package has it ----
install_it PREFIX=/usr DESTDIR="$stage/system"
for unit in hapax.service hapax-reconcile.service; do
	cmp "$source/etc/$unit" "$stage/system/usr/lib/systemd/system/$unit" || die "for /usr, $unit is another one"
done
cmp "$source/etc/service.yaml" "$stage/system/etc/hapax/hapax.yaml" || die "for /usr, the configuration is not in /etc"

# ---- for /usr/local: the user is made by the line of docs/guide/operate.md ----
install_it PREFIX=/usr/local DESTDIR="$stage/local"
if command -v systemd-sysusers >/dev/null; then
	line=$(sed -n 's/^systemd-sysusers \(.*\)$/\1/p' "$source/docs/guide/operate.md")
	mkdir -p "$stage/local/etc" # every system has it; hapax's own is below /usr/local
	systemd-sysusers --root="$stage/local" $line >/dev/null 2>"$work/log" || { cat "$work/log"; die "systemd-sysusers $line failed"; }
	grep -q '^hapax:' "$stage/local/etc/passwd" || die "systemd-sysusers $line makes no user hapax"
else
	echo "SKIPPED: systemd-sysusers is not there, and the user is not made"
fi

# ---- for good: programs are built with it, and somebody's configuration stays ----
install_it PREFIX="$prefix"
echo '# mine' >"$prefix/etc/hapax/hapax.yaml"
install_it PREFIX="$prefix"
[ "$(cat "$prefix/etc/hapax/hapax.yaml")" = '# mine' ] || die "the second installation took the configuration"
names "$prefix/bin/hapax" "$prefix/etc/hapax/hapax.yaml" "$prefix/lib/systemd/system/hapax.service"
# Commands of the runbooks name no store: they find the one of this prefix.
sed "s|^store:.*|store: sqlite:$work/a.db|" "$source/etc/service.yaml" >"$prefix/etc/hapax/hapax.yaml"
"$prefix/bin/hapax" migrate --store "sqlite:$work/a.db" >/dev/null
(cd "$stage" && "$prefix/bin/hapax" keys ls >"$work/log" 2>&1) || { cat "$work/log"; die "keys ls does not find the store of its prefix"; }
"$prefix/bin/hapax" keys ls --help | tr -s ' \n' ' ' | grep -q "$prefix/etc/hapax/hapax.yaml" || die "keys ls --help names another configuration"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name hapax.pc)")
export PKG_CONFIG_PATH
LD_LIBRARY_PATH=$(dirname "$(find "$prefix" -name libhapax.so.0)")
export LD_LIBRARY_PATH
for library in hapax hapax_client; do
	package=$(echo $library | tr _ -) header=$(echo $library | sed 's/hapax_//')
	printf '#include <stdio.h>\n#include <hapax/%s.h>\nint main(void) { return puts(%s_version()) < 0; }\n' \
		"$header" "$library" >"$work/small.c"
	${CC:-cc} -Wall -Werror "$work/small.c" -o "$work/small" $(pkg-config --cflags --libs "$package")
	ldd "$work/small" | grep -q "$prefix" || die "a program with $package does not load the installed one"
	[ "hapax $("$work/small")" = "$("$prefix/bin/hapax" version)" ] || die "$package is of another version"
done
echo "make install has the $(wc -l <"$work/packaged") files of the packages, and programs are built with it"
