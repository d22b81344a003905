// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// Asked is a question about a pod with its answer, for those who go on from it.
type Asked struct {
	Question *eligibility.Question
	// Answer has the verdict and the nodes, and nothing that is looked for beyond.
	Answer *api.Explanation
	// Equivalent has for each candidate of the question the first equivalent one, by their
	// indices. It is nil if no node was tried.
	Equivalent []int
}

// Asker asks about pods that do not exist. Clusters that it asks about one after another
// have most devices in common: what selectors make of a device is found once. The zero value
// is ready to use. Not safe for concurrent use.
type Asker struct {
	selectors *selector.Evaluator
	contents  *verdict.NodeContents
}

// Ask reports whether a pod fits that does not exist, and for each node why not. Nodes that
// the snapshot leaves out, because they are equivalent to a node that it has, are in leftOut by the name
// of that one: the answer has them, too.
func (a *Asker) Ask(ctx context.Context, c *cluster.Cluster, pod *corev1.Pod, leftOut map[string][]string) (*Asked, error) {
	t := &target.Target{
		Options:      target.Options{Object: api.RefTo(api.KindPod, pod)},
		Hypothetical: true, LeftOut: leftOut,
	}
	t.UsePod(c, pod)
	v, err := verdict.Decide(ctx, c, t, a.evaluator(c))
	if err != nil {
		return nil, fmt.Errorf("explain %s: %w", t.Object.Title(), err)
	}
	x := newBuilder(v, reasonsOnly)
	answer, err := x.explanation(ctx)
	if err != nil {
		return nil, err
	}
	return &Asked{x.Question, answer, x.equivalent}, nil
}

// evaluator returns what evaluates the selectors for a cluster.
func (a *Asker) evaluator(c *cluster.Cluster) *selector.Evaluator {
	if own := c.Gates.Selectors(); a.selectors == nil || !a.selectors.Like(own) {
		a.selectors = own
	}
	return a.selectors
}

// Groups puts nodes together that have the same for each of some pods, which are suitable for
// the same nodes. Unsuitable are those that they cannot use. It is nil if nodes have devices
// in common.
func (a *Asker) Groups(c *cluster.Cluster, pods []*corev1.Pod) (groups [][]*corev1.Node, unsuitable []*corev1.Node) {
	q := eligibility.NewQuestion(c, pods[0], nil)
	q.Evaluate(a.evaluator(c))
	for _, pod := range pods {
		q.PodClaims = append(q.PodClaims, c.Claims.OfPod(pod)...)
	}
	eligibility.ListWaiting(q)
	nodes, _ := c.Nodes.All()
	verdict.Survey(q, nodes)
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
		a.contents = verdict.NewNodeContents()
	} else {
		a.contents = a.contents.Amended()
	}
	return a.contents.Groups(q, q.Reach.Candidates), unsuitable
}

// AnswerGroup is a set of pods with one owner and one answer.
type AnswerGroup struct {
	// First is the answer for one of them.
	First *api.Explanation
	// Owner is the workload of the pods, empty for bare pods.
	Owner api.ObjectRef
	// Names are the names of the pods. Oldest is the age in seconds of the oldest pod, or of a
	// workload without pods; it is 0 if no age is known.
	Names  []string
	Oldest int64
}

// Name returns how a line about the pods begins: the pod, or what they belong to and their
// number.
func (g *AnswerGroup) Name() string {
	switch n := len(g.Names); {
	case g.First.Target.Kind != api.KindPod:
		return g.First.Target.Argument()
	case n == 1:
		return g.Names[0]
	case g.Owner.Kind != "":
		return fmt.Sprintf("%s (%d pods)", g.Owner.Argument(), n)
	default:
		return fmt.Sprintf("%s and %s", g.Names[0], english.Count(n-1, "equal pod"))
	}
}

// Summary returns the summary of the answer. Where each pod has devices of its own, it says
// how many pods it covers.
func (g *AnswerGroup) Summary() string {
	n := len(g.Names)
	if n > 1 && g.First.Verdict == api.Fits && g.First.Placement != nil {
		if other := g.First.OtherScheduler; other != nil {
			return fmt.Sprintf("%s fit now for kube-scheduler, the first one on %s, but scheduler %s decides.", english.Count(n, "pod"), g.First.Placement.Node, other.Name)
		}
		return fmt.Sprintf("%s fit now, the first one on %s.", english.Count(n, "pod"), g.First.Placement.Node)
	}
	if other := g.First.OtherScheduler; other != nil && g.First.Verdict == api.Fits {
		return fmt.Sprintf("For kube-scheduler, but scheduler %s decides: %s", other.Name, g.First.Summary)
	}
	if n > 1 && g.First.Verdict == api.Blocked && g.First.Code != api.GangIncomplete {
		return fmt.Sprintf("Pod %s: %s", g.Names[0], g.First.Summary)
	}
	return g.First.Summary
}

// GroupAnswers puts the answers for pods together that have the same owner, verdict,
// code and stage; bare pods are together if they share an answer. Groups are
// in the order of their first answers.
func GroupAnswers(answers []*api.Explanation) []*AnswerGroup {
	var groups []*AnswerGroup
	known := map[string]*AnswerGroup{}
	for _, e := range answers {
		owner, age := api.ObjectRef{}, e.AgeSeconds
		if len(e.Pods) > 0 {
			owner, age = e.Pods[0].Owner, e.Pods[0].AgeSeconds
		}
		key := []string{e.Target.Namespace, owner.String(), string(e.Verdict), string(e.Code), string(e.Stage), string(When(e))}
		switch {
		case e.Target.Kind != api.KindPod:
			// A workload has a line of its own.
			owner = api.ObjectRef{}
			key = append(key, e.Target.Kind, e.Target.Name)
		case owner.Kind == "" && e.SameAs.Kind != "":
			key = append(key, e.SameAs.Name)
		case owner.Kind == "":
			key = append(key, e.Target.Name)
		case e.Verdict != api.Fits && e.Verdict != api.Blocked:
			key = append(key, e.Summary)
		}
		text := strings.Join(key, "\x00")
		group := known[text]
		if group == nil {
			group = &AnswerGroup{First: e, Owner: owner}
			known[text] = group
			groups = append(groups, group)
		}
		group.Names = append(group.Names, e.Target.Name)
		group.Oldest = max(group.Oldest, age)
	}
	return groups
}
