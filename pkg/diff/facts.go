// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// nodeFacts says what changed of a node.
func nodeFacts(name string, was, is *corev1.Node) []fact {
	add, facts := adder(fact{noun: "node", name: name})
	switch {
	case was == nil:
		add("added")
		return *facts
	case is == nil:
		add("gone")
		return *facts
	}
	if was.Spec.Unschedulable != is.Spec.Unschedulable {
		add(map[bool]string{true: "cordoned", false: "uncordoned"}[is.Spec.Unschedulable])
	}
	if from, to := ready(was), ready(is); from != to {
		add("is ready: " + fromTo(from, to))
	}
	before, after := nodeTaints(was), nodeTaints(is)
	for _, text := range after {
		if !slices.Contains(before, text) {
			add("has taint " + text)
		}
	}
	for _, text := range before {
		if !slices.Contains(after, text) {
			add("has no taint " + text + " any more")
		}
	}
	addMap(add, "label", was.Labels, is.Labels)
	addMap(add, "allocatable", resourceTexts(was.Status.Allocatable), resourceTexts(is.Status.Allocatable))
	if from, to := was.Status.NodeInfo.KubeletVersion, is.Status.NodeInfo.KubeletVersion; from != to {
		add("has kubelet " + fromTo(from, to))
	}
	if len(*facts) == 0 {
		add("has other conditions or taints")
	}
	return *facts
}

func ready(n *corev1.Node) string {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			return string(n.Status.Conditions[i].Status)
		}
	}
	return ""
}

// nodeTaints returns the taints of a node but those that Kubernetes sets for its conditions.
func nodeTaints(n *corev1.Node) []string {
	var list []string
	for i := range n.Spec.Taints {
		if text := n.Spec.Taints[i].ToString(); !strings.HasPrefix(text, "node.kubernetes.io/") {
			list = append(list, text)
		}
	}
	return list
}

func resourceTexts(list corev1.ResourceList) map[string]string {
	texts := map[string]string{}
	for name, quantity := range list {
		texts[string(name)] = quantity.String()
	}
	return texts
}

func addMap(add func(string), what string, was, is map[string]string) {
	keys := maps.Clone(was)
	if keys == nil {
		keys = map[string]string{}
	}
	maps.Copy(keys, is)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if was[key] != is[key] {
			add("has " + what + " " + key + ": " + fromTo(was[key], is[key]))
		}
	}
}

// addFields adds the first fields in which an object differs.
func addFields(add func(string), o *object) {
	changed := fieldsOf(o.was, o.is)
	const few = 2
	var texts []string
	for i := range changed[:min(len(changed), few)] {
		texts = append(texts, strings.TrimPrefix(changed[i].Path, "spec.")+" "+fromTo(changed[i].From, changed[i].To))
	}
	if more := len(changed) - few; more > 0 {
		texts = append(texts, english.Count(more, "more field"))
	}
	add("changed: " + strings.Join(texts, ", "))
}

// podFacts says what changed of a pod.
func podFacts(o *object, was, is *corev1.Pod) []fact {
	pod := is
	if pod == nil {
		pod = was
	}
	add, facts := adder(fact{noun: "pod", namespace: pod.Namespace, name: pod.Name})
	switch {
	case was == nil && is.Spec.NodeName != "":
		add("created and scheduled")
	case was == nil:
		add("created")
	case is == nil:
		add("deleted")
	case was.UID != "" && is.UID != "" && was.UID != is.UID:
		add("created again")
	case was.Spec.NodeName == "" && is.Spec.NodeName != "":
		add("scheduled")
	case was.Spec.NodeName != "" && is.Spec.NodeName == "":
		add("is not scheduled any more")
	case is.DeletionTimestamp != nil && was.DeletionTimestamp == nil:
		add("is being deleted")
	case is.Status.Phase != was.Status.Phase && (is.Status.Phase == corev1.PodSucceeded || is.Status.Phase == corev1.PodFailed):
		add("ended: " + string(is.Status.Phase))
	default:
		addFields(add, o)
	}
	return *facts
}

// claimFacts says what changed of a claim.
func claimFacts(o *object, was, is *resourceapi.ResourceClaim) []fact {
	claim := is
	if claim == nil {
		claim = was
	}
	about := fact{noun: "claim", namespace: claim.Namespace, name: claim.Name}
	add, facts := adder(about)
	before, after := devicesOf(was), devicesOf(is)
	switch {
	case len(after) > 0 && !slices.Equal(before, after):
		verb := "got"
		if len(before) > 0 {
			verb = "got other devices:"
		}
		about.devices, about.text = len(after), func(objects, devices string) string { return objects + " " + verb + " " + devices }
		of := ""
		if pod := podOf(claim); pod != "" {
			of = " of pod " + claim.Namespace + "/" + pod
		}
		about.one = "claim " + claim.Namespace + "/" + claim.Name + of + " " + verb + " " + english.Sample(after, shownNames)
		*facts = append(*facts, about)
	case is == nil && len(before) > 0:
		about.devices, about.text = len(before), func(objects, devices string) string {
			return objects + " deleted, which had " + devices
		}
		*facts = append(*facts, about)
	case is == nil:
		add("deleted")
	case was == nil:
		add("created")
	case len(before) > 0 && len(after) == 0:
		about.devices, about.text = len(before), func(objects, devices string) string { return objects + " released " + devices }
		about.one = "claim " + claim.Namespace + "/" + claim.Name + " released " + english.Sample(before, shownNames)
		*facts = append(*facts, about)
	case was.UID != "" && is.UID != "" && was.UID != is.UID:
		add("created again")
	default:
		addFields(add, o)
	}
	return *facts
}

// devicesOf returns the devices that a claim has, by pool and name.
func devicesOf(claim *resourceapi.ResourceClaim) []string {
	if claim == nil || claim.Status.Allocation == nil {
		return nil
	}
	var list []string
	for i := range claim.Status.Allocation.Devices.Results {
		r := &claim.Status.Allocation.Devices.Results[i]
		list = append(list, r.Pool+"/"+r.Device)
	}
	return list
}

// podOf returns the pod that owns a claim or, if there is none, the only pod that it is reserved for.
func podOf(claim *resourceapi.ResourceClaim) string {
	for _, owner := range claim.OwnerReferences {
		if owner.Kind == api.KindPod {
			return owner.Name
		}
	}
	if r := claim.Status.ReservedFor; len(r) == 1 && r[0].Resource == "pods" {
		return r[0].Name
	}
	return ""
}

// ruleFacts says what changed of a DeviceTaintRule.
func ruleFacts(name string, was, is *resourceapi.DeviceTaintRule) []fact {
	add, facts := adder(fact{noun: "DeviceTaintRule", name: name})
	text := func(r *resourceapi.DeviceTaintRule) string {
		return taintTexts(&resourceapi.Device{Taints: []resourceapi.DeviceTaint{{Key: r.Spec.Taint.Key, Value: r.Spec.Taint.Value, Effect: r.Spec.Taint.Effect}}})[0]
	}
	switch {
	case was == nil:
		add("added: taint " + text(is))
	case is == nil:
		add("removed: taint " + text(was))
	case text(was) != text(is):
		add("has taint " + fromTo(text(was), text(is)))
	default:
		add("selects other devices")
	}
	return *facts
}

// objectFacts says what changed of any other object: the fields, if they are few.
func objectFacts(noun string, o *object) []fact {
	add, facts := adder(fact{noun: noun, namespace: o.ref.Namespace, name: o.ref.Name})
	switch o.op() {
	case api.Added:
		add("added")
	case api.Removed:
		add("removed")
	case api.Changed:
		addFields(add, o)
	}
	return *facts
}

// settingsFacts says what changed of the version and the feature gates.
func settingsFacts(was, is *snapshot.Snapshot) []fact {
	var facts []fact
	add := func(name, text string) {
		facts = append(facts, fact{name: name, text: func(_, _ string) string { return text }})
	}
	if was.ServerVersion != is.ServerVersion {
		add("version", "Kubernetes "+fromTo(was.ServerVersion, is.ServerVersion))
	}
	names := maps.Clone(was.Gates)
	if names == nil {
		names = map[string]snapshot.Gate{}
	}
	maps.Copy(names, is.Gates)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		// A gate that one state does not name has its default there.
		if from, to := was.Gate(name).Enabled, is.Gate(name).Enabled; from != to {
			add(name, fmt.Sprintf("feature gate %s %t -> %t", name, from, to))
		}
	}
	return facts
}
