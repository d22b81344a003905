#!/usr/bin/env bash
# Copyright The kubectl-dra Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the kubelet and the containerd that `make test-node` runs, from Go
# modules, and prints the directory they are in. As with the control plane, it
# is named after everything that goes into them: built once, found afterwards.
# runc and busybox are those of the machine; where they are missing, it tries
# to install them.
set -euo pipefail
src=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kubernetes=$(sed -n 's/^require k8s\.io\/kubernetes v//p' "$src/kubelet/go.mod")
containerd=$(sed -n 's/^require github\.com\/containerd\/containerd\/v2 v//p' "$src/containerd/go.mod")
cache=${KUBECTL_DRA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubectl-dra}/node
# Nothing of the surrounding module or workspace decides what is built.
export GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0
unset GOOS GOARCH

if [ "$kubernetes" != "$(sed -n 's/^require k8s\.io\/kubernetes v//p' "$src/../controlplane/kubernetes/go.mod")" ]; then
  echo "test/node/kubelet and test/controlplane/kubernetes have different versions of Kubernetes" >&2
  exit 1
fi
for program in runc busybox; do
  # Not every path has the directories for programs of root.
  PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null && continue
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq >&2
    apt-get install -y -qq runc busybox-static >&2
  fi
  if ! PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null; then
    echo "$program is needed; the Debian packages are runc and busybox-static" >&2
    exit 1
  fi
done

hash=$( (cd "$src" && cat build.sh {kubelet,containerd}/{go.mod,go.sum,tools.go}; cd "$src/kubelet" && go env GOVERSION GOOS GOARCH) | git hash-object --stdin | cut -c1-16)
dir=$cache/$hash
if [ -x "$dir/kubelet" ]; then
  echo "$dir"
  exit
fi

mkdir -p "$cache"
if command -v flock >/dev/null; then
  exec 9>"$cache/$hash.lock"
  flock 9
  if [ -x "$dir/kubelet" ]; then
    echo "$dir"
    exit
  fi
fi

work=$(mktemp -d "$cache/$hash.XXXXXX")
trap 'rm -rf "$work"' EXIT
# -mod=mod may write go.sum, which must not touch the checked-in files.
cp -r "$src/kubelet" "$src/containerd" "$work/"
mkdir "$work/bin"
kubernetes_flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  kubernetes_flags+=" -X $package.gitVersion=v$kubernetes -X $package.gitMajor=$(cut -d. -f1 <<<"$kubernetes") -X $package.gitMinor=$(cut -d. -f2 <<<"$kubernetes")"
  kubernetes_flags+=" -X $package.gitTreeState=clean -X $package.gitCommit=unknown -X $package.buildDate=1970-01-01T00:00:00Z"
done
build() { # name, module, package, ldflags, tags
  echo "building $1 (once, kept in $cache)" >&2
  (cd "$work/$2" && go build -trimpath -tags "$5" -ldflags "$4" -o "$work/bin/$1" "$3") >&2
}
module=github.com/containerd/containerd/v2
build containerd containerd $module/cmd/containerd "-s -w -X $module/version.Version=v$containerd" "no_btrfs no_devmapper no_zfs"
build containerd-shim-runc-v2 containerd $module/cmd/containerd-shim-runc-v2 "-s -w" no_grpc
build ctr containerd $module/cmd/ctr "-s -w" ""
build kubelet kubelet k8s.io/kubernetes/cmd/kubelet "$kubernetes_flags" ""
for module in kubelet containerd; do
  for file in go.mod go.sum; do
    if ! cmp -s "$src/$module/$file" "$work/$module/$file"; then
      echo "test/node/$module/$file is not complete, run: cd test/node/$module && go mod tidy" >&2
      exit 1
    fi
  done
done
# Without flock two runs build side by side; the first one to get here wins.
[ -e "$dir" ] || mv "$work/bin" "$dir"
echo "$dir"
