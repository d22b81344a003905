// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package checkpoint

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// lookAtDevices looks at a node that has only the kubelet's record of devices, and, if snap
// is not nil, a cluster.
func lookAtDevices(t *testing.T, content string, snap *snapshot.Snapshot) *Findings {
	t.Helper()
	files := newNodeFiles(t).file(devicesFile, []byte(content))
	files.Name = "node-a"
	return Look(t.Context(), files.Host, snap)
}

func fixtureCluster(t *testing.T) *snapshot.Snapshot {
	t.Helper()
	snap, err := files.Load(t.Context(), []string{filepath.Join(fixture, "cluster.yaml")}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// TestDevices reads what the kubelet wrote.
func TestDevices(t *testing.T) {
	f := lookAtDevices(t, string(written(t, devicesFile)), fixtureCluster(t))
	if f.Devices == nil || f.Devices.Checksum == nil || !f.Devices.Checksum.OK() {
		t.Fatalf("read %+v", f.Devices)
	}
	if want := map[string][]string{"example.com/nic": {"eth1", "eth2"}, "example.com/fpga": {}}; !reflect.DeepEqual(f.Registered(), want) {
		t.Errorf("registered %v, want %v", f.Registered(), want)
	}
	if want := map[string][]string{"example.com/nic": {"eth1", "eth2"}, "example.com/fpga": {"fpga-0", "fpga-1"}}; !reflect.DeepEqual(f.Recorded(), want) {
		t.Errorf("recorded %v, want %v", f.Recorded(), want)
	}
	first := f.Devices.Containers[0]
	if first.Pod != "train-0" || first.Container != "main" || len(first.Devices) != 1 || first.Devices[0].NUMANode == nil || *first.Devices[0].NUMANode != 0 {
		t.Errorf("the first container is %+v", first)
	}
	if second := f.Devices.Containers[1]; second.Devices[0].NUMANode != nil {
		t.Errorf("a device without a NUMA node is %+v", second.Devices[0])
	}
	for _, want := range []struct {
		state      node.State
		name, text string
	}{
		{node.OK, checkDevices, "2 resources of device plugins, and 3 entries of containers with devices"},
		{node.OK, checkHolders, "registered and healthy: the devices of 1 entry"},
		{node.OK, checkHolders, "1 device of example.com/nic recorded for pod aaaaaaaa-0000-4000-8000-0000000000ff, which does not exist any more"},
		{node.Problem, checkHolders, "container main of pod ml/serve-0 has 2 devices of example.com/fpga, and the kubelet has no healthy device of it"},
	} {
		if found(f, want.state, want.name, want.text) == nil {
			t.Errorf("no check %s %q: %+v", want.state, want.text, f.Checks)
		}
	}
}

// TestDevicesOfPods finds pods that have what they should not have.
func TestDevicesOfPods(t *testing.T) {
	const entry = `{"Data":{"PodDeviceEntries":[{"PodUID":"aaaaaaaa-0000-4000-8000-000000000001","ContainerName":"main","ResourceName":"example.com/nic","DeviceIDs":{"-1":["eth1","eth2"]},"AllocResp":""}],"RegisteredDevices":{"example.com/nic":["eth1"]}},"Checksum":1}`
	pod := func(edit func(*corev1.Pod)) *snapshot.Snapshot {
		snap := fixtureCluster(t)
		for _, p := range snap.Pods {
			if p.Name == "train-0" {
				edit(p)
			}
		}
		return snap
	}
	for name, test := range map[string]struct {
		snap  *snapshot.Snapshot
		state node.State
		text  string
	}{
		"an unhealthy device": {fixtureCluster(t), node.Problem, "container main of pod ml/train-0 has eth2 of example.com/nic, unhealthy or no longer reported"},
		"without a cluster":   {nil, node.Problem, "container main of pod aaaaaaaa-0000-4000-8000-000000000001 has eth2"},
		"another node":        {pod(func(p *corev1.Pod) { p.Spec.NodeName = "node-b" }), node.Problem, "bound to another node"},
		"an ended pod":        {pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), node.OK, "which has ended"},
		"pods not readable": {
			&snapshot.Snapshot{Gaps: []snapshot.Gap{{Resource: snapshot.ResourcePods, Reason: "forbidden"}}},
			node.Unknown, "pod aaaaaaaa-0000-4000-8000-000000000001: pods could not all be read: forbidden",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if f := lookAtDevices(t, entry, test.snap); found(f, test.state, checkHolders, test.text) == nil {
				t.Errorf("no check %s %q: %+v", test.state, test.text, f.Checks)
			}
		})
	}
}

// TestDevicesHostile reads files that no kubelet writes.
func TestDevicesHostile(t *testing.T) {
	right := string(written(t, devicesFile))
	for name, test := range map[string]struct {
		content    string
		state      node.State
		name, text string
	}{
		"a changed device":   {strings.Replace(right, "eth1", "eth7", 1), node.Problem, checkSum, "does not know which containers have which devices"},
		"a field of later":   {strings.Replace(right, `"AllocResp"`, `"Later":1,"AllocResp"`, 1), node.Unknown, checkSum, "fields that this program does not know"},
		"no JSON":            {"\x00\xff", node.Problem, checkDevices, "it is not JSON"},
		"cut":                {right[:100], node.Problem, checkDevices, "it is not JSON from byte 100 on"},
		"nothing":            {"", node.Problem, checkDevices, "it is not JSON"},
		"other JSON":         {`{"Checksum":1}`, node.Problem, checkDevices, "there is no Data in it"},
		"another type":       {`{"Data":{"PodDeviceEntries":[{"DeviceIDs":["eth1"]}]}}`, node.Problem, checkDevices, "has another type than expected"},
		"a NUMA node of 20":  {`{"Data":{"PodDeviceEntries":[{"DeviceIDs":{"99999999999999999999":["x"]}}]}}`, node.Problem, checkDevices, "has another type than expected"},
		"larger than others": {fmt.Sprintf(`{"Data":{"RegisteredDevices":{"a":["%s"]}}}`, strings.Repeat("x", maxFile)), node.Unknown, checkDevices, "is larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			f := lookAtDevices(t, test.content, fixtureCluster(t))
			if found(f, test.state, test.name, test.text) == nil {
				t.Errorf("no check %s %q: %+v", test.state, test.text, f.Checks)
			}
			if test.name == checkDevices && (f.Registered() != nil || f.Recorded() != nil) {
				t.Errorf("a file with an error says %v, %v", f.Registered(), f.Recorded())
			}
		})
	}
	t.Run("a link out", func(t *testing.T) {
		files := newNodeFiles(t).file("/etc/shadow", []byte(right)).link("/etc/shadow", devicesFile)
		if f := files.look(); found(f, node.Unknown, checkDevices, "it leads out of") == nil || f.Registered() != nil {
			t.Errorf("followed a link: %+v", f.Checks)
		}
	})
	t.Run("no file", func(t *testing.T) {
		files := newNodeFiles(t).file(filepath.Join(filepath.Dir(devicesFile), "DEPRECATION"), nil)
		if f := files.look(); found(f, node.OK, checkDevices, "no device plugin has registered") == nil || f.Devices != nil {
			t.Errorf("no file: %+v", f.Checks)
		}
	})
	t.Run("no kubelet", func(t *testing.T) {
		f := newNodeFiles(t).look()
		if i := slices.IndexFunc(f.Checks, func(c node.Check) bool { return c.Name == checkDevices }); i < 0 || f.Checks[i].State != node.Unknown {
			t.Errorf("no directory: %+v", f.Checks)
		}
	})
}
