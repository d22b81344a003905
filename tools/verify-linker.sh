#!/usr/bin/env bash
# Copyright The kubectl-dra Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails if a function of the program calls methods by names that the linker does not know,
# as templates of Go do: it then keeps the exported methods of all types, a seventh of the
# program's size. The argument is the build tags.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

kept=$(CGO_ENABLED=0 go build -trimpath -tags "$1" -ldflags '-s -w -dumpdep' -o /dev/null ./cmd/kubectl-dra 2>&1 |
  grep -m 1 ' -> .*<ReflectMethod>$' || true)
if [[ $kept ]]; then
  echo "methods are called by name: $kept" >&2
  echo "Avoid the function, or what calls it." >&2
  exit 1
fi
