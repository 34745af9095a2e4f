#!/bin/sh
# Shows that hapax is a service as the documents say, under a real systemd that is the first
# process of a Debian of its own: every systemctl and journalctl line of the documents is run
# in it, in the order of a person who sets it up, changes it, upgrades it and removes it. Its
# sandbox is real too: user, rights, system calls.
#   service.sh FOLDER NETWORK   a Debian with hapax installed, its package in /root and
#                               nothing running; a network namespace with an API on port 9000
# The package is removed at the end, and not purged. Exits with 77 (skipped) where systemd does
# not start.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
root=$(cd "$1" && pwd) network=$2
work=$(mktemp -d)
outer='' first=''
skip() { echo "SKIPPED: $1"; exit 77; }
die() { echo "service.sh: $1" >&2; [ ! -s "$work/out" ] || cat "$work/out" >&2; exit 1; }
cleanup() {
	[ -z "$first" ] || kill -KILL "$first" 2>/dev/null || true
	[ -z "$outer" ] || wait "$outer" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

# until_true COMMAND: up to 30 s.
until_true() {
	for _ in $(seq 300); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	return 1
}
inside() {
	nsenter --target "$first" --mount --pid --net --uts --ipc --cgroup --root env -i -C /root \
		PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive SYSTEMD_PAGER= "$@"
}
# script TEXT: command lines of a document, each of which must succeed; what they print is in
# $work/out. The lines are remembered, for the last check.
script() {
	printf '%s\n' "$1" >>"$work/ran"
	inside sh -ec "$1" >"$work/out" 2>&1 </dev/null
}
# block PAGE HEADING: the code below a heading, of the first block there.
block() {
	awk -v heading="## $2" '
		/^#/ && !fence { here = $0 == heading; next }
		/^```/ { if (fence && here) exit; fence = !fence; next }
		fence && here' "$source/docs/$1"
}
state() { inside systemctl show --value --property "$1" hapax.service; }
ready() { inside curl -sf http://127.0.0.1:8081/readyz; }
said() { grep -q -e "$1" "$work/out"; }

nsenter --net="$network" unshare --mount --pid --uts --ipc --cgroup --fork --kill-child \
	"$source/tests/install/boot.sh" "$root" >"$work/boot" 2>&1 &
outer=$!
# The first process is systemd once the shell of boot.sh has become it.
booted() {
	first=$(cat "/proc/$outer/task/$outer/children" | tr -d ' ')
	[ -n "$first" ] && [ "$(cat "/proc/$first/comm")" = systemd ] && inside systemctl is-system-running --wait
}
until_true booted || { cat "$work/boot"; first=''; skip "systemd does not start in a namespace here"; }

# ---- set up: docs/recipes/systemd.md ----
mkdir -p "$root/root/recipe"
cp "$source"/examples/recipes/systemd/* "$root/root/recipe/"
script "cd /root/recipe
$(block recipes/systemd.md Start)" || die "the recipe's start failed"
script "$(block recipes/systemd.md Check)" || die "the recipe's check failed"
said '^active$' && [ "$(grep -ci '^idempotent-replayed: true' "$work/out")" = 1 ] && said completed || die "the recipe does not check"
script 'journalctl -u hapax' && said 'event=ready' || die "the journal does not have the log"
main=$(state MainPID)
grep -q '^CapEff:.*0000000000000000$' "/proc/$first/root/proc/$main/status" || die "the service has a capability"
for line in '^Uid:.[1-9]' '^NoNewPrivs:.1' '^Seccomp:.2' '^CapBnd:.0000000000000000'; do
	grep -q "$line" "/proc/$first/root/proc/$main/status" || die "the service is not confined: no $line"
done
[ "$(state TimeoutStopUSec)" = 1min\ 15s ] || die "the drop-in is not in force"
inside systemctl is-enabled hapax >/dev/null || die "the service does not start at boot"

# ---- changed: a mistake changes nothing ----
cp "$root/etc/hapax/hapax.yaml" "$work/right"
echo 'nonsense: 1' >>"$root/etc/hapax/hapax.yaml"
! script 'systemctl reload hapax' || die "a reload with a mistake succeeded"
inside journalctl -u hapax >"$work/out"
said 'nonsense' || die "the mistake is not told"
[ "$(state MainPID)" = "$main" ] && ready >/dev/null || die "a mistake ended the service"
cp "$work/right" "$root/etc/hapax/hapax.yaml"
script 'systemctl reload hapax' || die "the reload failed"
logged() { inside journalctl -u hapax | grep -q "$1"; }
until_true logged event=reloaded || die "the service did not reload"

# ---- the access log: docs/guide/logs-and-metrics.md ----
grep -x 'access_log.*' "$source/docs/guide/logs-and-metrics.md" >>"$root/etc/hapax/hapax.yaml"
log=$(sed -n 's/^access_log_file: //p' "$root/etc/hapax/hapax.yaml")
block guide/logs-and-metrics.md 'Rotation, and a full disk' >"$root/etc/logrotate.d/hapax"
is_in() { script "$(block recipes/systemd.md Check)" && grep -q '"did":"replayed"' "$root$1"; }
script 'systemctl reload hapax' || die "the reload with an access log failed"
until_true is_in "$log" || die "there is no access log: $(inside journalctl -u hapax | tail -3)"
inside logrotate --force /etc/logrotate.d/hapax >"$work/out" 2>&1 || die "logrotate failed"
until_true is_in "$log" && [ -s "$root$log.1" ] || die "the access log was not rotated"
inside sh -c "[ \"\$(stat -c %U:%a $log $(dirname "$log") | xargs)\" = 'hapax:600 hapax:750' ]" || die "others may read the access log"

# ---- a port below 1024: docs/guide/operate.md ----
cp "$root/etc/hapax/hapax.yaml" "$work/right"
sed -i 's/^listen:.*/listen: 127.0.0.1:443/' "$root/etc/hapax/hapax.yaml"
script 'systemctl restart hapax' || true
until_true logged 'cannot listen on 127.0.0.1:443: permission denied' || die "it may open any port without a right"
awk '/^```ini$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$source/docs/guide/operate.md" \
	>"$root/etc/systemd/system/hapax.service.d/port.conf"
inside systemctl daemon-reload
inside systemctl reset-failed hapax
script 'systemctl restart hapax' && until_true ready || die "it does not start with port 443"
inside curl -s http://127.0.0.1:443/.hapax/policy >/dev/null || die "nobody answers on port 443"
rm "$root/etc/systemd/system/hapax.service.d/port.conf"
cp "$work/right" "$root/etc/hapax/hapax.yaml"
inside systemctl daemon-reload
script 'systemctl restart hapax' && until_true ready || die "it does not start again"
main=$(state MainPID)

# ---- killed, and stopped: it comes back with the same keys ----
again() { [ "$(state MainPID)" != "$main" ] && [ "$(state MainPID)" != 0 ] && ready; }
inside sh -c "kill -KILL $main"
until_true again || die "the unit does not start a killed service again"
script 'systemctl status hapax' && said 'active (running)' || die "systemctl status does not say that it runs"
script 'systemctl stop hapax' || die "the stop failed"
[ "$(state ActiveState)/$(state Result)" = inactive/success ] && ! ready >/dev/null || die "the stop was none"
script 'systemctl start hapax' && until_true ready || die "it does not start after a stop"
script "$(block recipes/systemd.md Check)" || die "the check failed after a kill and a stop"
[ "$(grep -ci '^idempotent-replayed: true' "$work/out")" = 2 ] || die "a kill or a stop forgot a key"
main=$(state MainPID)

# ---- upgraded: docs/recipes/upgrade.md ----
script 'apt-get install -qq -y --reinstall /root/hapax_*.deb' || die "the upgrade failed"
[ "$(state MainPID)" = "$main" ] || die "the package's upgrade did not leave the process alone"
script "$(block recipes/upgrade.md 'One gateway, on SQLite')" || die "the upgrade's lines failed"
[ "$(state MainPID)" != "$main" ] && logged event=draining || die "the restart was none"
script "$(block recipes/upgrade.md Check)" && said 'up to date' || die "the store is not up to date"
script "$(block recipes/systemd.md Check)" || die "the check failed after the upgrade"
[ "$(grep -ci '^idempotent-replayed: true' "$work/out")" = 2 ] || die "the upgrade forgot a key"

# ---- the daily comparison: docs/guide/choose-a-store.md ----
printf 'targets: {bank: {url: "http://127.0.0.1:9000/"}}\n' >>"$root/etc/hapax/hapax.yaml"
# The file is the last argument; before it stands the line to begin with.
printf '#!/bin/sh\nfor file; do :; done\nprintf "[Service]\\nNice=5\\n" >"$file"\n' >"$root/usr/local/bin/editor"
chmod 755 "$root/usr/local/bin/editor"
block guide/choose-a-store.md 'The daily reconciliation' | while read -r line; do
	case $line in
	# An editor wants a terminal.
	*' edit '*) echo "$line" >>"$work/ran"; line="SYSTEMD_EDITOR=/usr/local/bin/editor script -qec '$line' /dev/null" ;;
	esac
	script "$line" || die "$line"
done
said hapax-reconcile.timer || die "the timer is not listed"
[ "$(inside systemctl show --value --property Nice hapax-reconcile.service)" = 5 ] || die "the unit was not edited"
inside systemctl start hapax-reconcile.service || die "a day without an export is an error"
printf 'reference,amount,status\n' | inside runuser -u hapax -- sh -c 'cat >/var/lib/hapax/ledger.csv'
inside systemctl start hapax-reconcile.service >"$work/out" 2>&1 || { inside journalctl -u hapax-reconcile.service >"$work/out"; die "an export with nothing open is an error"; }
printf 'nobody-knows-it,100,settled\n' | inside runuser -u hapax -- sh -c 'cat >>/var/lib/hapax/ledger.csv'
! inside systemctl start hapax-reconcile.service >"$work/out" 2>&1 || die "the unit does not fail where something is open"
script 'systemctl --failed' && said hapax-reconcile.service || die "systemctl --failed does not have it"

# ---- removed: it stops, and in good order ----
inside systemctl reset-failed
script 'apt-get remove -qq -y hapax' || die "the removal failed"
! ready >/dev/null || die "the service runs on after its removal"
logged 'event=drained\|event=stopped\|Deactivated successfully' || die "the removal did not let it drain"

# ---- every line of the documents was run ----
grep -rhoE '(systemctl|journalctl) [-a-z]+( [-a-z.]+)*' "$source/docs" "$source/etc" "$source/README.md" | sort -u >"$work/documented"
while read -r line; do
	grep -qF "$line" "$work/ran" || echo "$line"
done <"$work/documented" >"$work/out"
[ ! -s "$work/out" ] || die "these lines of the documents are not run here:"
echo "systemd starts, reloads, restarts and stops hapax as the documents say: $(wc -l <"$work/documented") different lines"
