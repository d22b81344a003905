// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
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

// TestMissingRights covers what the service account of a driver may not do.
func TestMissingRights(t *testing.T) {
	cluster := tc.Cluster(healthy()...)
	c := facts.New(cluster)
	reviews := func(allowed func(Right) bool) []Review {
		list := []Review{}
		for _, right := range Rights(c) {
			list = append(list, Review{Right: right, Allowed: allowed(right)})
		}
		return list
	}
	for _, test := range []struct {
		reviews  []Review
		severity api.Severity
		says     string
	}{
		{reviews(func(Right) bool { return true }), "", ""},
		{reviews(func(r Right) bool { return r.Verb != "update" }), api.SeverityWarning, "service account default of DaemonSet driver/driver may not update resourceslices.resource.k8s.io; what it has published"},
		{reviews(func(r Right) bool { return r.Resource != "resourceclaims" }), api.SeverityError, "may not get resourceclaims.resource.k8s.io"},
		{[]Review{{Unknown: "this user may not ask"}}, api.SeverityUnknown, "not checked: this user may not ask"},
	} {
		found := diagnose(t, cluster, Options{Reviews: test.reviews})
		if test.says == "" {
			if len(found.Findings) > 0 {
				t.Errorf("found with all rights: %+v", found.Findings)
			}
			continue
		}
		if len(found.Findings) != 1 || found.Findings[0].Severity != test.severity || !strings.Contains(found.Findings[0].Message, test.says) {
			t.Errorf("want %s %q, found %+v", test.severity, test.says, found.Findings)
		}
	}
	cluster.Workloads[0].Annotations[checks.IgnoreAnnotation] = CodeRights
	if found := diagnose(t, cluster, Options{Reviews: reviews(func(Right) bool { return false })}); len(found.Findings) > 0 || found.Ignored != 1 {
		t.Errorf("the DaemonSet ignores the check: %d ignored, %+v", found.Ignored, found.Findings)
	}
}
