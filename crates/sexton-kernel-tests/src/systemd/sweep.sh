# Removes what a boot has left in our cgroup: sweep CGROUP WORK
# Runs in a mount namespace of its own.
set -eu
mount --make-rprivate /
mount -t cgroup2 cgroup2 "$2"
own=$2$(sed -n 's/^0:://p' /proc/self/cgroup)/$1
test ! -d "$own" || find "$own" -depth -type d -exec rmdir {} +
