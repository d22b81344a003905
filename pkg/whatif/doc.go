// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package whatif knows how a cluster looks after a change that has not been
// made: [Reserve] gives a pod its node and its devices, as kube-scheduler does
// between two pods of its queue.
//
// A snapshot and a change make another snapshot, which shares the lists and the
// objects that are not touched. The package decides nothing: whoever asks for a
// change knows that it is possible. It imports pkg/snapshot alone, and every
// package above that may import it.
package whatif
