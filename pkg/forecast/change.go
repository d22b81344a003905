// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Change is something that is about to be done to a cluster.
type Change struct {
	// text says it in a few words.
	text string
	// apply is the cluster after it, with all pods as they are. Nothing of the argument
	// is changed.
	apply func(*snapshot.Snapshot) (*snapshot.Snapshot, error)
	// emptied is the node that all pods leave except pods of DaemonSets and of the node
	// itself, empty for none; gone is set if the node itself is removed.
	emptied string
	gone    bool
	// evicts is set if the pods leave by evictions, which PodDisruptionBudgets can delay.
	evicts bool
	// updates is the DaemonSet whose template changes, nil for other changes, and drivers
	// are the drivers that its pods are. No pod leaves because of that.
	updates *snapshot.Workload
	drivers []string
	// steps say in which order to make it.
	steps func(*snapshot.Snapshot, *api.Impact) []api.NextStep
	// notes returns further facts.
	notes func(before, after *cluster.Cluster) []string
}

// NotFoundError means that the object to change does not exist.
type NotFoundError struct {
	// Kind and Name identify the missing object: "node", "driver", "device".
	Kind, Name string
}

// Error names what does not exist.
func (e *NotFoundError) Error() string { return fmt.Sprintf("%s %s does not exist", e.Kind, e.Name) }

// Cordon keeps new pods from a node.
func Cordon(node string) Change {
	return Change{
		text: "cordon node " + node, apply: cordoned(node),
		steps: func(*snapshot.Snapshot, *api.Impact) []api.NextStep {
			return []api.NextStep{admin("no new pod goes to the node; those that run there stay", "kubectl cordon "+shell.Node(node))}
		},
	}
}

// Uncordon lets new pods onto a node again, without the taint that says that it is cordoned.
func Uncordon(name string) Change {
	return Change{
		text: "uncordon node " + name,
		apply: func(snap *snapshot.Snapshot) (*snapshot.Snapshot, error) {
			node := snap.Node(name)
			if node == nil {
				return nil, &NotFoundError{"node", name}
			}
			open := *node
			open.Spec.Unschedulable = false
			open.Spec.Taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
			return snap.With(&snapshot.Snapshot{Nodes: []*corev1.Node{&open}}), nil
		},
	}
}

// Drain cordons a node and evicts its pods, as "kubectl drain" does: pods of DaemonSets and
// of the node itself stay.
func Drain(node string) Change {
	return Change{text: "drain node " + node, apply: cordoned(node), emptied: node, evicts: true, steps: drainSteps(node)}
}

func cordoned(name string) func(*snapshot.Snapshot) (*snapshot.Snapshot, error) {
	return func(snap *snapshot.Snapshot) (*snapshot.Snapshot, error) {
		if snap.Node(name) == nil {
			return nil, &NotFoundError{"node", name}
		}
		return whatif.Amend(snap, []api.Edit{whatif.NewEdit(api.Ref(api.KindNode, "", name), "add", "/spec/unschedulable", true)})
	}
}

// RemoveNode takes a node out of the cluster, with the slices that only it has.
func RemoveNode(name string) Change {
	return Change{
		text: "remove node " + name, emptied: name, gone: true, evicts: true,
		apply: func(snap *snapshot.Snapshot) (*snapshot.Snapshot, error) {
			if snap.Node(name) == nil {
				return nil, &NotFoundError{"node", name}
			}
			return whatif.RemoveNode(snap, name), nil
		},
		steps: removeNodeSteps(name),
	}
}

// RemoveDriver ends a driver on all nodes: its slices are gone.
func RemoveDriver(driver string) Change {
	return Change{
		text: "remove driver " + driver, steps: removeDriverSteps(driver),
		apply: func(snap *snapshot.Snapshot) (*snapshot.Snapshot, error) {
			after := *snap
			after.Slices = slices.DeleteFunc(slices.Clone(snap.Slices), func(s *resourceapi.ResourceSlice) bool { return s.Spec.Driver == driver })
			if len(after.Slices) == len(snap.Slices) {
				return nil, &NotFoundError{"driver", driver}
			}
			return &after, nil
		},
	}
}

// UpgradeDriver changes the template of the DaemonSet of drivers, which replaces their pods.
func UpgradeDriver(set *snapshot.Workload, drivers []string) Change {
	return Change{
		text:    "upgrade driver " + english.JoinAnd(drivers) + " (DaemonSet " + english.QualifiedName(set) + ")",
		apply:   func(snap *snapshot.Snapshot) (*snapshot.Snapshot, error) { return snap, nil },
		updates: set, drivers: drivers, steps: upgradeDriverSteps(set), notes: upgradeDriverNotes(set, drivers),
	}
}

// RemoveDevice takes one device out of its pool.
func RemoveDevice(id cluster.DeviceID) Change {
	return Change{
		text: "remove device " + id.String(), steps: removeDeviceSteps(id),
		apply: func(snap *snapshot.Snapshot) (*snapshot.Snapshot, error) {
			after, found := *snap, false
			after.Slices = slices.Clone(snap.Slices)
			for i, slice := range after.Slices {
				at := slices.IndexFunc(slice.Spec.Devices, func(d resourceapi.Device) bool { return d.Name == id.Device })
				if slice.Spec.Driver != id.Driver || slice.Spec.Pool.Name != id.Pool || at < 0 {
					continue
				}
				without := *slice
				without.Spec.Devices = slices.Delete(slices.Clone(slice.Spec.Devices), at, at+1)
				after.Slices[i], found = &without, true
			}
			if !found {
				return nil, &NotFoundError{"device", id.String()}
			}
			return &after, nil
		},
	}
}

// Apply adds objects to the cluster, or replaces objects of the same names. Only classes,
// slices, taint rules and templates change anything for existing pods.
func Apply(text string, objects *snapshot.Snapshot, steps []api.NextStep) Change {
	return Change{
		text: text, steps: func(*snapshot.Snapshot, *api.Impact) []api.NextStep { return steps },
		apply: func(snap *snapshot.Snapshot) (*snapshot.Snapshot, error) { return snap.With(dated(snap, objects)), nil },
	}
}

// dated returns the objects with the times that the API server gives to new taints.
func dated(snap, objects *snapshot.Snapshot) *snapshot.Snapshot {
	after := *objects
	now := metav1.Time{Time: snap.Now()}
	after.TaintRules = slices.Clone(objects.TaintRules)
	for i, rule := range after.TaintRules {
		if rule.Spec.Taint.TimeAdded != nil {
			continue
		}
		rule = rule.DeepCopy()
		rule.Spec.Taint.TimeAdded = &now
		for _, stored := range snap.TaintRules {
			if old := stored.Spec.Taint; stored.Name == rule.Name && old.Effect == rule.Spec.Taint.Effect && old.TimeAdded != nil {
				rule.Spec.Taint.TimeAdded = old.TimeAdded
			}
		}
		after.TaintRules[i] = rule
	}
	after.Slices = slices.Clone(objects.Slices)
	for i, slice := range after.Slices {
		slice = slice.DeepCopy()
		for d := range slice.Spec.Devices {
			for t := range slice.Spec.Devices[d].Taints {
				if taint := &slice.Spec.Devices[d].Taints[t]; taint.TimeAdded == nil {
					taint.TimeAdded = &now
				}
			}
		}
		after.Slices[i] = slice
	}
	return &after
}

// Taint puts a new DeviceTaintRule into effect.
func Taint(rule *resourceapi.DeviceTaintRule) Change {
	taint := rule.Spec.Taint
	change := Apply("taint devices with "+taint.String(), &snapshot.Snapshot{TaintRules: []*resourceapi.DeviceTaintRule{rule}}, nil)
	change.notes = func(_, after *cluster.Cluster) []string {
		var notes []string
		for _, gate := range []string{cluster.GateDeviceTaints, "DRADeviceTaintRules"} {
			if !after.Gates.Enabled(gate) {
				notes = append(notes, fmt.Sprintf("the feature gate %s is off, so the rule would do nothing", gate))
			}
		}
		return notes
	}
	return change
}

// RemoveTaint takes a DeviceTaintRule away.
func RemoveTaint(rule string) Change {
	return Change{
		text: "remove DeviceTaintRule " + rule,
		apply: func(snap *snapshot.Snapshot) (*snapshot.Snapshot, error) {
			after := *snap
			after.TaintRules = slices.DeleteFunc(slices.Clone(snap.TaintRules), func(r *resourceapi.DeviceTaintRule) bool { return r.Name == rule })
			if len(after.TaintRules) == len(snap.TaintRules) {
				return nil, &NotFoundError{"DeviceTaintRule", rule}
			}
			return &after, nil
		},
	}
}

// TaintNode adds a taint to a node.
func TaintNode(name string, taint corev1.Taint) Change {
	return Change{
		text: fmt.Sprintf("taint node %s with %s", name, taint.ToString()),
		apply: func(snap *snapshot.Snapshot) (*snapshot.Snapshot, error) {
			node := snap.Node(name)
			if node == nil {
				return nil, &NotFoundError{"node", name}
			}
			taint.TimeAdded = &metav1.Time{Time: snap.Now()}
			tainted := *node
			tainted.Spec.Taints = append(slices.Clone(node.Spec.Taints), taint)
			return snap.With(&snapshot.Snapshot{Nodes: []*corev1.Node{&tainted}}), nil
		},
	}
}

// Upgrade returns another release of Kubernetes, with its own defaults for feature gates
// and the behavior of its scheduler. Gates that were given or that differ from the default
// of the old release stay.
func Upgrade(version string) Change {
	return Change{
		text: "upgrade to " + version,
		apply: func(snap *snapshot.Snapshot) (*snapshot.Snapshot, error) {
			old := snapshot.Snapshot{Release: snapshot.Release{ServerVersion: snap.ServerVersion}}
			after := *snap
			after.ServerVersion, after.Emulator, after.Gates, after.OtherRelease = version, "", map[string]snapshot.Gate{}, true
			for name, gate := range snap.Gates {
				if gate.Source == snapshot.GateFromFlag || gate.Enabled != old.Gate(name).Enabled {
					after.Gates[name] = gate
				}
			}
			return &after, nil
		},
		notes: upgradeNotes,
	}
}

// upgradeNotes says which gates change, and what the scheduler does otherwise.
func upgradeNotes(before, after *cluster.Cluster) []string {
	var notes []string
	if is, err := version.ParseGeneric(before.Snapshot.ServerVersion); err == nil && version.MustParseGeneric(after.Snapshot.ServerVersion).LessThan(is) {
		notes = append(notes, fmt.Sprintf("the cluster has %s: Kubernetes does not support downgrades", before.Snapshot.ServerVersion))
	}
	for _, name := range snapshot.KnownGates() {
		was, is := before.Snapshot.Gate(name).Enabled, after.Snapshot.Gate(name).Enabled
		if was != is {
			notes = append(notes, fmt.Sprintf("feature gate %s: %s -> %s", name, onOff(was), onOff(is)))
		}
	}
	for _, change := range cluster.BehaviorChanges() {
		was, is := before.Behaves(change.Behavior), after.Behaves(change.Behavior)
		if was == is {
			continue
		}
		component, when := "kube-scheduler", "from then on"
		if change.Behavior == cluster.ExtendedNotEvicted {
			component = "kube-controller-manager"
		}
		if was {
			when = "no longer"
		}
		notes = append(notes, fmt.Sprintf("%s, %s: %s (kubernetes/kubernetes#%d)", component, when, change.Behavior.Text(), change.Upstream))
	}
	return notes
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
