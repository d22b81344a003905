// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Overdue reports whether something that began then takes longer than it should.
func Overdue(snap *snapshot.Snapshot, since time.Time) bool {
	return !since.IsZero() && snap.Now().Sub(since) > overdueAfter
}

// Hides reports whether objects of a namespace may exist that were not read.
func Hides(snap *snapshot.Snapshot, resource, namespace string) bool {
	gap := snap.Gap(resource)
	return gap != nil && (gap.Namespace == "" || gap.Namespace != namespace)
}

// PodCondition returns the condition of that type, nil if there is none.
func PodCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == kind {
			return c
		}
	}
	return nil
}

// DeviceName returns the name of an allocated device in its pool.
func DeviceName(result *resourceapi.DeviceRequestAllocationResult) string {
	return result.Pool + "/" + result.Device
}

// DeviceID identifies an allocated device.
func DeviceID(result *resourceapi.DeviceRequestAllocationResult) cluster.DeviceID {
	return cluster.DeviceID{Driver: result.Driver, Pool: result.Pool, Device: result.Device}
}

// Pods lists the live pods of a workload: pods that its selector matches, or that name it
// as their controller.
func Pods(snap *snapshot.Snapshot, w *snapshot.Workload) []*corev1.Pod {
	selector := labels.Nothing()
	if w.Selector != nil {
		if parsed, err := metav1.LabelSelectorAsSelector(w.Selector); err == nil && !parsed.Empty() {
			selector = parsed
		}
	}
	var pods []*corev1.Pod
	for _, pod := range snap.Pods {
		if pod.Namespace != w.Namespace || snapshot.Finished(pod) {
			continue
		}
		owner := metav1.GetControllerOfNoCopy(pod)
		owned := owner != nil && owner.Kind == w.Kind && owner.Name == w.Name
		if owned || selector.Matches(labels.Set(pod.Labels)) {
			pods = append(pods, pod)
		}
	}
	SortPods(pods)
	return pods
}

// SortPods sorts pods by age, the oldest first, and then by name.
func SortPods(pods []*corev1.Pod) {
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), english.CompareNames(a.Name, b.Name))
	})
}

// TemplateSpec returns the spec of the pods that a workload creates. Pods of a DaemonSet
// have the controller's tolerations (pkg/controller/daemon/util/daemonset_util.go).
func TemplateSpec(w *snapshot.Workload) corev1.PodSpec {
	spec := *w.Template.Spec.DeepCopy()
	if w.Kind != "DaemonSet" {
		return spec
	}
	tolerate := func(key string, effects ...corev1.TaintEffect) {
		for _, effect := range effects {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
		}
	}
	tolerate(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)
	tolerate(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	for _, key := range []string{corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable} {
		tolerate(key, corev1.TaintEffectNoSchedule)
	}
	if spec.HostNetwork {
		tolerate(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
	}
	return spec
}

// overdueAfter is how long something may take before it is reported.
const overdueAfter = time.Minute

// PodsUsing lists the pods that use a claim, the longest waiting first.
func PodsUsing(snap *snapshot.Snapshot, claim *resourceapi.ResourceClaim) []*corev1.Pod {
	var users []*corev1.Pod
	for _, pod := range snap.Pods {
		if pod.Namespace != claim.Namespace {
			continue
		}
		for name := range resourceclaim.PodClaims(pod) {
			if name == claim.Name {
				users = append(users, pod)
				break
			}
		}
	}
	SortPods(users)
	return users
}
