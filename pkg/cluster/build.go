// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

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
