#!/bin/busybox sh
# Finds both disks of a guest of the lab by their serial numbers, whichever the kernel saw
# first, and lets the job's own script go on.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev

# disk SERIAL: its device, once it is there.
disk() {
    for _ in $(seq 300); do
        # Paths to a disk are listed as well, and have no device.
        for disk in /sys/block/*; do
            device=/dev/${disk##*/}
            if [ -b "$device" ] && [ "$(tr -d ' ' <"$disk/device/serial")" = "$1" ]; then
                echo "$device"
                return
            fi
        done 2>/dev/null
        usleep 100000
    done
}

mount -t ext4 "$(disk root)" /root
mount -t ext4 "$(disk job)" /root/job
umount /sys /proc
mount --move /dev /root/dev
exec switch_root /root /bin/sh -e /job/init
