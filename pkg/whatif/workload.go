// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Workload is the object with the template of a pod, which has to change for future pods to
// be different.
type Workload struct {
	api.ObjectRef

	APIVersion string
	// stored is the workload in the snapshot, nil if it has none. A live snapshot has no
	// workloads but its target.
	stored *snapshot.Workload
}

// WorkloadOf finds the object with the template of a pod. It is false for a pod without a
// controller. The controller of a Deployment's pod is a ReplicaSet; its name is the
// Deployment's name followed by a hash, which is a label of the pod
// (pkg/controller/deployment/sync.go).
func WorkloadOf(snap *snapshot.Snapshot, pod *corev1.Pod) (Workload, bool) {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil {
		return Workload{}, false
	}
	m := Workload{ObjectRef: Owner(pod), APIVersion: controller.APIVersion}
	m.stored = storedWorkload(snap, m.ObjectRef)
	return m, true
}

// Owner returns the object with the template of a pod, as [WorkloadOf] finds it; it is empty
// for a pod without a controller.
func Owner(pod *corev1.Pod) api.ObjectRef {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil {
		return api.ObjectRef{}
	}
	kind, name := controller.Kind, controller.Name
	if hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; hash != "" && kind == "ReplicaSet" {
		if deployment, found := strings.CutSuffix(name, "-"+hash); found {
			kind, name = "Deployment", deployment
		}
	}
	return api.Ref(kind, pod.Namespace, name).In(schema.FromAPIVersionAndKind(controller.APIVersion, kind).Group)
}

// StoredWorkload returns a workload that the snapshot has.
func StoredWorkload(w *snapshot.Workload) Workload {
	m := Workload{ObjectRef: w.Ref(), APIVersion: w.APIVersion, stored: w}
	// A ReplicaSet of a Deployment is changed through the Deployment.
	if c := metav1.GetControllerOfNoCopy(w); c != nil && w.Kind == "ReplicaSet" && c.Kind == "Deployment" {
		return Workload{ObjectRef: api.Ref(c.Kind, w.Namespace, c.Name).In(schema.FromAPIVersionAndKind(c.APIVersion, c.Kind).Group), APIVersion: c.APIVersion}
	}
	return m
}

// storedWorkload returns a workload of the snapshot, nil if it does not have it.
func storedWorkload(snap *snapshot.Snapshot, of api.ObjectRef) *snapshot.Workload {
	for _, w := range snap.Workloads {
		if w.Ref() == of {
			return w
		}
	}
	return nil
}

// builtIn reports whether Kubernetes itself has the kind, so that the place of the pod
// template and the work of the controller are known.
func (m Workload) builtIn() bool {
	switch (schema.GroupKind{Group: m.APIGroup, Kind: m.Kind}) {
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"},
		schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"},
		schema.GroupKind{Group: appsv1.GroupName, Kind: "DaemonSet"},
		schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"},
		schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"},
		schema.GroupKind{Group: batchv1.GroupName, Kind: "CronJob"},
		schema.GroupKind{Kind: "ReplicationController"},
		schema.GroupKind{Kind: "PodTemplate"}:
		return true
	}
	return false
}

// isJob reports whether it is a Job of Kubernetes: its template cannot be changed, and a
// deleted pod counts as a failure (isPodFailed in pkg/controller/job/job_controller.go).
func (m Workload) isJob() bool { return m.Kind == "Job" && m.APIGroup == batchv1.GroupName }

// ReplacesPods reports whether a change of the template is enough to replace the pods,
// including waiting ones.
func (m Workload) ReplacesPods() bool {
	return m.builtIn() && (m.Kind == "Deployment" || m.Kind == "Job")
}

// Editable reports whether it is known how to change its pod template. For an unknown kind,
// the template must have been read, and the kind must be valid.
func (m Workload) Editable() bool {
	if m.builtIn() {
		return true
	}
	_, version, _ := strings.Cut(m.APIVersion, "/")
	return m.stored != nil && len(validation.IsDNS1123Subdomain(m.APIGroup)) == 0 && len(validation.IsDNS1035Label(version)) == 0 &&
		len(validation.IsDNS1035Label(strings.ToLower(m.Kind))) == 0
}

// PodSpecPath returns the path of the spec of its pods.
func (m Workload) PodSpecPath() string {
	if !m.builtIn() {
		return "/spec/template/spec"
	}
	switch m.Kind {
	case "CronJob":
		return "/spec/jobTemplate/spec/template/spec"
	case "PodTemplate":
		return "/template/spec"
	default:
		return "/spec/template/spec"
	}
}

// resource returns the kind for kubectl: with version and group for kinds that Kubernetes
// does not have, since several may have the same name.
func (m Workload) resource() string {
	if m.builtIn() {
		return strings.ToLower(m.Kind)
	}
	group, version, found := strings.Cut(m.APIVersion, "/")
	if !found {
		return m.Kind
	}
	return m.Kind + "." + version + "." + group
}

// PodSpec returns the spec of the pods that the workload makes, as far as it is known:
// without the workload in the snapshot, it is the spec of a pod without the additions of
// admission plugins.
func (m Workload) PodSpec(pod *corev1.Pod) *corev1.PodSpec {
	if m.stored != nil {
		return &m.stored.Template.Spec
	}
	spec := pod.Spec.DeepCopy()
	spec.Tolerations = nil
	for _, t := range pod.Spec.Tolerations {
		if !addedToleration(t) {
			spec.Tolerations = append(spec.Tolerations, t)
		}
	}
	return spec
}

// addedToleration reports whether a toleration looks added by the admission plugin
// DefaultTolerationSeconds or the DaemonSet controller.
func addedToleration(t corev1.Toleration) bool {
	return t.Operator == corev1.TolerationOpExists && t.Value == "" && strings.HasPrefix(t.Key, "node.kubernetes.io/") &&
		(t.TolerationSeconds != nil || t.Effect != "")
}

const (
	replicasPath    = "/spec/replicas"
	parallelismPath = "/spec/parallelism"
)

// Scaled returns the edit that gives a workload another number of pods, and its present
// number; ok is false for a kind without such a number, or if that is not known.
func Scaled(w *snapshot.Workload, count int32) (edit api.Edit, had int32, ok bool) {
	m, path := StoredWorkload(w), replicasPath
	switch (schema.GroupKind{Group: m.APIGroup, Kind: m.Kind}) {
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}, schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"},
		schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"}, schema.GroupKind{Kind: "ReplicationController"}:
	default:
		if path = parallelismPath; !m.isJob() {
			return edit, 0, false
		}
	}
	if w.Replicas == nil || m.Kind != w.Kind {
		return edit, 0, false
	}
	edit = NewEdit(m.ObjectRef, "replace", path, count)
	edit.From, _ = asWritten(*w.Replicas)
	return edit, *w.Replicas, true
}

// Scales reports whether an edit is from [Scaled] or [Replacing]. It does not change
// existing pods.
func Scales(e api.Edit) bool {
	return e.Path == replicasPath || e.Path == parallelismPath || ReplacesPods(e)
}

// scale gives a workload the number of pods that edits say.
func scale(w *snapshot.Workload, edits []api.Edit) error {
	for _, e := range edits {
		if ReplacesPods(e) {
			continue
		}
		var count int32
		if err := json.Unmarshal(e.Value, &count); err != nil {
			return fmt.Errorf("read the value of %s: %w", e.Path, err)
		}
		w.Replicas = &count
	}
	return nil
}

// Paths of the update strategies of a Deployment (strategyPath) and of a DaemonSet
// (updateStrategyPath).
const (
	strategyPath       = "/spec/strategy"
	updateStrategyPath = "/spec/updateStrategy"
)

// OldPods lists the pods of earlier revisions of the Deployment that a pod belongs to, or
// of the DaemonSet on the same node, the oldest first: the pods that a rolling update
// replaces. There are none for other pods.
func OldPods(snap *snapshot.Snapshot, pod *corev1.Pod) (m Workload, old []*corev1.Pod) {
	m, made := WorkloadOf(snap, pod)
	if !made || m.APIGroup != appsv1.GroupName {
		return m, nil
	}
	revision, node := "", ""
	switch m.Kind {
	case snapshot.KindDeployment:
		revision = appsv1.DefaultDeploymentUniqueLabelKey
	case snapshot.KindDaemonSet:
		revision, node = appsv1.DefaultDaemonSetUniqueLabelKey, snapshot.DaemonNode(pod)
	default:
		return m, nil
	}
	for _, other := range snap.Pods {
		if m.Kind == snapshot.KindDaemonSet && (node == "" || other.Spec.NodeName != node) {
			continue
		}
		if of, made := WorkloadOf(snap, other); made && other.Namespace == pod.Namespace && of.Kind == m.Kind && of.Name == m.Name &&
			other.Labels[revision] != pod.Labels[revision] && other.CreationTimestamp.Before(&pod.CreationTimestamp) &&
			!snapshot.Finished(other) {
			old = append(old, other)
		}
	}
	slices.SortStableFunc(old, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return m, old
}

// Replacing returns the edit with which a Deployment or a DaemonSet deletes so many pods
// before it creates others in their place.
func Replacing(m Workload, count int) api.Edit {
	path := strategyPath
	if m.Kind == snapshot.KindDaemonSet {
		path = updateStrategyPath
	}
	return NewEdit(m.ObjectRef, "replace", path, appsv1.DeploymentStrategy{
		Type: appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: new(intstr.FromInt32(0)), MaxUnavailable: new(intstr.FromInt32(int32(count))),
		},
	})
}

// ReplacesPods reports whether an edit is from [Replacing].
func ReplacesPods(e api.Edit) bool { return e.Path == strategyPath || e.Path == updateStrategyPath }

// Strategy returns the update strategy of a workload in the snapshot, nil if it has no such
// object.
func (m Workload) Strategy() *snapshot.Update {
	switch {
	case m.stored == nil:
		return nil
	case m.stored.Update == nil:
		return &snapshot.Update{}
	default:
		return m.stored.Update
	}
}

// WithoutPods returns the snapshot after pods were deleted, and their claims released that
// no other pod uses.
func WithoutPods(snap *snapshot.Snapshot, pods []*corev1.Pod) *snapshot.Snapshot {
	return Leave(snap, func(pod *corev1.Pod) bool { return slices.Contains(pods, pod) },
		func(claim *resourceapi.ResourceClaim, _ *resourceapi.DeviceRequestAllocationResult) bool {
			users := claim.Status.ReservedFor
			return len(users) > 0 && !slices.ContainsFunc(users, func(user resourceapi.ResourceClaimConsumerReference) bool {
				return !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.UID == user.UID && pod.Namespace == claim.Namespace })
			})
		})
}

// replace changes the snapshot to the state after a workload has deleted as many old pods
// as such an edit allows.
func replace(snap *snapshot.Snapshot, object api.ObjectRef, e api.Edit) error {
	var strategy appsv1.DeploymentStrategy
	if err := json.Unmarshal(e.Value, &strategy); err != nil {
		return fmt.Errorf("read the value of %s: %w", e.Path, err)
	}
	for _, pod := range snap.Pods {
		m, old := OldPods(snap, pod)
		if len(old) == 0 || m.ObjectRef != object || pod.Spec.NodeName != "" {
			continue
		}
		count := len(old)
		if limits := strategy.RollingUpdate; limits != nil && limits.MaxUnavailable != nil {
			count = min(count, limits.MaxUnavailable.IntValue())
		}
		*snap = *WithoutPods(snap, old[:count])
		return nil
	}
	return nil
}
