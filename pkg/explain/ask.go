// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/nodegroup"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
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
type Asker struct {
	selectors *selector.Evaluator
	contents  *nodegroup.Contents
}

// Ask reports whether a pod fits that does not exist, and for each node why not. Nodes that
// the snapshot leaves out, because they are equivalent to one that it has, are in leftOut by the name
// of that one: the answer has them, too.
func (a *Asker) Ask(ctx context.Context, c *cluster.Cluster, pod *corev1.Pod, leftOut map[string][]string) (*Asked, error) {
	t := &target.Target{
		Object:       api.Target{Kind: api.KindPod, Namespace: pod.Namespace, Name: pod.Name},
		Hypothetical: true, VerdictOnly: true, LeftOut: leftOut,
	}
	t.UsePod(c, pod)
	x := builderWithQueue(c, t)
	a.remember(x.Question)
	answer, err := x.explanation(ctx)
	if err != nil {
		return nil, err
	}
	return &Asked{x.Question, answer, x.equivalent}, nil
}

// remember lets a question have what was found for others.
func (a *Asker) remember(q *funnel.Question) {
	if a.selectors == nil || !a.selectors.Like(q.Selectors) {
		a.selectors = q.Selectors
	}
	q.Evaluate(a.selectors)
}

// Groups puts nodes together that have the same for each of some pods, which are suitable for
// the same nodes. Unsuitable are those that they cannot use. It is nil if nodes have devices
// in common.
func (a *Asker) Groups(c *cluster.Cluster, pods []*corev1.Pod) (groups [][]*corev1.Node, unsuitable []*corev1.Node) {
	q := funnel.NewQuestion(c, pods[0], nil)
	a.remember(q)
	for _, pod := range pods {
		q.PodClaims = append(q.PodClaims, c.Claims.OfPod(pod)...)
	}
	funnel.ListWaiting(q)
	nodes, _ := c.Nodes.All()
	survey(q, nodes)
	for _, node := range q.Reach.Candidates {
		for _, pool := range q.Reach.Pools[node.Name] {
			if slices.ContainsFunc(pool.Pool.Slices, func(s *resourceapi.ResourceSlice) bool { return ptr.Deref(s.Spec.NodeName, "") != node.Name }) {
				return nil, nil
			}
		}
	}
	for _, u := range q.Reach.Unsuitable {
		unsuitable = append(unsuitable, u.Node)
	}
	if a.contents == nil {
		a.contents = nodegroup.NewContents()
	} else {
		a.contents = a.contents.Amended()
	}
	return a.contents.Groups(q, q.Reach.Candidates), unsuitable
}
