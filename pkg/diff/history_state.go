// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"errors"
	"fmt"

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
