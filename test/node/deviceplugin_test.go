// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	devicepluginv1beta1 "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/checkpoint"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	probed "github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

const (
	pluginResource = "nic.test.example.com/nic"
	pluginSocket   = "kubectl-dra-test.sock"
)

// devicePlugin is a device plugin with two devices.
type devicePlugin struct {
	devicepluginv1beta1.UnimplementedDevicePluginServer
}

func (devicePlugin) GetDevicePluginOptions(context.Context, *devicepluginv1beta1.Empty) (*devicepluginv1beta1.DevicePluginOptions, error) {
	return &devicepluginv1beta1.DevicePluginOptions{}, nil
}

func (devicePlugin) ListAndWatch(_ *devicepluginv1beta1.Empty, stream devicepluginv1beta1.DevicePlugin_ListAndWatchServer) error {
	devices := []*devicepluginv1beta1.Device{{ID: "nic-0", Health: devicepluginv1beta1.Healthy}, {ID: "nic-1", Health: devicepluginv1beta1.Healthy}}
	if err := stream.Send(&devicepluginv1beta1.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (devicePlugin) Allocate(_ context.Context, request *devicepluginv1beta1.AllocateRequest) (*devicepluginv1beta1.AllocateResponse, error) {
	response := &devicepluginv1beta1.AllocateResponse{}
	for range request.GetContainerRequests() {
		response.ContainerResponses = append(response.ContainerResponses, &devicepluginv1beta1.ContainerAllocateResponse{Envs: map[string]string{"NIC": "yes"}})
	}
	return response, nil
}

// forgetDevices removes the kubelet's checkpoint if it has the device plugin of a test:
// every kubelet of this machine has the same one.
func forgetDevices(t *testing.T) {
	t.Helper()
	path := filepath.Join(devicepluginv1beta1.DevicePluginPath, "kubelet_internal_checkpoint")
	content, err := os.ReadFile(path)
	if err == nil && (bytes.Contains(content, []byte(pluginResource)) || bytes.Contains(content, []byte(gpuResource))) {
		err = os.Remove(path)
	}
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
}

// startPlugin starts the device plugin; stop leaves no socket.
func startPlugin(t *testing.T) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", devicepluginv1beta1.DevicePluginPath+pluginSocket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	devicepluginv1beta1.RegisterDevicePluginServer(server, devicePlugin{})
	go func() { _ = server.Serve(listener) }()
	return server.Stop
}

func register(ctx context.Context, t *testing.T, resourceName string) {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+devicepluginv1beta1.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := devicepluginv1beta1.NewRegistrationClient(conn).Register(ctx, &devicepluginv1beta1.RegisterRequest{
		Version: devicepluginv1beta1.Version, Endpoint: pluginSocket, ResourceName: resourceName,
	}); err != nil {
		t.Fatal(err)
	}
}

// waitAllocatable waits until the kubelet reports so many devices of a plugin.
func (r *realNode) waitAllocatable(ctx context.Context, t *testing.T, name corev1.ResourceName, devices int64) {
	t.Helper()
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		node, err := r.client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		quantity, ok := node.Status.Allocatable[name]
		return ok && quantity.Value() == devices, nil
	})
	if err != nil {
		t.Fatalf("the node does not have %d allocatable devices: %v", devices, err)
	}
}

// testDevicePlugin registers a device plugin, gives a device to a pod, and then starts the
// plugin again without a registration.
func (r *realNode) testDevicePlugin(t *testing.T) {
	ctx := t.Context()
	stop := startPlugin(t)
	t.Cleanup(func() { stop() })
	register(ctx, t, pluginResource)
	r.waitAllocatable(ctx, t, pluginResource, 2)
	pod := hostPod("nic", "exec sleep 100000")
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{pluginResource: resource.MustParse("1")}
	if _, err := r.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.waitPhase(ctx, t, "nic", corev1.PodRunning)

	look := func(into any, args ...string) []probed.Check {
		t.Helper()
		_, out, _ := r.dra(ctx, t, r.kubeconfig, append(append(r.here(), "-o", "json"), args...)...)
		if err := json.Unmarshal([]byte(out), into); err != nil {
			t.Fatal(err)
		}
		var checks struct{ Checks []probed.Check }
		if err := json.Unmarshal([]byte(out), &checks); err != nil {
			t.Fatal(err)
		}
		return checks.Checks
	}
	noProblem := func(checks []probed.Check) {
		t.Helper()
		for _, c := range checks {
			if c.State == probed.Problem && strings.Contains(c.Name, "device") || c.State != probed.OK && c.Name == "state/checksum" {
				t.Errorf("a plugin in order has the problem %+v", c)
			}
		}
	}
	var plugins driver.Findings
	noProblem(look(&plugins, "plugins", "--list-devices"))
	if len(plugins.DevicePlugins) != 1 || plugins.DevicePlugins[0].Resource != pluginResource || plugins.DevicePlugins[0].FoundBy != driver.ByPodResources || len(plugins.DevicePlugins[0].Devices) != 2 {
		t.Errorf("the device plugin is %+v", plugins.DevicePlugins)
	}
	i := slices.IndexFunc(plugins.Resources, func(res driver.Resource) bool { return res.Name == pluginResource })
	if i < 0 || *plugins.Resources[i].GivenOut != 2 || *plugins.Resources[i].Registered != 2 || *plugins.Resources[i].Allocatable != 2 {
		t.Errorf("the resources are %+v", plugins.Resources)
	}
	var state checkpoint.Findings
	noProblem(look(&state, "state"))
	if state.Devices == nil || len(state.Devices.Containers) != 1 || state.Devices.Containers[0].Pod != "nic" || len(state.Devices.Containers[0].Devices) != 1 {
		t.Errorf("the kubelet has recorded %+v", state.Devices)
	}

	stop()
	stop = startPlugin(t)
	r.waitAllocatable(ctx, t, pluginResource, 0)
	checks := look(&plugins, "plugins", "--list-devices")
	if !slices.ContainsFunc(checks, func(c probed.Check) bool {
		return c.State == probed.Problem && strings.Contains(c.Message, "stale: the device plugin reports healthy devices of "+pluginResource)
	}) {
		t.Errorf("a plugin that is not registered is not found: %+v", checks)
	}
}
