// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestParseDomainConfig(t *testing.T) {
	const head = `"apiVersion":"resource.nvidia.com/v1beta1","kind":"ComputeDomainChannelConfig"`
	for name, test := range map[string]struct{ parameters, problem string }{
		"a channel":          {`{` + head + `,"domainID":"x","allocationMode":"All"}`, ""},
		"a daemon":           {`{"apiVersion":"resource.nvidia.com/v1beta1","kind":"ComputeDomainDaemonConfig","domainID":"x"}`, ""},
		"no domain":          {`{` + head + `}`, "domainID is missing"},
		"an unknown field":   {`{` + head + `,"domainID":"x","channels":2}`, `unknown field "channels"`},
		"another case":       {`{` + head + `,"domainId":"x"}`, `unknown field "domainId"`},
		"a field twice":      {`{` + head + `,"domainID":"x","domainID":"y"}`, `duplicate field "domainID"`},
		"another version":    {`{"apiVersion":"resource.nvidia.com/v1","kind":"ComputeDomainChannelConfig","domainID":"x"}`, `apiVersion is "resource.nvidia.com/v1"`},
		"another kind":       {`{"apiVersion":"resource.nvidia.com/v1beta1","kind":"GpuConfig"}`, `kind is "GpuConfig"`},
		"a daemon with mode": {`{"apiVersion":"resource.nvidia.com/v1beta1","kind":"ComputeDomainDaemonConfig","domainID":"x","allocationMode":""}`, "no field allocationMode"},
		"another type":       {`{` + head + `,"domainID":7}`, "cannot unmarshal number"},
		"no object":          {`["x"]`, "cannot unmarshal array"},
		"null":               {`null`, `apiVersion is ""`},
		"no JSON":            {`{"domainID`, "unexpected end"},
		"nothing":            {``, "unexpected end"},
	} {
		t.Run(name, func(t *testing.T) {
			config := ParseDomainConfig([]byte(test.parameters))
			if test.problem == "" && (config.Problem != "" || config.DomainID != "x") || !strings.Contains(config.Problem, test.problem) {
				t.Errorf("%+v", config)
			}
		})
	}
}

func FuzzParseDomainConfig(f *testing.F) {
	f.Add(`{"apiVersion":"resource.nvidia.com/v1beta1","kind":"ComputeDomainChannelConfig","domainID":"x"}`)
	f.Fuzz(func(t *testing.T, parameters string) {
		if config := ParseDomainConfig([]byte(parameters)); (config.Problem == "") == (config.DomainID == "") {
			t.Errorf("%+v", config)
		}
	})
}

// TestDomainConfigs: of an allocated claim the allocation counts, since the driver reads that,
// and configuration for another driver is nobody's business.
func TestDomainConfigs(t *testing.T) {
	opaque := func(driver, domain string) resourceapi.DeviceConfiguration {
		return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: driver, Parameters: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"resource.nvidia.com/v1beta1","kind":"ComputeDomainChannelConfig","domainID":"` + domain + `"}`),
		}}}
	}
	claim := &resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Config: []resourceapi.DeviceClaimConfiguration{
		{DeviceConfiguration: opaque("gpu.nvidia.com", "a")}, {DeviceConfiguration: opaque("compute-domain.nvidia.com", "b")}, {},
	}}}}
	if got := DomainConfigs(claim); len(got) != 1 || got[0].DomainID != "b" || got[0].Path != "spec.devices.config[1].opaque.parameters" {
		t.Errorf("%+v", got)
	}
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Config: []resourceapi.DeviceAllocationConfiguration{
		{DeviceConfiguration: opaque("compute-domain.nvidia.com.example.com", "c")}, {DeviceConfiguration: opaque("compute-domain.nvidia.com", "d")},
	}}}
	if got := DomainConfigs(claim); len(got) != 1 || got[0].DomainID != "d" || got[0].Path != "status.allocation.devices.config[1].opaque.parameters" {
		t.Errorf("%+v", got)
	}
}
