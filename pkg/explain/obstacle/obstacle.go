// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package obstacle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
)

// Obstacle is something other than devices that keeps a pod from being placed,
// whatever the node.
type Obstacle struct {
	Code api.Code
	// Stage is where the pod stands because of it, empty for one that cannot even
	// be created.
	Stage api.Stage
	lifecycle.Finding
}

// Unevaluated is something that may be in the way of a pod, and that is not known.
type Unevaluated struct {
	What, Why string
	// Always is set if it is told whatever the verdict, and not only of what fits.
	Always bool
	// Quiet is set if it is no part of the summary.
	Quiet bool
}

func (u Unevaluated) String() string { return fmt.Sprintf("%s (%s)", u.What, u.Why) }

// DecideGang says what becomes of the gang of a pod, nil if it has none.
type DecideGang func(ctx context.Context, pod *corev1.Pod) (*target.Gang, error)

// finder collects what is in the way of one pod, and what may be.
type finder struct {
	*funnel.Question
	target      *target.Target
	verdict     api.Verdict
	together    DecideGang
	unevaluated []Unevaluated
}
