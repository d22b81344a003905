#!/usr/bin/env bash
# Copyright The kubectl-dra Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
# kubectl that the tests run, from Go modules, and prints the directory they
# are in. With an argument, "1.35", it is the etcd and the three components of
# that release, one of releases/. The directory is named after everything that
# goes into them, so that it is built once (minutes) and found afterwards (at
# once). Two runs at the same time do not disturb each other: the second waits
# for the first.
set -euo pipefail
src=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
module=${1:+releases/$1}
module=${module:-kubernetes}
commands=(kube-scheduler kube-controller-manager kube-apiserver)
if [ "$module" = kubernetes ]; then
  commands=(kubectl "${commands[@]}")
elif [ ! -d "$src/$module" ]; then
  echo "there is no $src/$module, only: $(ls "$src/releases" | xargs)" >&2
  exit 1
fi
version=$(sed -n 's/^require k8s\.io\/kubernetes v//p' "$src/$module/go.mod")
cache=${KUBECTL_DRA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubectl-dra}/controlplane
# Nothing of the surrounding module or workspace decides what is built.
export GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0
unset GOOS GOARCH

hash=$( (cd "$src" && cat build.sh {"$module",etcd}/{go.mod,go.sum,tools.go}; cd "$src/$module" && go env GOVERSION GOOS GOARCH) | git hash-object --stdin | cut -c1-16)
dir=$cache/$hash
if [ -x "$dir/kube-apiserver" ]; then
  echo "$dir"
  exit
fi

mkdir -p "$cache"
lock=$cache/$hash.lock
if command -v flock >/dev/null; then
  exec 9>"$lock"
  flock 9
  if [ -x "$dir/kube-apiserver" ]; then
    echo "$dir"
    exit
  fi
fi

work=$(mktemp -d "$cache/$hash.XXXXXX")
trap 'rm -rf "$work"' EXIT
# -mod=mod may write go.sum, which must not touch the checked-in files.
cp -r "$src/$module" "$work/kubernetes"
cp -r "$src/etcd" "$work/"
mkdir "$work/bin"
flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags+=" -X $package.gitVersion=v$version -X $package.gitMajor=$(cut -d. -f1 <<<"$version") -X $package.gitMinor=$(cut -d. -f2 <<<"$version")"
  flags+=" -X $package.gitTreeState=clean -X $package.gitCommit=unknown -X $package.buildDate=1970-01-01T00:00:00Z"
done
build() { # name, module, package, ldflags
  echo "building $1 (once, kept in $cache)" >&2
  (cd "$work/$2" && go build -trimpath -ldflags "$4" -o "$work/bin/$1" "$3") >&2
}
build etcd etcd go.etcd.io/etcd/server/v3 "-s -w"
for command in "${commands[@]}"; do
  build "$command" kubernetes "k8s.io/kubernetes/cmd/$command" "$flags"
done
for file in {kubernetes,etcd}/{go.mod,go.sum}; do
  source=${file/#kubernetes/$module}
  if ! cmp -s "$src/$source" "$work/$file"; then
    echo "test/controlplane/$source is not complete, run: cd test/controlplane/${source%/*} && go mod tidy" >&2
    exit 1
  fi
done
# Without flock two runs build side by side; the first one to get here wins.
[ -e "$dir" ] || mv "$work/bin" "$dir"
echo "$dir"
