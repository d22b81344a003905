// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cause finds the causes behind pods that do not run and behind findings of doctor. A
// cause names who suffers from it, who can act, and what changes when it is mended. It joins answers of the packages below, and asks the allocator about the cluster with a cause
// mended. It never explains a pod by itself. The faces of the program import it.
package cause
