// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/advice"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// maxInstead limits how many devices are taken away until a smaller one is picked.
const maxInstead = 8

// findWhyHere finds out why a pod that has its devices has this node and these
// devices: it asks about the pod again, as if it had been evicted.
func (x *builder) findWhyHere(ctx context.Context) error {
	pod := x.Pod
	if pod == nil || x.Target.Object.Kind != api.KindPod || pod.Spec.NodeName == "" || snapshot.Finished(pod) || x.depth != withAdvice || x.Target.Only != nil || x.Target.Device != nil ||
		x.out.Verdict != api.Allocated || !hasDevices(x.PodClaims) {
		return nil
	}
	snap := whatif.Evict(x.Cluster.Snapshot, []*corev1.Pod{pod})
	amended := x.Cluster.Amended(snap)
	t, err := target.Find(amended, target.Options{Object: api.RefTo(api.KindPod, pod)})
	if err != nil {
		return nil //nolint:nilerr // without its devices, the pod is no target
	}
	t.Member = true
	v, err := verdict.Decide(ctx, amended, t, nil)
	if err != nil {
		return err
	}
	again := newBuilder(v, reasonsOnly)
	describe(again.Verdict, again.out)
	if _, err := again.ofDevices(ctx); err != nil {
		return err
	}
	x.out.WhyHere = &api.WhyHere{Node: pod.Spec.NodeName, FitsHere: fitsOn(again.out.Nodes, pod.Spec.NodeName), Nodes: again.out.Nodes, NodeCount: again.out.NodeCount}
	x.out.WhyHere.NotEvaluated = x.Cluster.Nodes.Unevaluated(pod)
	if x.Cluster.Snapshot.Unknown(snapshot.ResourceVolumes, "") != "" && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil }) {
		x.out.WhyHere.NotEvaluated = append(x.out.WhyHere.NotEvaluated, "the nodes of its volumes")
	}
	node := snap.Node(pod.Spec.NodeName)
	if node == nil || again.Reach.Pools == nil {
		return nil
	}
	for i := range again.Claims {
		addChoices(ctx, x.out.WhyHere, again, x.PodClaims, &again.Claims[i], node)
	}
	return ctx.Err()
}

// hasDevices reports whether all claims of a pod are allocated.
func hasDevices(claims []cluster.PodClaim) bool {
	return len(claims) > 0 && !slices.ContainsFunc(claims, func(pc cluster.PodClaim) bool { return pc.Claim == nil || pc.Claim.Status.Allocation == nil })
}

func fitsOn(groups []api.NodeGroup, node string) bool {
	return slices.ContainsFunc(groups, func(g api.NodeGroup) bool {
		return (g.Verdict == api.Fits || g.Verdict == api.Allocated) && slices.Contains(g.Names, node)
	})
}

// addChoices looks at what a claim got, request by request. The claim
// would have to be allocated again, podClaims are the claims of the pod as they are.
func addChoices(ctx context.Context, out *api.WhyHere, again *builder, podClaims []cluster.PodClaim, claim *eligibility.Claim, node *corev1.Node) {
	if claim.Index >= len(podClaims) || again.PodClaims[claim.Index].ExtendedResources {
		return
	}
	had := podClaims[claim.Index].Claim
	for r, alternatives := range claim.Funnels {
		at := slices.IndexFunc(alternatives, func(f *eligibility.Funnel) bool {
			return slices.ContainsFunc(had.Status.Allocation.Devices.Results, func(result resourceapi.DeviceRequestAllocationResult) bool { return result.Request == f.Request.Name })
		})
		if at < 0 {
			continue
		}
		got := alternatives[at]
		if len(claim.Claim.Spec.Devices.Requests[r].FirstAvailable) > 0 {
			chosen := api.ChosenAlternative{
				Claim: had.Name, Request: got.Request.Base, Chosen: got.Request.Name, Position: at + 1, Count: len(alternatives),
			}
			for i, f := range alternatives[:at] {
				chosen.Earlier = append(chosen.Earlier, earlierAlternative(ctx, again, claim, r, i, f, node))
			}
			out.Alternatives = append(out.Alternatives, chosen)
		}
		if s := smallerDevice(ctx, again.Question, claim, had, got, node); s != nil {
			out.Smaller = append(out.Smaller, *s)
		}
	}
}

// earlierAlternative says why an alternative was not chosen on a node.
func earlierAlternative(ctx context.Context, x *builder, claim *eligibility.Claim, request, at int, f *eligibility.Funnel, node *corev1.Node) api.EarlierAlternative {
	out := api.EarlierAlternative{Name: f.Request.Name}
	claims, err := x.ClaimsFor(node)
	if err != nil {
		out.Message = err.Error()
		return out
	}
	only := make([]*resourceapi.ResourceClaim, 0, len(claims))
	for _, c := range claims {
		c = c.DeepCopy()
		if c.Namespace == claim.Claim.Namespace && c.Name == claim.Claim.Name {
			list := &c.Spec.Devices.Requests[request].FirstAvailable
			*list = (*list)[at : at+1]
		}
		only = append(only, c)
	}
	fits, err := x.confirmer.Fits(ctx, x.Question, x.Cluster, node, only)
	if err == nil && fits {
		out.FitsNow = true
		return out
	}
	answer, short := advice.ShortOfOne(ctx, x.Question, f, node)
	switch {
	case err != nil:
		out.Message = "the search did not end"
	case short:
		out.Code, out.Message = answer.Code, answer.Message
	default:
		out.Code, out.Message = api.RequestsCompete, "enough devices for it alone, but not with all that the pod asks for"
	}
	return out
}

// smallerDevice returns a smaller device that the allocator takes in place of the allocated
// device of a request for one device. It is nil if there is none, and where constraints
// compare devices.
func smallerDevice(ctx context.Context, q *eligibility.Question, claim *eligibility.Claim, had *resourceapi.ResourceClaim, f *eligibility.Funnel, node *corev1.Node) *api.SmallerDevice {
	if f.Request.All() || f.Request.Count != 1 || f.Request.AdminAccess || len(claim.Claim.Spec.Devices.Constraints) > 0 {
		return nil
	}
	got := resultOf(had.Status.Allocation, f.Request.Name)
	if got == nil || got.ShareID != nil {
		return nil
	}
	id := cluster.DeviceID{Driver: got.Driver, Pool: got.Pool, Device: got.Device}
	device := q.Cluster.Pools.Device(id)
	if device == nil || !hasSmaller(ctx, q, f, device, node) {
		return nil
	}
	claims, err := q.ClaimsFor(node)
	at := slices.IndexFunc(claims, func(c *resourceapi.ResourceClaim) bool {
		return c.Namespace == claim.Claim.Namespace && c.Name == claim.Claim.Name
	})
	if err != nil || at < 0 {
		return nil
	}
	ctx, budget := allocator.WithBudget(ctx, verdict.SearchSteps)
	defer budget.End()
	taken := []resourceapi.DeviceRequestAllocationResult{*got}
	for range maxInstead {
		result := pickedWithout(ctx, q, taken, node, claims, at, f.Request.Name)
		if result == nil {
			return nil
		}
		instead := cluster.DeviceID{Driver: result.Driver, Pool: result.Pool, Device: result.Device}
		if other := q.Cluster.Pools.Device(instead); other != nil {
			if differences := less(other, device); len(differences) > 0 {
				return &api.SmallerDevice{Claim: had.Name, Request: f.Request.Name, Device: id.String(), Instead: instead.String(), Capacities: differences}
			}
		}
		taken = append(taken, *result)
	}
	return nil
}

// hasSmaller reports whether a node has a device for a request that is smaller.
func hasSmaller(ctx context.Context, q *eligibility.Question, f *eligibility.Funnel, than *cluster.Device, node *corev1.Node) bool {
	for _, pool := range q.Reach.Pools[node.Name] {
		for i := range pool.Devices {
			if d := &pool.Devices[i]; len(less(d, than)) > 0 && f.Checks.Device(ctx, d, node) == nil {
				return true
			}
		}
	}
	return false
}

// pickedWithout returns what the allocator picks for a request of one of the claims while
// somebody else has certain devices.
func pickedWithout(ctx context.Context, q *eligibility.Question, taken []resourceapi.DeviceRequestAllocationResult, node *corev1.Node, claims []*resourceapi.ResourceClaim, at int, request string) *resourceapi.DeviceRequestAllocationResult {
	snap := *q.Cluster.Snapshot
	snap.Claims = append(slices.Clone(q.Cluster.Snapshot.Claims), taker(taken))
	amended := q.Cluster.Amended(&snap)
	verdict := allocator.Of(amended).Check(ctx, node, claims)
	if verdict.Outcome != allocator.Fits || at >= len(verdict.Allocations) {
		return nil
	}
	return resultOf(&verdict.Allocations[at], request)
}

// taker returns a claim of nobody that has devices.
func taker(devices []resourceapi.DeviceRequestAllocationResult) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "\uffff", Name: "taken", UID: "taken"},
		Status:     resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: devices}}},
	}
}

func resultOf(allocation *resourceapi.AllocationResult, request string) *resourceapi.DeviceRequestAllocationResult {
	for i := range allocation.Devices.Results {
		if result := &allocation.Devices.Results[i]; result.Request == request && !ptr.Deref(result.AdminAccess, false) {
			return result
		}
	}
	return nil
}

// less lists the capacities in which a device has less than another one of the same
// capacities, if it has more of none.
func less(device, than *cluster.Device) []api.CapacityDifference {
	if len(device.Capacity) != len(than.Capacity) {
		return nil
	}
	var differences []api.CapacityDifference
	for _, name := range slices.Sorted(maps.Keys(device.Capacity)) {
		other, found := than.Capacity[name]
		has := device.Capacity[name].Value
		switch compared := has.Cmp(other.Value); {
		case !found || compared > 0:
			return nil
		case compared < 0:
			differences = append(differences, api.CapacityDifference{Name: string(name), Device: other.Value.String(), Instead: has.String()})
		}
	}
	return differences
}
