#!/usr/bin/env bash
# Copyright The kubectl-dra Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the licences and notices of everything that is linked into the programs,
# on all systems that they are built for, as their terms want it beside a binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tool=$(go tool -modfile=tools/go.mod -n go-licenses)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '{{range .}}{{.Name}} {{.Version}} {{.LicensePath}}{{"\\n"}}{{end}}' >"$work/template"
list() { # list OS TAGS PROGRAM
  if ! GOOS=$1 GOFLAGS="${GOFLAGS:-} -tags=$2" "$tool" report "./cmd/$3" --template "$work/template" \
    --ignore github.com/kubectl-dra/kubectl-dra 2>"$work/said"; then
    cat "$work/said" >&2
    exit 1
  fi
}
{
  list linux nvml kubectl-dra
  list darwin '' kubectl-dra
  list windows '' kubectl-dra
  list linux '' dra-controller
} | LC_ALL=C sort -u >"$work/libraries"

echo 'kubectl-dra and dra-controller contain the following third-party software, under these terms.'
section() { # section TITLE FILE...
  printf '\n%s\n%s\n' '--------------------------------------------------------------------------------' "$1"
  shift
  for file in "$@"; do
    printf '\n'
    cat "$file"
  done
}
section "The Go standard library and runtime $(go env GOVERSION)" "$(go env GOROOT)/LICENSE"
while read -r name version path; do
  if ! [ -f "$path" ]; then
    echo "$name has no licence" >&2
    exit 1
  fi
  mapfile -t notices < <(find "$(dirname "$path")" -maxdepth 1 -type f -iname 'NOTICE*' | LC_ALL=C sort)
  section "$name $version" "$path" "${notices[@]}"
done <"$work/libraries"
