// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Names and labels of the objects of a test.
const (
	// NamespacePrefix begins the names of namespaces of tests.
	NamespacePrefix = "kubectl-dra-test-"
	// Selector selects the namespaces of tests.
	Selector = nameLabel + "=" + labelValue + "," + managedLabel + "=kubectl-dra"

	nameLabel    = "app.kubernetes.io/name"
	labelValue   = "kubectl-dra-test"
	managedLabel = "app.kubernetes.io/managed-by"
	// ownerAnnotation names the process that runs the test, as HOST/PID, and
	// untilAnnotation is its latest end.
	ownerAnnotation = "dra.kubectl.dev/test-owner"
	untilAnnotation = "dra.kubectl.dev/test-until"
	// podSecurityLabel allows pods that use the network of the node, or see its
	// files.
	podSecurityLabel = "pod-security.kubernetes.io/enforce"
)

const (
	// ClaimContainer is the container with the claim.
	ClaimContainer = "claim"
	// OtherContainer is a container without the claim.
	OtherContainer = "other"
	// podClaim is the claim's name in the pod.
	podClaim = "devices"
	// nobody is the user of the containers.
	nobody = 65534
)

func labels() map[string]string {
	return map[string]string{nameLabel: labelValue, managedLabel: "kubectl-dra"}
}

// PodOptions describe the pods of a test.
type PodOptions struct {
	Image       string
	PullPolicy  corev1.PullPolicy
	HostNetwork bool
	// Lifetime is the time after which the node ends a pod, whatever the program does.
	Lifetime time.Duration
	// Tolerations are for taints of nodes.
	Tolerations []corev1.Toleration
}

// Namespace returns the namespace of a test. The owner is the process that runs it, as
// HOST/PID; until is its latest end. A privileged namespace admits pods that see the node.
func Namespace(name, owner string, until time.Time, privileged bool) *corev1.Namespace {
	namespace := &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels(), Annotations: map[string]string{
			ownerAnnotation: owner, untilAnnotation: until.UTC().Format(time.RFC3339),
		}},
	}
	if privileged {
		namespace.Labels[podSecurityLabel] = "privileged"
	}
	return namespace
}

// Leftover reports whether a namespace belongs to a test that nobody runs any more: its
// time is over, or its owner was a process of this host that is gone. If it does not, why
// gives the reason; it is empty for a namespace of no test.
func Leftover(namespace *corev1.Namespace, host string, runs func(pid string) bool, now time.Time) (left bool, why string) {
	if !OfTest(namespace) {
		return false, ""
	}
	until, err := time.Parse(time.RFC3339, namespace.Annotations[untilAnnotation])
	if err != nil || now.After(until) {
		return true, ""
	}
	owner, pid, _ := cutLast(namespace.Annotations[ownerAnnotation], "/")
	if owner == host && !runs(pid) {
		return true, ""
	}
	return false, fmt.Sprintf("namespace %s is of a test that process %s on host %s may still be making, until %s", namespace.Name, pid, owner, until.UTC().Format(time.RFC3339))
}

// OfTest reports whether a namespace belongs to a test, by its name and labels.
func OfTest(namespace *corev1.Namespace) bool {
	return strings.HasPrefix(namespace.Name, NamespacePrefix) &&
		namespace.Labels[nameLabel] == labelValue && namespace.Labels[managedLabel] == labels()[managedLabel]
}

func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// template returns the template for the claims of a case.
func template(c *Case, namespace, name string) *resourceapi.ResourceClaimTemplate {
	t := &resourceapi.ResourceClaimTemplate{
		TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaimTemplate"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels()},
	}
	t.Spec.Labels = labels()
	t.Spec.Spec = *c.Spec.DeepCopy()
	return t
}

// pod returns a pod that uses a claim made from a template, on any node or on one. Its
// containers meet the Pod Security Standard "restricted".
func pod(namespace, name, template, node string, o *PodOptions) *corev1.Pod {
	seconds := int64(o.Lifetime.Seconds())
	container := corev1.Container{
		Image: o.Image, ImagePullPolicy: o.PullPolicy,
		Command: []string{"sh", "-c", fmt.Sprintf("trap 'exit 0' TERM; sleep %d & wait", seconds)},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	with, without := *container.DeepCopy(), container
	with.Name, without.Name = ClaimContainer, OtherContainer
	with.Resources.Claims = []corev1.ResourceClaim{{Name: podClaim}}
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels()},
		Spec: corev1.PodSpec{
			HostNetwork:                   o.HostNetwork,
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         &seconds,
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			Tolerations:                   o.Tolerations,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](nobody), RunAsGroup: ptr.To[int64](nobody),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			ResourceClaims: []corev1.PodResourceClaim{{Name: podClaim, ResourceClaimTemplateName: ptr.To(template)}},
			Containers:     []corev1.Container{with, without},
		},
	}
	if node != "" {
		// spec.nodeName is not set: the scheduler has to do its part.
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}},
		}}
	}
	return p
}

// TolerationsFor returns tolerations for the taints that dedicate nodes: all keys of nodes,
// without the taints of Kubernetes and cloud providers for cordoned or broken nodes.
func TolerationsFor(snap *snapshot.Snapshot) []corev1.Toleration {
	var keys []string
	for _, node := range snap.Nodes {
		for i := range node.Spec.Taints {
			taint := &node.Spec.Taints[i]
			own := strings.HasPrefix(taint.Key, "node.kubernetes.io/") || strings.HasPrefix(taint.Key, "node.cloudprovider.kubernetes.io/")
			if !own && !slices.Contains(keys, taint.Key) {
				keys = append(keys, taint.Key)
			}
		}
	}
	slices.Sort(keys)
	var tolerations []corev1.Toleration
	for _, key := range keys {
		tolerations = append(tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	return tolerations
}
