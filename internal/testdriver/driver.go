// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testdriver is a DRA driver for tests: the upstream kubeletplugin helper
// with devices that exist only in name. It needs no kubelet and no cluster.
package testdriver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"google.golang.org/grpc"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	metadatav1beta1 "k8s.io/dynamic-resource-allocation/api/metadata/v1beta1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// Config configures a driver.
type Config struct {
	// Name is the name of the driver, Kubelet the root directory of the kubelet whose
	// sockets it creates.
	Name, Kubelet string
	// Claims are the claims of its cluster.
	Claims []*resourceapi.ResourceClaim
	// Instance is set for one of several instances, as during an update.
	Instance string
	// OnlyV1beta1 leaves out the newest version of both services.
	OnlyV1beta1 bool
	// NoHealth says that it does not report health.
	NoHealth bool
	// Fail is the error that it prepares and unprepares with.
	Fail string
	// CDI is the directory where it puts a CDI spec for each claim that it
	// prepares; empty for none. Each device of it is /dev/null.
	CDI string
	// Metadata lets containers know the devices of their claims; it takes CDI.
	Metadata bool
	// Root is where the root of the node is; its sockets are made below it.
	Root string

	// Client is the client of a real cluster, in place of Claims, and Node the name of the
	// node in it.
	Client kubernetes.Interface
	Node   string
	// Devices is how many it publishes for the node: gpu-0, gpu-1 and so on.
	Devices int
	// Unregistered puts the socket for the registration where no kubelet looks for it.
	Unregistered bool
}

// Faults are the ways in which a driver misbehaves.
type Faults struct {
	// Prepare and Unprepare are errors that it answers with.
	Prepare, Unprepare string
	// WrongIDs are CDI IDs that no spec has.
	WrongIDs bool
	// KeepSpecs leaves CDI specs of claims where they are.
	KeepSpecs bool
}

// Driver is a running driver.
type Driver struct {
	config Config
	helper *kubeletplugin.Helper

	mu       sync.Mutex
	prepared map[types.UID]int
	report   kubeletplugin.DeviceHealthReport
	changed  chan struct{}
	called   func(method string, done bool)
	faults   Faults
}

// Start starts a driver; the caller stops it.
func Start(ctx context.Context, config Config) (*Driver, error) {
	d := &Driver{config: config, prepared: map[types.UID]int{}, changed: make(chan struct{}), faults: Faults{Prepare: config.Fail, Unprepare: config.Fail}}
	registry := filepath.Join(config.Kubelet, "plugins_registry")
	data := filepath.Join(config.Kubelet, "plugins", config.Name)
	if config.Unregistered {
		registry = data
	}
	for _, dir := range []string{registry, data} {
		if err := os.MkdirAll(config.Root+dir, 0o750); err != nil {
			return nil, fmt.Errorf("start driver %s: %w", config.Name, err)
		}
	}
	objects := make([]runtime.Object, 0, len(config.Claims))
	for _, claim := range config.Claims {
		objects = append(objects, claim)
	}
	var client kubernetes.Interface = fake.NewClientset(objects...)
	if config.Client != nil {
		client = config.Client
	}
	listen := func(ctx context.Context, path string) (net.Listener, error) {
		return (&net.ListenConfig{}).Listen(ctx, "unix", config.Root+path)
	}
	options := []kubeletplugin.Option{
		kubeletplugin.DriverName(config.Name),
		kubeletplugin.KubeClient(client),
		kubeletplugin.NodeName(config.Node),
		kubeletplugin.RegistrarDirectoryPath(registry),
		kubeletplugin.PluginDataDirectoryPath(data),
		kubeletplugin.FlockDirectoryPath(config.Root + data),
		kubeletplugin.RollingUpdate(types.UID(config.Instance)),
		kubeletplugin.NodeV1(!config.OnlyV1beta1),
		kubeletplugin.HealthV1(!config.OnlyV1beta1),
		kubeletplugin.GRPCVerbosity(-1),
		kubeletplugin.GRPCInterceptor(d.intercept),
	}
	if config.Metadata {
		options = append(options, kubeletplugin.EnableDeviceMetadata(true, []schema.GroupVersion{metadatav1beta1.SchemeGroupVersion}), kubeletplugin.CDIDirectory(config.CDI))
	}
	if config.Root != "" {
		options = append(options, kubeletplugin.RegistrarListener(listen), kubeletplugin.PluginListener(listen))
	}
	var err error
	if d.helper, err = kubeletplugin.Start(klog.NewContext(ctx, klog.Logger{}), d, options...); err != nil {
		return nil, fmt.Errorf("start driver %s: %w", config.Name, err)
	}
	if config.Devices > 0 {
		if err := d.helper.PublishResources(ctx, d.resources()); err != nil {
			d.Stop()
			return nil, fmt.Errorf("publish the devices of driver %s: %w", config.Name, err)
		}
	}
	return d, nil
}

func (d *Driver) resources() resourceslice.DriverResources {
	devices := make([]resourceapi.Device, d.config.Devices)
	for i := range devices {
		devices[i] = resourceapi.Device{
			Name:       fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"index": {IntValue: ptr.To(int64(i))}},
			Capacity:   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
		}
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{
		d.config.Node: {Slices: []resourceslice.Slice{{Devices: devices}}},
	}}
}

// Stop stops it and removes its sockets.
func (d *Driver) Stop() { d.helper.Stop() }

// Prepared counts how often a claim was prepared since it was last unprepared.
func (d *Driver) Prepared(uid types.UID) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.prepared[uid]
}

// OnCall sets a function that is called before each call is carried out and again before
// the reply is sent, with the name of its method. While it runs, the call waits. nil ends
// that.
func (d *Driver) OnCall(called func(method string, done bool)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.called = called
}

func (d *Driver) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	d.mu.Lock()
	called := d.called
	d.mu.Unlock()
	if called == nil {
		return handler(ctx, request)
	}
	method := path.Base(info.FullMethod)
	called(method, false)
	defer called(method, true)
	return handler(ctx, request)
}

// SetFaults lets the driver misbehave from now on; no faults end that.
func (d *Driver) SetFaults(faults Faults) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = faults
}

// SetHealth sends a report to all that listen now or later.
func (d *Driver) SetHealth(devices ...kubeletplugin.DeviceHealth) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.report = kubeletplugin.DeviceHealthReport{Devices: devices}
	close(d.changed)
	d.changed = make(chan struct{})
}

// PrepareResourceClaims returns a CDI name for each device that the claim has of the
// driver.
func (d *Driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		if d.faults.Prepare != "" {
			results[claim.UID] = kubeletplugin.PrepareResult{Err: errors.New(d.faults.Prepare)}
			continue
		}
		d.prepared[claim.UID]++
		if err := d.writeCDI(claim); err != nil {
			return nil, err
		}
		var result kubeletplugin.PrepareResult
		for _, allocated := range claim.Status.Allocation.Devices.Results {
			if allocated.Driver == d.config.Name {
				id := d.cdiKind() + "=" + cdiName(claim.UID, allocated.Device)
				if d.faults.WrongIDs {
					id += "-wrong"
				}
				result.Devices = append(result.Devices, kubeletplugin.Device{
					Requests: []string{allocated.Request}, PoolName: allocated.Pool, DeviceName: allocated.Device, ShareID: allocated.ShareID,
					CDIDeviceIDs: []string{id},
				})
			}
		}
		results[claim.UID] = result
	}
	return results, nil
}

func (d *Driver) cdiKind() string { return "k8s." + d.config.Name + "/claim" }

func cdiName(uid types.UID, device string) string { return string(uid) + "-" + device }

func (d *Driver) cdiPath(uid types.UID) string {
	return filepath.Join(d.config.Root+d.config.CDI, d.config.Name+"-"+string(uid)+".json")
}

// writeCDI makes the spec of a claim.
func (d *Driver) writeCDI(claim *resourceapi.ResourceClaim) error {
	if d.config.CDI == "" {
		return nil
	}
	type object = map[string]any
	var devices []object
	for _, allocated := range claim.Status.Allocation.Devices.Results {
		if allocated.Driver == d.config.Name {
			devices = append(devices, object{"name": cdiName(claim.UID, allocated.Device), "containerEdits": object{
				"env":         []string{"TEST_DEVICE=" + allocated.Device},
				"deviceNodes": []object{{"path": "/dev/" + allocated.Device, "hostPath": "/dev/null"}},
			}})
		}
	}
	spec, err := json.Marshal(object{"cdiVersion": "0.6.0", "kind": d.cdiKind(), "devices": devices})
	if err != nil {
		return fmt.Errorf("write CDI spec: %w", err)
	}
	if err := os.WriteFile(d.cdiPath(claim.UID), spec, 0o600); err != nil {
		return fmt.Errorf("write CDI spec: %w", err)
	}
	return nil
}

// UnprepareResourceClaims forgets claims.
func (d *Driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	results := map[types.UID]error{}
	for _, claim := range claims {
		results[claim.UID] = nil
		if d.faults.Unprepare != "" {
			results[claim.UID] = errors.New(d.faults.Unprepare)
			continue
		}
		delete(d.prepared, claim.UID)
		if d.config.CDI != "" && !d.faults.KeepSpecs {
			results[claim.UID] = os.RemoveAll(d.cdiPath(claim.UID))
		}
	}
	return results, nil
}

// WatchHealthStatus sends every report that there is.
func (d *Driver) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	if d.config.NoHealth {
		return kubeletplugin.ErrHealthNotSupported
	}
	for {
		d.mu.Lock()
		report, changed := d.report, d.changed
		d.mu.Unlock()
		report.Devices = slices.Clone(report.Devices)
		if len(report.Devices) > 0 {
			select {
			case <-ctx.Done():
				return nil
			case reports <- report:
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// HandleError takes what fails in the background. There is nothing to fail that
// a test would not notice.
func (d *Driver) HandleError(context.Context, error, string) {}
