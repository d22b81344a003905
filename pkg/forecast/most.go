// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// unlimited is more copies than anything could be counted for.
const unlimited = math.MaxInt32

// mostCopiesOf bounds how many copies fit on some nodes, wherever they are placed: each copy
// takes devices that no other copy can have, and room on its node. The bound is [unlimited]
// where nothing can be counted.
func mostCopiesOf(q *eligibility.Question, nodes []*corev1.Node) int {
	needs, one := needsOf(q), tied(q)
	total := 0
	for _, node := range nodes {
		if here := mostOn(q, needs, node); one {
			total = max(total, here)
		} else {
			total = min(total+here, unlimited)
		}
	}
	// Devices that several nodes can use are counted once.
	all, sum := map[*resourceapi.Device]bool{}, 0
	for i := range needs {
		own := map[*resourceapi.Device]bool{}
		for _, f := range needs[i].funnels {
			for j := range f.Devices {
				if d := &f.Devices[j]; f.Reason(d) == nil {
					own[d.Device], all[d.Device] = true, true
				}
			}
		}
		sum += needs[i].least
		total = min(total, len(own)/needs[i].least+besides(q, needs[i:i+1]))
	}
	if sum > 0 {
		total = min(total, len(all)/sum+besides(q, needs))
	}
	return total
}

// tied reports whether all copies have to be on one node, whichever it is: they use a claim
// whose devices are each of one node.
func tied(q *eligibility.Question) bool {
	return slices.ContainsFunc(q.Claims, func(c eligibility.Claim) bool {
		return usedByAll(&q.PodClaims[c.Index]) && slices.ContainsFunc(c.Funnels, func(alternatives []*eligibility.Funnel) bool {
			return !slices.ContainsFunc(alternatives, func(f *eligibility.Funnel) bool {
				return slices.ContainsFunc(f.Devices, func(d cluster.Device) bool {
					node, _, _ := d.NodeSelection()
					return node == nil && f.Reason(&d) == nil
				})
			})
		})
	})
}

// besides returns a number of copies of which no more fit on nodes that have from a device
// plugin what one of some needs is for.
func besides(q *eligibility.Question, needs []need) int {
	total := 0
	for _, node := range q.Reach.Candidates {
		if slices.ContainsFunc(needs, func(n need) bool { return n.offered(node) }) {
			total = min(total+roomOn(q, node), unlimited)
		}
	}
	return total
}

// MostOn returns that number for one of the nodes of a question.
func MostOn(q *eligibility.Question) func(node *corev1.Node) int {
	needs := needsOf(q)
	return func(node *corev1.Node) int { return mostOn(q, needs, node) }
}

func mostOn(q *eligibility.Question, needs []need, node *corev1.Node) int {
	here := roomOn(q, node)
	for i := range needs {
		if !needs[i].offered(node) {
			here = min(here, needs[i].eligible(node.Name)/needs[i].least)
		}
	}
	return here
}

// roomOn returns for how many copies a node has CPU, memory and the like.
func roomOn(q *eligibility.Question, node *corev1.Node) int {
	if rooms := q.Cluster.Nodes.RoomFor(q.Pod, node); len(rooms) > 0 {
		return int(min(rooms[0].Pods, unlimited))
	}
	return unlimited
}

// need is the minimum that a copy takes for a request of a claim of its own.
type need struct {
	funnels []*eligibility.Funnel
	least   int
}

func (n *need) eligible(node string) int {
	most := 0
	for _, f := range n.funnels {
		most += f.Eligible[node]
	}
	return most
}

// offered reports whether a device plugin of a node has the extended resource that the
// request is for, so that no device is allocated.
func (n *need) offered(node *corev1.Node) bool {
	quantity := node.Status.Allocatable[corev1.ResourceName(n.funnels[0].Checks.ExtendedResource)]
	return quantity.Value() > 0
}

// needsOf lists what copies cannot share.
func needsOf(q *eligibility.Question) []need {
	var needs []need
	for i := range q.Claims {
		if pc := &q.PodClaims[q.Claims[i].Index]; pc.Template == "" && !pc.ExtendedResources || pc.Group != "" {
			continue
		}
		for _, alternatives := range q.Claims[i].Funnels {
			n := need{funnels: alternatives, least: math.MaxInt32}
			for _, f := range alternatives {
				switch {
				case f.Request.AdminAccess || Shareable(q, f):
					n.least = 0
				case f.Request.All():
					n.least = min(n.least, 1)
				default:
					n.least = min(n.least, int(f.Request.Count))
				}
			}
			if n.least > 0 {
				needs = append(needs, n)
			}
		}
	}
	return needs
}

// Shareable reports whether a device that is eligible for a request can be allocated
// several times.
func Shareable(q *eligibility.Question, f *eligibility.Funnel) bool {
	if !q.Cluster.Gates.Enabled(cluster.GateConsumableCapacity) {
		return false
	}
	for i := range f.Devices {
		if d := &f.Devices[i]; ptr.Deref(d.AllowMultipleAllocations, false) && f.Reason(d) == nil {
			return true
		}
	}
	return false
}

// Certain returns how many copies fit whatever nodes the scheduler takes, where nodes share
// devices and nothing else: each copy takes one device, any that is eligible, and no node
// runs out of anything else. Then copies fit until all devices are taken that some node can
// use. It is not known for others.
func Certain(q *eligibility.Question) (int, bool) {
	needs := needsOf(q)
	if len(q.Claims) != 1 || len(q.PodClaims) != 1 || len(needs) != 1 || len(needs[0].funnels) != 1 || q.Claims[0].Claim == nil || len(q.Claims[0].Claim.Spec.Devices.Constraints) > 0 {
		return 0, false
	}
	if others := coupledBesides(q); len(others) > 0 {
		return 0, false
	}
	f := needs[0].funnels[0]
	if f.Request.All() || f.Request.Count != 1 {
		return 0, false
	}
	free := map[*resourceapi.Device]bool{}
	for i := range f.Devices {
		if d := &f.Devices[i]; f.Reason(d) == nil {
			if len(d.ConsumesCounters) > 0 {
				return 0, false
			}
			free[d.Device] = true
		}
	}
	for _, node := range q.Reach.Candidates {
		if needs[0].offered(node) || roomOn(q, node) < f.Eligible[node.Name] {
			return 0, false
		}
	}
	return len(free), true
}
