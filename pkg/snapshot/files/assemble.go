// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// assemble makes a snapshot of the decoded objects.
func assemble(all *decoded, paths []string, opts Options) (*snapshot.Snapshot, error) {
	s := &snapshot.Snapshot{Source: source(paths), Gaps: all.gaps, Skipped: all.skipped, SkippedNames: all.skippedNames}
	if err := checkComplete(all); err != nil {
		return nil, err
	}
	if err := addHeaders(s, all.headers); err != nil {
		return nil, &InputError{Path: displayPaths(paths), Object: snapshot.KindSnapshot, Err: err}
	}
	if opts.KubernetesVersion != "" {
		s.AssumeVersion(opts.KubernetesVersion)
	}
	for name, enabled := range opts.Gates {
		setGate(s, name, snapshot.Gate{Enabled: enabled, Source: snapshot.GateFromFlag})
	}
	takes := []func([]record) error{
		takeInto(&s.Nodes, "Node"),
		takeInto(&s.Namespaces, "Namespace"),
		takeInto(&s.Pods, "Pod"),
		takeInto(&s.Events, "Event"),
		takeInto(&s.Slices, "ResourceSlice"),
		takeInto(&s.Classes, "DeviceClass"),
		takeInto(&s.Claims, "ResourceClaim"),
		takeInto(&s.Templates, "ResourceClaimTemplate"),
		takeInto(&s.TaintRules, "DeviceTaintRule"),
		takeInto(&s.PoolStatuses, snapshot.KindPoolStatus),
		takeInto(&s.PodGroups, "PodGroup"),
		takeInto(&s.CompositePodGroups, "CompositePodGroup"),
		takeInto(&s.Workloads, "Workload"),
		takeInto(&s.ComputeDomains, snapshot.KindComputeDomain),
		takeInto(&s.Cliques, snapshot.KindClique),
		takeInto(&s.ClusterPolicies, snapshot.ClusterPolicyKind().Kind),
		takeInto(&s.PluginConfigs, "ConfigMap"),
		takeInto(&s.Queued, "Workload"),
		takeInto(&s.Outlines, snapshot.KindOutline),
		takeInto(&s.Quotas, "ResourceQuota"),
		takeInto(&s.LimitRanges, "LimitRange"),
		takeInto(&s.VolumeClaims, "PersistentVolumeClaim"),
		takeInto(&s.Volumes, "PersistentVolume"),
		takeInto(&s.StorageClasses, "StorageClass"),
		takeInto(&s.Budgets, "PodDisruptionBudget"),
	}
	errs := make([]error, len(takes))
	var group sync.WaitGroup
	for i, take := range takes {
		group.Go(func() { errs[i] = take(all.records) })
	}
	group.Wait()
	// The same input always gives the same error.
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	if s.BinaryVersion() == "" {
		s.Skew = snapshot.SkewOf(s.Nodes)
	}
	return s, nil
}

// addMissing notes of which kinds a dump has no object: it does not tell
// whether the cluster has none or nobody asked for them. An empty list of a
// kind tells.
func addMissing(s *snapshot.Snapshot, listed, paths []string) {
	who := "the file has"
	if paths[0] == "-" {
		who = stdinName + " has"
	} else if info, err := os.Stat(paths[0]); err == nil && info.IsDir() {
		who = "the files have"
	}
	if len(paths) > 1 {
		who = "the files have"
	}
	for _, held := range []struct {
		resource, kind, plural string
		count                  int
	}{
		{snapshot.ResourceNodes, "Node", "Nodes", len(s.Nodes)},
		{snapshot.ResourcePods, "Pod", "Pods", len(s.Pods)},
		{snapshot.ResourceSlices, "ResourceSlice", "ResourceSlices", len(s.Slices)},
		{snapshot.ResourceClasses, "DeviceClass", "DeviceClasses", len(s.Classes)},
		{snapshot.ResourceClaims, "ResourceClaim", "ResourceClaims", len(s.Claims)},
		{snapshot.ResourceTemplates, "ResourceClaimTemplate", "ResourceClaimTemplates", len(s.Templates)},
	} {
		if held.count == 0 && !slices.Contains(listed, held.kind) {
			s.Gaps = append(s.Gaps, snapshot.Gap{Resource: held.resource, Reason: who + " no " + held.plural})
		}
	}
}

// source words where the snapshot comes from.
func source(paths []string) string {
	switch {
	case len(paths) > 1:
		return fmt.Sprintf("%d files", len(paths))
	case paths[0] == "-":
		return stdinName
	default:
		return "file " + paths[0]
	}
}

func setGate(s *snapshot.Snapshot, name string, gate snapshot.Gate) {
	if s.Gates == nil {
		s.Gates = map[string]snapshot.Gate{}
	}
	s.Gates[name] = gate
}

// union returns the elements of both lists, sorted.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// addHeaders takes over what saved snapshots say. Several that disagree about
// the cluster cannot be one snapshot.
func addHeaders(s *snapshot.Snapshot, headers []header) error {
	for _, h := range headers {
		if h.TakenAt != nil && h.TakenAt.After(s.TakenAt) {
			s.TakenAt = *h.TakenAt
		}
		if s.ServerVersion != "" && h.ServerVersion != "" && s.ServerVersion != h.ServerVersion {
			return fmt.Errorf("the files are of clusters with the versions %s and %s; load those of one cluster",
				s.ServerVersion, h.ServerVersion)
		}
		s.ServerVersion, s.Emulator = cmp.Or(s.ServerVersion, h.ServerVersion), cmp.Or(s.Emulator, h.Emulator)
		for _, name := range slices.Sorted(maps.Keys(h.Gates)) {
			gate := h.Gates[name]
			if known, ok := s.Gates[name]; ok && known.Enabled != gate.Enabled {
				return fmt.Errorf("the files are of clusters with feature gate %s on and off; load those of one cluster", name)
			}
			setGate(s, name, gate)
		}
		s.Listed, s.Served = union(s.Listed, h.Listed), union(s.Served, h.Served)
		for _, gap := range h.Gaps {
			if !slices.Contains(s.Gaps, gap) {
				s.Gaps = append(s.Gaps, gap)
			}
		}
	}
	return nil
}

// checkComplete returns an error for a file with fewer objects than were saved in it, such as
// a copy that ended early. A cluster without the missing objects would get other answers.
func checkComplete(all *decoded) error {
	saved := map[string]int{}
	for _, h := range all.headers {
		if h.Objects == nil {
			continue
		}
		saved[h.file] += *h.Objects
		if found := all.objects[h.file]; found < saved[h.file] {
			return &InputError{Path: h.file, Object: snapshot.KindSnapshot, Err: kinds.AtField("objects", fmt.Errorf(
				"expected %d objects, found %d: the file is cut short; copy or save it again, or remove this field if you removed objects",
				saved[h.file], found))}
		}
	}
	return nil
}

// takeInto returns a function that puts the records of one type into a list
// sorted by name, each object once.
func takeInto[T metav1.Object](list *[]T, kind string) func([]record) error {
	return func(records []record) error {
		count := 0
		for i := range records {
			if _, ok := records[i].object.(T); ok {
				count++
			}
		}
		own := make([]record, 0, count)
		for i := range records {
			if _, ok := records[i].object.(T); ok {
				own = append(own, records[i])
			}
		}
		slices.SortStableFunc(own, func(a, b record) int { return snapshot.Identify(a.object).Compare(snapshot.Identify(b.object)) })
		if len(own) > 0 {
			*list = make([]T, 0, len(own))
		}
		for i, r := range own {
			if i > 0 && snapshot.Identify(own[i-1].object) == snapshot.Identify(r.object) {
				if !sameObject(own[i-1].object, r.object) {
					return conflict(own[i-1], r, kind)
				}
				// The next one is compared with this one, which is the same.
				continue
			}
			if object, ok := r.object.(T); ok {
				*list = append(*list, object)
			}
		}
		return nil
	}
}

// sameObject reports whether two objects of the same name are equal but for what
// the server counts.
func sameObject(a, b metav1.Object) bool {
	b.SetResourceVersion(a.GetResourceVersion())
	if a, ok := a.(*snapshot.Workload); ok {
		if b, ok := b.(*snapshot.Workload); ok {
			b.TypeMeta = a.TypeMeta
		}
	}
	return equality.Semantic.DeepEqual(a, b)
}

// conflict tells where two different objects of the same name are.
func conflict(first, second record, kind string) error {
	id := snapshot.Identify(second.object)
	if id.Kind.Kind != "" {
		kind = id.Kind.Kind
	}
	name := id.Name
	if id.Namespace != "" {
		name = id.Namespace + "/" + name
	}
	e := inputError(second.place, "", nil)
	if e.Object != "" {
		e.Object += ": "
	}
	e.Object += kind + "/" + name
	e.Err = fmt.Errorf("it differs from the one in %s: %w", first.place, errDuplicate)
	return e
}

// errDuplicate is two different objects of the same name.
var errDuplicate = errors.New("an object can only be there once, or equal; remove the older one")

// addListed notes the optional resources of which a dump has objects, or a typed
// list: all of them were dumped then.
func addListed(s *snapshot.Snapshot, listed []string) {
	counts := map[string]int{
		snapshot.ResourceQuotas: len(s.Quotas), snapshot.ResourceLimitRanges: len(s.LimitRanges),
		snapshot.ResourceVolumeClaims: len(s.VolumeClaims), snapshot.ResourceVolumes: len(s.Volumes), snapshot.ResourceStorageClasses: len(s.StorageClasses),
		snapshot.ResourceCompositePodGroups: len(s.CompositePodGroups),
		snapshot.ResourceBudgets:            len(s.Budgets),
		snapshot.ResourceComputeDomains:     len(s.ComputeDomains),
		snapshot.ResourceCliques:            len(s.Cliques),
		snapshot.ResourceClusterPolicies:    len(s.ClusterPolicies),
		snapshot.ResourcePluginConfigs:      len(s.PluginConfigs),
	}
	for _, outline := range s.Outlines {
		if outline.GroupKind() == snapshot.AutoscalerKind() {
			counts[snapshot.ResourceAutoscalers]++
		}
	}
	for resource, kind := range snapshot.OptionalKinds() {
		if (counts[resource] > 0 || slices.Contains(listed, kind)) && !slices.Contains(s.Listed, resource) {
			s.Listed = append(s.Listed, resource)
		}
	}
	slices.Sort(s.Listed)
}
