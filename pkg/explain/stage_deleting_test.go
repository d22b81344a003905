// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
)

// TestForeignFinalizer deletes a claim that somebody else's finalizer keeps, too.
func TestForeignFinalizer(t *testing.T) {
	const owner = "the finalizer example.com/hold keeps claim have, even when no pod uses it: its owner has to remove it"
	for name, test := range map[string]struct {
		finalizers []string
		used       bool
		says, not  string
	}{
		"a pod uses it":          {[]string{resourceapi.Finalizer, "example.com/hold"}, true, "claim have is removed when no pod uses it and the finalizer example.com/hold is removed: until it ends, pod/p keeps the devices", ""},
		"no pod uses it":         {[]string{"example.com/hold"}, false, owner, "pod/p keeps"},
		"both have to be done":   {[]string{resourceapi.Finalizer, "example.com/hold"}, true, owner, "uses it: delete"},
		"only the usual one":     {[]string{resourceapi.Finalizer}, true, "claim have is removed when no pod uses it: until it ends, pod/p keeps the devices", "its owner has to"},
		"only that of the owner": {[]string{"example.com/hold"}, true, owner, "uses it: delete"},
	} {
		t.Run(name, func(t *testing.T) {
			parts := append(boundPod(running), changeHave(func(c *resourceapi.ResourceClaim) {
				c.DeletionTimestamp, c.Finalizers = ptr.To(ago(time.Hour)), test.finalizers
				if !test.used {
					c.Status.Allocation, c.Status.ReservedFor = nil, nil
				}
			}))
			e := explainEach(t, tc.Cluster(parts...), "ResourceClaim/have")["ResourceClaim/have"]
			if text := asJSON(e.NextSteps); !strings.Contains(text, test.says) || test.not != "" && strings.Contains(text, test.not) {
				t.Errorf("want %q and not %q in %s", test.says, test.not, text)
			}
		})
	}
}
