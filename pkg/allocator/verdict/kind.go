// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"encoding/json"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Kinds lists the pods that wait for devices of claims, those that share an answer in one
// list, see [Options.Shares]. Pods and lists are in the order of the queue.
func Kinds(c *cluster.Cluster) [][]*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range c.Waiting() {
		if len(c.Claims.OfPod(pod)) > 0 {
			pods = append(pods, target.WithClassPriority(c.Snapshot, pod))
		}
	}
	slices.SortStableFunc(pods, comparePods)
	sorted := newPodKinds(c, true, pods)
	at := map[string]int{}
	var kinds [][]*corev1.Pod
	for _, pod := range pods {
		key := sorted.signature(&Queued{Pod: pod})
		i, known := at[key]
		if !known {
			i, at[key] = len(kinds), len(kinds)
			kinds = append(kinds, nil)
		}
		kinds[i] = append(kinds[i], pod)
	}
	return kinds
}

// podKinds sorts pods into kinds: the pods of a kind are equal to the scheduler.
type podKinds struct {
	cluster *cluster.Cluster
	// shares is set if pods that differ only in names are of one kind, see [Options.Shares].
	shares bool
	// byKey has the kinds by the signatures of their pods.
	byKey map[string]*Kind
	// claimUsers counts the pods that use a claim by its name.
	claimUsers map[types.NamespacedName]int
	// claims has the claims of pods in the cluster as it is, as far as they were asked for.
	claims map[*corev1.Pod][]cluster.PodClaim
	// selected has the keys of the labels by which pods select other pods.
	selected map[string]bool
}

// newPodKinds returns no kinds yet. If waiting is nil, it is the waiting pods of the cluster.
func newPodKinds(c *cluster.Cluster, shares bool, waiting []*corev1.Pod) *podKinds {
	k := &podKinds{
		cluster: c, shares: shares, byKey: map[string]*Kind{}, claims: map[*corev1.Pod][]cluster.PodClaim{}, selected: map[string]bool{},
	}
	all := waiting == nil
	for _, pod := range c.Snapshot.Pods {
		cluster.SelectedLabels(pod, k.selected)
		if all && snapshot.Waits(pod) {
			waiting = append(waiting, pod)
		}
	}
	k.claimUsers = claimUsers(waiting)
	return k
}

// claimUsers counts the pods that use a claim by its name.
func claimUsers(pods []*corev1.Pod) map[types.NamespacedName]int {
	users := map[types.NamespacedName]int{}
	for _, pod := range pods {
		for i := range pod.Spec.ResourceClaims {
			if name := pod.Spec.ResourceClaims[i].ResourceClaimName; name != nil {
				users[types.NamespacedName{Namespace: pod.Namespace, Name: *name}]++
			}
		}
	}
	return users
}

// sort finds the pods that a pod is equal to. A target comes before others as the first of its
// kind.
func (k *podKinds) sort(p *Queued) {
	if p.Kind == nil {
		key := k.signature(p)
		if p.Member {
			key = "member " + key
		}
		if p.PreemptedBy != nil {
			// It is decided in another cluster.
			key = "preempted " + key
		}
		if k.byKey[key] == nil {
			k.byKey[key] = &Kind{First: p, key: key}
		}
		p.Kind = k.byKey[key]
	}
	if kind := p.Kind; kind.Verdict == nil && p.Target && !kind.First.Target {
		kind.First = p
	}
}

// podSignature has all of a pod that the answer for it depends on, but for its
// name. What differs between the pods of one workload and matters to nobody, such
// as the name of the volume with the token, is not part of it.
type podSignature struct {
	Namespace     string
	Owner         api.ObjectRef
	Stage         api.Stage
	Priority      int32
	SchedulerName string
	NodeName      string
	NodeSelector  map[string]string
	Affinity      *corev1.Affinity
	Tolerations   []corev1.Toleration
	Spread        []corev1.TopologySpreadConstraint
	Group         *corev1.PodSchedulingGroup
	Gates         []corev1.PodSchedulingGate
	Overhead      corev1.ResourceList
	Resources     *corev1.ResourceRequirements
	Init          []containerSignature
	Containers    []containerSignature
	Volumes       []corev1.VolumeSource
	Nominated     string
	Deleting      bool
	// Labels are the labels that some pod selects by.
	Labels map[string]string
	Claims []claimSignature
}

type containerSignature struct {
	Name          string
	Resources     corev1.ResourceRequirements
	Ports         []corev1.ContainerPort
	RestartPolicy *corev1.ContainerRestartPolicy
}

type claimSignature struct {
	Entry, Template, Name string
	Spec                  resourceapi.ResourceClaimSpec
	Allocation            *resourceapi.AllocationResult
	Generated             bool
	Problem               string
}

// signature returns the same for pods that are equal to the scheduler.
func (k *podKinds) signature(p *Queued) string {
	pod, claims := p.Pod, k.claimsOf(p.Pod)
	spec := &pod.Spec
	s := podSignature{
		Namespace: pod.Namespace, Owner: whatif.Owner(pod), Stage: lifecycle.StageOf(k.cluster, pod, claims), Priority: ptr.Deref(spec.Priority, 0), SchedulerName: spec.SchedulerName,
		NodeName: spec.NodeName, NodeSelector: spec.NodeSelector, Affinity: spec.Affinity, Tolerations: spec.Tolerations,
		Spread: spec.TopologySpreadConstraints, Group: spec.SchedulingGroup, Gates: spec.SchedulingGates, Overhead: spec.Overhead,
		Resources: spec.Resources, Init: containerSignatures(spec.InitContainers), Containers: containerSignatures(spec.Containers),
		Nominated: pod.Status.NominatedNodeName, Deleting: pod.DeletionTimestamp != nil,
	}
	for key, value := range pod.Labels {
		if k.selected[key] {
			if s.Labels == nil {
				s.Labels = map[string]string{}
			}
			s.Labels[key] = value
		}
	}
	shares := k.shares || !p.Target && !p.Asked
	if shares {
		// Only words depend on it, and nothing is told about a pod that nobody asked about.
		s.Owner = api.ObjectRef{}
		if len(s.Labels) == 0 && !k.dependsOnNamespace(pod, claims) {
			s.Namespace = ""
		}
	}
	for i := range spec.Volumes {
		if source := spec.Volumes[i].VolumeSource; source.PersistentVolumeClaim != nil || source.Ephemeral != nil || source.CSI != nil {
			s.Volumes = append(s.Volumes, source)
		}
	}
	for i := range claims {
		pc := &claims[i]
		c := claimSignature{Entry: pc.Entry, Template: pc.Template, Generated: pc.Generated}
		if pc.Claim != nil {
			c.Spec, c.Allocation = pc.Claim.Spec, pc.Claim.Status.Allocation
			alone := shares && pc.Problem == nil && k.claimUsers[claimKey(pc.Claim)] == 1
			if pc.Template == "" && !pc.ExtendedResources && !alone {
				c.Name = pc.Claim.Name
			}
		}
		switch {
		case pc.Problem == nil:
		case errors.Is(pc.Problem, cluster.ErrClaimNotCreated):
			c.Problem = "not created"
		case errors.Is(pc.Problem, cluster.ErrTemplateMissing):
			c.Problem = "no template"
		default:
			// It is about the claim of this pod.
			c.Problem = pc.Problem.Error()
		}
		s.Claims = append(s.Claims, c)
	}
	data, err := json.Marshal(s)
	if err != nil {
		// Then it is like no other.
		return pod.Namespace + "/" + pod.Name
	}
	return string(data)
}

// claimsOf returns the claims of a pod in the cluster as it is, which nobody may change.
func (k *podKinds) claimsOf(pod *corev1.Pod) []cluster.PodClaim {
	claims, known := k.claims[pod]
	if !known {
		claims = k.cluster.Claims.OfPod(pod)
		k.claims[pod] = claims
	}
	return claims
}

// dependsOnNamespace reports whether the answer for a pod could differ in another
// namespace: because of quotas and limits for objects not yet created, or of volumes,
// groups, admin access and other pods of the namespace.
func (k *podKinds) dependsOnNamespace(pod *corev1.Pod, claims []cluster.PodClaim) bool {
	spec := &pod.Spec
	if a := spec.Affinity; a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) {
		return true
	}
	if len(spec.TopologySpreadConstraints) > 0 || spec.SchedulingGroup != nil || snapshot.UsesVolumeClaims(spec) || k.cluster.Claims.HasExtendedResources(pod) {
		return true
	}
	return slices.ContainsFunc(claims, func(pc cluster.PodClaim) bool {
		return pc.Claim == nil || pc.Problem != nil || pc.Generated || slices.ContainsFunc(pc.Claim.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool {
			return r.Exactly != nil && ptr.Deref(r.Exactly.AdminAccess, false)
		})
	})
}

// claimKey tells claims apart, by namespace and name.
func claimKey(claim *resourceapi.ResourceClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
}

func containerSignatures(containers []corev1.Container) []containerSignature {
	list := make([]containerSignature, 0, len(containers))
	for i := range containers {
		c := &containers[i]
		list = append(list, containerSignature{Name: c.Name, Resources: c.Resources, Ports: c.Ports, RestartPolicy: c.RestartPolicy})
	}
	return list
}
