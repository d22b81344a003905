#!/usr/bin/env bash
# Copyright The kubectl-dra Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails if something that is linked into the programs, on any system that they are
# built for, has a licence that tools/licenses.txt does not have.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

allowed=$(awk '$1 == "allow" { print $2 }' tools/licenses.txt | paste -sd,)
ignored=()
while read -r _ module version _; do
  have=$(go list -m -f '{{.Version}}' "$module")
  if [ "$have" != "$version" ]; then
    echo "tools/licenses.txt excepts $module $version, but $have is used: read its licence and change the line" >&2
    exit 1
  fi
  ignored+=("--ignore=$module")
done < <(grep '^except ' tools/licenses.txt)

tool=$(go tool -modfile=tools/go.mod -n go-licenses)
check() { # check OS TAGS PROGRAM
  if ! said=$(GOOS=$1 GOFLAGS="${GOFLAGS:-} -tags=$2" "$tool" check "./cmd/$3" "--allowed_licenses=$allowed" "${ignored[@]}" 2>&1); then
    printf '%s\nlicences (%s): see above; tools/licenses.txt has what is allowed\n' "$said" "$1" >&2
    exit 1
  fi
}
check linux nvml kubectl-dra
check darwin '' kubectl-dra
check windows '' kubectl-dra
check linux '' dra-controller
