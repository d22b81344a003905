// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// releaseText returns the reason of a verdict that the release of the cluster turns around.
func releaseText(v *verdict.Verdict) string {
	r := v.Release
	if r.Outcome == api.Error {
		release := schedulerText(v.Cluster)
		if proof := v.Cluster.Proof(cluster.MixedClaimsFailScore); proof != nil {
			release = "as its message about pod " + proof.Name + " proves, kube-scheduler"
		}
		return release + " fails to score the nodes for a pod with claims that are allocated and others that are not, where more than one node is suitable (kubernetes/kubernetes#139017, fixed in 1.35.6 and 1.36.2)"
	}
	text := "it depends on the Kubernetes version, which is not known: "
	switch r.Behavior {
	case cluster.MixedClaimsFailScore:
		return text + "the claims fit, but kube-scheduler 1.35.0 to 1.35.5, 1.36.0 and 1.36.1 fail to score the nodes for a pod with claims that are allocated and others that are not"
	case cluster.AllWithCountersPanics:
		return text + "the claims fit, but kube-scheduler 1.35.0 to 1.35.5, 1.36.0 and 1.36.1 panics when a request for all devices takes one that consumes counters"
	case cluster.OpenRuleTaintsAll:
		return text + "the claims fit, but " + v.Cluster.Taints.OpenRuleText(verdict.OpenRule(v.Question))
	default:
		return text + fmt.Sprintf("up to 1.37 the attempt ends for all nodes (%s), from 1.38 on the pod can go to node %s", errorText(r.Err), r.Node)
	}
}

// schedulerText names the scheduler by its version, as far as that is known.
func schedulerText(c *cluster.Cluster) string {
	switch version, from := c.Snapshot.BinaryVersion(), c.Snapshot.Skew.From; {
	case version != "":
		return "kube-scheduler " + version
	case from > 0:
		return fmt.Sprintf("kube-scheduler of 1.%d", from)
	default:
		return "kube-scheduler"
	}
}

// releaseAssumption says what depends on the release of the cluster, empty if nothing does.
func releaseAssumption(v *verdict.Verdict, nodes []api.NodeGroup) string {
	if r := v.Release; r != nil {
		return unknownRelease(r)
	}
	c, release := v.Cluster, schedulerText(v.Cluster)
	switch v.Allocator {
	case api.DoesNotFit:
		if c.Snapshot.BinaryVersion() == "" && c.Varies(cluster.DistinctPerRequest) && constraintFails(v.Question, nodes, func(c *resourceapi.DeviceConstraint) bool { return c.DistinctAttribute != nil }) {
			return "the Kubernetes version is not known: up to 1.36, distinctAttribute does not apply to the devices of one request, and the claim may fit (kubernetes/kubernetes#140600)"
		}
		if c.Behaves(cluster.ListsNotCompared) && c.Gates.Enabled(cluster.GateListTypeAttributes) && constraintFails(v.Question, nodes, verdict.ComparesLists(v.Question)) {
			return release + " does not compare lists in constraints, even with DRAListTypeAttributes on: devices with lists never match (kubernetes/kubernetes#139332, fixed in 1.37)"
		}
	case api.Fits:
		if len(v.Claims) > 0 && c.Behaves(cluster.UnsortedPools) {
			return release + " tries the pools of a node in random order: the pod can get other devices than these (kubernetes/kubernetes#136641)"
		}
	default:
	}
	return ""
}

// unknownRelease describes the assumption about an unknown release, empty if the release is
// known or does not matter.
func unknownRelease(r *verdict.Release) string {
	const unknown = "the Kubernetes version is not known"
	fixes := map[cluster.Behavior]int{cluster.MixedClaimsFailScore: 139017, cluster.AllWithCountersPanics: 138885, cluster.OpenRuleTaintsAll: 141620, cluster.AllPoolErrorEndsAttempt: 141898}
	switch {
	case r.Outcome == api.Error:
		return ""
	case r.Outcome == api.Undetermined:
		return fmt.Sprintf("%s, and the verdict depends on it (kubernetes/kubernetes#%d): set --kubernetes-version", unknown, fixes[r.Behavior])
	case r.Behavior == cluster.TimeoutEndsAttempt:
		return unknown + ": up to 1.35, a search that times out ends the attempt for that node only; from 1.36 on, for all nodes (kubernetes/kubernetes#137607)"
	case r.Behavior == cluster.ListsNotCompared:
		return unknown + ": constraints compare lists from 1.37 on; in 1.36, devices with lists never match, and the claim may not fit (kubernetes/kubernetes#139332)"
	default:
		return unknown + ": up to 1.37, the error ends the attempt for all nodes; from 1.38 on, only for that node, and no other node fits (kubernetes/kubernetes#141898)"
	}
}

// poolOrder says what depends on the order of pools, which is random in the stable
// implementation (GatherPools in structured/internal/stable/pools_stable.go): whether a
// request for all devices meets first a device that a constraint does not allow, which ends
// the attempt, or a device that is in use.
func poolOrder(q *eligibility.Question) string {
	if q.Cluster.Gates.Channel() != cluster.ChannelStable || !slices.ContainsFunc(q.Claims, func(c eligibility.Claim) bool {
		return verdict.WantsAll(c.Claim) && len(c.Claim.Spec.Devices.Constraints) > 0
	}) {
		return ""
	}
	return "with these feature gates the scheduler tries the pools of a node in random order: if a constraint or a device in use keeps a request from all devices, it depends on that order whether an attempt ends for all nodes or for that node only"
}

// constraintFails reports whether a certain constraint may be why nothing fits.
func constraintFails(q *eligibility.Question, nodes []api.NodeGroup, is func(*resourceapi.DeviceConstraint) bool) bool {
	return verdict.Constrains(q, is) && slices.ContainsFunc(nodes, func(group api.NodeGroup) bool { return group.Code == api.ConstraintUnsatisfiable })
}
