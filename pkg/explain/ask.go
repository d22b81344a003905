// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Asked is a question about a pod with its answer, for those who go on from it.
type Asked struct {
	Question *funnel.Question
	// Answer has the verdict and the nodes, and nothing that is looked for beyond.
	Answer *api.Explanation
	// Equivalent has for each candidate of the question the first one that is the same
	// to the claims, by their indices. It is nil if no node was tried.
	Equivalent []int
}

// Asker asks about pods that do not exist. Clusters that it asks about one after another
// have most devices in common: what selectors make of a device is found once. The zero value
// is ready to use. Not safe for concurrent use.
type Asker struct{ selectors *selector.Evaluator }

// Ask reports whether a pod fits that does not exist, and for each node why not. Nodes that
// the snapshot leaves out, because they are like one that it has, are in like by the name
// of that one: the answer has them, too.
func (a *Asker) Ask(ctx context.Context, alloc *allocator.Allocator, snap *snapshot.Snapshot, pod *corev1.Pod, like map[string][]string) (*Asked, error) {
	t := &target.Target{
		Object:       api.Target{Kind: api.KindPod, Namespace: pod.Namespace, Name: pod.Name},
		Hypothetical: true, VerdictOnly: true, Like: like,
	}
	t.UsePod(alloc, pod)
	x := builderWithQueue(alloc, snap, t)
	if a.selectors == nil || !a.selectors.Like(x.Selectors) {
		a.selectors = x.Selectors
	}
	x.Selectors, x.Catalog = a.selectors, eligibility.NewCatalog(alloc.Facts, a.selectors)
	answer, err := x.explanation(ctx)
	if err != nil {
		return nil, err
	}
	return &Asked{x.Question, answer, x.equivalent}, nil
}
