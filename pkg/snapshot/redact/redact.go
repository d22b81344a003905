// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"iter"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// Snapshot returns a snapshot that answers every question like s does, but does
// not tell whose cluster it is. s is not changed.
//
// Pseudonyms replace the names of namespaces, nodes, pools and all objects but
// device classes, of containers, volumes and a pod's claims, UIDs, images,
// addresses, values of labels and of taints of nodes, opaque parameters and
// device status data. Equal values get equal pseudonyms wherever they are, also
// in messages and CEL expressions. Names of one kind are numbered in their
// order, since the allocator takes pools, slices and nodes in that order.
// Annotations are removed.
//
// What drivers and requests are written with stays: driver, class, request,
// attribute, capacity and counter names, CEL expressions, keys of labels and
// taints, taints of devices, values of well-known labels such as the
// architecture. Values of attributes stay too, unless they hold a name or look
// like an address, a UUID or a serial number that no expression looks at.
// Names of devices stay unless one of them has another name in it.
//
// The same snapshot always gives the same result.
func Snapshot(s *snapshot.Snapshot) *snapshot.Snapshot {
	alone := func(yield func(*snapshot.Snapshot, error) bool) { yield(s, nil) }
	next, stop := iter.Pull2(Each(alone))
	defer stop()
	redacted, _, _ := next()
	return redacted
}

// Each is like [Snapshot], for the states of one cluster: what has a name in one of them has the
// same pseudonym in all, and states share what they shared. They are read three times. An error is
// the last that is yielded.
func Each(states iter.Seq2[*snapshot.Snapshot, error]) iter.Seq2[*snapshot.Snapshot, error] {
	return func(yield func(*snapshot.Snapshot, error) bool) {
		w := newWalker()
		for _, stage := range []stage{collectNames, collectTexts, rewrite} {
			w.stage = stage
			clear(w.expressions)
			var known copies
			for s, err := range states {
				if err != nil {
					yield(nil, err)
					return
				}
				redacted, fresh := known.clone(s)
				w.walk(reflect.ValueOf(fresh))
				if stage != rewrite {
					continue
				}
				redacted.Source = "redacted snapshot"
				redacted.Sort()
				if !yield(redacted, nil) {
					return
				}
			}
			w.number(stage)
		}
	}
}

// copies has the copies of the objects of a state.
type copies struct {
	last, next map[metav1.Object]metav1.Object
}

// clone copies a snapshot with everything that redaction changes, but for the objects that were
// copied for the state before. fresh has all copies that are new.
func (k *copies) clone(s *snapshot.Snapshot) (whole, fresh *snapshot.Snapshot) {
	k.last, k.next = k.next, map[metav1.Object]metav1.Object{}
	c, f := *s, &snapshot.Snapshot{}
	c.Gates = maps.Clone(s.Gates)
	c.Skipped = nil
	c.Gaps = slices.Clone(s.Gaps)
	f.Gaps = c.Gaps
	c.Nodes = cloneAll(k, s.Nodes, &f.Nodes)
	c.Namespaces = cloneAll(k, s.Namespaces, &f.Namespaces)
	c.Pods = cloneAll(k, s.Pods, &f.Pods)
	c.Events = cloneAll(k, s.Events, &f.Events)
	c.Slices = cloneAll(k, s.Slices, &f.Slices)
	c.Classes = cloneAll(k, s.Classes, &f.Classes)
	c.Claims = cloneAll(k, s.Claims, &f.Claims)
	c.Templates = cloneAll(k, s.Templates, &f.Templates)
	c.TaintRules = cloneAll(k, s.TaintRules, &f.TaintRules)
	c.PoolStatuses = cloneAll(k, s.PoolStatuses, &f.PoolStatuses)
	c.PodGroups = cloneAll(k, s.PodGroups, &f.PodGroups)
	c.CompositePodGroups = cloneAll(k, s.CompositePodGroups, &f.CompositePodGroups)
	c.Workloads = cloneAll(k, s.Workloads, &f.Workloads)
	c.ComputeDomains = cloneAll(k, s.ComputeDomains, &f.ComputeDomains)
	c.Cliques = cloneAll(k, s.Cliques, &f.Cliques)
	c.ClusterPolicies = cloneAll(k, s.ClusterPolicies, &f.ClusterPolicies)
	c.PluginConfigs = cloneAll(k, s.PluginConfigs, &f.PluginConfigs)
	c.Queued = cloneAll(k, s.Queued, &f.Queued)
	c.Outlines = cloneAll(k, s.Outlines, &f.Outlines)
	c.Quotas = cloneAll(k, s.Quotas, &f.Quotas)
	c.LimitRanges = cloneAll(k, s.LimitRanges, &f.LimitRanges)
	c.VolumeClaims = cloneAll(k, s.VolumeClaims, &f.VolumeClaims)
	c.Volumes = cloneAll(k, s.Volumes, &f.Volumes)
	c.StorageClasses = cloneAll(k, s.StorageClasses, &f.StorageClasses)
	c.Budgets = cloneAll(k, s.Budgets, &f.Budgets)
	return &c, f
}

func cloneAll[T interface {
	metav1.Object
	DeepCopy() T
}](k *copies, list []T, fresh *[]T) []T {
	var all []T
	for _, object := range list {
		c, known := k.last[object].(T)
		if !known {
			c = object.DeepCopy()
			kinds.Strip(c)
			*fresh = append(*fresh, c)
		}
		k.next[object] = c
		all = append(all, c)
	}
	return all
}
