// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

// TestDoctorProbesServer sends the objects of the probe to real API servers: to a server
// that stores all fields, and to the same one with two feature gates off, which drops their
// fields.
func TestDoctorProbesServer(t *testing.T) {
	options := controlplane.Options{WithoutScheduler: true, WithoutControllerManager: true, FeatureGates: map[string]bool{"DRADerivedAttributes": true}}
	c := startCluster(t, options)
	c.createAll(t, "ml", compatibilityObjects)
	probe := func() answered {
		return invoke(t.Context(), c.kubeconfig, "doctor", "--probe", "--only", "DRA1006", "-o", "wide")
	}
	if got := probe(); got.code != 0 || strings.Contains(got.out, "DRA1006") {
		t.Errorf("with all gates on: %+v", got)
	}
	options.FeatureGates = map[string]bool{"DRADeviceTaints": false, "DRADeviceTaintRules": false, "DRAConsumableCapacity": false}
	mustDo(t, func() error { return c.plane.Restart(t.Context(), options) })
	got := probe()
	for _, want := range []string{
		"spec.devices.requests[0].exactly.derivedAttributes of a ResourceClaim would be dropped: the feature gate DRADerivedAttributes is off",
		"spec.devices.requests[0].exactly.capacity of a ResourceClaim would be dropped: the feature gate DRAConsumableCapacity is off",
		"spec.devices.requests[0].exactly.tolerations of a ResourceClaim would be dropped: the feature gate DRADeviceTaints is off",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("with gates off, it does not say %q: %+v", want, got)
		}
	}
	if out := invoke(t.Context(), c.kubeconfig, "claims", "-o", "name"); strings.Contains(out.out, "probe") {
		t.Errorf("the probe was stored: %+v", out)
	}
}
