# Makes a root out of ROOTFS, which stays as it is, and boots it: inner WORK ROOTFS JOB
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
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount --bind "$3" "$root/job"
cp -a "$3/units/." "$root/etc/systemd/system/"
hostname sexton-test
cd "$root"
pivot_root . outside
umount -l /outside
exec env -i container=sexton PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd \
    < /dev/null > /job/console 2>&1
