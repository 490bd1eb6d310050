# Enters a cgroup and namespaces of its own: outer.sh CGROUP WORK ROOTFS JOB
# Runs in a mount namespace already, so that its mounts are nobody else's.
set -eu
mount --make-rprivate /
mount -t tmpfs none "$2"
mkdir "$2/cgroup" "$2/upper" "$2/scratch" "$2/root"
mount -t cgroup2 cgroup2 "$2/cgroup"
own=$2/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/$1
mkdir "$own"
echo $$ > "$own/cgroup.procs"
exec unshare --cgroup --mount --pid --fork --uts --ipc --net --kill-child \
    sh -eu -c "$INNER" inner "$2" "$3" "$4"
