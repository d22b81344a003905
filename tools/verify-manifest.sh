#!/usr/bin/env bash
# Copyright The kubectl-dra Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails if krew's own validator does not take plugins.yaml. It wants a file that
# is named after the plugin.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp plugins.yaml "$work/dra.yaml"
if ! go tool -modfile=tools/release/go.mod validate-krew-manifest -skip-install -manifest "$work/dra.yaml" 2>"$work/log"; then
  cat "$work/log" >&2
  echo "plugins.yaml is no valid manifest for krew" >&2
  exit 1
fi
