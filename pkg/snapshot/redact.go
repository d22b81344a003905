// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

func Redact(s *Snapshot) *Snapshot { return s }
