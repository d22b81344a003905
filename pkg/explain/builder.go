// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/advice"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/counting"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/nodeanswer"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/nodegroup"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/obstacle"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/queue"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
)

// builder is the work on one explanation.
type builder struct {
	*funnel.Question
	target *target.Target
	// explain and explainer answer other questions.
	explain   func(context.Context, *cluster.Cluster, target.Options) (*api.Explanation, error)
	explainer queue.Explainer
	reasons   *nodeanswer.Reasons
	// equivalent has for each candidate the first one that is the same to the claims.
	equivalent []int
	// contents tell which nodes are equivalent.
	contents *nodegroup.Contents
	// isHard reports whether counting decides about a node, and the allocator is not waited for.
	isHard func(context.Context, *funnel.Question, *corev1.Node) bool
	// slowNode is a node that was decided by counting because the allocator
	// takes too long.
	slowNode string
	// confirmer asks about what-if clusters.
	confirmer *counting.Confirmer
	// outlook is nil until it is begun.
	outlook *advice.OutlookCase
	// replaced is set if the pod waits for those that it replaces.
	replaced *replaced
	// blockedBy is what else is in the way of a pod for which there are devices,
	// and unevaluated what may be, but could not be read.
	blockedBy   []obstacle.Obstacle
	unevaluated []obstacle.Unevaluated
	// devices are those to be described, and described what was found.
	devices   []*cluster.Device
	described []*api.DeviceExplanation
	out       *api.Explanation
}

func newBuilder(c *cluster.Cluster, t *target.Target) *builder {
	q := funnel.NewQuestion(c, t.Pod, t.Claims)
	confirmer := &counting.Confirmer{}
	return &builder{
		Question:  q,
		target:    t,
		reasons:   nodeanswer.NewReasons(q, confirmer),
		contents:  nodegroup.NewContents(),
		confirmer: confirmer,
		isHard:    counting.IsHard,
		out: &api.Explanation{
			TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Explanation"},
			Target:   t.Object,
		},
	}
}

// settlement is an answer that is found before any node is tried.
type settlement struct {
	verdict api.Verdict
	code    api.Code
	message string
	// classes are the DeviceClasses that do not exist, if that is the reason.
	classes []string
	// nodeless is set if no node is looked for: the devices are allocated, or are
	// not needed any more, because the pods have finished.
	nodeless, finished bool
}

// settle puts a settlement into the explanation. Nodes that are looked for have
// the same answer, all of them.
func (x *builder) settle(s *settlement) reason {
	x.out.Verdict, x.out.Code, x.out.Finished = s.verdict, s.code, s.finished
	said := reason{what: s.message}
	if s.nodeless {
		return said
	}
	nodes := x.target.Nodes(x.Cluster)
	if len(nodes) == 0 {
		return said
	}
	answers := map[nodeanswer.Answer][]string{}
	answer := nodeanswer.Answer{Verdict: s.verdict, Code: s.code, Message: s.message}
	for _, node := range nodes {
		answers[answer] = append(answers[answer], node.Name)
	}
	x.out.Nodes, x.out.NodeCount = nodeanswer.Group(answers), len(nodes)
	return said
}
