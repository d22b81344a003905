// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGateDefaults(t *testing.T) {
	for _, tc := range []struct {
		version string
		gate    string
		want    bool
	}{
		{"v1.31.0", "DynamicResourceAllocation", false},
		{"v1.33.4", "DynamicResourceAllocation", false},
		{"v1.34.0", "DynamicResourceAllocation", true},
		{"v1.37.1", "DynamicResourceAllocation", true},
		// Beta and on in 1.33 for itself, whatever it may be good for there.
		{"v1.33.0", "DRAResourceClaimDeviceStatus", true},
		{"v1.33.0", "DRAAdminAccess", false},
		{"v1.34.1", "DRAAdminAccess", true},
		{"v1.33.0", "DRASchedulerFilterTimeout", false},
		{"v1.34.0", "DRASchedulerFilterTimeout", true},
		{"v1.34.0", "DRAPrioritizedList", true},
		{"v1.35.4", "DRAConsumableCapacity", false},
		{"v1.36.3-gke.100", "DRAConsumableCapacity", true},
		{"v1.35.0", "DRAPartitionableDevices", false},
		{"v1.36.0-eks-1a2b3c", "DRAPartitionableDevices", true},
		{"v1.35.0", "DRADeviceTaints", false},
		{"v1.36.0", "DRADeviceTaints", true},
		{"v1.36.0", "DRADeviceTaintRules", false},
		{"v1.37.0", "DRADeviceTaintRules", true},
		{"v1.36.0", "DRADeviceBindingConditions", true},
		{"v1.35.0", "DRAExtendedResource", false},
		{"v1.37.0", "DRAExtendedResource", true},
		{"v1.37.0", "DRADerivedAttributes", false},
		{"v1.37.0", "DRAFractionalCapacityRange", false},
		{"v1.38.0", "DRAFractionalCapacityRange", true},
		{"v1.37.0", "DRAWorkloadResourceClaims", false},
		{"v1.37.0", "GenericWorkload", false},
		{"v1.36.0", "ResourceHealthStatus", true},
		{"v1.36.0", "ResourceHealthStatusMessage", true},
		{"v1.35.0", "NodeDeclaredFeatures", false},
		{"v1.36.0", "NodeDeclaredFeatures", true},
		// Nobody knows the version: like the newest release in the table.
		{"", "DRADeviceTaintRules", true},
		{"weird\x1b[31m", "DRAFractionalCapacityRange", false},
		{"v1.37.0", "NoSuchGate", false},
	} {
		t.Run(tc.version+"/"+tc.gate, func(t *testing.T) {
			got := (&Snapshot{ServerVersion: tc.version}).Gate(tc.gate)
			if want := (Gate{Enabled: tc.want, Source: GateFromDefault}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestGateThatRequiresAnother(t *testing.T) {
	off := Gate{Source: GateFromFlag}
	s := &Snapshot{ServerVersion: "v1.37.1", Gates: map[string]Gate{
		"DRADeviceTaints":         off,
		"DRAPartitionableDevices": {Enabled: true, Source: GateFromMetrics},
	}}
	if got := s.Gate("DRADeviceTaintRules"); got.Enabled {
		t.Errorf("DRADeviceTaintRules is on although DRADeviceTaints is off: %+v", got)
	}

	s.Gates["DynamicResourceAllocation"] = off
	if got := s.Gate("DRAPrioritizedList"); got.Enabled {
		t.Errorf("DRAPrioritizedList is on although DynamicResourceAllocation is off: %+v", got)
	}
	if got := s.Gate("DRAPartitionableDevices"); !got.Enabled || got.Source != GateFromMetrics {
		t.Errorf("what the cluster reports was overruled by a default: %+v", got)
	}
}

func TestKnownGatesAreSortedAndComplete(t *testing.T) {
	names := KnownGates()
	if !slices.IsSorted(names) {
		t.Errorf("not sorted: %v", names)
	}
	for _, spec := range GateSpecs() {
		for _, required := range spec.Requires {
			if !slices.Contains(names, required) {
				t.Errorf("%s requires %s, which is not in the table", spec.Name, required)
			}
		}
		if !slices.IsSortedFunc(spec.Releases, func(a, b GateRelease) int { return a.Minor - b.Minor }) {
			t.Errorf("%s: releases are not in order", spec.Name)
		}
	}
}

func TestGateSpecIn(t *testing.T) {
	spec := GateSpecs()[slices.Index(KnownGates(), "DRAPrioritizedList")]
	for _, tc := range []struct {
		minor  int
		exists bool
		want   GateRelease
	}{
		{32, false, GateRelease{}},
		{33, true, GateRelease{Minor: 33, Stage: GateAlpha}},
		{35, true, GateRelease{Minor: 34, Stage: GateBeta, Default: true}},
		{36, true, GateRelease{Minor: 36, Stage: GateGA, Default: true}},
		{99, true, GateRelease{Minor: 37, Stage: GateGA, Default: true, Locked: true}},
	} {
		got, exists := spec.In(tc.minor)
		if got != tc.want || exists != tc.exists {
			t.Errorf("1.%d: got %+v, %v; want %+v, %v", tc.minor, got, exists, tc.want, tc.exists)
		}
	}
}

func TestParseGates(t *testing.T) {
	for _, tc := range []struct {
		name   string
		values []string
		want   map[string]bool
		err    string
	}{
		{name: "none", want: map[string]bool{}},
		{name: "empty", values: []string{"", " , "}, want: map[string]bool{}},
		{name: "one", values: []string{"DRADeviceTaints=true"}, want: map[string]bool{"DRADeviceTaints": true}},
		{
			name:   "a list and a repeated flag, the later wins",
			values: []string{"DRADeviceTaints=true, DRAPrioritizedList=0", "DRADeviceTaints=F"},
			want:   map[string]bool{"DRADeviceTaints": false, "DRAPrioritizedList": false},
		},
		{name: "nearly right", values: []string{"DRADeviceTaint=true"}, err: `"DRADeviceTaint" is not known; did you mean DRADeviceTaints?`},
		{name: "case", values: []string{"dradevicetaints=true"}, err: "did you mean DRADeviceTaints?"},
		{name: "far off", values: []string{"x=true"}, err: "known are CompositePodGroup, DRAAdminAccess"},
		{name: "no value", values: []string{"DRADeviceTaints"}, err: "write DRADeviceTaints=true or DRADeviceTaints=false"},
		{name: "bad value", values: []string{"DRADeviceTaints=on"}, err: `"on" is neither true nor false`},
		{name: "no name", values: []string{"=true"}, err: `"" is not known`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseGates(tc.values)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got error %v, want one with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{
		"1.36":            "v1.36.0",
		"v1.36":           "v1.36.0",
		"1.36.2":          "v1.36.2",
		"v1.36.3-gke.100": "v1.36.3-gke.100",
		"1.32":            "v1.32.0",
		"1.99":            "v1.99.0",
		"1.31.4":          "",
		"1.20":            "",
		"2.0":             "",
		"latest":          "",
		"":                "",
		"1":               "",
	} {
		got, err := ParseVersion(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q and error %v, want %q", text, got, err, want)
		}
	}
}

func TestGateOfTaintRulesBeforeTheyHadOne(t *testing.T) {
	for version, want := range map[string]bool{"v1.32.0": false, "v1.33.0": true, "v1.34.2": true, "v1.35.0": false, "v1.37.1": true} {
		s := &Snapshot{ServerVersion: version, Gates: map[string]Gate{}}
		if version != "v1.32.0" {
			s.Gates["DRADeviceTaints"] = Gate{Enabled: true, Source: GateFromMetrics}
		}
		if got := s.Gate("DRADeviceTaintRules").Enabled; got != want {
			t.Errorf("with DRADeviceTaints in %s: %t, want %t", version, got, want)
		}
		if s.Gates = nil; s.Gate("DRADeviceTaintRules").Enabled != (version == "v1.37.1") {
			t.Errorf("default in %s is %t", version, s.Gate("DRADeviceTaintRules").Enabled)
		}
	}
}
