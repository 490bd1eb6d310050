use super::*;
use crate::text::escape;
use proptest::prelude::*;

/// What stands in the table below for ids that would hide the shapes.
const IDS: &[(&str, &str)] = &[
    (
        "ID1",
        "4f797c539e6c745de61a93ca3ff892358ecbcaccd8414d5db545c38428142970",
    ),
    (
        "ID2",
        "9ec39b91f3d70e1beff50a308f77067065ea6be0d91a3378375056cd4422cf3d",
    ),
    ("SHORT", "4f797c539e6c"),
    ("BUILD", "jvifp9a6b1lxa1kuw8bwfcovf"),
    ("HEX32", "bf1ddbfbbc8f45c9b1ac4f779368741e"),
    ("UUID", "c8bad552-5c99-4d4f-b71c-c426c0cde014"),
    ("U_ID", "c8bad552_5c99_4d4f_b71c_c426c0cde014"),
];

fn expand(text: &str) -> String {
    IDS.iter().fold(text.to_owned(), |text, (short, long)| {
        text.replace(short, long)
    })
}

/// All that an origin tells, as one line: its kind and what it has.
fn describe(origin: &Origin<'_>) -> String {
    let container = origin.container().map(|c| {
        let helper = if c.helper { " (helper)" } else { "" };
        format!("{} {}{helper}", c.runtime, c.id)
    });
    let host_unit = origin.host_unit().unwrap_or("none").to_owned();
    let told = [
        ("unit", origin.unit().map(str::to_owned)),
        (
            "host unit",
            Some(host_unit).filter(|_| origin.host_unit() != origin.unit()),
        ),
        ("slice", origin.slice().map(str::to_owned)),
        ("container", container),
        (
            "pod",
            origin.pod().map(|pod| format!("{} {}", pod.uid, pod.qos)),
        ),
        ("machine", origin.machine().map(|name| escape(&name))),
        ("user", origin.user().map(|uid| uid.to_string())),
        ("session", origin.session().map(str::to_owned)),
    ];
    let told = told
        .into_iter()
        .filter_map(|(what, is)| Some(format!("; {what} {}", is?)));
    origin.kind().to_string() + &told.collect::<String>()
}

fn check(path: &str, expected: &str) {
    let path = expand(path);
    let origin = Origin::of(path.as_bytes());
    assert_eq!(describe(&origin), expand(expected), "{path}");
    assert_eq!(origin.path(), path.as_bytes());
}

/// Real paths, and near misses, with all that each of them tells.
#[rustfmt::skip]
const SHAPES: &[(&str, &str)] = &[
    // The root.
    ("", "root"),
    ("/", "root"),
    ("//", "root"),
    ("/..", "root"),

    // systemd.
    ("/init.scope", "systemd unit; unit init.scope"),
    ("/system.slice", "slice; slice system.slice"),
    ("/system.slice/ecs.service", "systemd unit; unit ecs.service; slice system.slice"),
    ("system.slice/ecs.service/", "systemd unit; unit ecs.service; slice system.slice"),
    ("/../system.slice/ecs.service", "systemd unit; unit ecs.service; slice system.slice"),
    ("/system.slice/foo.service/worker/3", "systemd unit; unit foo.service; slice system.slice"),
    ("/system.slice/foo.service/.control", "systemd unit; unit foo.service; slice system.slice"),
    ("/system.slice/system-getty.slice/getty@tty1.service", "systemd unit; unit getty@tty1.service; slice system-getty.slice"),
    ("/system.slice/foo@.service", "made by hand; slice system.slice"),
    ("/system.slice/.service", "made by hand; slice system.slice"),
    ("/system.slice/run-u12.service", "systemd unit; unit run-u12.service; slice system.slice"),
    ("/system.slice/run-rHEX32.scope", "systemd unit; unit run-rHEX32.scope; slice system.slice"),
    (r"/system.slice/system-systemd\x2dfsck.slice/systemd-fsck@dev-disk-by\x2duuid-1.service", r"systemd unit; unit systemd-fsck@dev-disk-by\x2duuid-1.service; slice system-systemd\x2dfsck.slice"),
    ("/system.slice/-.mount", "systemd unit; unit -.mount; slice system.slice"),
    (r"/system.slice/run-credentials-foo\x2dbar.service.mount", r"systemd unit; unit run-credentials-foo\x2dbar.service.mount; slice system.slice"),
    ("/system.slice/docker.socket", "systemd unit; unit docker.socket; slice system.slice"),
    ("/system.slice/swapfile.swap", "systemd unit; unit swapfile.swap; slice system.slice"),
    ("/system.slice/_cpu.service", "systemd unit; unit cpu.service; slice system.slice"),
    ("/_memory.slice/__x.service", "systemd unit; unit _x.service; slice memory.slice"),
    ("/system.slice/not a unit.service", "made by hand; slice system.slice"),
    ("/system.slice/foo", "made by hand; slice system.slice"),

    // systemd, users.
    ("/user.slice/user-1000.slice", "slice; slice user-1000.slice; user 1000"),
    ("/user.slice/user-1000.slice/session-3.scope", "login session; unit session-3.scope; slice user-1000.slice; user 1000; session 3"),
    ("/user.slice/user-0.slice/session-c1.scope/tmux", "login session; unit session-c1.scope; slice user-0.slice; user 0; session c1"),
    ("/system.slice/session-3.scope", "systemd unit; unit session-3.scope; slice system.slice"),
    ("/user.slice/user-1000.slice/user@1000.service", "systemd unit; unit user@1000.service; slice user-1000.slice; user 1000"),
    ("/user.slice/user-1000.slice/user@1000.service/init.scope", "user's systemd unit; unit init.scope; slice user-1000.slice; user 1000"),
    ("/user.slice/user-1000.slice/user@1000.service/app.slice", "slice; unit user@1000.service; slice app.slice; user 1000"),
    ("/user.slice/user-1000.slice/user@1000.service/app.slice/foo.service", "user's systemd unit; unit foo.service; slice app.slice; user 1000"),
    ("/user.slice/user-1000.slice/user@1000.service/app.slice/foo.service/x/y", "user's systemd unit; unit foo.service; slice app.slice; user 1000"),
    ("/user.slice/user-+1.slice", "made by hand; slice user.slice"),

    // Docker.
    ("/docker", "slice"),
    ("/docker/ID1", "container; container Docker ID1"),
    ("/docker/ID1/init", "container; container Docker ID1"),
    ("/system.slice/docker-ID1.scope", "container; slice system.slice; container Docker ID1"),
    ("/system.slice/docker-gc.scope", "systemd unit; unit docker-gc.scope; slice system.slice"),
    ("/my.slice/docker-ID1.scope", "container; slice my.slice; container Docker ID1"),
    ("/my-parent/ID1", "container; container unknown runtime ID1"),
    ("/docker/ID1/docker/ID2", "container; container Docker ID2"),
    ("/docker/ID1/ID2", "container; container unknown runtime ID2"),
    ("/system.slice/docker-ID1.scope/docker/ID2", "container; slice system.slice; container Docker ID2"),
    ("/system.slice/docker.service/docker/ID1", "container; unit docker.service; slice system.slice; container Docker ID1"),
    ("/system.slice/docker.service/docker", "systemd unit; unit docker.service; slice system.slice"),
    ("/system.slice/docker.service/ID1", "container; unit docker.service; slice system.slice; container Docker ID1"),
    ("/docker/ID1/system.slice/ssh.service", "systemd unit; unit ssh.service; host unit none; slice system.slice; container Docker ID1"),
    ("/system.slice/docker-ID1.scope/init.scope", "systemd unit; unit init.scope; host unit none; slice system.slice; container Docker ID1"),
    ("/user.slice/user-1000.slice/user@1000.service/user.slice/docker-ID1.scope", "container; unit user@1000.service; slice user.slice; container Docker ID1; user 1000"),
    ("/user.slice/user-1000.slice/user@1000.service/app.slice/docker.service/ID1", "container; unit docker.service; slice app.slice; container Docker ID1; user 1000"),

    // Docker's builder.
    ("/docker/buildkit/BUILD", "container; container Docker BUILD"),
    ("/docker/buildx", "slice"),
    ("/docker/buildkit", "slice"),
    ("/docker/buildx/ID1", "container; container Docker ID1"),
    ("/docker/buildx/ID1/buildkit/BUILD", "container; container unknown runtime BUILD"),
    ("/system.slice/docker-BUILD.scope", "container; slice system.slice; container Docker BUILD"),
    ("/system.slice/system.slice:docker:BUILD", "container; slice system.slice; container Docker BUILD"),
    ("/system.slice/docker.service/system.slice:docker:BUILD", "container; unit docker.service; slice system.slice; container Docker BUILD"),
    ("/system.slice/docker.service/buildkit/BUILD", "container; unit docker.service; slice system.slice; container Docker BUILD"),

    // Amazon ECS.
    ("/ecs", "slice"),
    ("/ecs/UUID", "slice"),
    ("/ecs/UUID/ID1", "container; container Docker ID1"),
    ("/ecs/HEX32", "slice"),
    ("/ecs/HEX32/ID1", "container; container Docker ID1"),
    ("/ecs/my-cluster/HEX32", "slice"),
    ("/ecs/my-cluster/HEX32/ID1", "container; container Docker ID1"),
    ("/ecs/HEX32/HEX32-2649412768", "container; container containerd HEX32-2649412768"),
    ("/ecstasks.slice/ecstasks-HEX32.slice", "slice; slice ecstasks-HEX32.slice"),
    ("/ecstasks.slice/ecstasks-HEX32.slice/docker-ID1.scope", "container; slice ecstasks-HEX32.slice; container Docker ID1"),

    // containerd.
    ("/default/ID1", "container; container containerd ID1"),
    ("/default/SHORT", "container; container containerd SHORT"),
    ("/default", "made by hand"),
    ("/default/web", "made by hand"),
    ("/k8s.io", "slice"),
    ("/system.slice/containerd.service/x/ID1", "container; unit containerd.service; slice system.slice; container containerd ID1"),
    ("/k8s.io/ID1", "container; container containerd ID1"),
    ("/k8s.io/web", "container; container containerd web"),
    ("/system.slice/nerdctl-ID1.scope", "container; slice system.slice; container containerd ID1"),
    ("/system.slice/containerd.service/kubepods-burstable-podU_ID.slice:cri-containerd:ID1", "container; unit containerd.service; slice system.slice; container containerd ID1; pod UUID burstable"),
    ("/system.slice/containerd.service/kubepods-podU_ID.slice:cri-containerd:ID1", "container; unit containerd.service; slice system.slice; container containerd ID1; pod UUID guaranteed"),
    ("/kubepods-besteffort-podHEX32.slice:cri-containerd:ID1", "container; container containerd ID1; pod HEX32 besteffort"),
    ("/a:b:ID1", "made by hand"),
    ("/a:docker:ID1:d", "made by hand"),
    ("/system.slice/runc-ID1.scope", "container; slice system.slice; container unknown runtime ID1"),
    ("/system.slice/crun-ID1.scope", "container; slice system.slice; container unknown runtime ID1"),

    // Kubernetes, systemd driver.
    ("/kubepods.slice", "slice; slice kubepods.slice"),
    ("/kubepods.slice/kubepods-burstable.slice", "slice; slice kubepods-burstable.slice"),
    ("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podU_ID.slice", "Kubernetes pod; slice kubepods-burstable-podU_ID.slice; pod UUID burstable"),
    ("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podU_ID.slice/cri-containerd-ID1.scope", "container; slice kubepods-burstable-podU_ID.slice; container containerd ID1; pod UUID burstable"),
    ("/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podHEX32.slice/cri-containerd-ID1.scope", "container; slice kubepods-besteffort-podHEX32.slice; container containerd ID1; pod HEX32 besteffort"),
    ("/kubepods.slice/kubepods-podU_ID.slice/cri-containerd-ID1.scope", "container; slice kubepods-podU_ID.slice; container containerd ID1; pod UUID guaranteed"),
    ("/kubepods.slice/kubepods-podU_ID.slice/docker-ID1.scope", "container; slice kubepods-podU_ID.slice; container Docker ID1; pod UUID guaranteed"),
    ("/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-podU_ID.slice/cri-containerd-ID1.scope", "container; slice kubelet-kubepods-burstable-podU_ID.slice; container containerd ID1; pod UUID burstable"),
    ("/docker/ID1/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podU_ID.slice/cri-containerd-ID2.scope", "container; slice kubelet-kubepods-podU_ID.slice; container containerd ID2; pod UUID guaranteed"),
    ("/kops.slice/kops-kubepods.slice/kops-kubepods-podU_ID.slice", "Kubernetes pod; slice kops-kubepods-podU_ID.slice; pod UUID guaranteed"),
    ("/tree-pods-podU_ID.slice", "slice; slice tree-pods-podU_ID.slice"),

    // Kubernetes, cgroupfs driver.
    ("/kubepods", "slice"),
    ("/kubelet/kubepods", "slice"),
    ("/docker/ID1/kubelet/kubepods", "container; container Docker ID1"),
    ("/kubepods/besteffort", "slice"),
    ("/kubepods/foo", "made by hand"),
    ("/kubepods/besteffort/podUUID", "Kubernetes pod; pod UUID besteffort"),
    ("/kubepods/besteffort/podUUID/ID1", "container; container unknown runtime ID1; pod UUID besteffort"),
    ("/kubepods/burstable/podHEX32/ID1", "container; container unknown runtime ID1; pod HEX32 burstable"),
    ("/kubepods/podUUID/ID1", "container; container unknown runtime ID1; pod UUID guaranteed"),
    ("/kubepods/podUUID/ID1/inner", "container; container unknown runtime ID1; pod UUID guaranteed"),
    ("/docker/ID1/kubelet/kubepods/burstable/podUUID/ID2", "container; container unknown runtime ID2; pod UUID burstable"),
    ("/my-root/kubepods/podUUID/SHORT", "container; container unknown runtime SHORT; pod UUID guaranteed"),
    ("/podUUID", "made by hand"),

    // CRI-O.
    ("/kubepods.slice/kubepods-podU_ID.slice/crio-ID1.scope", "container; slice kubepods-podU_ID.slice; container CRI-O ID1; pod UUID guaranteed"),
    ("/kubepods.slice/kubepods-podU_ID.slice/crio-ID1.scope/container", "container; slice kubepods-podU_ID.slice; container CRI-O ID1; pod UUID guaranteed"),
    ("/kubepods.slice/kubepods-podU_ID.slice/crio-conmon-ID1.scope", "container; slice kubepods-podU_ID.slice; container CRI-O ID1 (helper); pod UUID guaranteed"),
    ("/system.slice/crio-conmon-ID1.scope", "container; slice system.slice; container CRI-O ID1 (helper)"),
    ("/kubepods/burstable/podUUID/crio-ID1", "container; container CRI-O ID1; pod UUID burstable"),
    ("/kubepods/burstable/podUUID/crio-conmon-ID1", "container; container CRI-O ID1 (helper); pod UUID burstable"),

    // Podman.
    ("/machine.slice/libpod-ID1.scope", "container; slice machine.slice; container Podman ID1"),
    ("/machine.slice/libpod-ID1.scope/container", "container; slice machine.slice; container Podman ID1"),
    ("/machine.slice/libpod-conmon-ID1.scope", "container; slice machine.slice; container Podman ID1 (helper)"),
    ("/libpod_parent", "slice"),
    ("/libpod_parent/libpod-ID1", "container; container Podman ID1"),
    ("/libpod_parent/libpod-ID1/ctr", "container; container Podman ID1"),
    ("/libpod_parent/ID1", "slice"),
    ("/libpod_parent/ID1/libpod-ID2", "container; container Podman ID2"),
    ("/machine.slice/machine-libpod_pod_ID1.slice", "slice; slice machine-libpod_pod_ID1.slice"),
    ("/machine.slice/machine-libpod_pod_ID1.slice/libpod-ID2.scope/container", "container; slice machine-libpod_pod_ID1.slice; container Podman ID2"),
    ("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID1.scope", "container; unit user@1000.service; slice user.slice; container Podman ID1; user 1000"),
    ("/user.slice/user-1000.slice/user@1000.service/user.slice/user-libpod_pod_ID1.slice/libpod-ID2.scope/container", "container; unit user@1000.service; slice user-libpod_pod_ID1.slice; container Podman ID2; user 1000"),
    ("/user.slice/user-1000.slice/user@1000.service/user.slice/podman-812.scope", "user's systemd unit; unit podman-812.scope; slice user.slice; user 1000"),
    ("/system.slice/nginx.service/libpod-payload-ID1", "container; unit nginx.service; slice system.slice; container Podman ID1"),
    ("/system.slice/nginx.service/runtime", "systemd unit; unit nginx.service; slice system.slice"),

    // LXC, LXD, Incus.
    ("/lxc", "slice"),
    ("/lxc/web", "container; container LXC web"),
    ("/lxc/101/ns", "container; container LXC 101"),
    ("/lxc.payload.web", "container; container LXC web"),
    ("/lxc.payload/web", "container; container LXC web"),
    ("/lxc.monitor.web", "container; container LXC web (helper)"),
    ("/lxc.monitor/101", "container; container LXC 101 (helper)"),
    ("/lxc.payload.web/system.slice/ssh.service", "systemd unit; unit ssh.service; host unit none; slice system.slice; container LXC web"),
    ("/lxc/lxc/lxc", "container; container LXC lxc"),
    ("/lxc/docker/SHORT", "container; container LXC docker"),
    ("/lxc.payload.web/docker/ID1", "container; container Docker ID1"),

    // Machines.
    (r"/machine.slice/machine-qemu\x2d1\x2dvm.scope", r"machine; unit machine-qemu\x2d1\x2dvm.scope; slice machine.slice; machine qemu-1-vm"),
    (r"/machine.slice/machine-qemu\x2d1\x2dvm.scope/libvirt/vcpu0", r"machine; unit machine-qemu\x2d1\x2dvm.scope; slice machine.slice; machine qemu-1-vm"),
    ("/machine.slice/machine-foo.scope", "machine; unit machine-foo.scope; slice machine.slice; machine foo"),
    ("/machine.slice/systemd-nspawn@foo.service/payload", "machine; unit systemd-nspawn@foo.service; slice machine.slice; machine foo"),
    ("/machine.slice/systemd-nspawn@foo.service/payload/system.slice/ssh.service", "systemd unit; unit ssh.service; host unit systemd-nspawn@foo.service; slice system.slice; machine foo"),
    ("/machine", "slice"),
    ("/machine/qemu-1-vm.libvirt-qemu", "machine; machine qemu-1-vm"),
    ("/machine/qemu-1-vm.libvirt-qemu/emulator", "machine; machine qemu-1-vm"),
    ("/machine/web.libvirt-lxc", "machine; machine web"),
    ("/system.slice/systemd-vmspawn@vm.service", "machine; unit systemd-vmspawn@vm.service; slice system.slice; machine vm"),
    ("/libvirt/lxc", "slice"),
    ("/libvirt/lxc/web", "machine; machine web"),
    ("/libvirt/qemu/vm1/vcpu0", "machine; machine vm1"),

    // By hand.
    ("/ray/UUID/worker-17", "made by hand"),
    ("/foo/bar-17", "made by hand"),
    ("/jobs/HEX32", "made by hand"),
    ("/foo/docker", "made by hand"),
    ("/slurm/uid_1000/job_5/step_0", "made by hand"),
];

#[test]
fn every_shape_we_know() {
    SHAPES
        .iter()
        .for_each(|(path, expected)| check(path, expected));
}

#[test]
fn bytes_that_are_no_text_are_made_by_hand() {
    for path in [
        &b"/\xff"[..],
        b"/\xff.service",
        b"/a\nb.slice",
        b"/lxc/\xff",
        b"/docker/\0",
    ] {
        assert_eq!(Origin::of(path).kind(), Kind::ByHand, "{}", escape(path));
    }
}

#[test]
fn a_pattern_keeps_the_shape() {
    let path = expand("/kubepods.slice/kubepods-podU_ID.slice/cri-containerd-ID1.scope");
    let pattern = b"/kubepods.slice/kubepods-pod<uuid>.slice/cri-containerd-<id>.scope";
    assert_eq!(Origin::of(path.as_bytes()).pattern(), pattern);
}

/// Components as programs write them, with random ids, and some that nearly are.
fn component() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        "(system|user|machine|kubepods|_cpu|a-b)\\.slice",
        "[a-z@_.:-]{1,8}\\.(service|scope|socket|mount|swap|slice)",
        "(user-[0-9]{1,12}\\.slice|user@[0-9]{1,12}\\.service|session-c?[0-9]{1,3}\\.scope)",
        "(docker|crio|crio-conmon|libpod|cri-containerd)-[0-9a-f]{64}(\\.scope)?",
        "kubepods-((burstable|besteffort)-)?pod[0-9a-f_]{0,36}\\.slice(:cri-containerd:[0-9a-f]{64})?",
        "(docker|ecs|lxc|default|k8s\\.io|kubepods|burstable|libpod_parent|libvirt|qemu|buildkit)",
        "(pod)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        "([0-9a-f]{12}|[0-9a-f]{32}|[0-9a-f]{64})",
        "machine-[a-z]{0,3}(\\\\x2d|\\\\x|\\\\){0,2}[a-z0-9]{0,3}\\.scope",
        "(lxc\\.(payload|monitor)\\.?[a-z]{0,3}|\\.\\.|:|::|-|_|@)?",
    ];
    prop_oneof![
        9 => text.prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..12),
    ]
}

fn realistic_path() -> impl Strategy<Value = Vec<u8>> {
    let components = prop::collection::vec(component(), 0..8);
    components.prop_map(|names| [&b"/"[..], &names.join(&b'/')].concat())
}

fn check_laws(path: &[u8]) -> Result<(), TestCaseError> {
    let origin = Origin::of(path);
    prop_assert_eq!(origin.path(), path);
    let pattern = origin.pattern();
    prop_assert_eq!(Origin::of(&pattern).pattern(), pattern.clone());
    let told = describe(&origin);
    prop_assert!(
        origin.kind() != Kind::Container || origin.container().is_some(),
        "{}",
        told
    );
    prop_assert!(
        origin.kind() != Kind::Pod || origin.pod().is_some(),
        "{}",
        told
    );
    prop_assert!(
        origin.kind() != Kind::Machine || origin.machine().is_some(),
        "{}",
        told
    );
    prop_assert!(
        origin.kind() != Kind::UserSession || origin.session().is_some(),
        "{}",
        told
    );
    prop_assert!(
        origin.kind() != Kind::Unit || origin.unit().is_some(),
        "{}",
        told
    );
    prop_assert!(
        origin.kind() != Kind::UserUnit || origin.user().is_some(),
        "{}",
        told
    );
    Ok(())
}

proptest! {
    #[test]
    fn laws_hold_for_any_bytes(path in prop::collection::vec(any::<u8>(), 0..100)) {
        check_laws(&path)?;
    }

    #[test]
    fn laws_hold_for_realistic_paths(path in realistic_path()) {
        check_laws(&path)?;
    }

    #[test]
    fn a_subgroup_belongs_where_its_parent_does(path in realistic_path()) {
        let parent = Origin::of(&path);
        let child = [&path[..], b"/worker"].concat();
        let child = Origin::of(&child);
        prop_assert_eq!(child.unit(), parent.unit());
        prop_assert_eq!(child.pod(), parent.pod());
        prop_assert_eq!(child.user(), parent.user());
    }
}
