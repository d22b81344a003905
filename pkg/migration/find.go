// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Options select workloads and classes.
type Options struct {
	// Namespace is the only namespace whose workloads and quotas count; empty for all.
	Namespace string
	// Classes has the DeviceClasses for extended resources that the user chose.
	Classes map[string]string
	// Diffs asks for the changes as unified diffs, too.
	Diffs bool
	// Plan is an earlier plan whose steps are compared with the cluster; nil for none.
	Plan *api.Migration
}

// Find returns what has to change. It fails if ctx is done, with [ClassError] if there is no class that
// the options name, and with [ResourceError] if there is no such resource.
func Find(ctx context.Context, c *cluster.Cluster, opts Options) (*api.Migration, error) {
	f := &finder{Cluster: c, chosen: opts.Classes, configured: map[string]configured{}}
	var err error
	if f.classes, err = inventory.New(c).Classes(ctx); err != nil {
		return nil, fmt.Errorf("list classes: %w", err)
	}
	for _, resource := range slices.Sorted(maps.Keys(opts.Classes)) {
		if class := opts.Classes[resource]; c.Snapshot.Class(class) == nil {
			return nil, &ClassError{Resource: resource, Class: class}
		}
		if known, all := f.resources(); all && !slices.Contains(known, resource) {
			return nil, &ResourceError{Resource: resource, Known: known}
		}
	}
	m := &api.Migration{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Migration"},
		Source:   c.Snapshot.Source, Namespace: opts.Namespace,
		Nodes: f.served(), Workloads: []api.MigrationWorkload{}, Assumptions: inventory.Assumptions(c.Snapshot),
	}
	if unknown := f.notConfigured(); unknown != "" {
		m.Assumptions = append(m.Assumptions, unknown)
	}
	for _, group := range f.groups(opts.Namespace) {
		w, err := f.workload(ctx, group)
		if err != nil {
			return nil, err
		}
		if w.Way == api.MigrationClaims && opts.Diffs {
			if w.Diff, err = f.moving[len(f.moving)-1].editor.diff(); err != nil {
				return nil, err
			}
		}
		if w.Way == api.MigrationNotPossible || w.Way == api.MigrationUnknown {
			f.stuck = append(f.stuck, group)
		}
		m.Workloads = append(m.Workloads, w)
	}
	slices.SortStableFunc(m.Workloads, func(a, b api.MigrationWorkload) int {
		return cmp.Or(cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Kind, b.Object.Kind), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	m.Classes = f.nameable()
	if opts.Namespace == "" {
		if err := f.order(ctx, m); err != nil {
			return nil, fmt.Errorf("order the steps: %w", err)
		}
	}
	if gap := f.Snapshot.PlacementGap(); gap != nil && opts.Plan != nil {
		m.Undecided = "neither the order nor the earlier plan is decided: " + gap.Reason
	} else if opts.Plan != nil {
		m.Verified = f.verify(opts.Plan)
	}
	for _, quota := range c.Snapshot.Quotas {
		if opts.Namespace == "" || quota.Namespace == opts.Namespace {
			m.Quotas = append(m.Quotas, f.quotas(quota)...)
		}
	}
	return m, nil
}

// ClassError means that there is no DeviceClass of the name that was chosen for a resource.
type ClassError struct{ Resource, Class string }

func (e *ClassError) Error() string {
	return fmt.Sprintf("find DeviceClass %s for %s: there is no such class", e.Class, e.Resource)
}

// ResourceError means that nothing has the extended resource that a class was chosen for.
type ResourceError struct {
	Resource string
	// Known are the extended resources that there are, by name.
	Known []string
}

func (e *ResourceError) Error() string {
	text := fmt.Sprintf("find extended resource %s: no node has it, no pod asks for it and no quota limits it", e.Resource)
	if len(e.Known) > 0 {
		text += "; expected " + english.JoinOr(e.Known)
	}
	return text
}

// finder finds what has to change.
type finder struct {
	*cluster.Cluster
	classes []api.Class
	chosen  map[string]string
	// configured remembers how device plugins are configured, by node.
	configured map[string]configured
	// decided counts the workloads that the allocator decided.
	decided int
	// moving are the workloads that ask by claims in the future, stuck are workloads that cannot, or
	// may not.
	moving []*moving
	stuck  []*group
}

// resources returns the extended resources that nodes have, pods ask for or quotas limit, by name, and
// whether all of these could be read.
func (f *finder) resources() (names []string, all bool) {
	for _, resource := range []string{snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourceQuotas} {
		if f.Snapshot.Gap(resource) != nil {
			return nil, false
		}
	}
	found := map[string]bool{}
	for _, node := range f.Snapshot.Nodes {
		for name := range node.Status.Allocatable {
			found[string(name)] = cluster.IsExtendedResource(name)
		}
	}
	for _, pod := range f.Snapshot.Pods {
		for _, name := range cluster.ExtendedResources(pod) {
			found[string(name)] = true
		}
	}
	for _, quota := range f.Snapshot.Quotas {
		for name := range quota.Spec.Hard {
			if resource, limited := cutRequests(string(name)); limited {
				found[resource] = cluster.IsExtendedResource(corev1.ResourceName(resource))
			}
		}
	}
	maps.DeleteFunc(found, func(_ string, extended bool) bool { return !extended })
	return slices.Sorted(maps.Keys(found)), true
}

// group has the pods of one workload, or a bare pod.
type group struct {
	object   api.ObjectRef
	workload whatif.Workload
	// owned is true if the pods have a workload.
	owned bool
	pods  []*corev1.Pod
}

// groups returns the workloads whose pods ask for extended resources, in the order of the snapshot.
// Pods that are finished do not count.
func (f *finder) groups(namespace string) []*group {
	var list []*group
	known := map[api.ObjectRef]*group{}
	for _, pod := range f.Snapshot.Pods {
		if namespace != "" && pod.Namespace != namespace || snapshot.Finished(pod) || len(cluster.ExtendedResources(pod)) == 0 {
			continue
		}
		g := &group{object: api.RefTo(api.KindPod, pod)}
		if g.workload, g.owned = whatif.WorkloadOf(f.Snapshot, pod); g.owned {
			g.object = g.workload.ObjectRef
		}
		if known[g.object] == nil {
			known[g.object], list = g, append(list, g)
		}
		known[g.object].pods = append(known[g.object].pods, pod)
	}
	return list
}

// quotas returns the limits of extended resources in a quota.
func (f *finder) quotas(quota *corev1.ResourceQuota) []api.MigrationQuota {
	var list []api.MigrationQuota
	for name, hard := range quota.Spec.Hard {
		resource, limited := cutRequests(string(name))
		if !limited || !cluster.IsExtendedResource(corev1.ResourceName(resource)) {
			continue
		}
		q := api.MigrationQuota{Namespace: quota.Namespace, Name: quota.Name, Resource: string(name), Hard: hard.Value()}
		class, reason := f.classFor(resource)
		if serving := f.serving(resource); serving != "" {
			// As addExtendedResourceQuota in pkg/quota/v1/evaluator/core/resource_claims.go of Kubernetes.
			q.Reason = fmt.Sprintf("it limits claims for class %s, too, which names the resource", serving)
		} else if q.Reason = reason; class != "" {
			q.Becomes = class + corev1.ResourceClaimsPerClass
			q.Commands = []string{quotaCommand(quota, q.Becomes, hard.String())}
		}
		list = append(list, q)
	}
	slices.SortFunc(list, func(a, b api.MigrationQuota) int { return cmp.Compare(a.Resource, b.Resource) })
	return list
}
