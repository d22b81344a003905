// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
)

// TestOnlyIn looks a name up in one namespace and in all of them.
func TestOnlyIn(t *testing.T) {
	claims := []*resourceapi.ResourceClaim{
		{ObjectMeta: named("web", "twin")}, {ObjectMeta: named("ml", "twin")}, {ObjectMeta: named("ml", "train")},
	}
	for _, test := range []struct{ namespace, name, found, message string }{
		{name: "train", found: "ml/train"},
		{namespace: "ml", name: "twin", found: "ml/twin"},
		{namespace: "web", name: "train"},
		{name: "twin", message: "find claim twin: it is ambiguous, there is one in each of the namespaces ml, web"},
	} {
		claim, err := OnlyOneIn(claims, "claim", test.namespace, test.name)
		found, message := "", ""
		if claim != nil {
			found = claim.Namespace + "/" + claim.Name
		}
		if err != nil {
			message = err.Error()
		}
		if found != test.found || message != test.message || err != nil && ExitCode(err) != ExitUsage {
			t.Errorf("%q in %q: found %q, %v; want %q, %q", test.name, test.namespace, found, err, test.found, test.message)
		}
	}
}
