// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// taintRuleHints names rules that taint everything.
func (h *finder) taintRuleHints() {
	if h.out.Verdict != api.DoesNotFit {
		return
	}
	for _, rule := range h.Cluster.Snapshot.TaintRules {
		if !h.Cluster.Taints.TaintsAll(rule) {
			continue
		}
		name := api.Ref("DeviceTaintRule", "", rule.Name)
		if !rejects(h.Question, func(r *eligibility.Reason) bool { return r.Code == api.DeviceTainted && r.Fact.Object == name }) {
			continue
		}
		if text := h.Cluster.Taints.OpenRuleText(rule); text != "" {
			h.hint(text, api.Evidence{Object: name, Path: "spec.deviceSelector", Found: "missing", Required: "a driver, a pool or a device"})
			continue
		}
		h.hint(
			cluster.EveryDeviceText(rule)+": "+rule.Spec.Taint.String(),
			api.Evidence{Object: name, Path: "spec.deviceSelector", Found: "{}", Required: "a driver, a pool or a device"},
		)
	}
}
