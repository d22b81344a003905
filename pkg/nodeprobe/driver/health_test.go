// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package driver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	registerv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/testdriver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func says(device string, health kubeletplugin.HealthStatus, message string) kubeletplugin.DeviceHealth {
	return kubeletplugin.DeviceHealth{PoolName: nodeName, DeviceName: device, Health: health, Message: message, LastUpdated: time.Unix(1_700_000_000, 0)}
}

func TestAskHealthOfRealDrivers(t *testing.T) {
	for name, test := range map[string]struct {
		config  testdriver.Config
		service string
	}{
		"v1":       {testdriver.Config{}, "v1.DRAResourceHealth"},
		"v1alpha1": {testdriver.Config{OnlyV1beta1: true}, "v1alpha1.DRAResourceHealth"},
	} {
		t.Run(name, func(t *testing.T) {
			host := kubeletDir(t)
			d := start(t, host, test.config)
			d.SetHealth(says("gpu-1", kubeletplugin.HealthStatusUnhealthy, "XID 79"), says("gpu-0", kubeletplugin.HealthStatusHealthy, ""),
				says("gpu-2", kubeletplugin.HealthStatusUnknown, ""))
			h, err := AskHealth(context.Background(), host, cluster(), "", patient())
			must(t, err)
			if len(h.Drivers) != 1 || h.Drivers[0].Service != test.service || len(h.Drivers[0].Devices) != 3 {
				t.Fatalf("drivers are %+v", h.Drivers)
			}
			first := h.Drivers[0].Devices[0]
			if first.Device != "gpu-0" || first.Health != Healthy || first.TimeoutSeconds != 30 || first.UpdatedAt == nil || first.UpdatedAt.Unix() != 1_700_000_000 {
				t.Errorf("the first device is %+v", first)
			}
			want(t, h.Checks, checkStream, node.OK, "reports 3 devices")
			want(t, h.Checks, checkHealth, node.Problem, "gpu-1 is unhealthy: XID 79")
			want(t, h.Checks, checkHealth, node.Unknown, "gpu-2 is neither")
		})
	}
}

func TestAskHealthOfDriversWithoutIt(t *testing.T) {
	for name, test := range map[string]struct {
		make  func(t *testing.T, host *node.Host)
		state node.State
		text  string
	}{
		"none at all": {func(*testing.T, *node.Host) {}, node.OK, "no driver registers here"},
		"not known": {func(t *testing.T, host *node.Host) {
			must(t, os.Remove(filepath.Join(host.Kubelet, registryDir)))
		}, node.Unknown, "which drivers register here is not known"},
		"says so": {func(t *testing.T, host *node.Host) { start(t, host, testdriver.Config{NoHealth: true}) }, node.OK, "does not report the health of its devices, which is optional"},
		"has no service": {func(t *testing.T, host *node.Host) {
			serve(t, host, gpu, &scripted{info: &registerv1.PluginInfo{
				Type: registerv1.DRAPlugin, Name: gpu, Endpoint: filepath.Join(host.Kubelet, pluginsDir, gpu, "dra.sock"), SupportedVersions: []string{drav1.DRAPluginService},
			}})
		}, node.OK, "does not report the health of its devices, which is optional"},
		"sends none": {func(t *testing.T, host *node.Host) { start(t, host, testdriver.Config{}) }, node.Problem, "sends no report in time"},
		"fails": {func(t *testing.T, host *node.Host) {
			serve(t, host, gpu, &scripted{health: func(healthv1.DRAResourceHealth_NodeWatchResourcesServer) error { return errScripted }})
		}, node.Problem, "the driver says no"},
		"ends": {func(t *testing.T, host *node.Host) {
			serve(t, host, gpu, &scripted{health: func(healthv1.DRAResourceHealth_NodeWatchResourcesServer) error { return nil }})
		}, node.Problem, "ends the stream"},
		"sends too much": {func(t *testing.T, host *node.Host) {
			serve(t, host, gpu, &scripted{health: func(s healthv1.DRAResourceHealth_NodeWatchResourcesServer) error {
				return s.Send(&healthv1.NodeWatchResourcesResponse{Devices: []*healthv1.DeviceHealth{{Message: strings.Repeat("x", 5<<20)}}})
			}})
		}, node.Problem, "sends too much"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := kubeletDir(t)
			test.make(t, host)
			opts := patient()
			if name == "sends none" {
				opts = longer()
			}
			h, err := AskHealth(context.Background(), host, nil, "", opts)
			must(t, err)
			want(t, h.Checks, checkStream, test.state, test.text)
			want(t, h.Checks, checkPodSays, node.Unknown, "was not compared")
			if test.state == node.OK {
				wantNo(t, h.Checks, node.Problem)
			}
		})
	}
	host := kubeletDir(t)
	h, err := AskHealth(context.Background(), host, nil, "nic.example.com", patient())
	must(t, err)
	want(t, h.Checks, checkStream, node.Problem, "driver nic.example.com does not register here")
}

func TestWatchHealth(t *testing.T) {
	host := kubeletDir(t)
	d := start(t, host, testdriver.Config{})
	d.SetHealth(says("gpu-0", kubeletplugin.HealthStatusHealthy, ""), says("gpu-1", kubeletplugin.HealthStatusHealthy, ""))
	ctx, cancel := context.WithTimeout(context.Background(), patient().Timeout)
	defer cancel()
	var seen []HealthStatus
	err := WatchHealth(ctx, host, nil, gpu, patient(), func(h *Health) error {
		devices := h.Drivers[0].Devices
		if len(devices) == 0 {
			return nil
		}
		if len(devices) != 2 {
			t.Errorf("a report on one device drops the other: %+v", devices)
		}
		seen = append(seen, devices[0].Health)
		switch len(seen) {
		case 1:
			// The next report is on one device only.
			d.SetHealth(says("gpu-0", kubeletplugin.HealthStatusUnhealthy, "hot"))
		case 2:
			want(t, h.Checks, checkHealth, node.Problem, "gpu-0 is unhealthy: hot")
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if len(seen) < 2 || seen[0] != Healthy || seen[1] != Unhealthy {
		t.Errorf("it was %v", seen)
	}
}

// healthOf returns a cluster with a pod that has a device and says how it is.
func healthOf(claim *resourceapi.ResourceClaim, entry, resource string, health corev1.ResourceHealthStatus, taken time.Time) *snapshot.Snapshot {
	snap := cluster(gpu)
	snap.TakenAt = taken
	snap.Claims = []*resourceapi.ResourceClaim{reservedBy(claim, "train-0", "pod-1")}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train-0", UID: "pod-1"}}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "dev", ResourceClaimName: ptr.To(claim.Name)}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", AllocatedResourcesStatus: []corev1.ResourceStatus{{
		Name: corev1.ResourceName(entry), Resources: []corev1.ResourceHealth{{ResourceID: corev1.ResourceID(resource), Health: health}},
	}}}}
	snap.Pods = []*corev1.Pod{pod}
	return snap
}

func TestHealthBesidePods(t *testing.T) {
	known := time.Unix(1_700_000_000, 0)
	one, two := func() *resourceapi.ResourceClaim { return allocated(gpu, nodeName, "gpu-0") }, func() *resourceapi.ResourceClaim { return allocated(gpu, nodeName, "gpu-0", "gpu-1") }
	for name, test := range map[string]struct {
		snap *snapshot.Snapshot
		pods int
		// state is the state of the check, empty if there must be none.
		state node.State
	}{
		"the same":                {healthOf(one(), "claim:dev/gpus", "x.com/gpu=0", corev1.ResourceHealthStatusUnhealthy, known.Add(time.Hour)), 1, ""},
		"another, read later":     {healthOf(one(), "claim:dev/gpus", "x.com/gpu=0", corev1.ResourceHealthStatusHealthy, known.Add(time.Hour)), 1, node.Problem},
		"another, read before":    {healthOf(one(), "claim:dev/gpus", "x.com/gpu=0", corev1.ResourceHealthStatusHealthy, known.Add(-time.Hour)), 1, node.Unknown},
		"of the whole claim":      {healthOf(one(), "claim:dev", "x.com/gpu=0", corev1.ResourceHealthStatusHealthy, known.Add(time.Hour)), 1, node.Problem},
		"one of two, not told":    {healthOf(two(), "claim:dev/gpus", "x.com/gpu=0", corev1.ResourceHealthStatusHealthy, known.Add(time.Hour)), 0, ""},
		"one of two, by its name": {healthOf(two(), "claim:dev/gpus", gpu+"/node-1/gpu-0", corev1.ResourceHealthStatusHealthy, known.Add(time.Hour)), 1, node.Problem},
		"another claim":           {healthOf(one(), "claim:other/gpus", "x.com/gpu=0", corev1.ResourceHealthStatusHealthy, known.Add(time.Hour)), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := &Health{Drivers: []DriverHealth{{Driver: gpu, Service: "v1.DRAResourceHealth", ReportedAt: &metav1.Time{Time: known}, Devices: []DeviceHealth{
				{Pool: nodeName, Device: "gpu-0", Health: Unhealthy, UpdatedAt: &metav1.Time{Time: known}},
			}}}}
			h.judge(test.snap)
			if got := len(h.Drivers[0].Devices[0].Pods); got != test.pods {
				t.Errorf("%d pods say something, want %d", got, test.pods)
			}
			var state node.State
			for _, c := range h.Checks {
				if c.Name == checkPodSays {
					state = c.State
				}
			}
			if state != test.state {
				t.Errorf("the check is %q, want %q:\n%s", state, test.state, list(h.Checks))
			}
		})
	}
}
