// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/klog/v2"

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

// ExtendedPlace is the container that asks for an extended resource.
type ExtendedPlace struct {
	Container *corev1.Container
	Resource  corev1.ResourceName
	// Path and pointer lead to the container's resources in the pod.
	Path, Pointer string
}

// ExtendedRequestOf finds what a request of the claim for extended resources stands
// for. It is false for a request of any other claim.
func ExtendedRequestOf(q *Question, claim *resourceapi.ResourceClaim, request string) (ExtendedPlace, bool) {
	use, ok := cluster.ExtendedResourceRequest(q.Pod, claim, request)
	if !ok {
		return ExtendedPlace{}, false
	}
	spec := &q.Pod.Spec
	list, field := spec.Containers, "containers"
	named := func(c corev1.Container) bool { return c.Name == use.ContainerName }
	if slices.ContainsFunc(spec.InitContainers, named) {
		list, field = spec.InitContainers, "initContainers"
	}
	i := slices.IndexFunc(list, named)
	return ExtendedPlace{
		Container: &list[i], Resource: corev1.ResourceName(use.ResourceName),
		Path:    fmt.Sprintf("spec.%s[%d].resources", field, i),
		Pointer: fmt.Sprintf("/%s/%d/resources", field, i),
	}, true
}

// RequestTitle names a request of a waiting claim: "request gpus", with the
// claim if there are several, or the container and the resource that a request
// for extended resources stands for.
func RequestTitle(q *Question, claim int, name string) string {
	of := q.Claims[claim].Claim
	if place, ok := ExtendedRequestOf(q, of, name); ok {
		return cluster.RequestTitle(name, place.Container.Name, string(place.Resource))
	}
	if len(q.Claims) > 1 && of.Name != "" {
		name = cluster.ClaimTitle(of) + "." + name
	}
	return "request " + name
}

// TitleOf is like [builder.requestTitle], for a request that has a funnel.
func TitleOf(q *Question, r *cluster.Request) string {
	claim := slices.IndexFunc(q.Claims, func(c Claim) bool { return c.Claim == r.Claim })
	return RequestTitle(q, claim, r.Name)
}

// WithoutPlannedClaims leaves claims out of an error that are yet to be created, so that nobody
// looks for them: it names the selector itself. Upstream has no error types, only texts, which
// begin with namespace and name of the claim, and these have to be different for each claim;
// only what upstream puts there itself is cut, and a text that begins otherwise stays as it is.
func WithoutPlannedClaims(q *Question, text string) string {
	for i := range q.Claims {
		claim := q.Claims[i].Claim
		after, found := strings.CutPrefix(text, fmt.Sprintf("claim %s", klog.KObj(claim)))
		if _, planned := cluster.IsPlanned(claim); !found || !planned {
			continue
		}
		rest, found := strings.CutPrefix(after, ": ")
		if !found {
			if rest, found = strings.CutPrefix(after, ", "); !found {
				continue
			}
		}
		requests := claim.Spec.Devices.Requests
		if len(requests) != 1 || requests[0].Exactly == nil {
			return rest
		}
		for at, s := range requests[0].Exactly.Selectors {
			if on, found := strings.CutPrefix(rest, fmt.Sprintf("selector #%d on ", at)); found && s.CEL != nil {
				return fmt.Sprintf("selector %s on %s", strings.Join(strings.Fields(s.CEL.Expression), " "), on)
			}
		}
		return rest
	}
	return text
}

// Recounted returns the other question with the funnels of this one, which hold where its
// claims ask for other numbers of the same devices. It is nil if anything else differs.
func (q *Question) Recounted(other *Question) *Question {
	if other.Cluster != q.Cluster || len(other.Claims) != len(q.Claims) {
		return nil
	}
	recounted := *other
	recounted.Claims = slices.Clone(other.Claims)
	for i := range recounted.Claims {
		c, accounted := &recounted.Claims[i], q.Claims[i]
		if !equality.Semantic.DeepEqual(withoutCounts(c.Claim), withoutCounts(accounted.Claim)) {
			return nil
		}
		c.Funnels = nil
		for r, alternatives := range cluster.Requests(c.Claim) {
			var funnels []*Funnel
			for a, request := range alternatives {
				f := *accounted.Funnels[r][a]
				f.Request = request
				funnels = append(funnels, &f)
			}
			c.Funnels = append(c.Funnels, funnels)
		}
	}
	return &recounted
}

// withoutCounts returns what a claim asks for, whatever the number.
func withoutCounts(claim *resourceapi.ResourceClaim) *resourceapi.DeviceClaim {
	devices := claim.Spec.Devices.DeepCopy()
	for i := range devices.Requests {
		r := &devices.Requests[i]
		if r.Exactly != nil {
			r.Exactly.Count = 0
		}
		for j := range r.FirstAvailable {
			r.FirstAvailable[j].Count = 0
		}
	}
	return devices
}

// SelectorFails reports whether a selector fails on a device of a pool that the allocator may
// look at for a node. It evaluates selectors before it looks which node a device of a slice
// is for.
func (q *Question) SelectorFails(ctx context.Context, pool *cluster.NodePool, node *corev1.Node) bool {
	if !pool.Usable() {
		return false
	}
	for _, slice := range pool.Slices {
		for i := range slice.Spec.Devices {
			d := cluster.DeviceIn(pool.Pool, slice, i)
			fails := func(f *Funnel) bool { return f.Checks.SelectorFails(ctx, &d, node) }
			if slices.ContainsFunc(q.Claims, func(c Claim) bool {
				return slices.ContainsFunc(c.Funnels, func(alternatives []*Funnel) bool { return slices.ContainsFunc(alternatives, fails) })
			}) {
				return true
			}
		}
	}
	return false
}
