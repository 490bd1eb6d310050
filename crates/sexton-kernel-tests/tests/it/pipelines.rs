//! The examples of pipelines are run by a real Docker and a real Packer: a build fails at
//! the gate, passes with what `sexton image fix` wrote, and the workflow's own steps agree.

use std::path::Path;
use std::time::Duration;

use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton;
use sexton_kernel_tests::systemd::Systemd;

/// An image by the name that the Dockerfile begins with. It is the tree that this runs in,
/// which has what the Dockerfile would install: so `apt-get` does nothing there. Programs
/// that nobody starts are there by name alone.
const BASE: &str = r#"
mount -t tmpfs none /tmp
mkdir -p /var/lib/docker
mount -t tmpfs none /var/lib/docker
await() { for i in $(seq 200); do "$@" > /dev/null 2>&1 && return; sleep 0.1; done; exit 9; }
dockerd --bridge=none --iptables=false --ip6tables=false > dockerd.log 2>&1 &
await docker version
docker() {
    case $1 in
        build) shift; command docker build --network=none "$@" ;;
        *) command docker "$@" ;;
    esac
}
mkdir -p /tmp/tree/usr /tmp/tree/var/lib /tmp/tree/tmp
cp -a /bin /sbin /lib /lib64 /etc /tmp/tree/
cp -a /usr/lib /usr/lib64 /tmp/tree/usr/
cp -a /var/lib/dpkg /tmp/tree/var/lib/
cp -a --attributes-only /usr/bin /usr/sbin /usr/libexec /tmp/tree/usr/
for name in dash sh mkdir chmod ln cat rm mv grep readlink systemctl; do cp -a /usr/bin/$name /tmp/tree/usr/bin/; done
rm /tmp/tree/usr/bin/apt-get
ln -s /bin/true /tmp/tree/usr/bin/apt-get
cp -a /usr/bin/true /tmp/tree/usr/bin/
printf '#!/bin/sh\nexec "$@"\n' > sudo
install sudo /tmp/tree/usr/bin/
units=/tmp/tree/usr/lib/systemd/system
cat > $units/ecs.service << 'END'
[Unit]
Requires=docker.service
[Service]
Restart=on-failure
RestartSec=10s
ExecStart=/usr/libexec/amazon-ecs-init start
[Install]
WantedBy=multi-user.target
END
cat > $units/kubelet.service << 'END'
[Service]
ExecStart=/usr/bin/kubelet
Restart=always
RestartSec=10
[Install]
WantedBy=multi-user.target
END
for program in /usr/bin/kubelet /usr/libexec/amazon-ecs-init; do
    install -D -m 755 /dev/null /tmp/tree$program
done
# An empty program is one that cannot start.
find /tmp/tree/usr/bin /tmp/tree/usr/sbin /tmp/tree/usr/libexec -type f -size 0 > empty
while read -r program; do printf '#!/bin/sh\n' > "$program"; done < empty
systemctl --root=/tmp/tree enable ecs.service kubelet.service
tar -C /tmp/tree -c . | docker import - debian:12
mkdir -p /tmp/pipeline/examples
cd /tmp/pipeline
cp /job/sexton .
refused() { ! "$@" || { echo "this passed: $*"; return 1; }; }
"#;

/// The image as it is does not pass; with what `fix` wrote in its place it does.
const PIPELINE: &str = r#"
install sexton /usr/bin/
cp policy.toml examples/
refused docker build . > /job/refused 2>&1
docker build --target node -t node:candidate . > /dev/null
docker save node:candidate -o node.tar
refused eval '(audit)'
cp sexton.sarif /job/refused.sarif
sexton image fix node.tar --shape kubernetes-node --write dockerfile > lines || test $? -eq 1
sed -i '/goes here\.$/r lines' Dockerfile
cp Dockerfile /job/Dockerfile
(build)
(audit) || { cat sexton.xml; exit 1; }
cp sexton.sarif /job/passed.sarif
cd /job
"#;

/// Packer's own way through its example, but for the machine, which is a container here:
/// with a step that would undo the fix it fails, without it the image is shipped.
const PACKER: &str = r#"
cat > source << 'END'
source "docker" "node" {
  image       = "debian:12"
  pull        = false
  export_path = "output-node/packer-node"
  run_command = ["-d", "-i", "-t", "--net=none", "--entrypoint=/bin/sh", "--", "{{.Image}}"]
}
END
export PACKER_CONFIG_DIR=/tmp CHECKPOINT_DISABLE=1
packer=/job/packer
touch install-node.sh
$packer validate node.pkr.hcl
mkdir output-node
sed -e '/^source "qemu"/,/^}/d' -e 's/source.qemu.node/source.docker.node/' node.pkr.hcl > mine
cat source mine > docker.pkr.hcl
sed '/sexton-fix.sh"/d' docker.pkr.hcl > unmended.pkr.hcl
refused $packer build -color=false unmended.pkr.hcl > /job/refused 2>&1 || { cat /job/refused; exit 1; }
$packer build -color=false docker.pkr.hcl > /job/passed 2>&1 || { cat /job/passed; exit 1; }
cd /job
"#;

fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    std::fs::read_to_string(folder.join(name)).expect("an example")
}

fn on_path(program: &str) -> Option<String> {
    let path = std::env::var("PATH").ok()?;
    let places = path.split(':').map(|folder| format!("{folder}/{program}"));
    places.into_iter().find(|place| Path::new(place).exists())
}

/// Shell that writes an example to a file.
fn file(name: &str, example_of: &str) -> String {
    format!("cat > {name} << 'END'\n{}END\n", example(example_of))
}

/// The lines that a step of the workflow has run.
fn step(workflow: &str, name: &str) -> String {
    let begin = format!("      - name: {name}\n        run: |\n");
    let (_, after) = workflow.split_once(&begin).expect("a step of that name");
    let lines = after
        .lines()
        .map_while(|line| line.strip_prefix("          "));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
#[ignore = "needs systemd: run cargo xtask test kernel"]
fn docker_and_the_workflow_refuse_the_image_and_pass_the_mended_one() {
    require(Need::Systemd);
    let sexton = sexton::binary().expect("SEXTON names the binary");
    let workflow = example("github-actions/image.yml");
    let job = format!(
        "{BASE}{}{}build() {{\n{}}}\naudit() {{\n{}}}\n{PIPELINE}",
        file("Dockerfile", "dockerfile/Dockerfile"),
        file("policy.toml", "policy.toml"),
        step(&workflow, "Build the image"),
        step(&workflow, "Audit"),
    );
    let sexton = sexton.to_str().expect("a plain path");
    let run = Systemd::run_bare(&[sexton], &job, Duration::from_secs(180)).expect("a run");
    let refused = run.read("refused").expect("the build's words");
    assert!(refused.contains("ecs.service"), "{refused}");
    assert!(refused.contains("image verify"), "{refused}");
    let refused = run.read("refused.sarif").expect("a result");
    assert!(refused.contains("ecs.service"), "{refused}");
    let passed = run.read("passed.sarif").expect("a result");
    assert!(!passed.contains("ecs.service"), "{passed}");
    let mended = run.read("Dockerfile").expect("what was built");
    assert!(mended.contains("\nRUN "), "{mended}");
}

#[test]
#[ignore = "needs systemd: run cargo xtask test kernel"]
fn packer_refuses_the_image_and_ships_the_mended_one() {
    require(Need::Systemd);
    require(Need::Program("packer"));
    let sexton = sexton::binary().expect("SEXTON names the binary");
    let job = format!(
        "{BASE}{}{}{PACKER}",
        file("node.pkr.hcl", "packer/node.pkr.hcl"),
        file("policy.toml", "packer/policy.toml"),
    );
    let sexton = sexton.to_str().expect("a plain path");
    let packer = on_path("packer").expect("it was required");
    let run = Systemd::run_bare(&[sexton, &packer], &job, Duration::from_secs(180));
    let run = run.expect("a run");
    let refused = run.read("refused").expect("Packer's words");
    assert!(refused.contains("ecs.service"), "{refused}");
    let passed = run.read("passed").expect("Packer's words");
    assert_eq!(
        passed.matches("pass: ").count(),
        2,
        "inside and outside: {passed}"
    );
}
