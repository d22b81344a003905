// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
)

// Obstacle is something other than devices that keeps a pod from being placed,
// whatever the node.
type Obstacle struct {
	Code api.Code
	// Stage is the stage at which it keeps the pod, empty if the pod cannot even be
	// created.
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
