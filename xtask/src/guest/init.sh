#!/bin/busybox sh
# The guest's first process: mounts what a node has, runs the job, powers off.
# $cgroup comes from the kernel command line.

export PATH=/bin
/bin/busybox --install -s /bin

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -t bpf bpf /sys/fs/bpf
mount -t tracefs tracefs /sys/kernel/tracing
chmod 1777 /tmp

# The kernel has NVMe and ext4 built in. On tmpfs alone no file would have true page cache.
mke2fs /dev/nvme0n1 >/tmp/mke2fs 2>&1 || cat /tmp/mke2fs
mount -t ext4 /dev/nvme0n1 /disk

# tmpfs swaps to a file there.
dd if=/dev/zero of=/disk/swap bs=1M count=4 2>/dev/null
chmod 600 /disk/swap
mkswap /disk/swap >/dev/null
swapon /disk/swap

# The places where systemd mounts them.
case $cgroup in
v1)
    mount -t tmpfs tmpfs /sys/fs/cgroup
    mkdir /sys/fs/cgroup/memory
    mount -t cgroup -o memory cgroup /sys/fs/cgroup/memory
    ;;
v2)
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    ;;
esac

/job
sync
poweroff -f
