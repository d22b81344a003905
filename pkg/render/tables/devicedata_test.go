// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// TestDeviceData shows a driver's own data about a device, and keeps hostile characters in
// it from the terminal.
func TestDeviceData(t *testing.T) {
	claim := &api.Claim{Namespace: "ml", Name: "train", Requests: []api.ClaimRequest{{Name: "gpu", Devices: []api.ClaimDevice{
		{Request: "gpu", Driver: "gpu.example.com", Pool: "node-1", Device: "gpu-0", Status: &api.DeviceStatus{Data: []byte(`{"vf":"3","note":"a\u001b[2Jb"}`)}},
		{Request: "gpu", Driver: "gpu.example.com", Pool: "node-1", Device: "gpu-1"},
	}}}}
	var out strings.Builder
	if err := ClaimDetails(&out, []*api.Claim{claim}, render.Options{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `node-1/gpu-0`) || !strings.Contains(out.String(), `data {"vf":"3"`) || strings.Contains(out.String(), "gpu-1") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%s", out.String())
	}
}
