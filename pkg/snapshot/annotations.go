// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations of this program that note parts which were stripped from an object, except
// for a few words that an explanation needs. So they are saved, loaded and copied with the
// object.
const (
	// DroppedFieldsAnnotation lists, separated by commas, the fields that were
	// applied and that the API server did not store.
	DroppedFieldsAnnotation = "dra.kubectl.dev/dropped-fields"
	// KubeletPluginAnnotation is on a DaemonSet that uses the kubelet's directories
	// for plugins, and on such a pod of no DaemonSet. It lists, separated by commas,
	// all that could be the name of a driver in it.
	KubeletPluginAnnotation = "dra.kubectl.dev/kubelet-plugin"
	// ComponentAnnotation is on a pod of the control plane, see [ComponentOf].
	ComponentAnnotation = "dra.kubectl.dev/component"
)

// Annotations of the slices of a preview, set by the program that computes it. All but the
// first are optional.
const (
	// PreviewAnnotation marks what no cluster has: a slice that no driver has
	// published, and a node that is assumed. Its value says after what
	// the slice was computed.
	PreviewAnnotation = "dra.kubectl.dev/preview"
	// SimulatedAnnotation marks slices that no real machine is behind. Its value
	// names the machine.
	SimulatedAnnotation = "dra.kubectl.dev/simulated"
	// ClassesAnnotation lists, separated by commas, the DeviceClasses that are
	// installed with the driver.
	ClassesAnnotation = "dra.kubectl.dev/device-classes"
	// ReplacedAnnotation is on the first slice of a pool. It lists the slices that were
	// published instead.
	ReplacedAnnotation = "dra.kubectl.dev/replaced-slices"
)

// Annotate puts words into an annotation of an object, separated by commas. The
// map that the object had stays as it was.
func Annotate(object metav1.Object, key string, words []string) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = strings.Join(words, ",")
	object.SetAnnotations(annotations)
}

// Annotated returns the words of a note, and whether there is one.
func Annotated(object metav1.Object, key string) ([]string, bool) {
	text, found := object.GetAnnotations()[key]
	if text == "" {
		return nil, found
	}
	return strings.Split(text, ","), found
}

// DroppedField is a field that somebody applied and that the API server did
// not store, because the feature gate for it was off.
type DroppedField struct {
	// Path is the field in the object, as in JSONPath without the braces.
	Path string
	// Gate is the feature gate that keeps the field.
	Gate string
}

// DroppedFields lists what a claim, template, class or slice lacks of the
// manifest that kubectl applied, as far as a feature gate of the API server
// decides about it.
func DroppedFields(object metav1.Object) []DroppedField {
	paths, _ := Annotated(object, DroppedFieldsAnnotation)
	gates := GatedFields(object)
	var dropped []DroppedField
	for _, path := range paths {
		if gate := gates.Of(path); gate != "" {
			dropped = append(dropped, DroppedField{Path: path, Gate: gate})
		}
	}
	return dropped
}

// FieldGates has the gate for each field that the API server drops without it,
// by the field's name.
type FieldGates map[string]string

// Of returns the gate for the field at a path, empty if there is none.
func (g FieldGates) Of(path string) string { return g[path[strings.LastIndexByte(path, '.')+1:]] }

// GatedFields returns the gates for the fields of an object: see DropDisabledFields in
// pkg/api/resourceclaimspec and dropDisabledFields in
// pkg/registry/resource/{deviceclass,resourceslice} of Kubernetes v1.37.1. Those without
// which an object is refused are left out.
func GatedFields(object metav1.Object) FieldGates {
	switch object.(type) {
	case *resourceapi.ResourceClaim, *resourceapi.ResourceClaimTemplate:
		return FieldGates{
			"adminAccess":       "DRAAdminAccess",
			"capacity":          "DRAConsumableCapacity",
			"derivedAttributes": "DRADerivedAttributes",
			"tolerations":       "DRADeviceTaints",
		}
	case *resourceapi.DeviceClass:
		return FieldGates{"extendedResourceName": "DRAExtendedResource"}
	case *resourceapi.ResourceSlice:
		return FieldGates{
			"allowMultipleAllocations": "DRAConsumableCapacity",
			"requestPolicy":            "DRAConsumableCapacity",
			"bindingConditions":        "DRADeviceBindingConditions",
			"bindingFailureConditions": "DRADeviceBindingConditions",
			"bindsToNode":              "DRADeviceBindingConditions",
			"compatibilityGroups":      "DRADeviceCompatibilityGroups",
			"consumesCounters":         "DRAPartitionableDevices",
			"sharedCounters":           "DRAPartitionableDevices",
			"taints":                   "DRADeviceTaints",
		}
	default:
		return nil
	}
}

// The components of the control plane whose pods tell their feature gates.
const (
	ComponentScheduler         = "kube-scheduler"
	ComponentControllerManager = "kube-controller-manager"
	// ComponentLabel is the label that kubeadm and others give their pods.
	ComponentLabel = "component"
)

// Components lists them.
func Components() []string { return []string{ComponentControllerManager, ComponentScheduler} }

// Component is the pod's information about a component.
type Component struct {
	Name string
	// Version is the version of its image, such as "v1.37.1"; empty if that has none.
	Version string
	// Gates are the feature gates that its arguments set.
	Gates map[string]bool
}

// versionWord stands before the version in an annotation.
const versionWord = "version"

// NoteComponent notes on a pod which component it is, and what it says.
func NoteComponent(pod metav1.Object, c *Component) {
	words := []string{c.Name}
	if c.Version != "" {
		words = append(words, versionWord+"="+c.Version)
	}
	for _, gate := range slices.Sorted(maps.Keys(c.Gates)) {
		words = append(words, gate+"="+strconv.FormatBool(c.Gates[gate]))
	}
	Annotate(pod, ComponentAnnotation, words)
}

// ComponentOf returns the component noted on a pod, if any.
func ComponentOf(pod metav1.Object) (Component, bool) {
	words, _ := Annotated(pod, ComponentAnnotation)
	if len(words) == 0 || !slices.Contains(Components(), words[0]) {
		return Component{}, false
	}
	c := Component{Name: words[0], Gates: map[string]bool{}}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		if name == versionWord {
			if _, ok := MinorVersion(value); ok {
				c.Version = value
			}
		} else if enabled, err := strconv.ParseBool(value); err == nil {
			c.Gates[name] = enabled
		}
	}
	return c, true
}
