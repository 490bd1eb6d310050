# Removes what a boot has left in our cgroups: sweep CGROUP WORK
# Runs in a mount namespace of its own.
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
    test ! -d "$own" || find "$own" -depth -type d -exec rmdir {} +
done < "$2/cgroups"
