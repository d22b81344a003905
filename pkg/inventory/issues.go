// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// Troubles are the problems of a cluster that the window title and the bell tell.
type Troubles struct {
	// Broken counts the pools that are neither usable nor empty.
	Broken int
	// Waiting counts the pods that wait for devices, by namespace.
	Waiting map[string]int
	// Names has a name for each trouble that a bell rings for.
	Names []string
}

// stuckAfter is how long a pod waits before the bell rings for it: most are placed within
// a second.
const stuckAfter = 30 * time.Second

// Troubles lists the problems of the cluster and its pools. Evictions are only looked for
// where a bell rings for them.
func (v *Inventory) Troubles(pools []api.Pool, evictions bool) Troubles {
	t := Troubles{Waiting: map[string]int{}}
	for _, pool := range broken(pools) {
		t.Broken++
		t.Names = append(t.Names, "pool "+PoolName(pool))
	}
	for _, pod := range v.cluster.Waiting() {
		t.Waiting[pod.Namespace]++
		if v.cluster.Snapshot.Now().Sub(pod.CreationTimestamp.Time) >= stuckAfter {
			t.Names = append(t.Names, "pod "+string(pod.UID)+" "+pod.Namespace+"/"+pod.Name)
		}
	}
	if !evictions {
		return t
	}
	for _, taint := range v.Taints() {
		for i := range taint.Pods {
			if taint.Pods[i].Evicted {
				t.Names = append(t.Names, "eviction "+taint.Pods[i].Namespace+"/"+taint.Pods[i].Name)
			}
		}
	}
	return t
}

// broken lists the pools that are neither usable nor empty.
func broken(pools []api.Pool) []*api.Pool {
	var broken []*api.Pool
	for i := range pools {
		if state := pools[i].State; state != api.PoolStateUsable && state != api.PoolStateEmpty {
			broken = append(broken, &pools[i])
		}
	}
	return broken
}

// What overviews say is put into words here.

func devices(n int) string { return english.Count(n, "device") }

// countText describes an issue that only has a number.
func countText(code api.IssueCode, n int) string {
	switch code {
	case api.IssuePoolsUnknown:
		return "pools not known"
	case api.IssuePodsUnknown:
		return "pods that wait not known"
	case api.IssuePodsBlocked:
		return english.Count(n, "pod") + " cannot work with the devices"
	case api.IssueDevicesTainted:
		return english.Thousands(n) + " tainted"
	case api.IssueDevicesTaintedInUse:
		return english.Thousands(n) + " used and tainted"
	case api.IssueNodesGone:
		return english.Count(n, "node") + " gone"
	case api.IssueNodesNotReady:
		return english.Count(n, "node") + " not ready"
	case api.IssueNodesCordoned:
		return english.Count(n, "node") + " cordoned"
	case api.IssueClaimsWithoutPod:
		return english.Count(n, "claim") + " without a pod"
	default:
		return fmt.Sprintf("%d %s", n, code)
	}
}

// brokenText describes the problem of a pool, or how many pools are broken.
func brokenText(pools []*api.Pool) string {
	pool := pools[0]
	switch {
	case len(pools) > 1:
		n := 0
		for _, pool := range pools {
			n += pool.Devices.Total + pool.Devices.Gone
		}
		return fmt.Sprintf("%s are broken (%s)", english.Count(len(pools), "pool"), devices(n))
	case pool.State == api.PoolStateNoSlices:
		return fmt.Sprintf("pool %s has no slices", pool.Name)
	case pool.State == api.PoolStateNodeGone:
		return fmt.Sprintf("node of pool %s does not exist", pool.Name)
	default:
		return fmt.Sprintf("pool %s is %s", pool.Name, strings.ToLower(string(pool.State)))
	}
}

func waitingText(n int, longest time.Duration) string {
	verb := "wait"
	if n == 1 {
		verb = "waits"
	}
	return fmt.Sprintf("%s %s, longest %s", english.Count(n, "pod"), verb, duration.HumanDuration(longest))
}

func evictedText(n int, next *metav1.Time, now time.Time) string {
	return english.Count(n, "pod") + " evicted " + inTime(next, now)
}

// inTime says when an eviction is due; without a time it is now.
func inTime(next *metav1.Time, now time.Time) string {
	if next == nil || next.Sub(now) <= 0 {
		return "now"
	}
	return "in " + duration.HumanDuration(next.Sub(now))
}

// taintText says how much there is under a taint.
func taintText(t *api.Taint, now time.Time) string {
	text := devices(len(t.Devices))
	switch {
	case t.NextEviction != nil:
		evicted := 0
		for i := range t.Pods {
			if t.Pods[i].Evicted {
				evicted++
			}
		}
		text += fmt.Sprintf(", evicts %d of %d pods, the next %s", evicted, len(t.Pods), inTime(t.NextEviction, now))
	case len(t.Claims) > 0:
		text += ", used by " + english.Count(len(t.Claims), "claim")
	}
	return text
}

// closedText says why a node takes no pods, and what becomes of its devices.
func closedText(n *Node) string {
	var parts []string
	if n.isDown() {
		parts = append(parts, n.State)
	}
	if n.Cordoned {
		parts = append(parts, "cordoned")
	}
	if n.Devices.Free > 0 {
		parts = append(parts, fmt.Sprintf("%d free", n.Devices.Free))
	}
	if used := n.Devices.Allocated + n.Devices.Shared; used > 0 {
		parts = append(parts, fmt.Sprintf("%d used", used))
	}
	return strings.Join(parts, ", ")
}

// unusedText names pending claims that no pod uses.
func unusedText(n int, first *resourceapi.ResourceClaim) string {
	text := first.Namespace + "/" + first.Name + ": " + NoPodUsesIt
	if n > 1 {
		text = fmt.Sprintf("%s, such as %s", english.Count(n, "claim"), text)
	}
	return text
}
