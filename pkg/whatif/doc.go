// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package whatif knows how a cluster looks after a change that has not been made. A change
// is a list of edits ([api.Edit]): [Amend] makes them in a copy of the snapshot,
// [WithOldValues] adds the previous values of fields, and [Commands] writes them for a
// shell. [Reserve] gives a pod its node and its devices, as kube-scheduler does between two
// pods of its queue, and an evicted pod releases them.
//
// A snapshot and a change make another snapshot, which shares the lists and objects that
// are not touched. Callers that decide one change after another rely on that: objects that
// are the same before and after are not looked at again. The package decides nothing: the
// caller knows that a change is possible. It imports pkg/snapshot and below, and every
// package above that may import it.
package whatif
