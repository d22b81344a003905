// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// taintRuleHints names rules that taint everything.
func (h *finder) taintRuleHints() {
	if h.out.Verdict != api.DoesNotFit {
		return
	}
	for _, rule := range h.Snap.TaintRules {
		selector := rule.Spec.DeviceSelector
		if selector == nil || selector.Driver != nil || selector.Pool != nil || selector.Device != nil {
			continue
		}
		name := whatif.Object("DeviceTaintRule", "", rule.Name)
		if !h.rejects(func(r *eligibility.Reason) bool { return r.Code == api.DeviceTainted && r.Fact.Object == name }) {
			continue
		}
		h.hint(
			fmt.Sprintf("DeviceTaintRule %s has an empty deviceSelector: it taints all %s of the cluster with %s",
				rule.Name, english.Count(len(h.Cluster.Facts.Pools.Devices()), "device"), ruleTaint(rule)),
			api.Evidence{Object: name, Path: "spec.deviceSelector", Found: "{}", Required: "a driver, a pool or a device"},
		)
	}
}

func ruleTaint(rule *resourceapi.DeviceTaintRule) string {
	return rule.Spec.Taint.String()
}
