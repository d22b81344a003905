// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// Coupled says why a copy on one node can matter to copies on others, empty if it
// cannot. Then it makes no difference in which order nodes are filled.
func Coupled(q *eligibility.Question) []string {
	reasons := coupledBesides(q)
	if pool := sharedPool(q); pool != "" {
		reasons = append(reasons, "nodes share devices of pool "+pool)
	}
	return reasons
}

// coupledBesides returns the reasons for that other than devices.
func coupledBesides(q *eligibility.Question) []string {
	var reasons []string
	add := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	for i := range q.PodClaims {
		pc := &q.PodClaims[i]
		switch {
		case !usedByAll(pc):
		case pc.Group != "":
			add("the pods of PodGroup %s share claim %s", pc.Group, pc.Entry)
		default:
			add("all copies use claim %s", pc.Claim.Name)
		}
	}
	spec := &q.Pod.Spec
	if slices.ContainsFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.DoNotSchedule
	}) {
		add("topology spread constraints compare nodes")
	}
	if a := spec.Affinity; a != nil && a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		add("pod affinity depends on where other copies are")
	}
	if a := spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if term.TopologyKey != corev1.LabelHostname || !ownHostnames(q.Reach.Candidates) {
				add("pod anti-affinity keeps copies out of the same %s", term.TopologyKey)
			}
		}
	}
	for _, use := range cluster.VolumesOf(q.Cluster.Snapshot, q.Pod) {
		add("volume %s: a PersistentVolumeClaim can tie copies to nodes", use.Volume)
	}
	return reasons
}

// usedByAll reports whether all copies use one and the same claim.
func usedByAll(pc *cluster.PodClaim) bool {
	return pc.Claim != nil && !pc.ExtendedResources && (pc.Group != "" || pc.Template == "")
}

// shared reports whether the first copy gets devices for all copies.
func shared(q *eligibility.Question) bool {
	return slices.ContainsFunc(q.Claims, func(c eligibility.Claim) bool { return usedByAll(&q.PodClaims[c.Index]) })
}

// ownHostnames reports whether the label that stands for a node is another one on each.
func ownHostnames(nodes []*corev1.Node) bool {
	seen := map[string]bool{}
	for _, node := range nodes {
		name, labeled := node.Labels[corev1.LabelHostname]
		if !labeled || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

// sharedPool names a pool with devices for the claims that more than one node can use,
// or whose use on one node takes counters from another.
func sharedPool(q *eligibility.Question) string {
	views, devices := map[*cluster.NodePool]bool{}, map[cluster.DeviceID]bool{}
	for _, node := range q.Reach.Candidates {
		for _, pool := range q.Reach.Pools[node.Name] {
			again := views[pool]
			views[pool] = true
			own := !slices.ContainsFunc(pool.Pool.Slices, func(s *resourceapi.ResourceSlice) bool { return ptr.Deref(s.Spec.NodeName, "") != node.Name })
			for i := range pool.Devices {
				d := &pool.Devices[i]
				if own || ptr.Deref(d.Slice.Spec.NodeName, "") == node.Name && len(d.ConsumesCounters) == 0 {
					continue
				}
				if (again || devices[d.ID] || len(d.ConsumesCounters) > 0) && mayServe(q, d) {
					return pool.Pool.Name
				}
				devices[d.ID] = true
			}
		}
	}
	return ""
}

// mayServe reports whether a device passes the selectors of a request.
func mayServe(q *eligibility.Question, d *cluster.Device) bool {
	for i := range q.Claims {
		for _, alternatives := range q.Claims[i].Funnels {
			for _, f := range alternatives {
				if r := f.Reason(d); r == nil || r.Code != api.ClassSelectorFalse && r.Code != api.RequestSelectorFalse {
					return true
				}
			}
		}
	}
	return false
}
