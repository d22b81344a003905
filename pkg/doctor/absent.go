// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Codes of checks that overlap with the check for pods that do not work: they group the
// pods with one cause.
const (
	codeNotCreated = "DRA1102"
	codeNotReady   = "DRA1103"
	codeAway       = "DRA1108"
	codeGone       = "DRA1404"
	codeTwice      = "DRA1405"
	codeUnhealthy  = "DRA1408"
	codeUnbound    = "DRA1409"
	codeCondition  = "DRA1410"
	codeEvicts     = "DRA1504"
	codeStopped    = "DRA1702"
)

func absentCheck() Check {
	return Check{
		Code: codeAway, Title: "driver that is away where its devices are in use", Severity: api.SeverityError, Needs: []string{snapshot.ResourceSlices, snapshot.ResourceClaims},
		About:  "Claims have devices of a pool of which no ResourceSlice is left. The kubelet deletes the slices of a driver 30 seconds after the driver disconnects: its plugin on the node does not run, or does not reach the kubelet. Pods that run keep their devices. Pods that are yet to start there wait for the driver, and no pod gets further devices of the node.",
		Advice: "Look at the plugin of the driver on the nodes: the state and the log of its pod, and 'kubectl dra node-probe' on the node. Leave the pods alone: they run on, and nothing is won by recreating them.",
		find:   findAway,
	}
}

func findAway(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, pools := range facts.ByDriver(in.cluster.LostPools()) {
		away := lifecycle.AbsentDriver(in.cluster.Snapshot, pools)
		f := api.Finding{Message: away.Reason, Evidence: away.Evidence, Remedy: &away.Steps[0]}
		var claims []*resourceapi.ResourceClaim
		for i := range pools {
			if node := pools[i].Node; node != "" && !slices.Contains(f.Objects, api.Ref(api.KindNode, "", node)) {
				f.Objects = append(f.Objects, api.Ref(api.KindNode, "", node))
			}
			claims = append(claims, pools[i].Claims...)
		}
		waiting := 0
		for _, pod := range in.blocked() {
			if (pod.Code == api.DeviceMissing || pod.Unregistered == pools[0].Driver) && in.has(pod.Namespace, pod.Name, claims) {
				waiting++
				f.Objects = append(f.Objects, api.Ref(api.KindPod, pod.Namespace, pod.Name))
			}
		}
		if waiting > 0 {
			f.Message += "; " + english.Count(waiting, "pod") + english.Plural(waiting, " that is yet to start waits for it", " that are yet to start wait for it")
		}
		for _, claim := range claims {
			if o := api.RefTo(api.KindClaim, claim); !slices.Contains(f.Objects, o) {
				f.Objects = append(f.Objects, o)
			}
		}
		found = append(found, f)
	}
	return found, nil
}

// has reports whether a pod uses one of the claims.
func (in *cluster) has(namespace, name string, claims []*resourceapi.ResourceClaim) bool {
	pod := in.cluster.Snapshot.Pod(namespace, name)
	return pod != nil && slices.ContainsFunc(in.cluster.Claims.OfPod(pod), func(pc facts.PodClaim) bool {
		return pc.Claim != nil && slices.ContainsFunc(claims, func(c *resourceapi.ResourceClaim) bool {
			return c.Namespace == pc.Claim.Namespace && c.Name == pc.Claim.Name
		})
	})
}

// lostOn reports whether a driver has lost its slices for a node, which [codeAway] says.
func (in *cluster) lostOn(driver, node string) bool {
	return in.opts.Makes(codeAway) && slices.ContainsFunc(in.cluster.LostPools(), func(p facts.LostPool) bool { return p.Driver == driver && p.Node == node })
}

// saidOf reports whether another check has a finding about the reason why a pod with
// devices does not work.
func (in *cluster) saidOf(pod *lifecycle.BlockedPod) bool {
	flagged := func(code string, flags ...api.FlagName) bool {
		return in.opts.Makes(code) && slices.ContainsFunc(in.claims(), func(c api.Claim) bool {
			return c.Namespace == pod.Namespace && slices.Contains(c.Pods, pod.Name) && slices.ContainsFunc(c.Flags, func(f api.ClaimFlag) bool { return slices.Contains(flags, f.Name) })
		})
	}
	switch pod.Code {
	case api.DeviceMissing:
		for _, pools := range facts.ByDriver(in.cluster.LostPools()) {
			for i := range pools {
				if in.opts.Makes(codeAway) && in.has(pod.Namespace, pod.Name, pools[i].Claims) {
					return true
				}
			}
		}
		return flagged(codeGone, api.FlagDeviceGone)
	case api.DeviceAllocatedTwice:
		return flagged(codeTwice, api.FlagDeviceTwice)
	case api.DeviceUnhealthy:
		return flagged(codeUnhealthy, api.FlagDeviceUnhealthy) || flagged(codeCondition, api.FlagDeviceCondition)
	case api.BindingPending:
		return flagged(codeUnbound, api.FlagBindingFailed)
	case api.EvictionDue:
		return in.opts.Makes(codeEvicts) && in.cluster.Snapshot.Gap(snapshot.ResourceTaintRules) == nil && in.cluster.Snapshot.Gap(snapshot.ResourceSlices) == nil
	case api.NodeNotReady:
		return in.opts.Makes(codeStopped)
	default:
		return in.opts.Makes(codeNotReady) && slices.ContainsFunc(daemonSets(in), func(w *snapshot.Workload) bool { return in.waitsForPlugin(pod, w) })
	}
}

// daemonSets lists the DaemonSets of drivers that publish slices, or that the selector of a
// class names.
func daemonSets(in *cluster) []*snapshot.Workload {
	var found []*snapshot.Workload
	for _, p := range plugins(in) {
		if !slices.Contains(found, p.Workload) {
			found = append(found, p.Workload)
		}
	}
	for _, w := range in.cluster.Snapshot.Workloads {
		if names, ok := w.KubeletPlugin(); ok && !slices.Contains(found, w) && slices.ContainsFunc(names, func(name string) bool { return isClassDriver(in, name) }) {
			found = append(found, w)
		}
	}
	return found
}

// isClassDriver reports whether the selector of a class names a driver.
func isClassDriver(in *cluster, name string) bool {
	selectors := in.cluster.Gates.Selectors()
	for _, class := range in.cluster.Snapshot.Classes {
		for _, s := range class.Spec.Selectors {
			if s.CEL != nil && slices.Contains(selectors.Compile(s.CEL.Expression).Drivers(), name) {
				return true
			}
		}
	}
	return false
}

// plugins lists the DaemonSets of all drivers that publish slices.
func plugins(in *cluster) []plugin {
	var found []plugin
	seen := map[string]bool{}
	for _, slice := range in.cluster.Snapshot.Slices {
		driver := slice.Spec.Driver
		if seen[driver] {
			continue
		}
		seen[driver] = true
		for _, set := range lifecycle.DaemonSets(in.cluster.Snapshot, driver) {
			found = append(found, plugin{set, driver})
		}
	}
	return found
}

// plugin is a DaemonSet with the kubelet plugin of a driver.
type plugin struct {
	lifecycle.DaemonSet
	driver string
}

// waitsForPlugin reports whether a pod waits for a plugin that does not answer, because the
// plugin's pod on the node is not ready.
func (in *cluster) waitsForPlugin(blocked *lifecycle.BlockedPod, w *snapshot.Workload) bool {
	pod := in.cluster.Snapshot.Pod(blocked.Namespace, blocked.Name)
	return blocked.Code == api.PreparationFailed && pod != nil && slices.ContainsFunc(lifecycle.Pods(in.cluster.Snapshot, w), func(p *corev1.Pod) bool {
		return lifecycle.DaemonNode(p) == blocked.Node && !lifecycle.Ready(p)
	}) && slices.ContainsFunc(in.cluster.Claims.OfPod(pod), func(pc facts.PodClaim) bool {
		return pc.Claim != nil && pc.Claim.Status.Allocation != nil && slices.ContainsFunc(pc.Claim.Status.Allocation.Devices.Results, func(r resourceapi.DeviceRequestAllocationResult) bool {
			return slices.ContainsFunc(lifecycle.DaemonSets(in.cluster.Snapshot, r.Driver), func(set lifecycle.DaemonSet) bool { return set.Workload == w })
		})
	})
}
