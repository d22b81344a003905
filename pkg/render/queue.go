// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// replicas says how many pods of a workload have their devices, and for whose
// pod the answer is.
func (p *Page) replicas(e *api.Explanation) {
	p.field("Replicas", replicaText(e.Replicas))
	if same := e.SameAs; same != nil {
		p.field("Same as", "Pod "+qualified(same.Namespace, same.Name)+", which is equal for the scheduler: see there for nodes and remedies")
	}
}

// replicaText is "2 of 5 replicas have devices, 0 more fit now".
func replicaText(r *api.ReplicaCount) string {
	if r == nil || r.Desired == nil && r.Waiting == 0 {
		return ""
	}
	total := r.WithDevices + r.Waiting
	if r.Desired != nil {
		total = int(*r.Desired)
	}
	have, fit := "have", "fit"
	if r.WithDevices == 1 {
		have = "has"
	}
	if r.FitNow == 1 {
		fit = "fits"
	}
	text := fmt.Sprintf("%d of %s %s devices", r.WithDevices, english.Count(total, "replica"), have)
	if r.Waiting > 0 {
		text += fmt.Sprintf(", %d more %s now", r.FitNow, fit)
	}
	return text
}
