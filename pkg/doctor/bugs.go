// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func bugChecks() []Check {
	claims := []string{snapshot.ResourceClaims, snapshot.ResourceTemplates, snapshot.ResourceSlices}
	return []Check{
		{
			Code: "DRA1901", Title: "kubelet that loses idle drivers", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourceNodes, snapshot.ResourceSlices},
			About:  "The kubelet of 1.34.0 and 1.34.1 drops the connection to a driver after 30 minutes without a call, and forgets the driver (kubernetes/kubernetes#133920). Pods then fail with \"DRA driver is not registered\".",
			Advice: "Update the kubelet to 1.34.2 or newer. Until then, restart the driver's pod on the node.",
			find:   findIdleKubelets,
		},
		{
			Code: "DRA1902", Title: "scheduler that panics for all devices with counters", Severity: api.SeverityError, Needs: claims,
			About:  "kube-scheduler 1.35.0 to 1.35.5, 1.36.0 and 1.36.1 panics when a request for all devices takes one that consumes counters (kubernetes/kubernetes#138885). It restarts, and panics again.",
			Advice: "Update to 1.35.6, 1.36.2 or newer, or ask for a number of devices.",
			find:   findPanic,
		},
		{
			Code: "DRA1903", Title: "request for all devices that stops at a broken pool", Severity: api.SeverityError, Needs: claims,
			About:  "Up to 1.37 a request with allocationMode All that meets an incomplete or invalid pool on one node ends the attempt for all nodes (kubernetes/kubernetes#141829).",
			Advice: "Repair the pool, or ask for a number of devices.",
			find:   findPoolErrors,
		},
		{
			Code: "DRA1904", Title: "scheduler that fails for pods with old and new claims", Severity: api.SeverityInfo, Needs: nil,
			About:  "kube-scheduler 1.35.0 to 1.35.5, 1.36.0 and 1.36.1 fails to score the nodes for a pod that has claims with devices and claims without, if several nodes are suitable (kubernetes/kubernetes#139017).",
			Advice: "Update to 1.35.6, 1.36.2 or newer.",
			find:   findMixedClaims,
		},
		{
			Code: "DRA1905", Title: "kubelet that prepares no further claim after a shared one", Severity: api.SeverityError, Needs: []string{snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourceClaims},
			About:  "The kubelet of 1.34.0 to 1.34.3 and 1.35.0 does not prepare the other claims of a pod if one of its claims is already prepared for another pod on the node (kubernetes/kubernetes#135901). The pod does not start: \"unable to get claim info for ResourceClaim\".",
			Advice: "Update the kubelet to 1.34.4, 1.35.1 or newer. Until then, start the pod with several claims before the one that shares a claim with it.",
			find:   findUnpreparedClaims,
		},
		{
			Code: "DRA1906", Title: "scheduler that panics for counts that overflow", Severity: api.SeverityError, Needs: []string{snapshot.ResourceClaims, snapshot.ResourceTemplates},
			About:  "kube-scheduler 1.35.0 to 1.35.8, 1.36.0 to 1.36.4 and 1.37.0 adds the counts of the requests of a claim, and panics where the sum overflows (kubernetes/kubernetes#141323). It restarts, and panics again. Any user who can create claims can cause this.",
			Advice: "Update to 1.35.9, 1.36.5, 1.37.1 or newer, and delete the claim.",
			find:   findOverflow,
		},
		{
			Code: "DRA1907", Title: "scheduler that counts partitions wrongly", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourceSlices},
			About:  "kube-scheduler before 1.36.3 keeps the counters of tainted partitions reserved while it searches (kubernetes/kubernetes#140431), before 1.36.4 it mixes up the counters of two drivers whose pools have the same name (kubernetes/kubernetes#140435), and up to 1.36 those of partitions that claims share (kubernetes/kubernetes#139040, kubernetes/kubernetes#140437). Pods do not get partitions that are available, or get some that are in use.",
			Advice: "Update kube-scheduler to the release that the finding names.",
			find:   findMiscounted,
		},
	}
}

func findOverflow(_ context.Context, in *cluster) ([]api.Finding, error) {
	if !in.cluster.Behaves(facts.CountsOverflow) {
		return nil, nil
	}
	_, fixed := in.cluster.Fixed(facts.CountsOverflow)
	var found []api.Finding
	add := func(o api.ObjectRef, path string, spec *resourceapi.ResourceClaimSpec) {
		sum := &big.Int{}
		for _, r := range spec.Devices.Requests {
			least := int64(math.MaxInt64)
			if r.Exactly != nil {
				least = r.Exactly.Count
			}
			for i := range r.FirstAvailable {
				least = min(least, r.FirstAvailable[i].Count)
			}
			sum.Add(sum, big.NewInt(least))
		}
		if sum.IsInt64() {
			return
		}
		found = append(found, api.Finding{
			Objects: []api.ObjectRef{o}, Message: fmt.Sprintf("%s panics when it looks at %s: its requests ask for %s devices together", in.cluster.Scheduler(), o, sum),
			Evidence: []api.Evidence{{Object: o, Path: path + ".devices.requests", Found: sum.String(), Required: fmt.Sprintf("at most %d", resourceapi.AllocationResultsMaxSize)}},
			Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: fmt.Sprintf("delete %s, and update the control plane to %s or newer (kubernetes/kubernetes#141323)", o, fixed)},
		})
	}
	for _, claim := range in.cluster.Snapshot.Claims {
		if claim.Status.Allocation == nil {
			add(api.RefTo(api.KindClaim, claim), "spec", &claim.Spec)
		}
	}
	for _, template := range in.cluster.Snapshot.Templates {
		add(api.RefTo(api.KindTemplate, template), "spec.spec", &template.Spec.Spec)
	}
	return found, nil
}

func findMiscounted(_ context.Context, in *cluster) ([]api.Finding, error) {
	if !in.cluster.Gates.Enabled(facts.GatePartitionableDevices) {
		return nil, nil
	}
	drivers := map[string]sets.Set[string]{}
	triggers := map[facts.Behavior][]facts.Device{}
	for _, d := range in.cluster.Pools.Devices() {
		if len(d.ConsumesCounters) == 0 {
			continue
		}
		if drivers[d.ID.Pool] == nil {
			drivers[d.ID.Pool] = sets.New[string]()
		}
		if drivers[d.ID.Pool].Insert(d.ID.Driver); len(drivers[d.ID.Pool]) > 1 {
			triggers[facts.CountersByPoolName] = append(triggers[facts.CountersByPoolName], d)
		}
		if in.cluster.Gates.Enabled(facts.GateDeviceTaints) && slices.ContainsFunc(d.Taints, func(t resourceapi.DeviceTaint) bool { return t.Effect != resourceapi.DeviceTaintEffectNone }) {
			triggers[facts.RejectedKeepsCounters] = append(triggers[facts.RejectedKeepsCounters], d)
		}
		if in.cluster.Gates.Enabled(facts.GateConsumableCapacity) && ptr.Deref(d.AllowMultipleAllocations, false) {
			triggers[facts.SharesNotCharged] = append(triggers[facts.SharesNotCharged], d)
			if len(d.Capacity) == 0 {
				triggers[facts.SharesChargedTwice] = append(triggers[facts.SharesChargedTwice], d)
			}
		}
	}
	var found []api.Finding
	for _, bug := range []facts.Behavior{facts.RejectedKeepsCounters, facts.CountersByPoolName, facts.SharesNotCharged, facts.SharesChargedTwice} {
		if !in.cluster.Behaves(bug) || len(triggers[bug]) == 0 {
			continue
		}
		upstream, fixed := in.cluster.Fixed(bug)
		f := api.Finding{
			Message: fmt.Sprintf("%s counts partitions wrongly: %s", in.cluster.Scheduler(), bug.Text()),
			Remedy:  &api.NextStep{Actor: api.ActorAdmin, Text: fmt.Sprintf("update kube-scheduler to %s or newer (kubernetes/kubernetes#%d)", fixed, upstream)},
		}
		seen := sets.New[api.ObjectRef]()
		for _, d := range triggers[bug] {
			o := api.RefTo(kindSlice, d.Slice)
			if !seen.Has(o) {
				seen.Insert(o)
				f.Objects = append(f.Objects, o)
				f.Evidence = append(f.Evidence, api.Evidence{Object: o, Path: "spec.devices", Found: d.ID.String()})
			}
		}
		found = append(found, f)
	}
	return found, nil
}

func findIdleKubelets(_ context.Context, in *cluster) ([]api.Finding, error) {
	const fixed = "1.34.2"
	f, nodes := kubelets(in, func(release string) string {
		if between(release, "1.34.0", fixed) {
			return fixed + " or newer"
		}
		return ""
	})
	if nodes == 0 {
		return nil, nil
	}
	f.Message = fmt.Sprintf("the kubelet of %s with devices loses drivers that are idle for 30 minutes", english.Count(nodes, "node"))
	f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "update the kubelets to " + fixed + " or newer (kubernetes/kubernetes#133920)"}
	return []api.Finding{f}, nil
}

// between reports whether a version is at least one and before another.
func between(release, from, before string) bool {
	v, err := version.ParseGeneric(release)
	return err == nil && v.AtLeast(version.MustParseGeneric(from)) && v.LessThan(version.MustParseGeneric(before))
}

func findPanic(_ context.Context, in *cluster) ([]api.Finding, error) {
	if !in.cluster.Behaves(facts.AllWithCountersPanics) || !slices.ContainsFunc(in.cluster.Pools.Devices(), func(d facts.Device) bool { return len(d.ConsumesCounters) > 0 }) {
		return nil, nil
	}
	return aboutAll(in, fmt.Sprintf("kube-scheduler %s panics if a request for all devices takes one that consumes counters", in.cluster.Snapshot.BinaryVersion()),
		"update the control plane to 1.35.6, 1.36.2 or newer (kubernetes/kubernetes#138885), or ask for a number of devices"), nil
}

func findPoolErrors(_ context.Context, in *cluster) ([]api.Finding, error) {
	if !in.cluster.Behaves(facts.AllPoolErrorEndsAttempt) {
		return nil, nil
	}
	i := slices.IndexFunc(in.cluster.Pools.All(), func(p *facts.Pool) bool { return p.Incomplete || p.Invalid != "" })
	if i < 0 {
		return nil, nil
	}
	pool := in.cluster.Pools.All()[i]
	return aboutAll(in, fmt.Sprintf("pool %s of driver %s is broken: requests for all devices can fail on every node", pool.Name, pool.Driver),
		"repair the pool, or ask for a number of devices (kubernetes/kubernetes#141829)"), nil
}

// aboutAll returns a finding about unallocated claims and templates that ask for all
// devices of a class; none if there are none.
func aboutAll(in *cluster, message, advice string) []api.Finding {
	f := api.Finding{Message: message, Remedy: &api.NextStep{Actor: api.ActorAdmin, Text: advice}}
	add := func(o api.ObjectRef, path string, spec *resourceapi.ResourceClaimSpec) {
		for i, r := range spec.Devices.Requests {
			if r.Exactly != nil && r.Exactly.AllocationMode == resourceapi.DeviceAllocationModeAll {
				f.Objects = append(f.Objects, o)
				f.Evidence = append(f.Evidence, api.Evidence{Object: o, Path: fmt.Sprintf("%s.devices.requests[%d].exactly.allocationMode", path, i), Found: "All"})
				return
			}
		}
	}
	for _, claim := range in.cluster.Snapshot.Claims {
		if claim.Status.Allocation == nil {
			add(api.RefTo(api.KindClaim, claim), "spec", &claim.Spec)
		}
	}
	for _, template := range in.cluster.Snapshot.Templates {
		add(api.RefTo(api.KindTemplate, template), "spec.spec", &template.Spec.Spec)
	}
	if len(f.Objects) == 0 {
		return nil
	}
	return []api.Finding{f}
}

func findMixedClaims(_ context.Context, in *cluster) ([]api.Finding, error) {
	remedy := &api.NextStep{Actor: api.ActorAdmin, Text: "update the control plane to 1.35.6, 1.36.2 or newer (kubernetes/kubernetes#139017)"}
	if pod := in.cluster.Proof(facts.MixedClaimsFailScore); pod != nil {
		return []api.Finding{{
			Severity: api.SeverityError,
			Objects:  []api.ObjectRef{api.RefTo(api.KindPod, pod)},
			Message:  fmt.Sprintf("kube-scheduler fails for pods that have claims with devices and claims without: its message about pod %s/%s proves it", pod.Namespace, pod.Name),
			Evidence: []api.Evidence{{Object: api.RefTo(api.KindPod, pod), Path: "status.conditions[type=PodScheduled]", Found: lifecycle.SchedulerMessage(in.cluster.Snapshot, pod).Text}},
			Remedy:   remedy,
		}}, nil
	}
	if in.cluster.Snapshot.BinaryVersion() == "" || !in.cluster.Behaves(facts.MixedClaimsFailScore) {
		return nil, nil
	}
	return []api.Finding{{
		Message:  fmt.Sprintf("kube-scheduler %s fails for pods that have claims with devices and claims without", in.cluster.Snapshot.BinaryVersion()),
		Evidence: []api.Evidence{{Object: api.ObjectRef{Kind: api.KindAPIServer}, Path: "gitVersion", Found: in.cluster.Snapshot.BinaryVersion(), Required: "1.35.6, 1.36.2 or newer"}},
		Remedy:   remedy,
	}}, nil
}

func findUnpreparedClaims(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, pod := range in.cluster.Snapshot.Pods {
		node := in.cluster.Snapshot.Node(pod.Spec.NodeName)
		if pod.Status.Phase != corev1.PodPending || node == nil || len(pod.Spec.ResourceClaims) < 2 {
			continue
		}
		release := node.Status.NodeInfo.KubeletVersion
		if !between(release, "1.34.0", "1.34.4") && !between(release, "1.35.0", "1.35.1") {
			continue
		}
		for _, used := range in.cluster.Claims.OfPod(pod) {
			if used.Claim == nil || !in.cluster.Claims.Reserved(used.Claim, pod) || len(used.Claim.Status.ReservedFor) < 2 {
				continue
			}
			claim := api.RefTo(api.KindClaim, used.Claim)
			found = append(found, api.Finding{
				Objects: []api.ObjectRef{api.RefTo(api.KindPod, pod)},
				Message: fmt.Sprintf("pod %s shares claim %s with other pods: kubelet %s on node %s does not prepare its other claims", english.QualifiedName(pod), used.Claim.Name, release, node.Name),
				Evidence: []api.Evidence{
					{Object: api.RefTo(api.KindNode, node), Path: "status.nodeInfo.kubeletVersion", Found: release, Required: "1.34.4, 1.35.1 or newer"},
					{Object: claim, Path: "status.reservedFor", Found: english.Count(len(used.Claim.Status.ReservedFor), "pod")},
				},
				Remedy: &api.NextStep{Actor: api.ActorAdmin, Text: "update the kubelet of node " + node.Name + " (kubernetes/kubernetes#135901)"},
			})
			break
		}
	}
	return found, nil
}
