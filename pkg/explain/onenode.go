// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// describeNode describes the one node that the question is about: what keeps
// the pod away, the pools, and whether the devices would do. It returns the summary
// of that, empty if it is the same as for all nodes.
func (x *builder) describeNode(ctx context.Context) (string, error) {
	node := x.Target.Only
	if node == nil {
		return "", nil
	}
	x.out.Node = &api.NodeExplanation{Name: node.Name}
	if x.Reach.Pools == nil {
		// It was settled before any node was looked at.
		return "", nil
	}
	misfits := eligibility.Misfits(x.Question, node)
	for _, u := range misfits {
		x.out.Node.Misfits = append(x.out.Node.Misfits, api.NodeMisfit{
			Code: u.Code, Message: misfitText(u, x.Cluster.Snapshot, x.Target.Hypothetical), Evidence: u.Evidence(),
		})
	}
	pools := x.Reach.Pools[node.Name]
	for i := range pools {
		x.out.Node.Pools = append(x.out.Node.Pools, reachablePool(pools[i], node))
	}
	if err := x.judgeDevices(ctx, node, len(misfits) > 0); err != nil {
		return "", err
	}
	switch {
	case x.out.Verdict == api.DoesNotFit && len(misfits) > 0:
		return awaySummary(x.out.Node), nil
	case x.out.Verdict == api.Fits:
		return "the allocator finds devices there", nil
	default:
		return "", nil
	}
}

// judgeDevices finds out whether the devices would do if nothing else kept the
// pod away.
func (x *builder) judgeDevices(ctx context.Context, node *corev1.Node, away bool) error {
	out := x.out.Node
	if len(x.Claims) == 0 {
		return nil
	}
	if !away {
		out.AllocatorVerdict = x.out.Verdict
		if len(x.out.Nodes) == 1 {
			out.Code, out.Message = x.out.Nodes[0].Code, x.out.Nodes[0].Message
		}
		return nil
	}
	// A claim of the pod that is allocated elsewhere needs devices, too.
	var elsewhere []string
	for _, u := range eligibility.Misfits(x.Question, node) {
		if u.Claim != nil {
			elsewhere = append(elsewhere, u.Claim.Name)
		}
	}
	if len(elsewhere) > 0 && x.Pod != nil && !x.Target.Hypothetical {
		after, released := released(x.Question)
		if !slices.ContainsFunc(elsewhere, func(name string) bool { return !slices.Contains(released, name) }) {
			again, err := ExplainWith(ctx, after, target.Options{Object: api.Ref(api.KindPod, x.Pod.Namespace, x.Pod.Name), Node: node.Name})
			if err != nil {
				return err
			}
			out.AllocatorVerdict, out.Code, out.Message = again.Node.AllocatorVerdict, again.Node.Code, again.Node.Message
			return nil
		}
	}
	checked := verdict.CheckNode(ctx, x.Question, node)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("check node %s: %w", node.Name, err)
	}
	if checked.Outcome == allocator.GivenUp {
		return fmt.Errorf("check node %s: %w", node.Name, checked.Err)
	}
	answer := x.answerOn(ctx, node, checked, func() int64 { return 0 })
	if answer.Verdict == api.Fits && len(elsewhere) > 0 {
		return nil
	}
	out.AllocatorVerdict, out.Code, out.Message = answer.Verdict, answer.Code, answer.Message
	return nil
}

// awaySummary returns the reason where the pod cannot use the node.
func awaySummary(n *api.NodeExplanation) string {
	var texts []string
	for _, misfit := range n.Misfits {
		texts = append(texts, misfit.Message)
	}
	const most = 2
	text := strings.Join(texts[:min(len(texts), most)], "; ")
	if more := len(texts) - most; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	switch n.AllocatorVerdict {
	case api.Fits:
		text += "; there are enough devices"
	case api.DoesNotFit, api.Blocked, api.Error:
		text += "; apart from that, " + n.Message
	case api.Undetermined:
		text += "; apart from that, it is not known whether the devices are sufficient: " + n.Message
	case api.Allocated:
	}
	return text
}

// reachablePool describes a pool as the allocator sees it from a node.
func reachablePool(pool *cluster.NodePool, node *corev1.Node) api.ReachablePool {
	p := api.ReachablePool{
		Driver: pool.Pool.Driver, Name: pool.Pool.Name, Generation: pool.Generation,
		Slices: len(pool.Pool.Slices), ExpectedSlices: pool.Pool.Expected, Usable: pool.Usable(),
	}
	note := func(r *eligibility.Reason) {
		if r != nil && p.Code == "" {
			p.Code, p.Message, p.Evidence = r.Code, r.Text, &r.Fact
		}
	}
	note(eligibility.PoolReason(pool))
	eligibility.EachDevice(pool, func(d *cluster.Device, kept *eligibility.Reason) {
		if kept == nil || eligibility.DeviceReaches(d, node) {
			p.Devices++
			note(kept)
		}
	})
	for i := range pool.Ignored {
		note(eligibility.IgnoredReason(&pool.Ignored[i]))
	}
	return p
}
