// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

func TestHoldersText(t *testing.T) {
	tests := map[string]struct {
		holders *api.Holders
		want    string
	}{
		"unknown":          {nil, ""},
		"one claim":        {&api.Holders{Claims: 1, Claim: api.Ref("ResourceClaim", "ml", "a"), Namespaces: []api.NamespaceCount{{Namespace: "ml", Devices: 4}}}, "to claim ml/a"},
		"one namespace":    {&api.Holders{Claims: 2, Namespaces: []api.NamespaceCount{{Namespace: "ml", Devices: 4}}}, "to 2 claims in namespace ml"},
		"three namespaces": {&api.Holders{Claims: 6, Namespaces: []api.NamespaceCount{{Namespace: "ml", Devices: 10}, {Namespace: "a", Devices: 5}, {Namespace: "b", Devices: 1}}}, "to 6 claims, 10 devices in namespace ml"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := HoldersText(test.holders); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestHoldersCountsDevicesByNamespace(t *testing.T) {
	claim := func(namespace, name string) *resourceapi.ResourceClaim {
		return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	group := newRejectionGroup(&Reason{Code: api.DeviceAllocated})
	group.claims[claim("a", "x")], group.claims[claim("b", "x")], group.claims[claim("b", "y")] = 4, 3, 2
	want := &api.Holders{Claims: 3, Namespaces: []api.NamespaceCount{{Namespace: "b", Devices: 5}, {Namespace: "a", Devices: 4}}}
	if diff := cmp.Diff(want, group.holders()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if group := newRejectionGroup(&Reason{Code: api.DeviceTainted}); group.holders() != nil {
		t.Error("devices that are not allocated have holders")
	}
}
