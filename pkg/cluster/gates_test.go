// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func TestFeatures(t *testing.T) {
	tests := map[string]struct {
		snap *snapshot.Snapshot
		want Features
	}{
		"stable": {
			snap: tc.Snapshot(tc.Gates{GateAdminAccess, GatePrioritizedList}),
			want: Features{Library: Library, Channel: "stable", Cluster: "v1.37.1", Source: "flag", Enabled: []string{GateAdminAccess, GatePrioritizedList}},
		},
		"incubating": {
			snap: tc.Snapshot(tc.Gates{GateConsumableCapacity}),
			want: Features{Library: Library, Channel: "incubating", Cluster: "v1.37.1", Source: "flag", Enabled: []string{GateConsumableCapacity}},
		},
		"experimental": {
			snap: tc.Snapshot(tc.Gates{GateListTypeAttributes}),
			want: Features{Library: Library, Channel: "experimental", Cluster: "v1.37.1", Source: "flag", Enabled: []string{GateListTypeAttributes}},
		},
		"defaults of a version, one gate from the metrics": {
			snap: &snapshot.Snapshot{Release: snapshot.Release{ServerVersion: "v1.34.2", Gates: map[string]snapshot.Gate{
				GateDeviceTaints: {Enabled: true, Source: snapshot.GateFromMetrics},
			}}},
			want: Features{
				Library: Library, Channel: "stable", Cluster: "v1.34.2", Source: "default",
				Enabled: []string{GateAdminAccess, GateDeviceTaints, GatePrioritizedList, GateDeviceStatus, GateFilterTimeout},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := gocmp.Diff(tt.want, newCluster(t, tt.snap).Gates.Features()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFeatureEnabled(t *testing.T) {
	a := newCluster(t, tc.Snapshot(tc.Gates{GateConsumableCapacity}))
	for gate, want := range map[string]bool{GateConsumableCapacity: true, GateDeviceTaints: false, "DynamicResourceAllocation": true, "NoSuchGate": false} {
		if got := a.Gates.Enabled(gate); got != want {
			t.Errorf("%s: got %t, want %t", gate, got, want)
		}
	}
}

func TestLibraryVersion(t *testing.T) {
	gomod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(gomod), "k8s.io/dynamic-resource-allocation "+Library+"\n") {
		t.Errorf("go.mod has another version than %s", Library)
	}
}
