// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
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
	redacted := clone(s)
	w := newWalker()
	for _, stage := range []stage{collectNames, collectTexts, rewrite} {
		w.stage = stage
		clear(w.expressions)
		w.walk(reflect.ValueOf(redacted))
		w.number(stage)
	}
	redacted.Source = "redacted snapshot"
	redacted.Sort()
	return redacted
}

// clone copies a snapshot with everything that redaction changes.
func clone(s *snapshot.Snapshot) *snapshot.Snapshot {
	c := *s
	c.Gates = maps.Clone(s.Gates)
	c.Skipped = nil
	c.Gaps = slices.Clone(s.Gaps)
	c.Nodes = cloneAll(s.Nodes)
	c.Namespaces = cloneAll(s.Namespaces)
	c.Pods = cloneAll(s.Pods)
	c.Events = cloneAll(s.Events)
	c.Slices = cloneAll(s.Slices)
	c.Classes = cloneAll(s.Classes)
	c.Claims = cloneAll(s.Claims)
	c.Templates = cloneAll(s.Templates)
	c.TaintRules = cloneAll(s.TaintRules)
	c.PoolStatuses = cloneAll(s.PoolStatuses)
	c.PodGroups = cloneAll(s.PodGroups)
	c.CompositePodGroups = cloneAll(s.CompositePodGroups)
	c.Workloads = cloneAll(s.Workloads)
	c.ComputeDomains = cloneAll(s.ComputeDomains)
	c.Cliques = cloneAll(s.Cliques)
	c.Queued = cloneAll(s.Queued)
	c.Outlines = cloneAll(s.Outlines)
	c.Quotas = cloneAll(s.Quotas)
	c.LimitRanges = cloneAll(s.LimitRanges)
	c.VolumeClaims = cloneAll(s.VolumeClaims)
	c.Volumes = cloneAll(s.Volumes)
	c.StorageClasses = cloneAll(s.StorageClasses)
	c.Budgets = cloneAll(s.Budgets)
	return &c
}

func cloneAll[T interface {
	metav1.Object
	DeepCopy() T
}](list []T) []T {
	var copies []T
	for _, object := range list {
		c := object.DeepCopy()
		kinds.Strip(c)
		copies = append(copies, c)
	}
	return copies
}
