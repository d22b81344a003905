// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// offers adds what a device plugin offers on a node.
func offers(node, name string) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		s.Node(node).Status.Allocatable[corev1.ResourceName(name)] = resource.MustParse("2")
	}
}

// TestPluginHardware counts only nodes where the driver has devices.
func TestPluginHardware(t *testing.T) {
	for name, test := range map[string]struct {
		more func(*snapshot.Snapshot)
		want []string
	}{
		"another resource":  {offers("n1", "example.com/nic"), nil},
		"another vendor":    {offers("n1", "other.example.com/gpu"), nil},
		"a node without it": {offers("n3", "example.com/gpu"), nil},
		"the same name":     {offers("n1", "example.com/gpu"), []string{"Node/n1"}},
		"served by a class": {func(s *snapshot.Snapshot) {
			offers("n1", "example.com/gpu")(s)
			s.Classes[0].Spec.ExtendedResourceName = ptr.To("example.com/gpu")
		}, nil},
		"of a domain with all": {offers("n2", "gpu.example.com/any"), []string{"Node/n2"}},
	} {
		snap := tc.Cluster(append(healthy(), tc.Nodes("n3"), test.more)...)
		var got []string
		for _, f := range diagnose(t, snap, Options{Choice: checks.Choice{Only: []string{"DRA1213"}}}).Findings {
			for _, object := range f.Objects {
				got = append(got, object.String())
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: found %v, want %v", name, got, test.want)
		}
	}
}
