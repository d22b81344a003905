// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package driver

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	devicepluginv1beta1 "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// devicePlugin is a device plugin that says what a test wants.
type devicePlugin struct {
	devicepluginv1beta1.UnimplementedDevicePluginServer

	list func(devicepluginv1beta1.DevicePlugin_ListAndWatchServer) error
	// listed counts the calls of ListAndWatch, others all calls that allocate or prepare.
	listed, others atomic.Int32
}

func (*devicePlugin) GetDevicePluginOptions(context.Context, *devicepluginv1beta1.Empty) (*devicepluginv1beta1.DevicePluginOptions, error) {
	return &devicepluginv1beta1.DevicePluginOptions{PreStartRequired: true}, nil
}

func (p *devicePlugin) ListAndWatch(_ *devicepluginv1beta1.Empty, stream devicepluginv1beta1.DevicePlugin_ListAndWatchServer) error {
	p.listed.Add(1)
	return p.list(stream)
}

func (p *devicePlugin) Allocate(context.Context, *devicepluginv1beta1.AllocateRequest) (*devicepluginv1beta1.AllocateResponse, error) {
	p.others.Add(1)
	return &devicepluginv1beta1.AllocateResponse{}, nil
}

func (p *devicePlugin) PreStartContainer(context.Context, *devicepluginv1beta1.PreStartContainerRequest) (*devicepluginv1beta1.PreStartContainerResponse, error) {
	p.others.Add(1)
	return &devicepluginv1beta1.PreStartContainerResponse{}, nil
}

func (p *devicePlugin) GetPreferredAllocation(context.Context, *devicepluginv1beta1.PreferredAllocationRequest) (*devicepluginv1beta1.PreferredAllocationResponse, error) {
	p.others.Add(1)
	return &devicepluginv1beta1.PreferredAllocationResponse{}, nil
}

func pluginDevice(id, health string, numa ...int64) *devicepluginv1beta1.Device {
	d := &devicepluginv1beta1.Device{ID: id, Health: health}
	for _, n := range numa {
		d.Topology = &devicepluginv1beta1.TopologyInfo{Nodes: append(d.GetTopology().GetNodes(), &devicepluginv1beta1.NUMANode{ID: n})}
	}
	return d
}

// healthy returns healthy devices with these IDs.
func healthy(ids ...string) []*devicepluginv1beta1.Device {
	var devices []*devicepluginv1beta1.Device
	for _, id := range ids {
		devices = append(devices, pluginDevice(id, devicepluginv1beta1.Healthy))
	}
	return devices
}

// sending sends a list of devices and then waits for the end of the connection, as plugins
// do.
func sending(devices ...*devicepluginv1beta1.Device) *devicePlugin {
	return &devicePlugin{list: func(stream devicepluginv1beta1.DevicePlugin_ListAndWatchServer) error {
		if err := stream.Send(&devicepluginv1beta1.ListAndWatchResponse{Devices: devices}); err != nil {
			return err
		}
		<-stream.Context().Done()
		return nil
	}}
}

// machineWith returns a node with device plugins, by the names of their sockets.
func machineWith(t *testing.T, plugins map[string]*devicePlugin) *node.Host {
	t.Helper()
	root, err := os.MkdirTemp("/tmp", "dra")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	must(t, os.MkdirAll(filepath.Join(root, devicePluginsDir), 0o750))
	// The sockets are made below the root of the node.
	everywhere := node.NewHost("/", root, nil)
	for name, plugin := range plugins {
		server := grpc.NewServer(grpc.MaxSendMsgSize(1 << 30))
		devicepluginv1beta1.RegisterDevicePluginServer(server, plugin)
		listener := listenAt(t, everywhere, filepath.Join(devicePluginsDir, name))
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
	}
	host := node.NewHost(root, "", nil)
	host.Name = nodeName
	return host
}

// listing returns options that ask for devices.
func listing(records Records) Options {
	opts := patient()
	opts.ListDevices, opts.Kubelet = true, records
	return opts
}

type ids = map[string][]string

// TestListDevices asks a plugin for its devices once, and for nothing else.
func TestListDevices(t *testing.T) {
	plugin := sending(pluginDevice("gpu-10", devicepluginv1beta1.Healthy, 1, 0), pluginDevice("gpu-2", devicepluginv1beta1.Unhealthy))
	host := machineWith(t, map[string]*devicePlugin{"gpu.sock": plugin})
	f := look(t, host, nil, patient())
	if plugin.listed.Load() != 0 || f.DevicePlugins[0].Devices != nil || !f.DevicePlugins[0].PreStartRequired {
		t.Errorf("without --list-devices the plugin was asked for its devices: %+v", f.DevicePlugins)
	}
	f = look(t, host, nil, listing(Records{GivenOut: ids{"example.com/gpu": {"gpu-10"}}}))
	if plugin.listed.Load() != 1 || plugin.others.Load() != 0 {
		t.Errorf("%d calls of ListAndWatch, %d of others", plugin.listed.Load(), plugin.others.Load())
	}
	p := f.DevicePlugins[0]
	if len(p.Devices) != 2 || p.Devices[0].ID != "gpu-2" || !slices.Equal(p.Devices[1].NUMANodes, []int64{1, 0}) || p.Resource != "example.com/gpu" || p.FoundBy != ByPodResources {
		t.Errorf("the plugin is %+v", p)
	}
	want(t, f.Checks, checkHealthy, node.Problem, "the device plugin reports as unhealthy: gpu-2")
	want(t, f.Checks, checkResources, node.OK, "example.com/gpu: the kubelet gives out 1 device")
}

// TestDevicePluginsHostile asks plugins that do not do what they should.
func TestDevicePluginsHostile(t *testing.T) {
	forever := func(stream devicepluginv1beta1.DevicePlugin_ListAndWatchServer) error {
		for {
			if err := stream.Send(&devicepluginv1beta1.ListAndWatchResponse{Devices: healthy("gpu-0")}); err != nil {
				return err
			}
		}
	}
	var many []string
	for i := range maxPluginDevices + 10 {
		many = append(many, fmt.Sprint(i))
	}
	for name, test := range map[string]struct {
		plugin  *devicePlugin
		opts    Options
		devices int
		check   string
		state   node.State
		text    string
	}{
		"an endless list":    {&devicePlugin{list: forever}, patient(), 1, checkHealthy, node.OK, "1 device, all healthy"},
		"a huge list":        {sending(healthy(strings.Repeat("x", 5<<20))...), patient(), 0, checkDevices, node.Problem, "sends too much"},
		"many devices":       {sending(healthy(many...)...), patient(), maxPluginDevices, checkDevices, node.Unknown, "not shown: 10 devices"},
		"a long ID":          {sending(healthy(strings.Repeat("x", 1000))...), patient(), 0, checkDevices, node.Unknown, "not shown: 1 device;"},
		"no device":          {sending(), patient(), 0, checkHealthy, node.OK, "0 devices"},
		"a device twice":     {sending(healthy("gpu-0", "gpu-0")...), patient(), 2, checkDevices, node.Problem, "more than once: gpu-0"},
		"a health of others": {sending(pluginDevice("gpu-0", "Sick")), patient(), 1, checkHealthy, node.Problem, "unhealthy: gpu-0"},
		"hangs": {&devicePlugin{list: func(stream devicepluginv1beta1.DevicePlugin_ListAndWatchServer) error {
			<-stream.Context().Done()
			return nil
		}}, quick(), 0, checkDevices, node.Problem, "does not answer in time"},
		"ends at once": {&devicePlugin{list: func(devicepluginv1beta1.DevicePlugin_ListAndWatchServer) error { return nil }}, patient(), 0, checkDevices, node.Problem, "EOF"},
		"fails":        {&devicePlugin{list: func(devicepluginv1beta1.DevicePlugin_ListAndWatchServer) error { return errScripted }}, patient(), 0, checkDevices, node.Problem, errScripted.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			test.opts.ListDevices = true
			f := look(t, machineWith(t, map[string]*devicePlugin{"gpu.sock": test.plugin}), nil, test.opts)
			want(t, f.Checks, test.check, test.state, test.text)
			if got := len(f.DevicePlugins[0].Devices); got != test.devices {
				t.Errorf("%d devices, want %d", got, test.devices)
			}
		})
	}
	t.Run("garbage", func(t *testing.T) {
		host := machineWith(t, nil)
		listener := listenAt(t, node.NewHost("/", host.Root, nil), filepath.Join(devicePluginsDir, "gpu.sock"))
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go func(conn net.Conn) {
					_, _ = io.WriteString(conn, strings.Repeat("HTTP/1.1 400 no\r\n", 1000))
					_ = conn.Close()
				}(conn)
			}
		}()
		opts := patient()
		opts.ListDevices = true
		want(t, look(t, host, nil, opts).Checks, checkDevices, node.Problem, "does not speak gRPC")
	})
}

// offering returns a cluster in which the status of the node has a resource.
func offering(allocatable, capacity string) *snapshot.Snapshot {
	snap := cluster()
	snap.Nodes[0].Status.Allocatable = corev1.ResourceList{"example.com/gpu": resource.MustParse(allocatable)}
	snap.Nodes[0].Status.Capacity = corev1.ResourceList{"example.com/gpu": resource.MustParse(capacity)}
	return snap
}

// mounting adds a pod of the node that can reach the sockets of device plugins.
func mounting(snap *snapshot.Snapshot, name string) *snapshot.Snapshot {
	snap.Pods = append(snap.Pods, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name},
		Spec: corev1.PodSpec{NodeName: nodeName, Volumes: []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/device-plugins"},
		}}}},
	})
	return snap
}

// TestDeviceRecords holds plugins, the kubelet and the status of the node against each
// other.
func TestDeviceRecords(t *testing.T) {
	two := sending(healthy("gpu-0", "gpu-1")...)
	both := ids{"example.com/gpu": {"gpu-0", "gpu-1"}}
	none := ids{"example.com/gpu": {}}
	for name, test := range map[string]struct {
		plugin  *devicePlugin
		records Records
		snap    *snapshot.Snapshot
		check   string
		state   node.State
		text    string
	}{
		"in order": {two, Records{GivenOut: both, Registered: both, InUse: ids{}, Recorded: ids{}}, offering("2", "2"), checkResources, node.OK, "example.com/gpu: the kubelet gives out 2 devices"},
		"not registered since a restart": {
			two,
			Records{GivenOut: ids{}, Registered: none},
			mounting(offering("0", "0"), "plugin-x"),
			checkResources, node.Problem, "no plugin has registered it since the kubelet was restarted, or all devices are unhealthy; restart its plugin (pod kube-system/plugin-x)",
		},
		"disconnected": {
			two,
			Records{GivenOut: ids{}, Registered: both},
			nil,
			checkResources, node.Problem, "stale: the device plugin reports healthy devices of example.com/gpu, and the kubelet gives out none",
		},
		"the resource of a plugin that is gone": {
			nil,
			Records{GivenOut: ids{}, Registered: both},
			nil,
			checkResources, node.Problem, "example.com/gpu: the kubelet gives out no device, and had 2 when it last wrote its checkpoint: no plugin is connected",
		},
		"never registered": {
			sending(healthy("nic-0")...),
			Records{GivenOut: both, Registered: both},
			mounting(mounting(cluster(), "a"), "b"),
			checkResources, node.Problem, "stale: the device plugin reports 1 device, and the kubelet knows none of them: it is not registered; restart its plugin (pod kube-system/a or pod kube-system/b)",
		},
		"health that the kubelet does not know": {
			sending(pluginDevice("gpu-0", devicepluginv1beta1.Unhealthy), pluginDevice("gpu-1", devicepluginv1beta1.Healthy)),
			Records{GivenOut: both, Registered: both},
			nil,
			checkResources, node.Problem, "differ in the health of devices of example.com/gpu: gpu-0",
		},
		"IDs of two resources": {
			two,
			Records{GivenOut: ids{"example.com/gpu": {"gpu-0"}, "example.com/mig": {"gpu-0"}}},
			nil,
			checkResources, node.Unknown, "example.com/gpu and example.com/mig have devices with its IDs",
		},
		"unhealthy, by the node": {nil, Records{GivenOut: both, Registered: both}, offering("2", "3"), checkHealthy, node.Problem, "example.com/gpu: 1 of 3 devices unhealthy"},
		"another number":         {nil, Records{GivenOut: both, Registered: both}, offering("3", "3"), checkResources, node.Unknown, "another number of allocatable devices"},
		"only the checkpoint":    {nil, Records{Registered: both}, offering("2", "2"), checkResources, node.OK, "example.com/gpu: the kubelet gives out 2 devices, by its checkpoint"},
		"not in the checkpoint": {
			nil,
			Records{GivenOut: both, Registered: both, InUse: ids{"example.com/gpu": {"gpu-1"}}, Recorded: ids{}},
			nil,
			checkResources, node.Problem, "a kubelet that restarts gives out again: gpu-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plugins := map[string]*devicePlugin{}
			if test.plugin != nil {
				plugins["gpu.sock"] = test.plugin
			}
			f := look(t, machineWith(t, plugins), test.snap, listing(test.records))
			want(t, f.Checks, test.check, test.state, test.text)
			if test.state == node.OK {
				wantNo(t, f.Checks, node.Problem)
			}
		})
	}
	t.Run("nothing registered, and not listed", func(t *testing.T) {
		f := look(t, machineWith(t, map[string]*devicePlugin{"gpu.sock": two}), nil, Options{Timeout: patient().Timeout, Kubelet: Records{GivenOut: ids{}}})
		want(t, f.Checks, checkResources, node.Problem, "a device plugin answers, and the kubelet gives out no device of any plugin")
	})
	t.Run("nothing known", func(t *testing.T) {
		f := look(t, machineWith(t, map[string]*devicePlugin{"gpu.sock": two}), nil, listing(Records{}))
		wantNo(t, f.Checks, node.Problem)
	})
}

// TestHardwareOfBoth finds devices that a device plugin and a driver have.
func TestHardwareOfBoth(t *testing.T) {
	const uuid = "GPU-18a3e86f-4c0e-cd9f-59c3-55488c4b0c24"
	device := func(name, attribute, value string) resourceapi.Device {
		return resourceapi.Device{Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{resourceapi.QualifiedName(attribute): {StringValue: ptr.To(value)}}}
	}
	for name, test := range map[string]struct {
		id     string
		device resourceapi.Device
		want   string
	}{
		"the same UUID":      {uuid, device("gpu-0", "uuid", uuid), "driver gpu.example.com and the device plugin of example.com/gpu have the same hardware, and neither knows what the other gives out: gpu-0 (" + uuid + ")"},
		"a shared device":    {uuid + "::3", device("gpu-0", "uuid", uuid), "gpu-0 (" + uuid + ")"},
		"a part of it":       {uuid, device("gpu-0-mig-1", "parentUUID", uuid), "gpu-0-mig-1 (" + uuid + ")"},
		"a PCI address":      {"0000:8a:00.1", device("nic-0", "resource.kubernetes.io/pciBusID", "0000:8A:00.1"), "nic-0 (0000:8A:00.1)"},
		"a long PCI address": {"00000000:8a:00.1", device("nic-0", "pci", "0000:8a:00.1"), "nic-0 (0000:8a:00.1)"},
		"another UUID":       {uuid, device("gpu-0", "uuid", strings.Replace(uuid, "18a3", "18a4", 1)), ""},
		"the same index":     {"0", device("gpu-0", "index", "0"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			snap := cluster(gpu)
			snap.Slices[0].Spec.Devices = []resourceapi.Device{test.device}
			opts := patient()
			opts.Kubelet.GivenOut = ids{"example.com/gpu": {test.id}}
			f := look(t, machineWith(t, nil), snap, opts)
			if test.want != "" {
				want(t, f.Checks, checkHardware, node.Problem, test.want)
			} else if slices.ContainsFunc(f.Checks, func(c node.Check) bool { return c.Name == checkHardware }) {
				t.Errorf("not the same hardware:\n%s", list(f.Checks))
			}
			snap.Slices[0].Spec.NodeName = ptr.To("node-2")
			if f := look(t, machineWith(t, nil), snap, opts); slices.ContainsFunc(f.Checks, func(c node.Check) bool { return c.Name == checkHardware }) {
				t.Errorf("a slice of another node:\n%s", list(f.Checks))
			}
		})
	}
}
