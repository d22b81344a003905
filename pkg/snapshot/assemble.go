// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// assemble makes a snapshot of what was read.
func assemble(all *decoded, paths []string, opts Options) (*Snapshot, error) {
	s := &Snapshot{Source: source(paths), Gaps: all.gaps, Skipped: all.skipped, SkippedNames: all.skippedNames}
	if err := s.addHeaders(all.headers); err != nil {
		return nil, &InputError{Path: displayPaths(paths), Object: KindSnapshot, Err: err}
	}
	if opts.KubernetesVersion != "" {
		s.assumeVersion(opts.KubernetesVersion)
	}
	for name, enabled := range opts.Gates {
		s.setGate(name, Gate{Enabled: enabled, Source: GateFromFlag})
	}
	for _, take := range []func([]record) error{
		takeInto(&s.Nodes, "Node"),
		takeInto(&s.Namespaces, "Namespace"),
		takeInto(&s.Pods, "Pod"),
		takeInto(&s.Events, "Event"),
		takeInto(&s.Slices, "ResourceSlice"),
		takeInto(&s.Classes, "DeviceClass"),
		takeInto(&s.Claims, "ResourceClaim"),
		takeInto(&s.Templates, "ResourceClaimTemplate"),
		takeInto(&s.TaintRules, "DeviceTaintRule"),
		takeInto(&s.PoolStatuses, KindPoolStatus),
		takeInto(&s.PodGroups, "PodGroup"),
		takeInto(&s.Workloads, "Workload"),
		takeInto(&s.Queued, "Workload"),
		takeInto(&s.Quotas, "ResourceQuota"),
		takeInto(&s.LimitRanges, "LimitRange"),
		takeInto(&s.VolumeClaims, "PersistentVolumeClaim"),
		takeInto(&s.Volumes, "PersistentVolume"),
		takeInto(&s.StorageClasses, "StorageClass"),
	} {
		if err := take(all.records); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// assumeVersion makes the snapshot one of a cluster of another version, in
// which the gates that were detected mean nothing.
func (s *Snapshot) assumeVersion(version string) {
	s.ServerVersion = version
	maps.DeleteFunc(s.Gates, func(_ string, gate Gate) bool { return gate.Source == GateFromMetrics })
	s.Gaps = slices.DeleteFunc(s.Gaps, func(gap Gap) bool { return gap.Resource == ResourceMetrics })
	if minor, ok := minorVersion(version); ok && minor > newestMinor {
		s.Gaps = append(s.Gaps, Gap{Resource: ResourceMetrics, Reason: fmt.Sprintf(
			"Kubernetes %s is newer than 1.%d, the newest that this program knows", version, newestMinor)})
	}
}

// addMissing notes of which kinds a dump has no object: it does not tell
// whether the cluster has none or nobody asked for them. An empty list of a
// kind tells.
func (s *Snapshot) addMissing(listed, paths []string) {
	subject := "the file has"
	if paths[0] == "-" {
		subject = stdinName + " has"
	} else if info, err := os.Stat(paths[0]); err == nil && info.IsDir() {
		subject = "the files have"
	}
	if len(paths) > 1 {
		subject = "the files have"
	}
	for _, held := range []struct {
		resource, kind, plural string
		count                  int
	}{
		{ResourceNodes, "Node", "Nodes", len(s.Nodes)},
		{ResourcePods, "Pod", "Pods", len(s.Pods)},
		{ResourceSlices, "ResourceSlice", "ResourceSlices", len(s.Slices)},
		{ResourceClasses, "DeviceClass", "DeviceClasses", len(s.Classes)},
		{ResourceClaims, "ResourceClaim", "ResourceClaims", len(s.Claims)},
		{ResourceTemplates, "ResourceClaimTemplate", "ResourceClaimTemplates", len(s.Templates)},
	} {
		if held.count == 0 && !slices.Contains(listed, held.kind) {
			s.Gaps = append(s.Gaps, Gap{Resource: held.resource, Reason: subject + " no " + held.plural})
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

func (s *Snapshot) setGate(name string, gate Gate) {
	if s.Gates == nil {
		s.Gates = map[string]Gate{}
	}
	s.Gates[name] = gate
}

// addHeaders takes over what saved snapshots say. Several that disagree about
// the cluster cannot be one snapshot.
func (s *Snapshot) addHeaders(headers []Header) error {
	for _, h := range headers {
		if h.TakenAt != nil && h.TakenAt.After(s.TakenAt) {
			s.TakenAt = *h.TakenAt
		}
		if s.ServerVersion != "" && h.ServerVersion != "" && s.ServerVersion != h.ServerVersion {
			return fmt.Errorf("the files are of clusters with the versions %s and %s; load those of one cluster",
				s.ServerVersion, h.ServerVersion)
		}
		s.ServerVersion = cmp.Or(s.ServerVersion, h.ServerVersion)
		for _, name := range slices.Sorted(maps.Keys(h.Gates)) {
			gate := h.Gates[name]
			if known, ok := s.Gates[name]; ok && known.Enabled != gate.Enabled {
				return fmt.Errorf("the files are of clusters with feature gate %s on and off; load those of one cluster", name)
			}
			s.setGate(name, gate)
		}
		for _, resource := range h.Listed {
			if !slices.Contains(s.Listed, resource) {
				s.Listed = append(s.Listed, resource)
			}
		}
		slices.Sort(s.Listed)
		for _, gap := range h.Gaps {
			if !slices.Contains(s.Gaps, gap) {
				s.Gaps = append(s.Gaps, gap)
			}
		}
	}
	return nil
}

// takeInto returns a function that puts the records of one type into a list
// sorted by name, each object once.
func takeInto[T metav1.Object](list *[]T, kind string) func([]record) error {
	return func(records []record) error {
		var own []record
		for _, r := range records {
			if _, ok := r.object.(T); ok {
				own = append(own, r)
			}
		}
		slices.SortStableFunc(own, func(a, b record) int { return identify(a.object).compare(identify(b.object)) })
		if len(own) > 0 {
			*list = make([]T, 0, len(own))
		}
		for i, r := range own {
			if i > 0 && identify(own[i-1].object) == identify(r.object) {
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
	if a, ok := a.(*Workload); ok {
		if b, ok := b.(*Workload); ok {
			b.TypeMeta = a.TypeMeta
		}
	}
	return equality.Semantic.DeepEqual(a, b)
}

// conflict tells where two different objects of the same name are.
func conflict(first, second record, kind string) error {
	id := identify(second.object)
	if id.kind.Kind != "" {
		kind = id.kind.Kind
	}
	name := id.name
	if id.namespace != "" {
		name = id.namespace + "/" + name
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
