// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

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
