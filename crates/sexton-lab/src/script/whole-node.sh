# sh ./whole-node PROGRAM ARGS...: runs it where the cgroups of the whole node are seen. A machine in
# namespaces has only a part of them, and without BPF the kernel tells only how many the node has.
# What is not of the machine can be read and not written. A guest has all of them anyway.
cat > whole-node <<'END_OF_NODE'
test -e /run/node-cgroups || exec "$@"
exec nsenter --cgroup=/run/node-cgroups unshare --mount sh -ec '
    mount -t tmpfs none /sys/fs/cgroup
    while IFS=: read -r _ controllers path; do
        place=/sys/fs/cgroup/${controllers#name=}
        # The last line is of v2: all there is, or beside hierarchies of v1.
        test -n "$controllers" || test ! -d ${place}memory || place=${place}unified
        mkdir -p "$place"
        case $controllers in
            "") mount -t cgroup2 cgroup2 "$place" ;;
            name=*) mount -t cgroup -o "none,$controllers" cgroup "$place" ;;
            *) mount -t cgroup -o "$controllers" cgroup "$place" ;;
        esac
        own=$place${path%/init.scope}
        mount -o remount,bind,ro "$place"
        mount --bind "$own" "$own"
        mount -o remount,bind,rw "$own"
    done < /proc/1/cgroup
    exec "$@"' whole-node "$@"
END_OF_NODE
