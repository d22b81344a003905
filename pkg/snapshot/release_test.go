// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestGateDefaults(t *testing.T) {
	for _, tc := range []struct {
		version string
		gate    string
		want    bool
	}{
		// Not supported: like the oldest that is.
		{"v1.31.0", "DynamicResourceAllocation", true},
		{"v1.35.0", "DynamicResourceAllocation", true},
		{"v1.37.1", "DynamicResourceAllocation", true},
		{"v1.35.0", "DRAResourceClaimDeviceStatus", true},
		{"v1.33.0", "DRAAdminAccess", true},
		{"v1.34.1", "DRADeviceTaintRules", false},
		{"v1.35.0", "DRASchedulerFilterTimeout", true},
		{"v1.35.0", "DRAPrioritizedList", true},
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
			got := (&Snapshot{Release: Release{ServerVersion: tc.version}}).Gate(tc.gate)
			if want := (Gate{Enabled: tc.want, Source: GateFromDefault}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestGateThatRequiresAnother(t *testing.T) {
	off := Gate{Source: GateFromFlag}
	s := &Snapshot{Release: Release{ServerVersion: "v1.37.1", Gates: map[string]Gate{
		"DRADeviceTaints":         off,
		"DRAPartitionableDevices": {Enabled: true, Source: GateFromMetrics},
	}}}
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
		{34, false, GateRelease{}},
		{35, true, GateRelease{Minor: 35, Stage: GateBeta, Default: true}},
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
		"1.20":            "v1.20.0",
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

// TestSkew covers the kubelets of clusters whose version is not known.
func TestSkew(t *testing.T) {
	for name, test := range map[string]struct {
		kubelets []string
		want     Skew
		rules    bool
	}{
		"none":                   {nil, Skew{}, true},
		"not readable":           {[]string{"", "new"}, Skew{}, true},
		"one release":            {[]string{"v1.36.1", "v1.36.0-gke.1"}, Skew{36, 39}, false},
		"two releases":           {[]string{"v1.35.2", "v1.37.1"}, Skew{37, 38}, true},
		"older than supported":   {[]string{"v1.33.2"}, Skew{33, 36}, false},
		"further than it can be": {[]string{"v1.31.0", "v1.36.0"}, Skew{36, 34}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var nodes []*corev1.Node
			for _, version := range test.kubelets {
				nodes = append(nodes, &corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: version}}})
			}
			got := SkewOf(nodes)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if on := (&Snapshot{Release: Release{Skew: got}}).Gate("DRADeviceTaintRules").Enabled; on != test.rules {
				t.Errorf("DRADeviceTaintRules is %t by default, want %t", on, test.rules)
			}
		})
	}
}
