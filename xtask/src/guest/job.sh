#!/bin/sh
# Makes a known number of dying memory cgroups, then lets sexton look at them.
# $cgroup and the numbers n_* come from the kernel command line. What is printed goes to
# the second serial port, between marks that xtask reads.

report=/dev/ttyS1
generations=/sys/kernel/mm/lru_gen/enabled
page=$(printf '%4095s' x)

case $cgroup in
v1) root=/sys/fs/cgroup/memory ;;
v2) root=/sys/fs/cgroup ;;
esac

# section NAME COMMAND...: reports what the command prints, and its exit code.
# Its errors, if any, become a section of their own, NAME.err.
section() {
    name=$1
    shift
    "$@" >/tmp/out 2>/tmp/err
    code=$?
    part "$name" /tmp/out
    [ ! -s /tmp/err ] || part "$name.err" /tmp/err
}

# The port is slow, and most of what JSON is printed with is indentation.
part() {
    {
        echo "sexton-guest: begin $1"
        sed 's/^ *//' "$2"
        echo
        echo "sexton-guest: end $1 $code"
    } >$report
}

# The kernel's own count: what it tracks, less what has a directory, is dying.
# Where /proc/cgroups leaves the memory controller out, cgroup.stat counts it.
# Then where the pages lie.
counts() {
    awk '$1 == "memory" { print "memory_cgroups", $3 }' /proc/cgroups
    awk '/^nr_(dying_)?subsys_memory / { n += $2 } END { if (n) print "memory_states", n }' \
        $root/cgroup.stat 2>/dev/null
    echo "directories $(find $root -type d | wc -l)"
    awk -F- '{ print "last_possible_node", $NF }' /sys/devices/system/node/possible
    awk '$3 == "FilePages:" { print "node" $2 "_file_kb", $4 }' /sys/devices/system/node/node?/meminfo
}

# What there is only in the part of the hierarchy that another mount will show.
counts_of_part() {
    echo "directories $(find $root/system.slice -type d | wc -l)"
    awk '$1 == "nr_dying_descendants" { print "dying", $2 }' $root/system.slice/cgroup.stat 2>/dev/null
}

# group PATH: a cgroup whose children account memory.
group() {
    mkdir "$root/$1"
    [ $cgroup = v1 ] || echo +memory >"$root/$1/cgroup.subtree_control"
}

# bind CPU: from here on this shell runs there, and its pages come from the node of that CPU.
bind() {
    sh -c 'taskset -p $0 $PPID' $((1 << $1)) >/dev/null
}

# leak GROUP N FILE [each]: N cgroups are born, write one page to FILE, and are removed,
# half of them on each node.
# With `each`, every cgroup writes a file of its own, FILE.0, FILE.1, ...
# One process walks through all of them; its own memory is gone when the subshell ends.
leak() (
    last=$(($2 - 1))
    cd "$root/$1"
    mkdir $(seq 0 $last)
    bind 0
    for i in $(seq 0 $last); do
        [ $i != $(($2 / 2)) ] || bind 1
        echo 0 >$i/cgroup.procs
        echo "$page" >>"$3${4:+.$i}"
    done
    echo 0 >$root/cgroup.procs
    rmdir $(seq 0 $last)
)

# visit CGROUP FILE: a process writes one page to FILE in a cgroup of its own, and ends.
visit() {
    mkdir "$root/$1"
    (
        echo 0 >"$root/$1/cgroup.procs"
        echo "$page" >"$2"
    )
}

# swap_out GROUP N FILE: N cgroups each write a page to a file of their own on tmpfs,
# which is swapped out before they are removed. After it would be too late: then the
# kernel gives the swap entry to their parent.
swap_out() (
    # Reclaim does not reach pages that wait on the list of another CPU.
    bind 1
    for i in $(seq "$2"); do
        visit "$1/$i" "$3.$i"
        # A page that was written to swap is free only when reclaim meets it again.
        for _ in 1 2 3; do
            reclaim "$root/$1/$i"
            usleep 10000
        done
        rmdir "$root/$1/$i"
    done
)

# reclaim DIRECTORY: swaps out all it can. That something remains, which is the kernel's
# own memory, is an error to some of these files, and none to us.
reclaim() {
    if [ -e "$1/memory.reclaim" ]; then
        echo 64K >"$1/memory.reclaim"
    elif [ $cgroup = v2 ]; then
        echo 0 >"$1/memory.high"
    else
        # Not memory.force_empty: on 5.10 that takes seconds.
        echo 0 >"$1/memory.limit_in_bytes"
    fi 2>/dev/null
}

# A mount namespace that shows only system.slice, at a place of its own.
in_part() {
    unshare -m sh -c '
        mkdir -p /run/part
        mount --bind $0/system.slice /run/part
        umount $0
        exec "$@"' $root "$@"
}

# map GROUP N [NAME]: N cgroups, called NAME and a number, each leave a program on the disk that
# keeps running elsewhere, so that dropping the cache of the file does not free all of it.
map() {
    for i in $(seq "$2"); do
        mkdir "$root/$1/$3$i"
        (
            echo 0 >"$root/$1/$3$i/cgroup.procs"
            cp /bin/busybox "/disk/busybox.$3$i"
        )
    done
    for i in $(seq "$2"); do
        "/disk/busybox.$3$i" sleep 1000 &
    done
    # That a file was read is written too: until then its inode holds whoever wrote it.
    sleep 1
    sync
    for i in $(seq "$2"); do
        rmdir "$root/$1/$3$i"
    done
}

# settle GROUP: a live cgroup, two deep, with cache of its own and some protection.
settle() {
    group "$1"
    mkdir "$root/$1/inner"
    [ $cgroup = v1 ] || echo 8192 >"$root/$1/memory.low"
    (
        echo 0 >"$root/$1/inner/cgroup.procs"
        dd if=/dev/zero of=/disk/neighbour bs=64K count=64 2>/dev/null
    )
    sync
}

# neighbour GROUP: what such a cgroup has, and whether the kernel can be told to reclaim.
neighbour() (
    cd "$root/$1"
    case $cgroup in
    v1) echo "bytes $(cat memory.usage_in_bytes)" ;;
    v2)
        # Not memory.current: that has what CPUs hold in store, which reclaim may take.
        echo "bytes $(awk '$1 == "file" { print $2 }' memory.stat)"
        echo "low $(cat memory.low)"
        echo "inner_low $(cat inner/memory.low)"
        [ ! -e memory.reclaim ] || echo "reclaim 1"
        ;;
    esac
)

# hotplug: a core goes and comes back while a recorder watches all of them. Its log is not
# packed yet, so that what it says of cores can be found in it.
hotplug() {
    sexton record --sensors cores,napi,runq -o /run/hotplug 2>/dev/null &
    recorder=$!
    for online in 1 0 1; do
        echo $online >/sys/devices/system/cpu/cpu1/online
        sleep 3
    done
    kill -0 $recorder && echo "recorders 1"
    kill -9 $recorder
    for fact in core_offline core_online; do
        echo "$fact $(grep -c $fact /run/hotplug/records/current.wal)"
    done
}

# Samples every core for a while, in which one of them asks the kernel many times. Emulated,
# the program that samples takes seconds to be loaded.
sample() {
    sexton record --for 15s --sensors stacks -o /run/sampled >/dev/null &
    recorder=$!
    sleep 8
    for _ in $(seq 200); do cat /proc/stat; done >/dev/null
    wait $recorder
    sexton profile top --json --idle --from /run/sampled
}

# Where the kernel has the multi-generation LRU, pages begin their life on its lists.
[ ! -e $generations ] || echo y >$generations

[ $cgroup = v1 ] || echo +memory >$root/cgroup.subtree_control
group machine.slice
group system.slice
for unit in shared own shmem swapped live; do
    group system.slice/$unit.service
done
for i in $(seq "$n_live"); do
    mkdir $root/system.slice/live.service/$i
done

section before counts
leak system.slice/shared.service "$n_shared" /disk/shared.log
leak system.slice/own.service "$n_own" /disk/own each
leak system.slice/shmem.service "$n_shmem" /run/shared
# Write-back holds a cgroup too, and lets go when all is written and the next one dies.
sync
swap_out system.slice/swapped.service "$n_swapped" /run/swapped
# An escape sequence and a byte that is no UTF-8.
hostile=$(printf 'red\033[m\377')
visit "machine.slice/$hostile" /run/hostile
rmdir "$root/machine.slice/$hostile"
# Cgroups that nothing pins are freed a moment after their removal.
sleep 1
section after counts
section part counts_of_part

section zombies sexton zombies --json --all
if [ -e $generations ]; then
    # All pages move to the classic lists.
    echo n >$generations
    section classic sexton zombies --json --all
fi
section doctor sexton doctor --json
section stacks sample
section unprivileged su nobody -c 'sexton zombies --json'
section part-root in_part sexton zombies --json
section part-unprivileged in_part su nobody -c 'sexton zombies --json'

# From here on they are freed.
if [ "$fix" = yes ]; then
    group system.slice/mapped.service
    map system.slice/mapped.service "$n_mapped"
    settle system.slice/mapped.service/neighbour
    section fix-before neighbour system.slice/mapped.service/neighbour
    section fix sexton fix --json --apply --yes \
        --origin '/system.slice/shared.service/<n>' --origin '/system.slice/own.service/<n>' \
        --origin '/system.slice/shmem.service/<n>' --origin '/system.slice/mapped.service/<n>'
    section fix-after neighbour system.slice/mapped.service/neighbour
    section fix-undo cat /var/lib/sexton-remedy/undo/*
fi

section hotplug hotplug

echo "sexton-guest: done" >$report
