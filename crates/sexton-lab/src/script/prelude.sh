# What every scenario can call. Runs as `sh -e` below /job; what comes of it goes to out/.
mkdir -p out /usr/local/lib/systemd/system
# How long a loop waits before its next container; units read it each time.
echo $pause > pause
# Traces of the kernel, and its log, are there on every node; namespaces lack them.
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
test -e /dev/kmsg || mknod /dev/kmsg c 1 11

memory=/sys/fs/cgroup/memory
test -d $memory || memory=/sys/fs/cgroup
# Files of the trouble. Their pages stay until somebody frees them; where / is on a tmpfs
# nobody could, so they lie with the job, on a disk.
files=/var/lib/trouble
warmer=
mkdir -p $files
if test "$(stat -f -c %T /var/lib)" = overlayfs; then
    mkdir -p /job/trouble
    mount --bind /job/trouble $files
fi

# What units said, however this ends.
trap 'journalctl -b --no-pager -n 600 > out/journal.txt 2>&1 || true' EXIT

# On a machine that needs its memory for other things, the pages of dead cgroups are the first
# to go. Somebody reads these logs, so that they stay for as long as sexton looks.
keep_warm() {
    while :; do
        cat $files/* > /dev/null 2>&1 || true
        sleep 1
    done
}
test ! -d /job/trouble || { keep_warm & warmer=$!; }
let_cool() { test -z "$warmer" || kill $warmer; warmer=; }

# say TEXT: what is being done, for whoever waits.
say() {
    echo "$*" >> progress
    test ! -c /dev/console || echo "lab: $*" > /dev/console
}

# mark NAME: when it was, in seconds since boot.
mark() { echo "$1 $(cut -d' ' -f1 /proc/uptime)" >> out/marks; }

# await COMMAND...: until it succeeds; gives up after ten minutes.
await() {
    for _ in $(seq 1200); do
        ! "$@" > /dev/null 2>&1 || return 0
        sleep 0.5
    done
    echo "waited in vain for: $*" | tee -a out/failed
    exit 9
}

# ripen: until the trouble is older than a minute. An emulator has time for two censuses in a
# watch, which make no line; ages do, if they reach back that far.
ripen() {
    since=$(sed -n 's/^setup \([0-9]*\).*/\1/p' out/marks)
    while test $(($(cut -d. -f1 /proc/uptime) - since)) -lt 75; do sleep 1; done
}

# at_least N FILE: so many pages of 4 kB were appended.
at_least() { test "$(stat -c %s "$2")" -ge $(($1 * 4096)); }

# restarted N UNIT: systemd counts so many restarts.
restarted() { test "$(systemctl show --value -p NRestarts "$2")" -ge "$1"; }

# group NAME: a memory cgroup of our own whose children account memory.
group() {
    mkdir -p "$memory/$1"
    test ! -e "$memory/cgroup.controllers" || echo +memory > "$memory/$1/cgroup.subtree_control"
}

# leave GROUP N FILE: N cgroups are born below it, append a page to FILE, and are removed.
# One process walks through all of them, which is quick in an emulator too.
leave() {
    group "$1"
    perl -e '
        my ($group, $n, $file, $home) = @ARGV;
        sub enter { open(my $procs, ">", "$_[0]/cgroup.procs") or die "$_[0]: $!"; print $procs 0; close $procs }
        for my $i (1 .. $n) {
            mkdir "$group/run-$i" or die "$group/run-$i: $!";
            enter("$group/run-$i");
            open(my $log, ">>", $file) or die "$file: $!";
            print $log "x" x 4096;
            close $log;
            enter($home);
            rmdir "$group/run-$i" or die "$group/run-$i: $!";
        }' "$memory/$1" "$2" "$3" "$memory$(own_cgroup)"
}

# Where this process is in the hierarchy of the memory controller.
own_cgroup() {
    sed -n 's/^[0-9]*:[^:]*memory[^:]*://p; s/^0:://p' /proc/self/cgroup | head -n 1
}

# engine NAME: starts it as Debian ships it, with one small image. Engines want a filesystem
# that can be the upper one of an overlay; where / is none, the folder of the job is.
engine() {
    if test "$(stat -f -c %T /var/lib)" = overlayfs; then
        for name in docker containerd; do
            mkdir -p /job/engine/$name /var/lib/$name
            mount --bind /job/engine/$name /var/lib/$name
        done
    fi
    mkdir -p /etc/docker
    echo '{"bridge": "none", "iptables": false, "ip6tables": false}' > /etc/docker/daemon.json
    say "starting $1"
    systemctl enable -q containerd.service
    systemctl start containerd.service
    await ctr version
    if test "$1" = docker; then
        systemctl enable -q docker.service
        systemctl start docker.service
        await docker version
    fi
    mark engine
}

end_engine() {
    ! systemctl is-active -q docker.service || docker ps -aq | xargs -r docker rm -f > /dev/null 2>&1 || true
    systemctl stop docker.socket docker.service containerd.service 2> /dev/null || true
    for name in docker containerd; do
        ! mountpoint -q /var/lib/$name || umount -l /var/lib/$name
    done
    let_cool
    ! mountpoint -q $files || umount -l $files
    rm -rf /job/engine /job/trouble $files
}

# tree: the files of a small image, in /job/tree.
tree() {
    mkdir -p tree/bin
    cp /bin/busybox tree/bin/
    for name in sh head sleep true; do ln -sf busybox tree/bin/$name; done
}

# image NAME COMMAND: an image for Docker that runs this shell command.
image() {
    tree
    tar -C tree -c . | docker import --change "CMD [\"/bin/sh\", \"-c\", \"$2\"]" - "$1" > /dev/null
}

# image_for_containerd NAME: the same files for containerd, in the form that docker save writes.
image_for_containerd() {
    tree
    mkdir -p saved
    tar -C tree -cf saved/layer.tar .
    sum=$(sha256sum saved/layer.tar | cut -d' ' -f1)
    printf '{"architecture":"amd64","os":"linux","config":{"Cmd":["/bin/true"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
        "$sum" > saved/config.json
    printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$1" > saved/manifest.json
    tar -C saved -cf image.tar .
    ctr images import image.tar > /dev/null
    rm -r saved image.tar
}

# look SECONDS: watches and judges, cold; how long it took, and how it ended.
look() {
    code=0
    before=$(cut -d' ' -f1 /proc/uptime)
    $sexton diagnose --for "$1s" --json $policy -o out/bundle > out/verdict.json 2> out/trouble.txt || code=$?
    after=$(cut -d' ' -f1 /proc/uptime)
    echo $code > out/code
    echo "$before $after" > out/seconds
}

# judge SECONDS: the same, also as text, and from the recording alone.
judge() {
    look "$1"
    ./sexton diagnose --from out/bundle $policy > out/verdict.txt 2>&1 || true
    replay
}

# replay: whether the recording alone, read by nobody in particular, says the same.
replay() {
    cp -r out/bundle /run/bundle
    cp sexton /run/sexton
    chmod -R a+rX /run/bundle /run/sexton
    setpriv --reuid=65534 --regid=65534 --clear-groups \
        /run/sexton diagnose --from /run/bundle --json $policy > replay.json 2> out/replay.txt || true
    code=0
    cmp replay.json out/verdict.json >> out/replay.txt 2>&1 || code=$?
    echo $code > out/replay
    rm -r /run/bundle /run/sexton
}

# holds NAME: whether the shell on standard input does.
holds() {
    cat > proof
    code=0
    sh -ec ". ./proofs; . ./proof" > "out/$1.txt" 2>&1 || code=$?
    echo $code > "out/$1"
}

# settings: what a fix may change, a line each: files that units are set up by, and units that are
# up. Services that the bus starts end by themselves when nobody asks them.
settings() {
    find /etc/systemd /usr/local/lib/systemd -printf '%p %l\n'
    systemctl list-units --plain --no-legend --type=service,socket,timer,path \
        --state=running,listening,waiting | cut -d' ' -f1 | grep -v '^systemd-.*d\.service$' || true
}

# fix ARGUMENTS...: carries it out, and tells which settings are others than before.
fix() {
    let_cool
    code=0
    cp out/verdict.json .
    settings | sort > before
    $sexton fix "$@" --apply --yes --json > out/fix.json 2> out/fix.txt || code=$?
    echo $code > out/fix.code
    settings | sort | diff before - | sed -n 's/^[<>] //p' > out/touched
}

verify() {
    $sexton diagnose --for 12s --json $policy > out/verify.json 2>> out/trouble.txt || true
}

undo() {
    code=0
    $sexton fix --undo --yes > out/undo.txt 2>&1 || code=$?
    echo $code > out/undo.code
}
