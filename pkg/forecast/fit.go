// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

// Shape is the model of copies.
type Shape struct {
	Target api.ObjectRef
	// One and Several name a copy and copies: "copy of Pod ml/train-0".
	One, Several string
	// Pod is one of them. The snapshot does not have it.
	Pod *corev1.Pod
	// Claims is set if the pod stands for claims alone, so that nothing counts that pods
	// take.
	Claims bool
	// Assumption is an assumption about the copies, empty for none.
	Assumption string
}

// CountShape says how many copies of a shape fit, and whether that is as many as are asked
// for. It fails if ctx is done.
func CountShape(ctx context.Context, s *cluster.Cluster, shape *Shape, replicas int) (*api.Fit, error) {
	asker := &explain.Asker{}
	now, err := countIn(ctx, asker, s, shape.Pod, nil, mostCopies(), true)
	if err != nil {
		return nil, err
	}
	later, err := countIn(ctx, asker, released(s), shape.Pod, nil, mostCopies(), false)
	if err != nil {
		return nil, err
	}
	answer := now.asked.Answer
	f := &api.Fit{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Fit"},
		Target:   shape.Target, Replicas: replicas, Allocator: answer.Allocator, Assumptions: answer.Assumptions,
		Now: now.count, Released: later.count, Next: now.next, NodeCount: answer.NodeCount, Nodes: []api.CopyNodes{},
	}
	if shape.Assumption != "" {
		f.Assumptions = append(f.Assumptions, shape.Assumption)
	}
	f.Bounds = slices.Compact(slices.Sorted(slices.Values(slices.Concat(now.bounds, later.bounds))))
	f.Nodes = append(f.Nodes, groupsOf(now, later)...)
	f.Limits = limits(now, later, !shape.Claims)
	obey(f, now, !shape.Claims)
	f.Verdict = outcome(f, now)
	f.Summary = summary(f, shape)
	return f, nil
}

// obey makes the counts as small as quotas, and what else blocks a pod, make them.
func obey(f *api.Fit, now *counted, withPod bool) {
	for _, limit := range verdict.QuotaLimits(now.asked.Question, withPod) {
		if f.Now.AtLeast > limit.Copies {
			f.Next = &api.CopyStop{Code: api.QuotaExceeded, Message: limit.Refusal.Reason}
		}
		for _, count := range []*api.CopyCount{&f.Now, &f.Released} {
			lower(count, limit.Copies)
		}
	}
	if now.asked.Answer.Verdict == api.Blocked {
		f.Next = &api.CopyStop{Code: now.asked.Answer.Code, Message: now.asked.Answer.Summary}
		lower(&f.Now, 0)
		lower(&f.Released, 0)
	}
}

// lower makes a count no more than a number.
func lower(count *api.CopyCount, most int) {
	count.AtLeast = min(count.AtLeast, most)
	count.AtMost = ptr.To(min(ptr.Deref(count.AtMost, most), most))
}

func outcome(f *api.Fit, now *counted) api.Verdict {
	switch v := now.asked.Answer.Verdict; {
	case f.Now.AtLeast >= f.Replicas:
		return api.Fits
	case v == api.Error, v == api.Undetermined:
		return v
	case f.Now.AtMost != nil && *f.Now.AtMost < f.Replicas:
		return api.DoesNotFit
	default:
		return api.Undetermined
	}
}

func summary(f *api.Fit, shape *Shape) string {
	text := fmt.Sprintf("%s more %s fit now", english.Between(f.Now.AtLeast, f.Now.AtMost), shape.Several)
	if f.Now.AtLeast == 0 && f.Next != nil {
		switch f.Verdict {
		case api.Undetermined:
			return english.Sentence(f.Next.Message)
		case api.Error:
			return english.Sentence(text) + " " + english.Sentence(f.Next.Message)
		default:
		}
	}
	if most := f.Now.AtMost; most != nil && *most == f.Now.AtLeast && *most == 1 {
		text = fmt.Sprintf("1 more %s fits now", shape.One)
	}
	if f.Replicas > 1 {
		text += fmt.Sprintf(", %d are asked for", f.Replicas)
	}
	return english.Sentence(text + fmt.Sprintf("; %s once all claims are released", english.Between(f.Released.AtLeast, f.Released.AtMost)))
}

// groupsOf puts nodes together that take the same number of copies.
func groupsOf(now, later *counted) []api.CopyNodes {
	type key struct {
		now, released int
		code          api.Code
		message       string
	}
	groups := map[key]*api.CopyNodes{}
	var list []*api.CopyNodes
	for name, on := range now.nodes {
		k := key{on.copies, 0, on.code, on.message}
		if then := later.nodes[name]; then != nil {
			k.released = then.copies
		}
		if groups[k] == nil {
			groups[k] = &api.CopyNodes{Now: k.now, Released: k.released, Code: k.code, Message: k.message}
			list = append(list, groups[k])
		}
		groups[k].Count++
		groups[k].Names = append(groups[k].Names, name)
	}
	for _, g := range list {
		slices.SortFunc(g.Names, english.CompareNames)
	}
	slices.SortFunc(list, func(a, b *api.CopyNodes) int {
		return cmp.Or(cmp.Compare(b.Now, a.Now), cmp.Compare(b.Released, a.Released), cmp.Compare(b.Count, a.Count), english.CompareNames(a.Names[0], b.Names[0]))
	})
	nodes := make([]api.CopyNodes, 0, len(list))
	for _, g := range list {
		nodes = append(nodes, *g)
	}
	return nodes
}

// limits returns the limits besides devices: the room on the nodes that may take copies, and
// quotas.
func limits(now, later *counted, withPod bool) []api.CopyLimit {
	q, one := now.asked.Question, tied(now.asked.Question)
	may := map[string]bool{}
	for _, node := range slices.Concat(now.suited, later.suited) {
		may[node.Name] = true
	}
	rooms, order := map[corev1.ResourceName]int{}, []corev1.ResourceName{}
	if withPod {
		for _, node := range q.Reach.Candidates {
			if !may[node.Name] {
				continue
			}
			for _, room := range q.Cluster.Nodes.RoomFor(q.Pod, node) {
				if _, known := rooms[room.Resource]; !known {
					order = append(order, room.Resource)
				}
				if here := int(min(room.Pods, unlimited)); one {
					rooms[room.Resource] = max(rooms[room.Resource], here)
				} else {
					rooms[room.Resource] += here
				}
			}
		}
	}
	list := make([]api.CopyLimit, 0, len(order))
	for _, name := range order {
		list = append(list, api.CopyLimit{Resource: string(name), Copies: rooms[name]})
	}
	for _, limit := range verdict.QuotaLimits(q, withPod) {
		list = append(list, api.CopyLimit{Resource: string(limit.Resource), Quota: limit.Quota, Copies: limit.Copies})
	}
	slices.SortStableFunc(list, func(a, b api.CopyLimit) int {
		return cmp.Or(cmp.Compare(a.Copies, b.Copies), cmp.Compare(a.Quota, b.Quota), cmp.Compare(a.Resource, b.Resource))
	})
	return list
}
