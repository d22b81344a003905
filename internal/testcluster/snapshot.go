// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Names that the builders use where none is given, and that most tests use.
const (
	Driver    = "gpu.example.com"
	DriverA   = "a.example.com"
	DriverB   = "b.example.com"
	ClassGPU  = "gpu"
	ClassA    = "class-a"
	ClassB    = "class-b"
	Namespace = "ml"
	Node1     = "node-1"
	Node2     = "node-2"
)

// Taken returns when the snapshots of [Cluster] were taken.
func Taken() time.Time { return time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC) }

// Cluster builds a snapshot of a server with the default gates of its version, with the
// namespace and a class for all devices of [Driver].
func Cluster(objects ...any) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Source: "a test", Release: snapshot.Release{ServerVersion: "v1.37.1", Gates: map[string]snapshot.Gate{}}, Clock: snapshot.Clock{TakenAt: Taken()},
		Listed:     []string{snapshot.ResourceQuotas, snapshot.ResourceLimitRanges, snapshot.ResourceVolumeClaims, snapshot.ResourceVolumes, snapshot.ResourceStorageClasses, snapshot.ResourceAutoscalers, snapshot.ResourceBudgets, snapshot.ResourceCompositePodGroups},
		Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}},
		Classes:    []*resourceapi.DeviceClass{Class(ClassGPU, Driver)},
	}
	Add(s, objects...)
	return s
}

// Snapshot builds a snapshot with nothing but the objects. All gates but the one
// for the whole API are off unless named with [Gates].
func Snapshot(objects ...any) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Release: snapshot.Release{ServerVersion: "v1.37.1", Gates: map[string]snapshot.Gate{}}}
	for _, name := range snapshot.KnownGates() {
		if name != "DynamicResourceAllocation" {
			s.Gates[name] = snapshot.Gate{Source: snapshot.GateFromFlag}
		}
	}
	Add(s, objects...)
	return s
}

// Add puts copies of objects of any kind into a snapshot; functions change it.
func Add(s *snapshot.Snapshot, objects ...any) {
	for _, object := range objects {
		switch o := object.(type) {
		case func(*snapshot.Snapshot):
			o(s)
		case Gates:
			for _, name := range o {
				Gate(name, true)(s)
			}
		case SliceWrapper:
			if o.Name == "" {
				o = o.Change(func(slice *resourceapi.ResourceSlice) {
					slice.Name = fmt.Sprintf("%s-%02d", slice.Spec.Pool.Name, len(s.Slices))
				})
			}
			s.Slices = append(s.Slices, o.DeepCopy())
		case ClaimWrapper:
			s.Claims = append(s.Claims, o.DeepCopy())
		case *resourceapi.DeviceClass:
			s.Classes = append(s.Classes, o.DeepCopy())
		case *resourceapi.DeviceTaintRule:
			s.TaintRules = append(s.TaintRules, o.DeepCopy())
		case *resourceapi.ResourceClaimTemplate:
			s.Templates = append(s.Templates, o.DeepCopy())
		case *corev1.Node:
			s.Nodes = append(s.Nodes, o.DeepCopy())
		case []*corev1.Node:
			for _, node := range o {
				s.Nodes = append(s.Nodes, node.DeepCopy())
			}
		case *corev1.Pod:
			s.Pods = append(s.Pods, o.DeepCopy())
		case snapshot.Gap:
			s.Gaps = append(s.Gaps, o)
		default:
			panic(fmt.Sprintf("unknown object %T", object))
		}
	}
	SortObjects(s.Slices)
	SortObjects(s.Claims)
	SortObjects(s.Classes)
	SortObjects(s.TaintRules)
	SortObjects(s.Templates)
	SortObjects(s.Nodes)
	SortObjects(s.Pods)
}

// SortObjects sorts as a server lists: by namespace and name.
func SortObjects[T metav1.Object](list []T) {
	slices.SortStableFunc(list, func(a, b T) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
}

// Unchanged makes sure that nobody changes the snapshot during the test.
func Unchanged(t testing.TB, snap *snapshot.Snapshot) {
	t.Helper()
	before := copySnapshot(snap)
	t.Cleanup(func() {
		if diff := gocmp.Diff(before, copySnapshot(snap)); diff != "" {
			t.Errorf("the snapshot was changed (-before +after):\n%s", diff)
		}
	})
}

// copySnapshot copies the objects that an allocator works with.
func copySnapshot(s *snapshot.Snapshot) map[string][]any {
	all := map[string][]any{}
	for _, o := range s.Slices {
		all["slices"] = append(all["slices"], o.DeepCopy())
	}
	for _, o := range s.Claims {
		all["claims"] = append(all["claims"], o.DeepCopy())
	}
	for _, o := range s.Classes {
		all["classes"] = append(all["classes"], o.DeepCopy())
	}
	for _, o := range s.Templates {
		all["templates"] = append(all["templates"], o.DeepCopy())
	}
	for _, o := range s.Nodes {
		all["nodes"] = append(all["nodes"], o.DeepCopy())
	}
	for _, o := range s.Pods {
		all["pods"] = append(all["pods"], o.DeepCopy())
	}
	return all
}

// Gap returns a resource that could not be read.
func Gap(resource, reason string) snapshot.Gap {
	return snapshot.Gap{Resource: resource, Reason: reason}
}

// Gate returns a feature gate that a flag turns on or off.
func Gate(name string, enabled bool) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		s.Gates[name] = snapshot.Gate{Enabled: enabled, Source: snapshot.GateFromFlag}
	}
}

// Gates are the names of feature gates that are on.
type Gates []string

// StableGates returns all that the stable allocator implements.
func StableGates() Gates {
	return Gates{"DRAAdminAccess", "DRAPrioritizedList", "DRAPartitionableDevices", "DRADeviceTaints"}
}

// IncubatingGates returns all that the incubating allocator implements.
func IncubatingGates() Gates {
	return append(StableGates(), "DRAConsumableCapacity", "DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")
}

// ExperimentalGates returns all that the experimental allocator implements.
func ExperimentalGates() Gates {
	return append(IncubatingGates(), "DRAListTypeAttributes", "DRADeviceCompatibilityGroups", "DRADerivedAttributes", "DRAOptionalNodeOperations")
}

// Channels returns sets of gates that select each of the implementations, with everything
// on that they know, and with nothing on.
func Channels() map[string]Gates {
	return map[string]Gates{
		"nothing":      nil,
		"stable":       StableGates(),
		"incubating":   IncubatingGates(),
		"experimental": ExperimentalGates(),
	}
}
