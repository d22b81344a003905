// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// What is stripped from an object, but for a few words that an explanation
// needs, is noted in annotations of this program's own. So they are saved,
// loaded and copied with the object.
const (
	// DroppedFieldsAnnotation lists, separated by commas, the fields that were
	// applied and that the API server did not store.
	DroppedFieldsAnnotation = "dra.kubectl.dev/dropped-fields"
	// KubeletPluginAnnotation is on a DaemonSet that uses the kubelet's directories
	// for plugins. It lists, separated by commas, all that could be the name of
	// a driver in it.
	KubeletPluginAnnotation = "dra.kubectl.dev/kubelet-plugin"
)

func note(object metav1.Object, key string, words []string) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = strings.Join(words, ",")
	object.SetAnnotations(annotations)
}

// noted returns the words of a note, and whether there is one.
func noted(object metav1.Object, key string) ([]string, bool) {
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
	paths, _ := noted(object, DroppedFieldsAnnotation)
	gates := gatedFields(object)
	var dropped []DroppedField
	for _, path := range paths {
		if gate := gates[lastName(path)]; gate != "" {
			dropped = append(dropped, DroppedField{Path: path, Gate: gate})
		}
	}
	return dropped
}

// gatedFields has the gate for each field that the API server drops without
// it, by the field's name: see DropDisabledFields in pkg/api/resourceclaimspec
// and dropDisabledFields in pkg/registry/resource/{deviceclass,resourceslice}
// of Kubernetes v1.37.1. Those without which an object is refused are left out.
func gatedFields(object metav1.Object) map[string]string {
	switch object.(type) {
	case *resourceapi.ResourceClaim, *resourceapi.ResourceClaimTemplate:
		return map[string]string{
			"adminAccess":       "DRAAdminAccess",
			"capacity":          "DRAConsumableCapacity",
			"derivedAttributes": "DRADerivedAttributes",
			"tolerations":       "DRADeviceTaints",
		}
	case *resourceapi.DeviceClass:
		return map[string]string{"extendedResourceName": "DRAExtendedResource"}
	case *resourceapi.ResourceSlice:
		return map[string]string{
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

// lastName returns the last field name of a path.
func lastName(path string) string {
	return path[strings.LastIndexByte(path, '.')+1:]
}

// noteDropped compares an object with the manifest that kubectl applied.
func noteDropped(object metav1.Object, applied string) {
	gates := gatedFields(object)
	if gates == nil {
		return
	}
	var manifest metav1.TypeMeta
	if json.Unmarshal([]byte(applied), &manifest) != nil {
		return
	}
	// Older versions have the same fields in other places.
	intended, err := decodeResource([]byte(applied), manifest.GroupVersionKind().Version, manifest.Kind)
	if err != nil || intended == nil {
		return
	}
	var dropped []string
	compareFields(asJSON(intended)["spec"], asJSON(object)["spec"], "spec", func(path string) {
		if gates[lastName(path)] != "" {
			dropped = append(dropped, path)
		}
	})
	if len(dropped) > 0 {
		slices.Sort(dropped)
		note(object, DroppedFieldsAnnotation, dropped)
	}
}

func asJSON(object any) map[string]any {
	var fields map[string]any
	if encoded, err := json.Marshal(object); err == nil {
		_ = json.Unmarshal(encoded, &fields)
	}
	return fields
}

// compareFields reports the fields of objects that only the wanted one has.
// Lists are compared if they have the same length.
func compareFields(wanted, stored any, path string, missing func(path string)) {
	switch wanted := wanted.(type) {
	case map[string]any:
		stored, ok := stored.(map[string]any)
		if !ok {
			return
		}
		for name, value := range wanted {
			if found, ok := stored[name]; ok {
				compareFields(value, found, path+"."+name, missing)
			} else {
				missing(path + "." + name)
			}
		}
	case []any:
		stored, ok := stored.([]any)
		if !ok || len(stored) != len(wanted) {
			return
		}
		for i := range wanted {
			compareFields(wanted[i], stored[i], fmt.Sprintf("%s[%d]", path, i), missing)
		}
	}
}

// notePlugin notes on a DaemonSet with a plugin for the kubelet which drivers
// it may be of. It has to come before the pod template is stripped.
func notePlugin(workload *Workload) {
	if workload.Kind != kindDaemonSet {
		return
	}
	if _, found := noted(workload, KubeletPluginAnnotation); found {
		return
	}
	spec := &workload.Template.Spec
	plugin := false
	var texts []string
	for i := range spec.Volumes {
		if host := spec.Volumes[i].HostPath; host != nil {
			plugin = plugin || isPluginDirectory(host.Path)
			texts = append(texts, strings.ReplaceAll(host.Path, "/", " "))
		}
	}
	if !plugin {
		return
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			texts = append(texts, containers[i].Command...)
			texts = append(texts, containers[i].Args...)
			for _, variable := range containers[i].Env {
				texts = append(texts, variable.Value)
			}
		}
	}
	note(workload, KubeletPluginAnnotation, dottedNames(texts))
}

// isPluginDirectory reports whether a directory of a node is one in which the
// kubelet looks for plugins, or one of a plugin, wherever the kubelet's
// directory is.
func isPluginDirectory(directory string) bool {
	for directory = path.Clean(directory); directory != "/" && directory != "."; directory = path.Dir(directory) {
		if base := path.Base(directory); base == "plugins" || base == "plugins_registry" {
			return true
		}
	}
	return false
}

// maxNames bounds how many names are noted of one object.
const maxNames = 50

// dottedNames finds what could be the name of a driver: a DNS name with a dot.
func dottedNames(texts []string) []string {
	word := regexp.MustCompile(`[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)+`)
	found := map[string]bool{}
	for _, text := range texts {
		for _, name := range word.FindAllString(text, -1) {
			if len(found) < maxNames && len(name) <= resourceapi.DriverNameMaxLength && len(validation.IsDNS1123Subdomain(name)) == 0 {
				found[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// KubeletPlugin reports whether the workload is a DaemonSet that uses the
// kubelet's directories for plugins, and the names in it that could be those of
// drivers.
func (w *Workload) KubeletPlugin() (names []string, plugin bool) {
	return noted(w, KubeletPluginAnnotation)
}
