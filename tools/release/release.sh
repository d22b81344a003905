#!/usr/bin/env bash
# Copyright The kubectl-dra Authors.
# SPDX-License-Identifier: Apache-2.0

# Releases the tag that is checked out. Without credentials to publish or to
# sign, it builds all the same and says what it leaves out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

skip=()
leave_out() { # what, why
  echo "not done: $1, for lack of $2" >&2
  skip+=("$1")
}
if [ -z "${GITHUB_TOKEN:-}" ]; then
  leave_out publish GITHUB_TOKEN
fi
# Keyless signing takes the identity of the workflow that this runs in.
if [ -z "${ACTIONS_ID_TOKEN_REQUEST_TOKEN:-}" ]; then
  leave_out sign "the identity token of a workflow"
elif ! command -v cosign >/dev/null; then
  leave_out sign cosign
fi
go tool -modfile=tools/release/go.mod goreleaser release --clean ${skip[@]+"--skip=$(IFS=,; echo "${skip[*]}")"}
