// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Find looks a target up.
func Find(c *cluster.Cluster, opts Options) (*Target, error) {
	s := &Target{Options: opts}
	var err error
	switch opts.Object.Kind {
	case api.KindClaim:
		err = s.findClaim(c)
	case api.KindTemplate:
		err = s.findTemplate(c.Snapshot)
	case api.KindPod:
		err = s.findPod(c)
	case api.KindPodGroup:
		err = s.findPodGroup(c)
	default:
		err = s.findWorkload(c)
	}
	if err == nil && opts.Node != "" {
		err = s.findNode(c, opts.Node)
	}
	if err == nil && opts.Device != "" {
		err = s.findDevice(c, opts.Device)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Target) findClaim(c *cluster.Cluster) error {
	claim := c.Snapshot.Claim(s.Object.Namespace, s.Object.Name)
	if claim == nil {
		return notFound(c.Snapshot, s.Object, snapshot.ResourceClaims, c.Snapshot.Claims)
	}
	s.Users = lifecycle.PodsUsing(c.Snapshot, claim)
	if claim.Status.Allocation == nil {
		for _, pod := range s.Users {
			if snapshot.Waits(pod) {
				s.Others = append(s.Others, pod)
			}
		}
		if len(s.Others) > 0 {
			s.UsePod(c, s.Others[0])
			s.Others = s.Others[1:]
			return nil
		}
	}
	s.Claims = []cluster.PodClaim{{Claim: cluster.Defaulted(claim)}}
	return nil
}

func (s *Target) findTemplate(snap *snapshot.Snapshot) error {
	template := snap.Template(s.Object.Namespace, s.Object.Name)
	if template == nil {
		return notFound(snap, s.Object, snapshot.ResourceTemplates, snap.Templates)
	}
	for _, pod := range snap.Pods {
		if pod.Namespace != template.Namespace {
			continue
		}
		if slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool {
			return c.ResourceClaimTemplateName != nil && *c.ResourceClaimTemplateName == template.Name
		}) {
			s.Users = append(s.Users, pod)
		}
	}
	claim := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: template.Name + "-…"},
		Spec:       template.Spec.Spec,
	}
	cluster.Planned(claim, template.Name)
	s.Claims = []cluster.PodClaim{{Generated: true, Template: template.Name, Claim: cluster.Defaulted(claim)}}
	return nil
}

func (s *Target) findPod(c *cluster.Cluster) error {
	pod := c.Snapshot.Pod(s.Object.Namespace, s.Object.Name)
	if pod == nil {
		return notFound(c.Snapshot, s.Object, snapshot.ResourcePods, c.Snapshot.Pods)
	}
	s.Hypothetical = Hypothetical(pod)
	if s.Hypothetical {
		pod = WithClassPriority(c.Snapshot, pod)
	} else {
		s.Users = []*corev1.Pod{pod}
	}
	s.UsePod(c, pod)
	return s.needClaims(c)
}

func (s *Target) findWorkload(c *cluster.Cluster) error {
	var same []*snapshot.Workload
	for _, w := range c.Snapshot.Workloads {
		if !s.isKind(w.GroupVersionKind()) {
			continue
		}
		same = append(same, w)
		if w.Namespace != s.Object.Namespace || w.Name != s.Object.Name {
			continue
		}
		s.Object = w.Ref()
		if s.Users, s.End = lifecycle.Pods(c.Snapshot, w), w.End; s.End != nil {
			return nil
		}
		s.Workload, s.Desired, s.Creator = true, w.Replicas, lifecycle.CreatorOf(w)
		chosen := firstToWait(s.Users)
		switch {
		case chosen >= 0:
			s.UsePod(c, s.Users[chosen])
		case len(s.Users) > 0:
			s.UsePod(c, s.Users[0])
		default:
			s.Hypothetical = true
			s.UsePod(c, podOf(c.Snapshot, w))
			s.New, s.Sample = replicas(s.Pod, w.Replicas)
		}
		return s.needClaims(c)
	}
	if found, err := s.findOwner(c); found || err != nil {
		return err
	}
	return notFound(c.Snapshot, s.Object, hiddenKind(c.Snapshot, s.Object.Kind), same)
}

// firstToWait returns the index of the pod of a workload that waits longest, -1 if none
// does. During a rollout, pods of the latest revision come first: the others are replaced.
// The pods are sorted by age, and the youngest one is of the latest revision.
func firstToWait(pods []*corev1.Pod) int {
	latest := slices.IndexFunc(pods, func(pod *corev1.Pod) bool {
		return snapshot.Waits(pod) && revision(pod) == revision(pods[len(pods)-1])
	})
	if latest >= 0 {
		return latest
	}
	return slices.IndexFunc(pods, snapshot.Waits)
}

// revision returns the revision of a pod's template, empty if its controller gives it none.
func revision(pod *corev1.Pod) string {
	return cmp.Or(pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey], pod.Labels[appsv1.ControllerRevisionHashLabelKey])
}

// hiddenKind returns the resource of a kind if it could not be read, else empty. A snapshot
// does not know resources by their kinds, but their names are related: even the resources of
// other projects begin as their kinds do.
func hiddenKind(snap *snapshot.Snapshot, kind string) string {
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	stem := strings.ToLower(kind)
	stem = stem[:max(len(stem)-1, 0)]
	similar := ""
	for _, gap := range snap.Gaps {
		switch name, group, _ := strings.Cut(gap.Resource, "."); {
		case name == plural.Resource:
			return gap.Resource
		case similar == "" && stem != "" && strings.HasPrefix(name, stem) && strings.Contains(group, "."):
			similar = gap.Resource
		}
	}
	return similar
}
