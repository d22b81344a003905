// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestTaintRulesOfOldVersions makes, follows and removes rules on servers that
// have none of version v1.
func TestTaintRulesOfOldVersions(t *testing.T) {
	for version, options := range map[string]controlplane.Options{
		"v1alpha3": {EmulatedVersion: "1.35", FeatureGates: map[string]bool{"DRADeviceTaints": true, "DRADeviceTaintRules": true}},
		"v1beta2":  {EmulatedVersion: "1.36", FeatureGates: map[string]bool{"DRADeviceTaints": true, "DRADeviceTaintRules": true}},
	} {
		t.Run(version, func(t *testing.T) {
			options.RuntimeConfig = map[string]bool{"resource.k8s.io/" + version: true}
			options.WithoutScheduler = true
			c := startCluster(t, options)
			p := programFor(t, c.kubeconfig)
			c.createAll(t, "watch", watchObjects)
			watching := p.start(t, "devices", "--watch", "-o", "wide")
			watching.waitRow(t, "gpu-1", "Free")

			out := p.output(t, "taints", "add", "--pool", "pool-a", "--device", "gpu-1", "example.com/worn:NoSchedule")
			if !strings.Contains(out, "on 1 device (pool=pool-a,device=gpu-1)") {
				t.Errorf("it says\n%s", out)
			}
			rules := c.dynamic.Resource(schema.GroupVersionResource{Group: "resource.k8s.io", Version: version, Resource: "devicetaintrules"})
			if _, err := rules.Get(t.Context(), "pool-a-gpu-1-worn", metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
			watching.waitRow(t, "gpu-1", "Tainted")
			listed := items[api.Taint](t, p, "taints")
			if len(listed) != 1 || listed[0].Rule != "pool-a-gpu-1-worn" || len(listed[0].Devices) != 1 || listed[0].Since == nil {
				t.Errorf("got %+v", listed)
			}
			p.output(t, "taints", "remove", "example.com/worn")
			watching.waitRow(t, "gpu-1", "Free")
			if code, _, stderr := watching.interrupt(t); code != 0 || len(stderr) > 0 {
				t.Errorf("code %d, %q", code, stderr)
			}
		})
	}
}
