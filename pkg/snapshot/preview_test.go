// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// published is a cluster in which a driver has published pools for node-1, some
// time ago, and for node-2; another driver has a pool for node-1 too.
const published = `
apiVersion: dra.kubectl.dev/v1alpha1
kind: Snapshot
---
{apiVersion: v1, kind: Node, metadata: {name: node-1}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-2}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-1-gpu-x7w2k}
spec: {driver: gpu.example.com, nodeName: node-1, pool: {name: node-1, generation: 7, resourceSliceCount: 1}, devices: [{name: gpu-0}, {name: gpu-1}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-1-old-9qk4d}
spec: {driver: gpu.example.com, nodeName: node-1, pool: {name: node-1-old, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-7}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-1-nic-5tz8m}
spec: {driver: nic.example.com, nodeName: node-1, pool: {name: node-1, generation: 1, resourceSliceCount: 1}, devices: [{name: nic-0}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-2-gpu-2vx6p}
spec: {driver: gpu.example.com, nodeName: node-2, pool: {name: node-2, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {namespace: ml, name: train}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, count: 2}}]}}
status:
  allocation:
    devices:
      results:
      - {request: gpu, driver: gpu.example.com, pool: node-1, device: gpu-0}
      - {request: gpu, driver: gpu.example.com, pool: node-1, device: gpu-1}
---
apiVersion: resource.k8s.io/v1alpha3
kind: ResourcePoolStatusRequest
metadata: {name: counted}
spec: {driver: gpu.example.com}
status:
  poolCount: 2
  pools:
  - {driver: gpu.example.com, poolName: node-1, nodeName: node-1, generation: 7, totalDevices: 2}
  - {driver: gpu.example.com, poolName: node-2, nodeName: node-2, generation: 1, totalDevices: 1}
`

// previewOf returns a preview of a node with one device.
func previewOf(node, annotations string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %[1]s-gpu-0, annotations: {%[2]s}}
spec: {driver: gpu.example.com, nodeName: %[1]s, pool: {name: %[1]s, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}]}
---
`, node, annotations)
}

func mustLoadPreview(t *testing.T, text string) *snapshot.Snapshot {
	t.Helper()
	preview, err := files.Preview(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	return preview
}

func sliceNames(s *snapshot.Snapshot) []string {
	var list []string
	for _, slice := range s.Slices {
		list = append(list, slice.Name)
	}
	return list
}

func requireDiff(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestWithPreview lays a preview over a pool that was published: whatever the
// driver had published for the node is gone, and everything says so.
func TestWithPreview(t *testing.T) {
	s := testsnapshot.Load(t, published)
	preview := mustLoadPreview(t, previewOf("node-1", "dra.kubectl.dev/preview: example@1, dra.kubectl.dev/device-classes: 'gpu.example.com,mig.example.com'"))
	before, laid := testsnapshot.Load(t, published), mustLoadPreview(t, previewOf("node-1", "dra.kubectl.dev/preview: example@1, dra.kubectl.dev/device-classes: 'gpu.example.com,mig.example.com'"))
	with := snapshot.WithPreview(s, preview)
	testsnapshot.Equal(t, before, s)
	testsnapshot.Equal(t, laid, preview)

	requireDiff(t, "slices", []string{"node-1-gpu-0", "node-1-nic-5tz8m", "node-2-gpu-2vx6p"}, sliceNames(with))
	requireDiff(t, "nodes", 2, len(with.Nodes))
	want := []string{
		"pool node-1 of gpu.example.com is a preview (as by example@1): assumed that the driver comes up on node node-1 with it, in place of ResourceSlice node-1-gpu-x7w2k, node-1-old-9qk4d",
		"the preview of pool node-1 lacks devices that are allocated to claims, and nothing is counted for these: claim ml/train (gpu-1)",
	}
	requireDiff(t, "assumptions", want, snapshot.PreviewAssumptions(with))
	requireDiff(t, "assumptions without a preview", []string(nil), snapshot.PreviewAssumptions(s))
	requireDiff(t, "driver of a class", []string{"gpu.example.com", ""}, []string{snapshot.PreviewedClassDriver(with, "mig.example.com"), snapshot.PreviewedClassDriver(with, "other")})
	if pools := with.PoolStatuses[0].Status.Pools; len(pools) != 1 || pools[0].PoolName != "node-2" {
		t.Errorf("what was counted of a pool that is gone must not count: %v", pools)
	}

	// A preview in place of a preview is still in place of what was published.
	requireDiff(t, "twice", want, snapshot.PreviewAssumptions(snapshot.WithPreview(with, preview)))
}

// TestWithPreviewOfOtherNodes covers nodes that the cluster does not have.
func TestWithPreviewOfOtherNodes(t *testing.T) {
	s := testsnapshot.Load(t, published)
	with := snapshot.WithPreview(s, mustLoadPreview(t, previewOf("node-9", "dra.kubectl.dev/simulated: dgx-x")+previewOf("node-8", "")))
	if node := with.Node("node-9"); node == nil || !snapshot.NodeMissing(node) || snapshot.NodeMissing(with.Node("node-1")) {
		t.Errorf("nodes: %v", testsnapshot.Names(with))
	}
	requireDiff(t, "assumptions", []string{
		"pool node-8 of gpu.example.com is a preview: assumed that the driver comes up on node node-8 with it",
		"pool node-9 of gpu.example.com is a preview of the simulated machine dgx-x: assumed that node node-9 is such a machine and the driver comes up on it",
		"node node-8 is not in the cluster: assumed that it joins the cluster and is suitable for the pod",
		"node node-9 is not in the cluster: assumed that it joins the cluster and is suitable for the pod",
	}, snapshot.PreviewAssumptions(with))

	// Without any node, the allocator makes up those that slices name.
	none := snapshot.WithPreview(testsnapshot.Load(t, "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: train, namespace: ml}, spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}"), mustLoadPreview(t, previewOf("node-9", "")))
	if len(none.Nodes) > 0 {
		t.Errorf("one node would hide all others: %v", testsnapshot.Names(none))
	}

	want := "standard input has no ResourceSlices apart from those of the preview"
	for _, with := range []*snapshot.Snapshot{none, snapshot.WithPreview(none, mustLoadPreview(t, previewOf("node-8", "")))} {
		requireDiff(t, "reason of the gap", want, with.Gap(snapshot.ResourceSlices).Reason)
	}

	// As if it were applied, both are there.
	both := s.With(mustLoadPreview(t, previewOf("node-1", "dra.kubectl.dev/preview: ''")))
	requireDiff(t, "beside each other", []string{
		"pool node-1 of gpu.example.com has slices of a preview beside published ones, which does not happen: lay the preview over them with --with-preview",
	}, snapshot.PreviewAssumptions(both)[:1])
}

func TestLoadPreviewTakesNothingElse(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"nothing":       {"", "read standard input: there are no Kubernetes objects in it"},
		"an empty list": {`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSliceList","items":[]}`, "read standard input: expected ResourceSlices, found none"},
		"another kind beside it": {
			previewOf("node-1", "") + "{apiVersion: v1, kind: Pod, metadata: {name: web}}",
			"read standard input, document 2: Pod/web: expected a ResourceSlice of resource.k8s.io, found a Pod of v1",
		},
		"another kind in a list": {
			`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"gpu"}}]}`,
			"read standard input, document 1: item 1 of List (DeviceClass/gpu): expected a ResourceSlice of resource.k8s.io, found a DeviceClass of resource.k8s.io/v1",
		},
		"a kind that nobody knows": {
			"{apiVersion: dra.kubectl.dev/v1alpha1, kind: NodeGPUs}",
			"read standard input, document 1: NodeGPUs: expected a ResourceSlice of resource.k8s.io, found a NodeGPUs of dra.kubectl.dev/v1alpha1",
		},
		"a snapshot": {
			published,
			"read standard input, document 1: Snapshot: expected a ResourceSlice of resource.k8s.io, found a Snapshot of dra.kubectl.dev/v1alpha1; that is for --snapshot",
		},
		"a mistake": {
			"{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: {driver: d, nodeName: node-1, pools: {}}}",
			"read standard input, document 1: ResourceSlice/s: spec.pools: unknown field; did you mean pool?",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := files.Preview(t.Context(), []string{"-"}, files.Options{Stdin: strings.NewReader(test.text)})
			var input *files.InputError
			if !errors.As(err, &input) {
				t.Fatalf("got %v, want an *InputError", err)
			}
			requireDiff(t, "error", test.want, err.Error())
		})
	}
}
