# Enters a cgroup and namespaces of its own: outer.sh CGROUP WORK ROOTFS JOB FIRST
# Runs in a mount namespace already, so that its mounts are nobody else's. The cgroup is
# one of that name in every hierarchy, below the one we are in.
set -eu
mount --make-rprivate /
mount -t tmpfs none "$2"
mkdir "$2/cgroup" "$2/upper" "$2/scratch" "$2/root"
cat /proc/self/cgroup > "$2/cgroups"
while IFS=: read -r _ controllers path; do
    place=$2/cgroup/${controllers:-unified}
    mkdir "$place"
    case $controllers in
        '') mount -t cgroup2 cgroup2 "$place" ;;
        name=*) mount -t cgroup -o "none,$controllers" cgroup "$place" ;;
        *) mount -t cgroup -o "$controllers" cgroup "$place" ;;
    esac
    own=$place$path/$1
    mkdir "$own"
    # Without these two nothing may enter a cpuset.
    for file in cpuset.cpus cpuset.mems; do
        test ! -e "$place$path/$file" || test -z "$controllers" \
            || cat "$place$path/$file" > "$own/$file"
    done
    echo $$ > "$own/cgroup.procs"
done < "$2/cgroups"
# For those who are to see the cgroups of the whole node from inside.
touch "$2/cgroup-namespace"
mount --bind /proc/self/ns/cgroup "$2/cgroup-namespace"
exec unshare --cgroup --mount --pid --fork --uts --ipc --net --kill-child \
    sh -eu -c "$INNER" inner "$2" "$3" "$4" "$5"
