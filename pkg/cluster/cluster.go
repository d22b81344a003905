// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Cluster has the facts of a snapshot about devices: where they are, who has them, how much
// of them is left, and which pods can go where. It is safe for concurrent use.
type Cluster struct {
	Snapshot   *snapshot.Snapshot
	Gates      *Gates
	Pools      *Pools
	Usage      *Usage
	Partitions *Partitions
	Claims     *Claims
	Nodes      *Nodes
	Taints     *Taints
	// Evaluators evaluate selectors for devices as the allocator sees them. Amended
	// clusters with the same devices share them.
	Evaluators *selector.Evaluators
	// behaviors are the behaviors of the release's scheduler, see [BehaviorChanges], and
	// varying the behaviors in which the possible releases of the cluster differ.
	behaviors, varying map[Behavior]bool
	lost               func() []LostPool
	waiting            func() []*corev1.Pod
	// proved has, by behavior, a pod with a message of the scheduler that proves it.
	proved map[Behavior]*corev1.Pod
	// memory has the results of packages above.
	memory *memory
	// amended counts the amendments that led to this cluster, plus one.
	amended int
}

// Follower is a result about a cluster that a package above computes and keeps with
// [Remember].
type Follower interface {
	// Follow returns the part of it that still holds in the cluster after a change. It must
	// not keep the old cluster in memory.
	Follow(after *Cluster, d *Delta) Follower
}

// memory has the followers of a cluster by their types.
type memory struct {
	mutex     sync.RWMutex
	followers map[reflect.Type]Follower
}

// maxDeferred limits how many amended clusters, one made of the other, may defer work that
// nobody asks for: its input stays in memory until then.
const maxDeferred = 16

// New prepares everything that is the same for all nodes. The snapshot must not change
// afterwards; New does not modify it.
func New(snap *snapshot.Snapshot) *Cluster {
	return build(snap, nil, nil)
}

// With returns the cluster after a change of its snapshot, with all that is remembered of this
// one and still holds. It is faster than [New] if the snapshots share lists. If they share all
// but a few claims and pods, it only compares the pointers of the others.
func (c *Cluster) With(d *Delta) *Cluster {
	return build(d.After, c, d)
}

// Amended returns the cluster of another snapshot, see [Cluster.With].
func (c *Cluster) Amended(snap *snapshot.Snapshot) *Cluster {
	return c.With(Between(c.Snapshot, snap))
}

func build(snap *snapshot.Snapshot, sibling *Cluster, d *Delta) *Cluster {
	c := &Cluster{Snapshot: snap}
	var claims *difference[*resourceapi.ResourceClaim]
	var pods *difference[*corev1.Pod]
	switch {
	case sibling == nil:
		c.release(provedBy(snap, snap.Pods))
		sibling = &Cluster{}
	case sibling.Gates.sameIn(snap):
		claims, pods = differ(d.Before.Claims, snap.Claims), differ(d.Before.Pods, snap.Pods)
		if proved := sibling.provedIn(d, pods); len(proved) > len(sibling.proved) {
			c.release(proved)
			claims, pods = nil, nil
		} else {
			c.behaviors, c.varying, c.proved, c.Gates = sibling.behaviors, sibling.varying, sibling.proved, sibling.Gates
		}
	default:
		c.release(provedBy(snap, snap.Pods))
	}
	published := sibling.publishes(c)
	var made sync.WaitGroup
	if !published {
		// These do not depend on claims and pods.
		made.Go(func() {
			c.Pools = newPools(patchedSlices(snap, c.Gates.taintRules, c.Gates.openRules), &c.Gates.features)
		})
	}
	c.Usage = newUsage(snap.Claims, c.Gates.consumableCapacity, sibling.Usage, claims)
	c.Claims = newClaims(snap, c.Gates, sibling.Claims, claims)
	c.Nodes = newNodes(snap, c.Gates, c.Claims, sibling.Nodes, pods)
	made.Wait()
	if published {
		c.Pools, c.Nodes.made = sibling.Pools, sibling.Nodes.made
		c.Partitions = sibling.Partitions.with(c.Usage)
		c.Evaluators = sibling.Evaluators
	} else {
		c.Partitions = newPartitions(c.Gates, c.Usage, c.Pools)
		c.Evaluators = selector.NewEvaluators(c.Gates.Selectors)
	}
	c.amended = sibling.amended + 1
	if c.amended%maxDeferred == 0 {
		c.Nodes.usage()
		c.Nodes.avoiding()
		c.Claims.extended()
	}
	c.lost = sync.OnceValue(func() []LostPool { return findLost(c.Snapshot, c.Pools, c.Usage) })
	c.waiting = sync.OnceValue(c.findWaiting)
	c.memory = sibling.memory.follow(c, d)
	c.Taints = &Taints{snap: snap, gates: c.Gates, pools: c.Pools, usage: c.Usage, claims: c.Claims, behaves: c.Behaves, varies: c.Varies}
	return c
}

// publishes reports whether pools and devices are the same for another snapshot: the same
// lists of slices and taint rules, with the same features.
func (c *Cluster) publishes(other *Cluster) bool {
	return c.Snapshot != nil && c.Gates.features == other.Gates.features &&
		snapshot.SameList(c.Snapshot.Slices, other.Snapshot.Slices) && snapshot.SameList(c.Snapshot.TaintRules, other.Snapshot.TaintRules)
}

// release looks up the behaviors of schedulers of the snapshot's release, given those that
// messages prove.
func (c *Cluster) release(proved map[Behavior]*corev1.Pod) {
	snap := c.Snapshot
	if version := snap.BinaryVersion(); version != "" {
		c.behaviors = BehaviorsOf(version)
	} else {
		c.behaviors, c.varying = behaviorsWithin(uint(max(snap.Skew.From, 0)), uint(max(snap.Skew.To, 0)))
	}
	if !snap.OtherRelease {
		c.proved = proved
	}
	for so := range c.proved {
		c.behaviors[so] = true
		delete(c.varying, so)
	}
	c.Gates = newGates(snap, c.behaviors)
}

// provedIn returns the behaviors that are proved after a change: what a scheduler has proved
// holds when its message is gone. pods are the changed pods, nil if they are not known.
func (c *Cluster) provedIn(d *Delta, pods *difference[*corev1.Pod]) map[Behavior]*corev1.Pod {
	if d.After.OtherRelease {
		return nil
	}
	changed := d.After.Pods
	if pods != nil && snapshot.SameList(d.Before.Events, d.After.Events) {
		changed = pods.Added
	}
	proved := maps.Clone(c.proved)
	for so, pod := range provedBy(d.After, changed) {
		if proved == nil {
			proved = map[Behavior]*corev1.Pod{}
		}
		if proved[so] == nil {
			proved[so] = pod
		}
	}
	return proved
}

// provedBy returns the behaviors that messages of the scheduler about pods that wait prove:
// in conditions, and in events where there is none.
func provedBy(snap *snapshot.Snapshot, pods []*corev1.Pod) map[Behavior]*corev1.Pod {
	var proved map[Behavior]*corev1.Pod
	look := func(pod *corev1.Pod, text string) {
		if so, proves := behaviorProvedBy(text); proves && proved[so] == nil {
			if proved == nil {
				proved = map[Behavior]*corev1.Pod{}
			}
			proved[so] = pod
		}
	}
	for _, pod := range pods {
		if c := scheduled(pod); pod.Spec.NodeName == "" && c.Status == corev1.ConditionFalse {
			look(pod, c.Message)
		}
	}
	for _, event := range snap.Events {
		if event.Reason != "FailedScheduling" {
			continue
		}
		if pod := snap.Pod(event.InvolvedObject.Namespace, event.InvolvedObject.Name); pod != nil && pod.Spec.NodeName == "" && scheduled(pod).Type == "" {
			look(pod, event.Message)
		}
	}
	return proved
}

// LostPools lists the lost pools by driver and name. There are none if slices could not be
// read. A device that is [DeviceReady] is not lost: its driver has moved it into a pod.
func (c *Cluster) LostPools() []LostPool { return c.lost() }

// LostPoolsOf lists the lost pools of a claim's devices, with the claim's devices in each.
func (c *Cluster) LostPoolsOf(claim *resourceapi.ResourceClaim) []LostPool {
	same := func(other *resourceapi.ResourceClaim) bool {
		return other.Namespace == claim.Namespace && other.Name == claim.Name
	}
	var lost []LostPool
	for _, p := range c.LostPools() {
		if !slices.ContainsFunc(p.Claims, same) {
			continue
		}
		p.Claims = []*resourceapi.ResourceClaim{claim}
		p.Devices = slices.DeleteFunc(slices.Clone(p.Devices), func(id DeviceID) bool {
			return !slices.ContainsFunc(c.Usage.Holders(id), func(h Holder) bool { return same(h.Claim) })
		})
		lost = append(lost, p)
	}
	return lost
}

// MapsNodeResources reports whether allocations have a device that stands for resources of
// its node like cpu or memory (KEP-5517). The scheduler then checks whether the node has
// enough of them, which this program does not.
func (c *Cluster) MapsNodeResources(allocations []resourceapi.AllocationResult) bool {
	if !c.Gates.Enabled(GateNodeAllocatable) {
		return false
	}
	for i := range allocations {
		for j := range allocations[i].Devices.Results {
			result := &allocations[i].Devices.Results[j]
			device := c.Pools.Device(DeviceID{result.Driver, result.Pool, result.Device})
			if device != nil && len(device.NodeAllocatableResources) > 0 {
				return true
			}
		}
	}
	return false
}

// Proof returns a pod with a message that only a scheduler with a behavior writes, nil if
// there is none.
func (c *Cluster) Proof(so Behavior) *corev1.Pod { return c.proved[so] }

// Behaves reports whether the scheduler of the cluster's release has a behavior. If the
// release is not known, the newest kubelet's release counts, or the library's.
func (c *Cluster) Behaves(so Behavior) bool { return c.behaviors[so] }

// Varies reports whether the release is not known, and a behavior depends on it.
func (c *Cluster) Varies(so Behavior) bool { return c.varying[so] }

// Scheduler names the kube-scheduler whose behaviors count.
func (c *Cluster) Scheduler() string {
	if release := c.Snapshot.BinaryVersion(); release != "" {
		return "kube-scheduler " + release
	}
	return fmt.Sprintf("kube-scheduler of 1.%d", cmp.Or(c.Snapshot.Skew.From, snapshot.NewestMinor))
}

// Fixed returns the pull request that ends a behavior of the scheduler, and the first
// release that has it, see [fixedBehavior].
func (c *Cluster) Fixed(b Behavior) (upstream int, release string) {
	return fixedBehavior(b, cmp.Or(c.Snapshot.BinaryVersion(), fmt.Sprintf("1.%d.999", c.Snapshot.Skew.From)))
}

// follow returns the memory of the cluster after a change.
func (m *memory) follow(c *Cluster, d *Delta) *memory {
	after := &memory{followers: map[reflect.Type]Follower{}}
	if m == nil {
		return after
	}
	m.mutex.RLock()
	before := maps.Clone(m.followers)
	m.mutex.RUnlock()
	for of, follower := range before {
		after.followers[of] = follower.Follow(c, d)
	}
	return after
}

// Remember returns the cluster's follower of type T. If it has none, Remember calls work,
// which must not call Remember, and keeps the result.
func Remember[T Follower](c *Cluster, work func() T) T {
	of := reflect.TypeFor[T]()
	c.memory.mutex.RLock()
	known, found := c.memory.followers[of].(T)
	c.memory.mutex.RUnlock()
	if found {
		return known
	}
	c.memory.mutex.Lock()
	defer c.memory.mutex.Unlock()
	if known, found := c.memory.followers[of].(T); found {
		return known
	}
	made := work()
	c.memory.followers[of] = made
	return made
}

// Answers that time alone can change are found again after a while: the more rarely, the
// longer it takes.
const (
	youngAge   = time.Minute
	youngTimes = 10000
)

// Young reports whether an answer that was found at a time, and took so long to find, is not
// expected to have changed by time alone.
func Young(at time.Time, took time.Duration, now time.Time) bool {
	return now.Sub(at) < max(youngAge, youngTimes*took)
}

// Forgetful returns the same cluster without followers.
func (c *Cluster) Forgetful() *Cluster {
	forgetful := *c
	forgetful.memory = (*memory)(nil).follow(&forgetful, nil)
	return &forgetful
}

// WithEvents returns the same cluster with other events, on which none of its facts
// depends.
func (c *Cluster) WithEvents(events []*corev1.Event) *Cluster {
	snap, other := *c.Snapshot, *c
	snap.Events, other.Snapshot = events, &snap
	return &other
}

// Waiting lists the pods that wait for a node and want devices, in the order of the
// snapshot. The list must not be changed.
func (c *Cluster) Waiting() []*corev1.Pod { return c.waiting() }

func (c *Cluster) findWaiting() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range c.Snapshot.Pods {
		if snapshot.Waits(pod) && c.WantsDevices(pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// WantsDevices reports whether a pod uses claims or extended resources of DRA, or
// an extended resource that nothing in the cluster serves: that is mostly a typo in
// the name of a resource that something does.
func (c *Cluster) WantsDevices(pod *corev1.Pod) bool {
	return len(c.Claims.OfPod(pod)) > 0 || len(c.Unserved(pod)) > 0
}

// Unserved lists the extended resources of a pod that no node has from a device
// plugin and that no DeviceClass stands for. None are known where nodes or classes
// could not be read.
func (c *Cluster) Unserved(pod *corev1.Pod) []corev1.ResourceName {
	if len(c.Snapshot.Nodes) == 0 || c.Snapshot.Gap(snapshot.ResourceNodes) != nil || c.Snapshot.Gap(snapshot.ResourceClasses) != nil {
		return nil
	}
	return slices.DeleteFunc(ExtendedResources(pod), func(name corev1.ResourceName) bool {
		return c.Claims.ClassOf(name) != nil || slices.ContainsFunc(c.Snapshot.Nodes, func(node *corev1.Node) bool {
			_, offered := node.Status.Allocatable[name]
			_, has := node.Status.Capacity[name]
			return offered || has
		})
	})
}
