#!/usr/bin/env bash
# Copyright The kubectl-dra Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails if `make generate` would change something. The work tree is left as it was.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
files=$(find pkg -name 'zz_generated.*.go' -o -name '*_templ.go')
saved=$(mktemp -d)
restore() {
  for file in $files; do
    cp -p "$saved/$file" "$file"
  done
  rm -rf "$saved"
}
for file in $files; do
  mkdir -p "$saved/$(dirname "$file")"
  cp -p "$file" "$saved/$file"
done
trap restore EXIT
make --no-print-directory generate >/dev/null
for file in $files; do
  if ! diff -u "$saved/$file" "$file"; then
    echo "$file is out of date, run: make generate" >&2
    exit 1
  fi
done
