// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"bytes"
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

func TestDetailsSayNothingOfNothing(t *testing.T) {
	var out bytes.Buffer
	if err := PoolDetails(&out, []*api.Pool{{Driver: "d", Name: "p"}}, render.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := ClaimDetails(&out, []*api.Claim{{Name: "c"}}, render.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := ClassDetails(&out, nil, nil, render.Options{}); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
}

func TestDetailsAreEscaped(t *testing.T) {
	const evil = "\x1b[2J"
	var out bytes.Buffer
	pools := []*api.Pool{{Driver: evil, Name: evil, Unhealthy: []api.UnhealthyDevice{{Name: evil, Message: evil}}, Counters: []api.Counter{{CounterSet: evil, Name: evil, UsedBy: []string{evil}}}}}
	if err := PoolDetails(&out, pools, render.Options{}); err != nil {
		t.Fatal(err)
	}
	claims := []*api.Claim{{Name: evil, Flags: []api.ClaimFlag{{Name: evil, Message: evil}}, Requests: []api.ClaimRequest{{Devices: []api.ClaimDevice{{Device: evil, Status: &api.DeviceStatus{Interface: evil, IPs: []string{evil}}}}}}}}
	if err := ClaimDetails(&out, claims, render.Options{}); err != nil {
		t.Fatal(err)
	}
	resources := []api.ExtendedResource{{Name: evil, Class: evil, Problem: evil, Nodes: []api.ResourceOnNode{{Node: evil}}}}
	if err := ClassDetails(&out, nil, resources, render.Options{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("control characters in %q", out.String())
	}
}
