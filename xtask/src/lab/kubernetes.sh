# Builds a kubelet and an API server: kubernetes.sh VERSION
# Runs in a small Debian whose Go is the one that this release of Kubernetes wants: what a newer
# one makes of it dies as soon as a list is written as JSON.
set -eu
say() { echo "kubernetes: $*" >&2; }
version=$1
export GOPATH=/go GO111MODULE=off CGO_ENABLED=0 HOME=/root PATH=/usr/lib/go-1.15/bin:$PATH
mkdir -p "$GOPATH/src/k8s.io"
cd "$GOPATH/src/k8s.io"
say "fetching the sources"
apt-get source -qq -o APT::Sandbox::User=root kubernetes > /dev/null
mv kubernetes-*/ kubernetes
cd kubernetes
build() {
    say "building $1"
    go build -o "/$1" \
        -ldflags "-s -w -X k8s.io/kubernetes/vendor/k8s.io/component-base/version.gitVersion=$version" \
        "./cmd/$1"
}
# What the API server signs the accounts of pods with.
openssl genrsa -out /signing.key 2048 2> /dev/null
build kubelet
# Only the API server needs them.
say "generating what the API server serves"
make generated_files > /dev/null
build kube-apiserver
