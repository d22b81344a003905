// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package driver

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	registerv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/testdriver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// named returns an allocated claim with a name and a UID of its own.
func named(name, driver string, devices ...string) *resourceapi.ResourceClaim {
	claim := allocated(driver, nodeName, devices...)
	claim.Name, claim.UID = name, types.UID("uid-"+name)
	return claim
}

// model is a driver that does everything right, and of which a test can spoil one
// thing.
type model struct {
	registerv1.UnimplementedRegistrationServer
	drav1.UnimplementedDRAPluginServer
	healthv1.UnimplementedDRAResourceHealthServer

	claims map[string]*resourceapi.ResourceClaim
	fault  string
	server *grpc.Server

	mu       sync.Mutex
	asked    int
	busy     bool
	prepared map[string]int
}

func (m *model) GetInfo(context.Context, *registerv1.InfoRequest) (*registerv1.PluginInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	info := &registerv1.PluginInfo{Type: registerv1.DRAPlugin, Name: gpu, Endpoint: m.claims[""].Name, SupportedVersions: []string{drav1.DRAPluginService, healthv1.DRAResourceHealthService}}
	// The first two times it is found, and chosen.
	if m.asked++; m.fault == conformGetInfo && m.asked > 1 {
		info.SupportedVersions = []string{drav1.DRAPluginService}
	}
	if m.fault == conformVersions {
		info.SupportedVersions = append(info.SupportedVersions, "v1beta1.DRAPlugin")
	}
	return info, nil
}

func (m *model) NodePrepareResources(_ context.Context, r *drav1.NodePrepareResourcesRequest) (*drav1.NodePrepareResourcesResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := &drav1.NodePrepareResourcesResponse{Claims: map[string]*drav1.NodePrepareResourceResponse{}}
	for _, asked := range r.GetClaims() {
		claim := m.claims[asked.GetName()]
		reply := &drav1.NodePrepareResourceResponse{}
		out.Claims[asked.GetUid()] = reply
		switch {
		case claim == nil && m.fault == conformErrors:
		case claim == nil:
			reply.Error = "there is no such claim"
		case string(claim.UID) != asked.GetUid() && m.fault != conformReplaced:
			reply.Error = "it was replaced"
		case claim.Status.Allocation == nil && m.fault != conformUnallocated:
			reply.Error = "it is not allocated"
		case m.fault == conformPrepare:
			reply.Error = "no"
		default:
			m.prepared[asked.GetUid()]++
			reply.Devices = m.devices(claim, m.prepared[asked.GetUid()])
		}
		if m.fault == conformSeveral && len(r.GetClaims()) > 1 && claim != nil && claim.Name == "two" {
			delete(out.Claims, asked.GetUid())
		}
	}
	return out, nil
}

func (m *model) devices(claim *resourceapi.ResourceClaim, times int) []*drav1.Device {
	if claim.Status.Allocation == nil {
		return nil
	}
	var devices []*drav1.Device
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != gpu && m.fault != conformForeign {
			continue
		}
		id := "example.com/gpu=" + result.Device
		switch {
		case m.fault == conformCDI:
			id = "example.com/gpu=none"
		case m.fault == conformTwice && times > 1, m.fault == conformRestart && m.server == nil:
			id = "example.com/gpu=other"
		}
		devices = append(devices, &drav1.Device{PoolName: result.Pool, DeviceName: result.Device, CdiDeviceIds: []string{id}})
	}
	return devices
}

func (m *model) NodeUnprepareResources(_ context.Context, r *drav1.NodeUnprepareResourcesRequest) (*drav1.NodeUnprepareResourcesResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := &drav1.NodeUnprepareResourcesResponse{Claims: map[string]*drav1.NodeUnprepareResourceResponse{}}
	for _, asked := range r.GetClaims() {
		reply := &drav1.NodeUnprepareResourceResponse{}
		out.Claims[asked.GetUid()] = reply
		_, known := m.prepared[asked.GetUid()]
		delete(m.prepared, asked.GetUid())
		claim := m.claims[asked.GetName()]
		switch {
		case m.fault == conformUnprepare && claim != nil && claim.Name == "one" && known && !m.busy:
			m.prepared[asked.GetUid()], m.busy = 1, true
			reply.Error = "the device is busy"
		case m.fault == conformGone && claim != nil && string(claim.UID) == asked.GetUid() && !known:
			reply.Error = "it is not prepared"
		case m.fault == conformUnknown && claim == nil:
			reply.Error = "there is no such claim"
		}
	}
	return out, nil
}

func (m *model) NodeWatchResources(_ *healthv1.NodeWatchResourcesRequest, stream healthv1.DRAResourceHealth_NodeWatchResourcesServer) error {
	device := &healthv1.DeviceIdentifier{PoolName: nodeName, DeviceName: "gpu-0"}
	if m.fault == conformHealth {
		device.PoolName = ""
	}
	if err := stream.Send(&healthv1.NodeWatchResourcesResponse{Devices: []*healthv1.DeviceHealth{{Device: device, Health: healthv1.HealthStatus_HEALTHY}}}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// listen runs it on its sockets.
func (m *model) listen(t *testing.T, host *node.Host) {
	t.Helper()
	endpoint := filepath.Join(host.Kubelet, pluginsDir, gpu, "dra.sock")
	m.claims[""] = &resourceapi.ResourceClaim{}
	m.claims[""].Name = endpoint
	server := grpc.NewServer()
	registerv1.RegisterRegistrationServer(server, m)
	drav1.RegisterDRAPluginServer(server, m)
	healthv1.RegisterDRAResourceHealthServer(server, m)
	for _, at := range []string{registryDir + "/" + gpu + "-reg.sock", pluginsDir + "/" + gpu + "/dra.sock"} {
		listener := listenAt(t, host, at)
		go func() { _ = server.Serve(listener) }()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server = server
	t.Cleanup(server.Stop)
}

// halt ends it; its sockets go, too.
func (m *model) halt() {
	m.mu.Lock()
	server := m.server
	m.mu.Unlock()
	server.Stop()
}

// published returns a cluster with a pool of the driver.
func published(generation int64, devices ...string) *snapshot.Snapshot {
	snap := cluster(gpu)
	snap.Slices[0].Spec.Pool = resourceapi.ResourcePool{Name: nodeName, Generation: generation, ResourceSliceCount: 1}
	for _, name := range devices {
		snap.Slices[0].Spec.Devices = append(snap.Slices[0].Spec.Devices, resourceapi.Device{Name: name})
	}
	return snap
}

// resolving knows two CDI names.
func resolving(context.Context) func(string) (*Edits, error) {
	return func(id string) (*Edits, error) {
		if !strings.HasPrefix(id, "example.com/gpu=") || strings.HasSuffix(id, "none") {
			return nil, errors.New("no spec has it")
		}
		return &Edits{Spec: "/etc/cdi/gpu.json"}, nil
	}
}

// results returns the results that are not OK, by name.
func results(c *Conformance, state node.State) []string {
	var names []string
	for _, r := range c.Results {
		if r.State == state {
			names = append(names, r.Name)
		}
	}
	return names
}

// TestConformFindsEachFault spoils a driver in each way: exactly the requirement that
// it breaks fails.
func TestConformFindsEachFault(t *testing.T) {
	faults := []string{
		"", conformVersions, conformGetInfo, conformSlices, conformHealth, conformPrepare, conformCDI, conformTwice, conformReplaced, conformUnallocated,
		conformForeign, conformErrors, conformRestart, conformGeneration, conformUnprepare, conformGone, conformUnknown, conformSeveral, conformStop,
	}
	for _, fault := range faults {
		t.Run(strings.TrimPrefix(fault, "conform/"), func(t *testing.T) {
			host := kubeletDir(t)
			one, two, foreign := named("one", gpu, "gpu-0"), named("two", gpu, "gpu-1"), named("foreign", "nic.example.com", "nic-0")
			pending := named("pending", gpu)
			pending.Status.Allocation = nil
			m := &model{fault: fault, prepared: map[string]int{}, claims: map[string]*resourceapi.ResourceClaim{"one": one, "two": two, "foreign": foreign, "pending": pending}}
			m.listen(t, host)
			before, after := published(3, "gpu-0", "gpu-1"), published(4, "gpu-0", "gpu-1")
			switch fault {
			case conformSlices:
				before.Slices[0].Spec.Pool.ResourceSliceCount = 2
			case conformGeneration:
				after.Slices[0].Spec.Pool.Generation = 2
			}
			opts := ConformOptions{
				CallOptions: CallOptions{Look: patient(), Timeout: patient().Timeout, Resolve: resolving},
				Claims:      []*resourceapi.ResourceClaim{one, two}, Unallocated: pending, Foreign: foreign,
				Cluster: before,
				Reread:  func(context.Context) (*snapshot.Snapshot, error) { return after, nil },
				Restart: func(context.Context) error {
					m.halt()
					m.listen(t, host)
					if fault == conformRestart {
						m.mu.Lock()
						m.server = nil
						m.mu.Unlock()
					}
					return nil
				},
				Stop: func(context.Context) error {
					m.halt()
					if fault == conformStop {
						must(t, os.WriteFile(filepath.Join(host.Kubelet, registryDir, "x"), nil, 0o600))
						listener := listenAt(t, host, registryDir+"/left.sock")
						must(t, listener.Close())
					}
					return nil
				},
				Settle: 30 * time.Second,
			}
			if fault == conformRestart {
				opts.Stop = nil
			}
			if fault == conformStop {
				// The slices stay.
				opts.RemovesSlices, opts.Settle = true, time.Second
			}
			if refusals := RefuseConform(gpu, &opts, Place{Node: nodeName}); len(refusals) > 0 {
				t.Fatalf("refused: %+v", refusals)
			}
			c, err := Conform(t.Context(), host, gpu, opts)
			must(t, err)
			var want []string
			if fault != "" {
				want = []string{fault}
			}
			if got := results(c, node.Problem); !slices.Equal(got, want) {
				t.Errorf("fails %v, want %v: %+v", got, want, c.Results)
			}
			if unsure := results(c, node.Unknown); fault == "" && len(unsure) > 0 {
				t.Errorf("not known: %v: %+v", unsure, c.Results)
			}
			for _, r := range c.Results {
				if untried := strings.HasPrefix(r.Message, "not tried: "); untried != (r.Needs != "") {
					t.Errorf("%s needs %q: %s", r.Name, r.Needs, r.Message)
				}
			}
			if len(m.prepared) > 0 {
				t.Errorf("it still has %v prepared", slices.Collect(maps.Keys(m.prepared)))
			}
		})
	}
}

// TestConformOfUpstreamHelper tries a real driver on the upstream helper.
func TestConformOfUpstreamHelper(t *testing.T) {
	host := kubeletDir(t)
	one, two, foreign := named("one", gpu, "gpu-0"), named("two", gpu, "gpu-1"), named("foreign", "nic.example.com", "nic-0")
	pending := named("pending", gpu)
	pending.Status.Allocation = nil
	config := testdriver.Config{Claims: []*resourceapi.ResourceClaim{one, two, foreign, pending}}
	d := start(t, host, config)
	d.SetHealth(says("gpu-0", kubeletplugin.HealthStatusHealthy, ""))
	c, err := Conform(t.Context(), host, gpu, ConformOptions{
		CallOptions: CallOptions{Look: patient(), Timeout: patient().Timeout, Resolve: func(context.Context) func(string) (*Edits, error) {
			return func(string) (*Edits, error) { return &Edits{}, nil }
		}},
		Claims: config.Claims[:2], Unallocated: pending, Foreign: foreign,
		Cluster: published(1, "gpu-0", "gpu-1"),
		Reread: func(context.Context) (*snapshot.Snapshot, error) {
			return published(1, "gpu-0", "gpu-1"), nil
		},
		Restart: func(context.Context) error {
			d.Stop()
			d = start(t, host, config)
			return nil
		},
		Stop: func(context.Context) error { d.Stop(); return nil },
	})
	must(t, err)
	if got := results(c, node.Problem); len(got) > 0 {
		t.Errorf("fails %v: %+v", got, c.Results)
	}
	// The helper lets one claim that does not exist fail the call.
	if got := results(c, node.Unknown); !slices.Equal(got, []string{conformErrors}) {
		t.Errorf("not known: %v: %+v", got, c.Results)
	}
	for _, claim := range []*resourceapi.ResourceClaim{one, two} {
		if d.Prepared(claim.UID) != 0 {
			t.Errorf("claim %s is still prepared", claim.Name)
		}
	}
}

// TestConformRefuses never touches what somebody uses.
func TestConformRefuses(t *testing.T) {
	used := reservedBy(named("used", gpu, "gpu-0"), "train", "pod-1")
	elsewhere := allocated(gpu, "node-2", "gpu-0")
	pending := named("pending", gpu)
	pending.Status.Allocation = nil
	for name, test := range map[string]struct {
		opts ConformOptions
		text string
	}{
		"in use":                   {ConformOptions{Claims: []*resourceapi.ResourceClaim{used}}, "reserved for pods/train"},
		"elsewhere":                {ConformOptions{Claims: []*resourceapi.ResourceClaim{elsewhere}}, "not allocated to node node-1"},
		"not allocated":            {ConformOptions{Claims: []*resourceapi.ResourceClaim{pending}}, "the claim is not allocated"},
		"of another driver":        {ConformOptions{Claims: []*resourceapi.ResourceClaim{named("nic", "nic.example.com", "nic-0")}}, "no device of driver gpu.example.com"},
		"unallocated is allocated": {ConformOptions{Unallocated: named("one", gpu, "gpu-0")}, "it is allocated"},
		"foreign is own":           {ConformOptions{Foreign: named("one", gpu, "gpu-0")}, "it has devices of driver gpu.example.com"},
		"foreign is in use":        {ConformOptions{Foreign: reservedBy(named("nic", "nic.example.com", "nic-0"), "train", "pod-1")}, "it is in use"},
	} {
		t.Run(name, func(t *testing.T) {
			test.opts.Cluster = cluster(gpu)
			refusals := RefuseConform(gpu, &test.opts, Place{Node: nodeName})
			if !slices.ContainsFunc(refusals, func(r Refusal) bool { return strings.Contains(r.Reason, test.text) }) {
				t.Errorf("%+v", refusals)
			}
		})
	}
}

// TestConformWithoutDriver covers a node without drivers.
func TestConformWithoutDriver(t *testing.T) {
	c, err := Conform(t.Context(), kubeletDir(t), gpu, ConformOptions{Claims: []*resourceapi.ResourceClaim{named("one", gpu, "gpu-0")}, CallOptions: calling()})
	must(t, err)
	if got := results(c, node.Problem); !slices.Equal(got, []string{conformRegistration}) {
		t.Errorf("fails %v: %+v", got, c.Results)
	}
	if got := len(results(c, node.OK)); got > 0 {
		t.Errorf("%+v", c.Results)
	}
	want := map[string]Need{
		conformSlices: NeedCluster, conformVersions: NeedDriver, conformPrepare: NeedDriver, conformStop: NeedDriver, conformGeneration: NeedRestart,
	}
	for _, r := range c.Results {
		if need, tested := want[r.Name]; tested && r.Needs != need || r.Name == conformRegistration && r.Needs != "" {
			t.Errorf("%s needs %q", r.Name, r.Needs)
		}
	}
}

// TestConformRecordsCalls keeps each call of a requirement as its evidence.
func TestConformRecordsCalls(t *testing.T) {
	host := kubeletDir(t)
	one, two := named("one", gpu, "gpu-0"), named("two", gpu, "gpu-1")
	m := &model{fault: conformSeveral, prepared: map[string]int{}, claims: map[string]*resourceapi.ResourceClaim{"one": one, "two": two}}
	m.listen(t, host)
	c, err := Conform(t.Context(), host, gpu, ConformOptions{
		CallOptions: CallOptions{Look: patient(), Timeout: patient().Timeout, Resolve: resolving}, Claims: []*resourceapi.ResourceClaim{one, two}, Program: "v1",
	})
	must(t, err)
	if s := c.Software; s.Program != "v1" || !slices.Equal(s.Services, []string{drav1.DRAPluginService, healthv1.DRAResourceHealthService}) {
		t.Errorf("software %+v", s)
	}
	of := func(name string) []Exchange {
		return c.Results[slices.IndexFunc(c.Results, func(r Conformity) bool { return r.Name == name })].Exchanges
	}
	device := PreparedDevice{Pool: nodeName, Device: "gpu-0", CDI: []CDIDevice{{ID: "example.com/gpu=gpu-0"}}}
	want := Exchange{Service: "v1.DRAPlugin", Method: "NodePrepareResources", Claims: []ClaimReply{{Claim: claimOf(one), Replied: true, Devices: []PreparedDevice{device}}}}
	if got := of(conformPrepare); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	// A claim that was forgotten, and one that was refused and taken back.
	if got := of(conformSeveral); len(got) != 1 || !got[0].Claims[0].Replied || got[0].Claims[1].Replied || got[0].Claims[1].UID != string(two.UID) {
		t.Errorf("%+v", got)
	}
	if got := of(conformReplaced); len(got) != 2 || got[0].Claims[0].Error != "it was replaced" || got[1].Method != "NodeUnprepareResources" {
		t.Errorf("%+v", got)
	}
	if got := of(conformSlices); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestConformInterrupted ends in the middle, and leaves nothing prepared.
func TestConformInterrupted(t *testing.T) {
	host := kubeletDir(t)
	one := named("one", gpu, "gpu-0")
	d := start(t, host, testdriver.Config{Claims: []*resourceapi.ResourceClaim{one}, NoHealth: true})
	ctx, cancel := context.WithCancel(t.Context())
	d.OnCall(func(method string, done bool) {
		if method == "NodePrepareResources" && !done {
			cancel()
		}
	})
	_, err := Conform(ctx, host, gpu, ConformOptions{Claims: []*resourceapi.ResourceClaim{one}, CallOptions: calling()})
	if !errors.Is(err, context.Canceled) || d.Prepared(one.UID) != 0 {
		t.Errorf("%v, prepared %d times", err, d.Prepared(one.UID))
	}
}
