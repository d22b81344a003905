// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// newAllocator sets an allocator up and makes sure that nobody changes the
// snapshot during the test.
func newAllocator(t testing.TB, snap *snapshot.Snapshot, opts ...Option) *Allocator {
	t.Helper()
	tc.Unchanged(t, snap)
	return Of(Reopen(cluster.New(snap), opts...))
}

// check copies the claims and makes sure that they are not changed.
func check(t testing.TB, a *Allocator, n *corev1.Node, claims ...tc.ClaimWrapper) NodeVerdict {
	t.Helper()
	var list, before []*resourceapi.ResourceClaim
	for _, c := range claims {
		list = append(list, c.ResourceClaim)
		before = append(before, c.DeepCopy())
	}
	verdict := a.Check(context.Background(), n, list)
	if diff := gocmp.Diff(before, list); diff != "" {
		t.Errorf("the claims were changed (-before +after):\n%s", diff)
	}
	return verdict
}

// picked lists the devices of a verdict, the claims separated by "|".
func picked(v NodeVerdict) string {
	var claims []string
	for i := range v.Allocations {
		var devices []string
		for _, r := range v.Allocations[i].Devices.Results {
			devices = append(devices, cluster.DeviceID{Driver: r.Driver, Pool: r.Pool, Device: r.Device}.String())
		}
		claims = append(claims, strings.Join(devices, " "))
	}
	return strings.Join(claims, " | ")
}
