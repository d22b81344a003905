// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"io"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Within is like [Load], for standard input with limits that a test can reach.
func Within(ctx context.Context, input io.Reader, text, unpacked, memory, keep int64, entries int) (*snapshot.Snapshot, error) {
	return load(ctx, []string{"-"}, Options{Stdin: input}, asCluster, limits{unsized: 1 << 40, bytes: text, unpacked: unpacked, memory: memory, keep: keep, entries: entries})
}
