// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"bytes"
	"testing"
	"time"

	"gotest.tools/v3/golden"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

func drawNode(t *testing.T, draw func(*bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := draw(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestNodePlugins(t *testing.T) {
	const dir = "/var/lib/kubelet/"
	f := &driver.Findings{
		Node: "node-1",
		Plugins: []driver.Plugin{
			{
				Registration: driver.Socket{Path: dir + "plugins_registry/gpu.example.com-reg.sock", Answer: node.Answers, Mode: "Srwxr-xr-x", AnswerMillis: 0.4},
				Type:         "DRAPlugin", Name: "gpu.example.com", Endpoint: dir + "plugins/gpu.example.com/dra.sock", Versions: []string{"v1.DRAPlugin", "v1beta1.DRAPlugin"},
				Service: &driver.Socket{Path: dir + "plugins/gpu.example.com/dra.sock", Answer: node.Answers, Mode: "Srwxrwxrwx", AnswerMillis: 12.3, Services: []driver.Service{
					{Name: "v1.DRAPlugin", Advertised: true, Served: driver.ServedYes},
					{Name: "v1beta1.DRAPlugin", Advertised: true, Served: driver.ServedNo},
					{Name: "v1.DRAResourceHealth", Served: driver.ServedYes},
				}},
			},
			{Registration: driver.Socket{Path: dir + "plugins_registry/old-reg.sock", Answer: node.Stale, Message: "nobody listens on the socket"}},
			{Registration: driver.Socket{Path: dir + "plugins_registry/csi.sock", Answer: node.Answers, AnswerMillis: 3}, Type: "CSIPlugin", Name: "evil\x1b[2Jname", Endpoint: dir + "plugins/csi/csi.sock", Versions: []string{"1.0.0"}},
		},
		Others: []driver.Socket{{Path: dir + "plugins/x/dra.sock", Answer: node.Silent}},
		DevicePlugins: []driver.DevicePlugin{
			{
				Socket: driver.Socket{Path: dir + "device-plugins/nic.sock", Answer: node.Answers, AnswerMillis: 1}, Resource: "example.com/nic", FoundBy: driver.ByPodResources,
				Devices: []driver.PluginDevice{{ID: "eth0", Health: "Healthy", NUMANodes: []int64{0, 1}}, {ID: "eth1\x1b[2J", Health: "Unhealthy"}},
			},
			{Socket: driver.Socket{Path: dir + "device-plugins/nvidia.sock", Answer: node.Stale}},
		},
		Resources: []driver.Resource{
			{Name: "example.com/nic", GivenOut: ptr.To(1), Registered: ptr.To(1), Allocatable: ptr.To[int64](1), Capacity: ptr.To[int64](2)},
			{Name: "nvidia.com/gpu", Registered: ptr.To(0)},
		},
		Checks: []node.Check{
			node.Good("plugins/registration", dir+"plugins_registry/gpu.example.com-reg.sock", "driver gpu.example.com registers, answers in 1 ms"),
			node.Bad("plugins/registration", dir+"plugins_registry/old-reg.sock", "stale: nobody listens on the socket"),
			node.NotKnown("plugins/slices", "", "no cluster and no snapshot was read"),
			{Name: "plugins/permissions", State: node.Problem, Path: dir + "plugins/gpu.example.com/dra.sock", Message: "everybody on the node may connect", Found: "Srwxrwxrwx", Required: "no w for others"},
		},
	}
	for name, opts := range map[string]render.Options{"node-plugins": {Width: 140}, "node-plugins-80": {Width: 80}, "node-plugins-wide": {Wide: true}} {
		golden.Assert(t, drawNode(t, func(b *bytes.Buffer) error { return writePlugins(b, f, opts) }), name+".golden")
	}
}

func TestNodePreparation(t *testing.T) {
	claim := driver.Claim{Namespace: "ml", Name: "train", UID: "uid-1"}
	call := func(method string) driver.Call {
		return driver.Call{Driver: "gpu.example.com", Endpoint: "/var/lib/kubelet/plugins/gpu.example.com/dra.sock", Service: "v1.DRAPlugin", Method: method, Request: []driver.Claim{claim}, Millis: 31}
	}
	prepared, failed, dry := call("NodePrepareResources"), call("NodeUnprepareResources"), call("NodePrepareResources")
	prepared.Devices = []driver.PreparedDevice{
		{Requests: []string{"gpus"}, Pool: "node-1", Device: "gpu-0", CDI: []driver.CDIDevice{{ID: "k8s.gpu.example.com/claim=uid-1-gpu-0", Edits: &driver.Edits{
			DeviceNodes: []driver.DeviceNode{
				{Path: "/dev/nvidia0", HostPath: "/dev/nvidia0", State: node.OK},
				{Path: "/dev/nvidiactl", HostPath: "/run/nvidia/driver/dev/nvidiactl", State: node.Problem, Message: "is not there"},
			},
			Mounts: []string{"/usr/lib/libcuda.so:/usr/lib/libcuda.so"}, Env: []string{"NVIDIA_VISIBLE_DEVICES=void"}, Hooks: []string{"createContainer: /usr/bin/nvidia-cdi-hook"},
		}}}},
		{Pool: "node-1", Device: "gpu-1\x1b[31m", ShareID: "share-1", CDI: []driver.CDIDevice{{ID: "x.com/gpu=1", Error: "is in no CDI spec"}}},
	}
	failed.Error = "the GPU has fallen off the bus"
	dry.DryRun = true
	done := &driver.Preparation{
		Operation: driver.PrepareOperation, Claim: claim,
		Refusals: []driver.Refusal{{Reason: "the claim is reserved for pods/train-0", Consequence: "the pod loses its devices"}},
		Calls:    []*driver.Call{&prepared, &failed, &dry},
		Checks:   []node.Check{node.Bad("prepare/cdi", "/run/nvidia/driver/dev/nvidiactl", "driver gpu.example.com: the device file is not there")},
	}
	for name, opts := range map[string]render.Options{"node-prepare": {Width: 140}, "node-prepare-80": {Width: 80}} {
		golden.Assert(t, drawNode(t, func(b *bytes.Buffer) error { return writePreparation(b, done, opts) }), name+".golden")
	}
}

func TestNodeHealth(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	devices := []driver.DeviceHealth{
		{Pool: "node-1", Device: "gpu-0", Health: driver.Healthy, UpdatedAt: &metav1.Time{Time: now.Add(-time.Minute)}},
		{
			Pool: "node-1", Device: "gpu-1", Health: driver.Unhealthy, Message: "XID 79\x07", UpdatedAt: &metav1.Time{Time: now.Add(-time.Hour)},
			Pods: []driver.PodHealth{{Namespace: "ml", Pod: "train-0", Container: "main", Claim: "train", Health: driver.Healthy}},
		},
		{Pool: "node-1", Device: "gpu-2", Health: driver.UnknownHealth},
	}
	h := &driver.Health{
		Drivers: []driver.DriverHealth{{Driver: "gpu.example.com", Devices: devices}},
		Checks:  []node.Check{node.Bad("health/devices", "", "gpu.example.com/node-1/gpu-1 is unhealthy: XID 79")},
	}
	golden.Assert(t, drawNode(t, func(b *bytes.Buffer) error { return writeHealth(b, h, now, render.Options{Width: 140}) }), "node-health.golden")
	changes := []driver.HealthChange{
		{Driver: "gpu.example.com", DeviceHealth: devices[1], From: driver.Healthy},
		{Driver: "gpu.example.com", DeviceHealth: devices[2]},
	}
	golden.Assert(t, drawNode(t, func(b *bytes.Buffer) error { return writeHealthChanges(b, changes, now, render.Options{Width: 140}) }), "node-health-changes.golden")
}
