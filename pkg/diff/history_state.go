// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// state is the target in one state of the cluster.
type state struct {
	answer api.AnswerState
	// absent is set if there is nothing to answer about.
	absent error
	// pod and claim are the target, if it is one of the two.
	pod   *corev1.Pod
	claim *resourceapi.ResourceClaim
}

// stateOf returns the target in a cluster. The error is from ctx or a check.
func stateOf(ctx context.Context, c *cluster.Cluster, target explain.Options) (*state, error) {
	answers, err := explain.ReasonsOfEach(ctx, c, []explain.Options{target}, nil)
	if err != nil {
		return nil, fmt.Errorf("follow the answer: %w", err)
	}
	of := target.Object
	s := &state{}
	switch of.Kind {
	case api.KindPod:
		s.pod = c.Snapshot.Pod(of.Namespace, of.Name)
	case api.KindClaim:
		s.claim = c.Snapshot.Claim(of.Namespace, of.Name)
	}
	if absent := new(explain.TargetError); errors.As(answers[0].Err, &absent) {
		s.absent, s.pod, s.claim = absent, nil, nil
		return s, nil
	}
	s.answer = StateOf(answers[0])
	if s.pod != nil {
		s.answer.Node = s.pod.Spec.NodeName
	}
	return s, nil
}

func (s *state) exists() bool { return s.absent == nil }

// same reports whether the target is the same object as in another state.
func (s *state) same(other *state) bool {
	switch {
	case !s.exists() || !other.exists():
		return s.exists() == other.exists()
	case s.pod != nil && other.pod != nil:
		return s.pod.UID == other.pod.UID
	case s.claim != nil && other.claim != nil:
		return s.claim.UID == other.claim.UID
	default:
		return true
	}
}

// waits reports whether the target waits for devices or, if it is a pod, for a node.
func (s *state) waits() bool {
	switch {
	case !s.exists():
		return false
	case s.pod != nil:
		return snapshot.Waits(s.pod)
	case s.claim != nil:
		return snapshot.Pending(s.claim)
	default:
		return s.answer.Verdict != api.Allocated
	}
}

// since returns when the target began to wait, as far as it is known: it was created, or it was
// first seen in the snapshot. It is nil if the target does not wait.
func (s *state) since(snap *snapshot.Snapshot) *metav1.Time {
	at := metav1.NewTime(snap.TakenAt)
	switch {
	case !s.waits():
		return nil
	case s.pod != nil && !s.pod.CreationTimestamp.IsZero():
		at = s.pod.CreationTimestamp
	case s.claim != nil && !s.claim.CreationTimestamp.IsZero():
		at = s.claim.CreationTimestamp
	}
	return &at
}

// uses reports whether the target is a pod that uses a claim.
func (s *state) uses(claim api.ObjectRef) bool {
	if s.pod == nil || s.pod.Namespace != claim.Namespace {
		return false
	}
	for name := range resourceclaim.PodClaims(s.pod) {
		if name == claim.Name {
			return true
		}
	}
	return false
}

// objectOf returns the object of a pod or a claim in a snapshot, nil if there is none; ok is false
// for other targets.
func objectOf(s *snapshot.Snapshot, of api.ObjectRef) (object metav1.Object, ok bool) {
	switch of.Kind {
	case api.KindPod:
		if pod := s.Pod(of.Namespace, of.Name); pod != nil {
			object = pod
		}
		return object, true
	case api.KindClaim:
		if claim := s.Claim(of.Namespace, of.Name); claim != nil {
			object = claim
		}
		return object, true
	default:
		return nil, false
	}
}

// reach is the part of a cluster in which a change may affect the answer: all of it, some nodes, or
// nothing.
type reach struct {
	all   bool
	nodes []string
}

func (r *reach) none() bool { return !r.all && len(r.nodes) == 0 }

// reachOf returns the part of the cluster in which the answer may differ between two snapshots.
func (s *state) reachOf(of api.ObjectRef, was, is *snapshot.Snapshot) reach {
	if own, ok := objectOf(was, of); ok {
		now, _ := objectOf(is, of)
		if own != now || own == nil {
			return reach{all: own != now}
		}
	}
	if !cluster.Between(was, is).Touches(of.Namespace) {
		return reach{}
	}
	changed := Objects(was, is)
	if !s.waits() && s.pod != nil {
		// Other pods and their claims do not matter to a pod that has a node.
		return reach{all: slices.ContainsFunc(changed, func(o api.ObjectRef) bool {
			return o.Kind != api.KindPod && (o.Kind != api.KindClaim || s.uses(o))
		})}
	}
	if len(changed) > 0 && !s.dependsOnNodesAlone() {
		return reach{all: true}
	}
	var r reach
	for _, o := range changed {
		nodes, known := []string(nil), false
		switch {
		case o.Kind == api.KindNode:
			nodes, known = []string{o.Name}, true
		case o.Kind == "ResourceSlice":
			nodes, known = nodesOfSlice(was, is, o.Name)
		case o.Kind == api.KindPod:
			nodes, known = nodesOfPods(was.Pod(o.Namespace, o.Name), is.Pod(o.Namespace, o.Name))
		case o.Kind == api.KindClaim && !s.uses(o):
			nodes, known = nodesOfClaim(was, is, o)
		}
		if !known {
			return reach{all: true}
		}
		r.nodes = append(r.nodes, nodes...)
	}
	slices.Sort(r.nodes)
	r.nodes = slices.Compact(r.nodes)
	return r
}

// dependsOnNodesAlone reports whether the target is a pod that fits on no node, and whether it fits
// on one does not depend on the others.
func (s *state) dependsOnNodesAlone() bool {
	return s.pod != nil && s.waits() && s.answer.Verdict == api.DoesNotFit && s.answer.Code != api.PodsCompete &&
		s.pod.Spec.SchedulingGroup == nil && len(s.pod.Spec.TopologySpreadConstraints) == 0 && !selectsPods(s.pod)
}

// selectsPods reports whether a pod has to be near other pods or far from them.
func selectsPods(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil)
}

// nodesOfPods returns the nodes of a pod as it was and as it is. They are not known if it decides
// about others, too.
func nodesOfPods(states ...*corev1.Pod) (nodes []string, known bool) {
	for _, pod := range states {
		switch {
		case pod == nil:
			continue
		case selectsPods(pod):
			return nil, false
		}
		for _, node := range []string{pod.Spec.NodeName, pod.Status.NominatedNodeName} {
			if node != "" {
				nodes = append(nodes, node)
			}
		}
	}
	return nodes, true
}

// nodesOfClaim returns the nodes that can use the pools of the devices of a claim, as it was and as
// it is. They are not known if a pool does not name its nodes.
func nodesOfClaim(was, is *snapshot.Snapshot, claim api.ObjectRef) (nodes []string, known bool) {
	pools := map[snapshot.PoolID]bool{}
	for _, in := range []*snapshot.Snapshot{was, is} {
		c := in.Claim(claim.Namespace, claim.Name)
		if c == nil || c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			pools[snapshot.PoolID{Driver: r.Driver, Name: r.Pool}] = true
		}
	}
	if len(pools) == 0 {
		return nil, true
	}
	for _, s := range is.Slices {
		switch {
		case !pools[snapshot.PoolOf(s)] || len(s.Spec.Devices) == 0:
		case s.Spec.NodeName == nil:
			return nil, false
		default:
			nodes = append(nodes, *s.Spec.NodeName)
		}
	}
	return nodes, true
}

// nodesOfSlice returns the nodes of a slice as it was and as it is. They are not known if it does
// not name its node.
func nodesOfSlice(was, is *snapshot.Snapshot, name string) (nodes []string, known bool) {
	for _, in := range []*snapshot.Snapshot{was, is} {
		at := slices.IndexFunc(in.Slices, func(s *resourceapi.ResourceSlice) bool { return s.Name == name })
		switch {
		case at < 0:
		case in.Slices[at].Spec.NodeName == nil:
			return nil, false
		default:
			nodes = append(nodes, *in.Slices[at].Spec.NodeName)
		}
	}
	return nodes, true
}
