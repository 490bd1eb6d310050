# Makes a root out of ROOTFS, which stays as it is, and boots it: inner WORK ROOTFS JOB FIRST
# FIRST is what the first process is: systemd, or the job itself.
root=$1/root
mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/scratch" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs none "$root/run"
mount -t tmpfs none "$root/dev"
for node in null zero full random urandom tty; do
    touch "$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
done
mkdir "$root/dev/pts" "$root/dev/shm" "$root/job" "$root/outside"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs none "$root/dev/shm"
# As this machine has them, so that units and containers get a memory controller.
if [ "$(wc -l < "$1/cgroups")" = 1 ]; then
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
else
    mount -t tmpfs none "$root/sys/fs/cgroup"
    while IFS=: read -r _ controllers _; do
        name=${controllers#name=}
        place=$root/sys/fs/cgroup/${name:-unified}
        mkdir "$place"
        case $controllers in
            '') mount -t cgroup2 cgroup2 "$place" ;;
            name=*) mount -t cgroup -o "none,$controllers" cgroup "$place" ;;
            *) mount -t cgroup -o "$controllers" cgroup "$place" ;;
        esac
    done < "$1/cgroups"
fi
mount --bind "$3" "$root/job"
touch "$root/run/node-cgroups"
mount --bind "$1/cgroup-namespace" "$root/run/node-cgroups"
cp -a "$3/units/." "$root/etc/systemd/system/"
hostname sexton-test
cd "$root"
pivot_root . outside
umount -l /outside
case $4 in
    systemd) set -- /lib/systemd/systemd ;;
    *) set -- /bin/sh -e /job/run ;;
esac
exec env -i container=sexton PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@" \
    < /dev/null > /job/console 2>&1
