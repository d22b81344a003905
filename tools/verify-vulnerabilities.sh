#!/usr/bin/env bash
# Copyright The kubectl-dra Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails if a program calls something with a known vulnerability, on any system
# that it is built for, that tools/vulnerabilities.txt does not accept. The database
# is https://vuln.go.dev, or the URL in GOVULNDB (a copy: file:///DIRECTORY). Where
# the former cannot be reached, the check is skipped and says so, unless VULNDB is
# "required".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

database=${GOVULNDB:-https://vuln.go.dev}
tool=$(go tool -modfile=tools/go.mod -n govulncheck)

# It tells the age of a database that it can reach.
if ! "$tool" -db "$database" -version | grep -q '^DB updated:'; then
  if [ "${VULNDB:-}" = required ] || [ -n "${GOVULNDB:-}" ]; then
    echo "vulnerabilities: the database $database is out of reach" >&2
    exit 1
  fi
  echo "vulnerabilities: NOT CHECKED, the database $database is out of reach (GOVULNDB names another)" >&2
  exit
fi

accepted=$(awk '/^GO-/ { print $1 }' tools/vulnerabilities.txt | sort)
reports=$(mktemp)
trap 'rm -f "$reports"' EXIT
for on in linux:./cmd/... darwin:./cmd/kubectl-dra windows:./cmd/kubectl-dra; do
  status=0
  GOOS=${on%:*} "$tool" -db "$database" "${on#*:}" >>"$reports" || status=$?
  # 3 means that it found something.
  if [ $status != 0 ] && [ $status != 3 ]; then
    cat "$reports" >&2
    exit $status
  fi
done
found=$(sed -n 's/^Vulnerability #[0-9]*: \(GO-[0-9-]*\).*/\1/p' "$reports" | sort -u)
new=$(comm -23 <(echo "$found") <(echo "$accepted"))
gone=$(comm -13 <(echo "$found") <(echo "$accepted"))
if [ -n "$new" ]; then
  cat "$reports" >&2
  echo "vulnerabilities:" $new "are reached and not in tools/vulnerabilities.txt" >&2
  exit 1
fi
if [ -n "$gone" ]; then
  echo "vulnerabilities:" $gone "in tools/vulnerabilities.txt are no longer found: remove them" >&2
  exit 1
fi
