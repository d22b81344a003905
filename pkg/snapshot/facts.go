package snapshot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UsesVolumeClaims reports whether a pod has volumes whose PersistentVolumeClaims
// decide where it can run.
func UsesVolumeClaims(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

// Finished reports whether no container of a pod will ever run again.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Waits reports whether the scheduler has yet to find a node for a pod.
func Waits(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && !Finished(pod)
}

// Pending reports whether a claim waits for devices.
func Pending(claim *resourceapi.ResourceClaim) bool {
	return claim.Status.Allocation == nil && claim.DeletionTimestamp == nil
}

// ControllerName is the reporting controller of the events of dra-controller, and the name of its
// lease.
const ControllerName = "dra-controller"

// IsAnswer reports whether an event has an answer of dra-controller: that is no fact about the
// cluster, and nothing may be concluded from it.
func IsAnswer(event *corev1.Event) bool { return event.ReportingController == ControllerName }

// StaysOnDrain reports whether a pod belongs to its node: "kubectl drain" leaves pods of DaemonSets, and
// the API's mirrors of static pods, where they are.
func StaysOnDrain(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || owner != nil && (owner.Kind == KindDaemonSet || owner.Kind == "Node")
}

// PoolID names a pool: drivers may give their pools the same names.
type PoolID struct{ Driver, Name string }

// PoolOf returns the pool that a slice belongs to.
func PoolOf(slice *resourceapi.ResourceSlice) PoolID {
	return PoolID{slice.Spec.Driver, slice.Spec.Pool.Name}
}

// KindPoolStatus is the kind of requests for the status of pools. The only
// version that has it is v1alpha3.
const KindPoolStatus = "ResourcePoolStatusRequest"

// AnsweredAt returns when the status of a request was worked out, zero if it does not tell.
func AnsweredAt(request *resourcev1alpha3.ResourcePoolStatusRequest) metav1.Time {
	if request.Status != nil {
		for _, c := range request.Status.Conditions {
			if c.Type == resourcev1alpha3.ResourcePoolStatusRequestConditionComplete && c.Status == metav1.ConditionTrue {
				return c.LastTransitionTime
			}
		}
	}
	return metav1.Time{}
}

// DaemonNode returns the node for which a DaemonSet has created a pod; it is empty for other
// pods. The controller sets this affinity instead of the template's
// (ReplaceDaemonSetPodNodeNameNodeAffinity in pkg/controller/daemon/util).
func DaemonNode(pod *corev1.Pod) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != KindDaemonSet || pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return ""
	}
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return ""
	}
	return OnlyNode(required.NodeSelectorTerms)
}

// OnlyNode returns the node that terms select by its name, empty if they select otherwise.
func OnlyNode(terms []corev1.NodeSelectorTerm) string {
	if len(terms) != 1 || len(terms[0].MatchExpressions) > 0 || len(terms[0].MatchFields) != 1 {
		return ""
	}
	field := &terms[0].MatchFields[0]
	if field.Key != metav1.ObjectNameField || field.Operator != corev1.NodeSelectorOpIn || len(field.Values) != 1 {
		return ""
	}
	return field.Values[0]
}

// SameUID reports whether two UIDs can belong to the same object. Files may lack them.
func SameUID[T ~string](a, b T) bool { return a == b || a == "" || b == "" }
