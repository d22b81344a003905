// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package whatif knows how a cluster looks after a change that has not been
// made. A change is a list of edits ([api.Edit]): [Amend] makes them in a copy
// of the snapshot, [WithOldValues] says what each field had before, and
// [Commands] writes them for a shell. [Reserve] gives a pod its node and its
// devices, as kube-scheduler does between two pods of its queue, and a pod that
// is evicted gives them up.
//
// A snapshot and a change make another snapshot, which shares the lists and the
// objects that are not touched. Those who decide one change after another rely on
// that: what is one and the same object before and after is not looked at again. The package decides nothing: the caller knows
// that a change is possible. It imports pkg/snapshot and below, and every
// package above that may import it.
package whatif
