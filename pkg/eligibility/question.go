// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// Question is the subject of one explanation: a cluster, and the claims to allocate in it
// together.
type Question struct {
	Cluster   *cluster.Cluster
	Reach     *PodReach
	Selectors *selector.Evaluator
	Catalog   *Catalog
	// Pod is the one whose claims these are, nil if no pod uses them. PodClaims are
	// all that it uses, also those that are allocated.
	Pod       *corev1.Pod
	PodClaims []cluster.PodClaim
	// Claims are the claims that need devices, in the order of the pod.
	Claims []Claim
}

// NewQuestion asks about the claims of a pod, which can be nil. Who needs devices
// is not looked at yet.
func NewQuestion(c *cluster.Cluster, pod *corev1.Pod, claims []cluster.PodClaim) *Question {
	q := &Question{Cluster: c, Reach: &PodReach{}, Pod: pod, PodClaims: claims}
	q.Evaluate(c.Gates.Selectors())
	return q
}

// Evaluate sets the evaluator of selectors for this cluster, which may know answers to
// other questions. Nothing must have been asked yet.
func (q *Question) Evaluate(selectors *selector.Evaluator) {
	q.Selectors, q.Catalog = selectors, NewCatalog(q.Cluster, selectors)
}

// Claim is a claim that is to be allocated.
type Claim struct {
	Claim *resourceapi.ResourceClaim
	// Index is the index in [Question.PodClaims].
	Index int
	// Funnels has one for each alternative of each request.
	Funnels [][]*Funnel
}

// BeginFunnels makes the funnels of a claim, of all devices, as far as they do not depend on
// nodes: it is not known yet which of these are candidates.
func (q *Question) BeginFunnels(ctx context.Context, c *Claim) {
	q.makeFunnels(c)
	for _, f := range slices.Concat(c.Funnels...) {
		f.addAll(ctx)
	}
}

// FinishFunnels adds what depends on nodes. The error is from ctx.
func (q *Question) FinishFunnels(ctx context.Context, c *Claim) error {
	for _, f := range slices.Concat(c.Funnels...) {
		if err := f.addNodes(ctx, q.Reach); err != nil {
			return err
		}
	}
	return nil
}

// AddFunnels makes the funnels of a claim of the devices that one node can reach. The error is
// from ctx.
func (q *Question) AddFunnels(ctx context.Context, c *Claim, only *corev1.Node) error {
	q.makeFunnels(c)
	for _, f := range slices.Concat(c.Funnels...) {
		f.addOnly(ctx, q.Reach, only)
		f.ClassHasDevices = f.anyOfClass()
	}
	return ctx.Err()
}

// makeFunnels makes funnels without devices.
func (q *Question) makeFunnels(c *Claim) {
	for _, alternatives := range cluster.Requests(c.Claim) {
		funnels := make([]*Funnel, 0, len(alternatives))
		for _, r := range alternatives {
			funnels = append(funnels, newFunnel(&Checks{
				Cluster: q.Cluster, Selectors: q.Selectors, Channel: q.Cluster.Gates.Channel(),
				ExtendedResource: q.extendedResource(c, r),
				Request:          r, Class: q.Cluster.Snapshot.Class(r.Class), Catalog: q.Catalog,
			}))
		}
		c.Funnels = append(c.Funnels, funnels)
	}
}

// ClaimsFor lists the claims to allocate on a node.
func (q *Question) ClaimsFor(node *corev1.Node) ([]*resourceapi.ResourceClaim, error) {
	claims := make([]*resourceapi.ResourceClaim, 0, len(q.Claims))
	for _, c := range q.Claims {
		claim := c.Claim
		if q.PodClaims[c.Index].ExtendedResources {
			var err error
			claim, err = q.Cluster.Claims.ExtendedResourceClaim(q.Pod, node)
			if err != nil {
				return nil, fmt.Errorf("claim for extended resources: %w", err)
			}
			if claim == nil {
				continue
			}
		}
		claims = append(claims, claim)
	}
	return claims, nil
}

// extendedResource names what a container asks for by a request of the claim
// for extended resources.
func (q *Question) extendedResource(c *Claim, r *cluster.Request) string {
	if !q.PodClaims[c.Index].ExtendedResources {
		return ""
	}
	// A pod can ask for a class by both of its names.
	if place, ok := ExtendedRequestOf(q, c.Claim, r.Base); ok {
		return string(place.Resource)
	}
	if class := q.Cluster.Snapshot.Class(r.Class); class != nil && class.Spec.ExtendedResourceName != nil {
		return *class.Spec.ExtendedResourceName
	}
	return resourceapi.ResourceDeviceClassPrefix + r.Class
}

// ListWaiting leaves out claims that nobody needs, and finds those that need
// devices.
func ListWaiting(q *Question) {
	q.PodClaims = slices.DeleteFunc(q.PodClaims, func(pc cluster.PodClaim) bool { return servedByPlugin(q, pc) })
	for i := range q.PodClaims {
		if claim := q.PodClaims[i].Claim; claim != nil && claim.Status.Allocation == nil {
			q.Claims = append(q.Claims, Claim{Claim: claim, Index: i})
		}
	}
}

// servedByPlugin reports whether the node that a pod is bound to needs no claim
// for its extended resources, since a device plugin has them.
func servedByPlugin(q *Question, pc cluster.PodClaim) bool {
	if !pc.ExtendedResources || !pc.Generated || q.Pod.Spec.NodeName == "" {
		return false
	}
	node := q.Cluster.Snapshot.Node(q.Pod.Spec.NodeName)
	if node == nil {
		return false
	}
	claim, err := q.Cluster.Claims.ExtendedResourceClaim(q.Pod, node)
	return err == nil && claim == nil
}
