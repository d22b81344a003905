// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Publishing returns the drivers that have slices, out of several of which each would do.
func Publishing(snap *snapshot.Snapshot, drivers []string) []string {
	return slices.DeleteFunc(slices.Clone(drivers), func(driver string) bool {
		return !slices.ContainsFunc(snap.Slices, func(s *resourceapi.ResourceSlice) bool { return s.Spec.Driver == driver })
	})
}

// DaemonSet is a DaemonSet that runs, or seems to run, the plugin of a driver.
type DaemonSet struct {
	*snapshot.Workload
	// Named is true if the pod template has the name of the driver.
	Named bool
}

func (d DaemonSet) String() string {
	text := "DaemonSet " + english.QualifiedName(d)
	if !d.Named {
		text += " (a kubelet plugin that by its name belongs to the driver)"
	}
	return text
}

// Labels and annotations that Helm sets on objects of a release (setMetadataVisitor in
// pkg/action/validate.go of Helm).
const (
	managedByLabel    = "app.kubernetes.io/managed-by"
	managedByHelm     = "Helm"
	releaseAnnotation = "meta.helm.sh/release-name"
	releaseNamespace  = "meta.helm.sh/release-namespace"
)

// Manager names where a workload is to be changed, since changes of the workload itself are
// undone from there: its owner, or a Helm release. It is empty if there is neither.
func Manager(w *snapshot.Workload) string {
	if owner := ownerOf(w); owner != nil {
		return owner.Kind + " " + owner.Name
	}
	switch release := w.Annotations[releaseAnnotation]; {
	case w.Labels[managedByLabel] != managedByHelm:
		return ""
	case release == "":
		return "its Helm chart"
	default:
		return "Helm release " + cmp.Or(w.Annotations[releaseNamespace], w.Namespace) + "/" + release
	}
}

// EditManager returns the command that edits the owner of a workload; empty for a Helm
// release, which has no object to edit.
func EditManager(w *snapshot.Workload) string {
	owner := ownerOf(w)
	if owner == nil {
		return ""
	}
	kind := owner.Kind
	if group, version, ok := strings.Cut(owner.APIVersion, "/"); ok {
		kind += "." + version + "." + group
	}
	// kubectl ignores the namespace for an owner that has none.
	return "kubectl edit " + shell.KubectlObjects(kind, w.Namespace, owner.Name)
}

// ownerOf returns the controller of a workload, else its first owner; nil if it has none.
func ownerOf(w *snapshot.Workload) *metav1.OwnerReference {
	if owner := metav1.GetControllerOfNoCopy(w); owner != nil || len(w.OwnerReferences) == 0 {
		return owner
	}
	return &w.OwnerReferences[0]
}

// DaemonSets finds the DaemonSets of a driver: those with its name in the pod template, or
// else plugins of the kubelet without the name of any driver, if their own name, namespace
// or image has the maker's name ("example" of gpu.example.com).
func DaemonSets(snap *snapshot.Snapshot, driver string) []DaemonSet {
	return pluginsOf(snap, snap.Workloads, driver)
}

// DriverPods finds the pods of a driver: the pods of its DaemonSets, and other pods by the
// same rules. If there are none, known is false, and the pods are other plugins of the kubelet
// without the name of a driver, on nodes with its slices: lists of pods lack the arguments
// of containers, which may name it.
func DriverPods(snap *snapshot.Snapshot, driver string) (pods []*corev1.Pod, known bool) {
	plugins := slices.Clone(snap.Workloads)
	alone := map[*snapshot.Workload]*corev1.Pod{}
	for _, pod := range snap.Pods {
		if _, plugin := snapshot.Annotated(pod, snapshot.KubeletPluginAnnotation); plugin && !snapshot.Finished(pod) {
			w := &snapshot.Workload{ObjectMeta: pod.ObjectMeta, Template: corev1.PodTemplateSpec{Spec: pod.Spec}}
			plugins, alone[w] = append(plugins, w), pod
		}
	}
	found := pluginsOf(snap, plugins, driver)
	for _, plugin := range found {
		if pod := alone[plugin.Workload]; pod != nil {
			pods = append(pods, pod)
		} else {
			pods = append(pods, Pods(snap, plugin.Workload)...)
		}
	}
	if len(found) > 0 {
		return pods, true
	}
	nodes := map[string]bool{}
	for _, slice := range snap.Slices {
		if slice.Spec.Driver == driver && slice.Spec.NodeName != nil {
			nodes[*slice.Spec.NodeName] = true
		}
	}
	for _, plugin := range plugins {
		if pod := alone[plugin]; pod != nil && nodes[pod.Spec.NodeName] && !namesDriver(snap, plugin) {
			pods = append(pods, pod)
		}
	}
	return pods, false
}

// namesDriver reports whether a plugin has a name that could be the name of a driver.
func namesDriver(snap *snapshot.Snapshot, w *snapshot.Workload) bool {
	names, _ := w.KubeletPlugin()
	return slices.ContainsFunc(names, func(name string) bool { return isDriver(snap, name) })
}

// pluginsOf returns the plugins of a driver.
func pluginsOf(snap *snapshot.Snapshot, plugins []*snapshot.Workload, driver string) []DaemonSet {
	var named, byMaker []DaemonSet
	for _, w := range plugins {
		names, plugin := w.KubeletPlugin()
		switch {
		case !plugin:
		case slices.Contains(names, driver):
			named = append(named, DaemonSet{w, true})
		case madeBy(w, driver) && !namesDriver(snap, w):
			byMaker = append(byMaker, DaemonSet{w, false})
		}
	}
	if len(named) > 0 {
		return named
	}
	return byMaker
}

// The parts of product.maker.top, the usual form of driver names.
const (
	namedTop    = 1
	namedMaker  = namedTop + 1
	namedLabels = namedMaker + 1
)

// isDriver reports whether a name could be the name of a driver, including drivers for
// storage or networks. Version numbers are not.
func isDriver(snap *snapshot.Snapshot, name string) bool {
	labels := strings.Split(name, ".")
	top := labels[len(labels)-namedTop]
	return slices.Contains(labels, "csi") || len(Publishing(snap, []string{name})) > 0 ||
		len(labels) >= namedLabels && !strings.ContainsAny(top, "0123456789")
}

func madeBy(w *snapshot.Workload, driver string) bool {
	labels := strings.Split(driver, ".")
	if len(labels) < namedLabels {
		return false
	}
	name := labels[len(labels)-namedMaker]
	texts := []string{w.Name, w.Namespace}
	for i := range w.Template.Spec.Containers {
		texts = append(texts, withoutRegistry(w.Template.Spec.Containers[i].Image))
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		return slices.Contains(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune("-._/:@", r) }), name)
	})
}

// withoutRegistry returns the path of an image: the registry does not tell its maker.
func withoutRegistry(image string) string {
	if host, path, found := strings.Cut(image, "/"); found && strings.ContainsAny(host, ".:") {
		return path
	}
	return image
}

// DaemonObject names a DaemonSet for evidence.
func DaemonObject(set DaemonSet) api.ObjectRef {
	return api.RefTo("DaemonSet", set)
}

// DaemonNode returns the node of a DaemonSet's pod: the controller sets an affinity to the
// node's name before the pod is bound.
func DaemonNode(pod *corev1.Pod) string {
	return cmp.Or(pod.Spec.NodeName, snapshot.DaemonNode(pod))
}

// Ready reports whether a pod has the condition Ready.
func Ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// PodTrouble says why a pod is not ready: the state of its first container that is not
// ready, or a condition.
func PodTrouble(pod *corev1.Pod) (string, api.Evidence) {
	fact := api.Evidence{Object: api.RefTo(api.KindPod, pod), Path: "status.phase", Found: string(pod.Status.Phase), Required: "ready"}
	for i, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for j := range list {
			status := &list[j]
			text := ""
			switch {
			case status.Ready:
				continue
			case status.State.Waiting != nil && status.State.Waiting.Reason != "PodInitializing":
				text = status.State.Waiting.Reason
			case status.State.Terminated != nil && status.State.Terminated.ExitCode != 0:
				text = fmt.Sprintf("%s, exit code %d", status.State.Terminated.Reason, status.State.Terminated.ExitCode)
			case status.State.Running != nil && i == 1:
				text = "running, but its readiness probe fails"
			default:
				continue
			}
			fact.Path = fmt.Sprintf("status.%s[name=%s]", []string{"initContainerStatuses", "containerStatuses"}[i], status.Name)
			fact.Found = text
			text = fmt.Sprintf("container %s: %s", status.Name, text)
			if status.RestartCount > 0 {
				text += fmt.Sprintf(" (%s)", english.Count(int(status.RestartCount), "restart"))
			}
			return text, fact
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			fact.Path, fact.Found = "status.conditions[type=PodScheduled]", c.Message
			return "not scheduled: " + c.Message, fact
		}
	}
	return "it is " + string(pod.Status.Phase), fact
}
