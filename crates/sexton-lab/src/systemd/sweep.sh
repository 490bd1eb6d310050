# Removes what a boot has left in our cgroups: sweep CGROUP WORK
# Runs in a mount namespace of its own. Pages that hold dying ones are given back first, those
# of programs that others run too for instance, so that nobody finds them later.
set -eu
mount --make-rprivate /
mount -t tmpfs none "$2"
cat /proc/self/cgroup > "$2/cgroups"
while IFS=: read -r _ controllers path; do
    place=$2/${controllers:-unified}
    mkdir "$place"
    case $controllers in
        '') mount -t cgroup2 cgroup2 "$place" ;;
        name=*) mount -t cgroup -o "none,$controllers" cgroup "$place" ;;
        *) mount -t cgroup -o "$controllers" cgroup "$place" ;;
    esac
    own=$place$path/$1
    test -d "$own" || continue
    find "$own" -mindepth 1 -depth -type d -exec rmdir {} +
    # Both fail when something stays, which is no reason to stop.
    test ! -e "$own/memory.force_empty" || echo 0 > "$own/memory.force_empty" || true
    test ! -e "$own/memory.reclaim" || echo 1G > "$own/memory.reclaim" || true
    rmdir "$own"
done < "$2/cgroups"
