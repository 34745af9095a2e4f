#!/bin/sh
# Makes a folder with a Debian the root, and systemd its first process; called by service.sh
# in namespaces of its own, in which all of this ends with it.
#   boot.sh FOLDER
set -eu
cd "$1"
mount --make-rprivate /
mount --bind . .
cd "$PWD"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs tmpfs tmp
# What PrivateDevices= of a unit takes over, and nothing of this machine's disks or consoles.
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do
	: >"dev/$device"
	mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/shm dev/pts dev/mqueue
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
# The hierarchy that systemd keeps its own records in, of whichever version is here.
mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
if mkdir sys/fs/cgroup/systemd && mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd 2>/dev/null; then
	mkdir sys/fs/cgroup/unified
	mount -t cgroup2 cgroup2 sys/fs/cgroup/unified
else
	umount sys/fs/cgroup
	mount -t cgroup2 cgroup2 sys/fs/cgroup
fi
mkdir -p mnt/old
pivot_root . mnt/old
umount -l mnt/old
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=journal --show-status=no
