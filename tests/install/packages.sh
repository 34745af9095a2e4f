#!/bin/sh
# Shows that the Debian packages do what they are for, in a minimal Debian 12 that
# debootstrap makes: they install, the service starts by the unit's own command line and
# protects an API, a real systemd runs the unit (service.sh), an upgrade to another version
# keeps the store and what somebody wrote into the configuration, a removal and a purge leave
# the store and say so; programs are built with the -dev packages by the lines of the guides.
# Built a second time, in another folder, the packages are the same bytes.
#   packages.sh FOLDER   where the packages and the system go; removed at the end
#   PACKAGES_ONCE=1      builds them once, and compares nothing
# Exits with 77 (skipped) where nobody may make such a system.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$1
skip() { echo "SKIPPED: $1"; exit 77; }
die() { echo "packages.sh: $1" >&2; exit 1; }
[ "$(id -u)" = 0 ] || skip "only root can make a system of its own"
command -v debootstrap >/dev/null || skip "debootstrap is not there: apt-get install debootstrap"
unshare --mount --pid --fork true 2>/dev/null || skip "no namespaces here"

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
root=$folder/system
service='' api=''
cleanup() {
	[ -z "$service" ] || kill "$service" 2>/dev/null || true
	[ -z "$api" ] || kill "$api" 2>/dev/null || true
	umount "$root/proc" 2>/dev/null || true
	umount "$folder/network" 2>/dev/null || true
	rm -rf "$folder"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

# ---- the same bytes twice ----
"$source/tools/deb" "$folder/one" >"$folder/lintian" 2>&1 || { cat "$folder/lintian"; die "the packages are not built"; }
! grep '^[EW]: ' "$folder/lintian" || die "lintian has something to say"
if [ -z "${PACKAGES_ONCE:-}" ]; then
	"$source/tools/deb" "$folder/a/longer/path/for/the/second" >/dev/null
	for package in "$folder"/one/*.deb; do
		cmp "$package" "$folder/a/longer/path/for/the/second/$(basename "$package")" ||
			die "$(basename "$package") differs from build to build"
	done
fi

"$source/tests/install/prefix.sh" "$folder" "$folder/one"

# ---- a system ----
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
	sed -n 's/ bookworm main$//p' | head -n 1)
debootstrap --variant=minbase --include=ca-certificates,curl,systemd,python3-minimal bookworm "$root" "$mirror" \
	>"$folder/debootstrap.log" 2>&1 || { tail -5 "$folder/debootstrap.log"; skip "no system could be made here"; }
cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
for file in /etc/resolv.conf /etc/hosts; do cp -L "$file" "$root$file" 2>/dev/null || true; done
cp "$folder"/one/*.deb "$root/root/"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }
mount -t proc proc "$root/proc"
# A network of its own for service, API and callers: the shipped configuration has fixed
# ports, and who answers there must be the service of this test.
: >"$folder/network"
unshare --net="$folder/network" ip link set lo up

# ---- installed ----
inside sh -c 'apt-get update -qq && apt-get install -qq -y --no-install-recommends /root/hapax_*.deb /root/libhapax0_*.deb /root/libhapax-client0_*.deb' >"$folder/apt.log" 2>&1 ||
	{ tail -20 "$folder/apt.log"; die "the packages do not install"; }
inside hapax version
inside getent passwd hapax >/dev/null || die "there is no user hapax"
inside hapax check --config /etc/hapax/hapax.yaml >/dev/null || die "the shipped configuration has mistakes"
inside dpkg-query -L hapax libhapax0 libhapax-client0 >"$folder/files"
for path in /usr/bin/hapax /etc/hapax/hapax.yaml /lib/systemd/system/hapax.service /usr/lib/sysusers.d/hapax.conf \
	/usr/share/bash-completion/completions/hapax /usr/share/zsh/vendor-completions/_hapax \
	/usr/share/doc/hapax/examples/alerts.yaml /usr/share/man/man1/hapax.1.gz \
	$(inside hapax --help | sed -n 's|^  \([a-z]*\)  .*|/usr/share/man/man1/hapax-\1.1.gz|p'); do
	grep -qx "$path\(\.gz\)\{0,1\}" "$folder/files" || die "no package has $path"
done
inside bash -c '. /usr/share/bash-completion/completions/hapax && COMP_WORDS=(hapax ke) COMP_CWORD=1 && _hapax && [ "${COMPREPLY[*]}" = keys ]' ||
	die "bash does not complete ke to keys"

# The pages that the alerts name, and that a person looks for at night.
grep -o 'docs/[a-z/-]*\.md' "$root/usr/share/doc/hapax/examples/alerts.yaml" | sort -u >"$folder/pages"
[ -s "$folder/pages" ] || die "the alerts name no page"
while read -r page; do
	[ -s "$root/usr/share/doc/hapax/$page" ] || die "an alert names $page, which is not installed"
done <"$folder/pages"

# ---- started by the unit's command line, as the unit's user, in front of an API ----
line=$(sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/hapax.service")
start() {
	inside sh -c 'mkdir -p /var/lib/hapax && chown hapax:hapax /var/lib/hapax && chmod 700 /var/lib/hapax'
	# Not by inside(): a function in the background is a shell of its own, and the signal
	# would end that shell. Each of these becomes the next one, the last is hapax.
	nsenter --net="$folder/network" chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		setpriv --reuid=hapax --regid=hapax --clear-groups sh -c "cd /var/lib/hapax && umask 077 && exec $line" \
		>"$folder/serve.log" 2>&1 &
	service=$!
	for _ in $(seq 100); do
		! ask -f http://127.0.0.1:8081/readyz >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	cat "$folder/serve.log"
	die "the service does not become ready"
}
stop() {
	kill "$service"
	wait "$service" || { cat "$folder/serve.log"; die "the service did not end well"; }
	service=''
	! ask http://127.0.0.1:8081/readyz >/dev/null 2>&1 || die "somebody answers after the service has ended"
}
ask() { nsenter --net="$folder/network" curl -sS --noproxy '*' "$@"; }
pay() {
	ask -o "$folder/answer" -D "$folder/head" http://127.0.0.1:8080/payments \
		-H 'Idempotency-Key: "package-test-0001"' -H 'Content-Type: application/json' -d '{"amount": 499}'
}
cat >"$folder/api.py" <<'API'
import http.server
class Api(http.server.BaseHTTPRequestHandler):
    paid = 0
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        Api.paid += 1
        body = b'{"paid": %d}' % Api.paid
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", 9000), Api).serve_forever()
API
nsenter --net="$folder/network" /usr/bin/python3 "$folder/api.py" &
api=$!
start
pay && grep -q '"paid": 1}' "$folder/answer" || { cat "$folder/serve.log"; die "the first payment: $(cat "$folder/answer")"; }
pay && grep -qi '^idempotent-replayed: true' "$folder/head" || die "the retry was not a replay"
inside hapax keys ls --config /etc/hapax/hapax.yaml | grep -q completed || die "keys ls does not find the operation"
inside hapax keys ls --state completed | grep -q completed || die "the runbook's keys ls, as it is printed, does not find the operation"
stop

# ---- upgraded to a later version, which ships another configuration ----
version=$(dpkg-deb -f "$folder"/one/hapax_*.deb Version)
dpkg-deb -R "$folder"/one/hapax_*.deb "$folder/later"
sed -i "s/^Version: .*/Version: $version+later/" "$folder/later/DEBIAN/control"
echo '# of the later version' >>"$folder/later/etc/hapax/hapax.yaml"
rm "$root"/root/hapax_*.deb
dpkg-deb --root-owner-group -b "$folder/later" "$root/root/hapax_$version+later.deb" >/dev/null
echo '# written by somebody' >>"$root/etc/hapax/hapax.yaml"
inside apt-get install -qq -y -o Dpkg::Options::=--force-confold "/root/hapax_$version+later.deb" >"$folder/apt.log" 2>&1 ||
	{ tail -20 "$folder/apt.log"; die "the upgrade failed"; }
[ "$(inside dpkg-query -W -f '${Version}' hapax)" = "$version+later" ] || die "there was no upgrade"
[ "$(tail -n 1 "$root/etc/hapax/hapax.yaml")" = '# written by somebody' ] || die "the upgrade took the configuration"
start
pay && grep -qi '^idempotent-replayed: true' "$folder/head" || die "the store did not survive the upgrade"
stop

# ---- under a real systemd, which also removes the package ----
inside apt-get install -qq -y --no-install-recommends systemd-sysv logrotate >"$folder/apt.log" 2>&1 ||
	{ tail -20 "$folder/apt.log"; die "logrotate does not install"; }
rm "$root/usr/sbin/policy-rc.d"
"$source/tests/install/service.sh" "$root" "$folder/network" || [ $? = 77 ]

# ---- programs: the lines of the guides, with nothing but the packages ----
inside apt-get install -qq -y --no-install-recommends gcc libc6-dev pkg-config $(cd "$root" && ls ./root/lib*-dev_*.deb | sed 's|^\.||') \
	>"$folder/apt.log" 2>&1 || { tail -20 "$folder/apt.log"; die "the -dev packages do not install"; }
"$source/tests/install/guides.sh" "$source" "$root/root/programs"
inside sh -ec 'cd /root/programs && sh -e ./build && ./payments && ./shop' >"$folder/answer" 2>&1 ||
	{ cat "$folder/answer"; die "the programs of the guides are not built or do not run"; }
[ "$(grep -c '^201' "$folder/answer")" = 4 ] || { cat "$folder/answer"; die "the programs of the guides print something else"; }

# ---- removed and purged ----
inside apt-get remove -qq -y hapax >"$folder/apt.log" 2>&1 || die "the removal failed"
[ -s "$root/var/lib/hapax/hapax.db" ] || die "the removal took the store"
inside apt-get purge -qq -y hapax >"$folder/apt.log" 2>&1 || die "the purge failed"
grep -q '/var/lib/hapax is left' "$folder/apt.log" || die "the purge does not say that the store stays"
[ -s "$root/var/lib/hapax/hapax.db" ] || die "the purge took the store"
[ ! -e "$root/etc/hapax/hapax.yaml" ] || die "the purge left the configuration"
[ ! -e "$root/var/log/hapax" ] || die "the purge left the access log"
same=", and are the same from build to build"
[ -z "${PACKAGES_ONCE:-}" ] || same="; whether two builds are the same was not looked at"
echo "the packages install, serve, upgrade and go$same"
