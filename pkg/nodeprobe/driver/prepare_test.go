// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package driver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	resourceapi "k8s.io/api/resource/v1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registerv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/testdriver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

func calling() CallOptions { return CallOptions{Look: patient(), Timeout: patient().Timeout} }

// do carries out an order and fails the test if that ends early.
func do(t *testing.T, host *node.Host, o *Order, opts CallOptions) *Preparation {
	t.Helper()
	done, err := Do(context.Background(), host, o, opts)
	must(t, err)
	return done
}

func TestPrepareByRealDrivers(t *testing.T) {
	for name, test := range map[string]struct {
		config  testdriver.Config
		service string
	}{
		"v1":      {testdriver.Config{}, "v1.DRAPlugin"},
		"v1beta1": {testdriver.Config{OnlyV1beta1: true}, "v1beta1.DRAPlugin"},
	} {
		t.Run(name, func(t *testing.T) {
			host := kubeletDir(t)
			claim := allocated(gpu, nodeName, "gpu-0", "gpu-1")
			test.config.Claims = []*resourceapi.ResourceClaim{claim}
			d := start(t, host, test.config)

			opts := calling()
			var asked []string
			opts.Resolve = func(context.Context) func(string) (*Edits, error) {
				return func(id string) (*Edits, error) {
					asked = append(asked, id)
					return &Edits{Spec: "/etc/cdi/x.json", DeviceNodes: []DeviceNode{{Path: "/dev/x", HostPath: "/dev/x", State: node.OK}}}, nil
				}
			}
			done := do(t, host, order(PrepareOperation, claim), opts)
			wantNo(t, done.Checks, node.Problem)
			wantNo(t, done.Checks, node.Unknown)
			if len(done.Calls) != 1 || done.Calls[0].Service != test.service || done.Calls[0].Method != "NodePrepareResources" || len(done.Calls[0].Devices) != 2 {
				t.Fatalf("calls are %+v", done.Calls)
			}
			device := done.Calls[0].Devices[0]
			if device.Device != "gpu-0" || device.Pool != nodeName || len(device.CDI) != 1 || device.CDI[0].ID != "k8s.gpu.example.com/claim=uid-1-gpu-0" || device.CDI[0].Edits == nil {
				t.Errorf("the first device is %+v", device)
			}
			if len(asked) != 2 || d.Prepared(claim.UID) != 1 {
				t.Errorf("resolved %v, prepared %d times", asked, d.Prepared(claim.UID))
			}

			done = do(t, host, order(UnprepareOperation, claim), opts)
			wantNo(t, done.Checks, node.Problem)
			if d.Prepared(claim.UID) != 0 || done.Calls[0].Method != "NodeUnprepareResources" {
				t.Errorf("still prepared after %+v", done.Calls[0])
			}
		})
	}
}

func TestPrepareTwiceAndCleanUp(t *testing.T) {
	host := kubeletDir(t)
	claim := allocated(gpu, nodeName, "gpu-0")
	d := start(t, host, testdriver.Config{Claims: []*resourceapi.ResourceClaim{claim}})
	o := order(PrepareOperation, claim)
	o.Twice, o.Cleanup = true, true
	done := do(t, host, o, calling())
	want(t, done.Checks, checkIdempotent, node.OK, "a second time brings the same")
	want(t, done.Checks, checkCleanup, node.OK, "NodeUnprepareResources done")
	want(t, done.Checks, checkCDI, node.Unknown, "was not looked up")
	if len(done.Calls) != 3 || d.Prepared(claim.UID) != 0 {
		t.Errorf("%d calls, prepared %d times", len(done.Calls), d.Prepared(claim.UID))
	}
}

func TestPrepareCleansUpWhenInterrupted(t *testing.T) {
	host := kubeletDir(t)
	claim := allocated(gpu, nodeName, "gpu-0")
	d := start(t, host, testdriver.Config{Claims: []*resourceapi.ResourceClaim{claim}})
	ctx, interrupt := context.WithCancel(context.Background())
	opts := calling()
	opts.Resolve = func(context.Context) func(string) (*Edits, error) {
		if d.Prepared(claim.UID) != 1 {
			t.Error("it is not prepared while its CDI names are looked up")
		}
		interrupt()
		return func(string) (*Edits, error) { return &Edits{}, nil }
	}
	o := order(PrepareOperation, claim)
	o.Cleanup, o.Twice = true, true
	done, err := Do(ctx, host, o, opts)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if d.Prepared(claim.UID) != 0 {
		t.Error("the claim stays prepared")
	}
	want(t, done.Checks, checkCleanup, node.OK, "done")
}

func TestPrepareInterruptedInTheCall(t *testing.T) {
	host := kubeletDir(t)
	claim := allocated(gpu, nodeName, "gpu-0")
	ctx, interrupt := context.WithCancel(context.Background())
	unprepared := make(chan string, 1)
	serve(t, host, gpu, &scripted{
		prepare: func(*drav1.Claim) (*drav1.NodePrepareResourcesResponse, error) {
			interrupt()
			return &drav1.NodePrepareResourcesResponse{}, nil
		},
		unprepare: func(c *drav1.Claim) (*drav1.NodeUnprepareResourcesResponse, error) {
			unprepared <- c.GetUid()
			return &drav1.NodeUnprepareResourcesResponse{Claims: map[string]*drav1.NodeUnprepareResourceResponse{c.GetUid(): nil}}, nil
		},
	})
	o := order(PrepareOperation, claim)
	o.Cleanup = true
	if _, err := Do(ctx, host, o, calling()); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	select {
	case uid := <-unprepared:
		if uid != "uid-1" {
			t.Errorf("unprepared %s", uid)
		}
	default:
		t.Error("nothing is unprepared")
	}
}

// TestPrepareIsNotUnpreparedMeanwhile: a driver that is told to unprepare what it
// is about to prepare would leave it prepared in the end.
func TestPrepareIsNotUnpreparedMeanwhile(t *testing.T) {
	host := kubeletDir(t)
	ctx, interrupt := context.WithCancel(context.Background())
	unprepared := make(chan struct{}, 1)
	serve(t, host, gpu, &scripted{
		prepare: func(c *drav1.Claim) (*drav1.NodePrepareResourcesResponse, error) {
			interrupt()
			select {
			case <-unprepared:
				t.Error("it is unprepared while it is being prepared")
			case <-time.After(200 * time.Millisecond):
			}
			return &drav1.NodePrepareResourcesResponse{Claims: map[string]*drav1.NodePrepareResourceResponse{c.GetUid(): {}}}, nil
		},
		unprepare: func(c *drav1.Claim) (*drav1.NodeUnprepareResourcesResponse, error) {
			unprepared <- struct{}{}
			return &drav1.NodeUnprepareResourcesResponse{Claims: map[string]*drav1.NodeUnprepareResourceResponse{c.GetUid(): nil}}, nil
		},
	})
	o := order(PrepareOperation, allocated(gpu, nodeName, "gpu-0"))
	o.Cleanup = true
	done, err := Do(ctx, host, o, calling())
	if !errors.Is(err, context.Canceled) || len(unprepared) != 1 {
		t.Errorf("the error is %v, unprepared %d times", err, len(unprepared))
	}
	want(t, done.Checks, checkCleanup, node.OK, "done")
	wantNo(t, done.Checks, node.Problem)
}

// TestCleanupOfWhatIsNotAnswered says that it may have come too early.
func TestCleanupOfWhatIsNotAnswered(t *testing.T) {
	host := kubeletDir(t)
	free := make(chan struct{})
	t.Cleanup(func() { close(free) })
	serve(t, host, gpu, &scripted{prepare: func(*drav1.Claim) (*drav1.NodePrepareResourcesResponse, error) {
		<-free
		return nil, errScripted
	}})
	o := order(PrepareOperation, allocated(gpu, nodeName, "gpu-0"))
	o.Cleanup = true
	opts := calling()
	opts.Timeout = 300 * time.Millisecond
	want(t, do(t, host, o, opts).Checks, checkCleanup, node.Unknown, "may still finish NodePrepareResources")
}

func TestPrepareWithFailingDriver(t *testing.T) {
	host := kubeletDir(t)
	claim := allocated(gpu, nodeName, "gpu-0")
	start(t, host, testdriver.Config{Claims: []*resourceapi.ResourceClaim{claim}, Fail: "the GPU has fallen off the bus"})
	for _, operation := range []Operation{PrepareOperation, UnprepareOperation} {
		done := do(t, host, order(operation, claim), calling())
		want(t, done.Checks, checkCall, node.Problem, "the GPU has fallen off the bus")
	}
}

func TestPrepareHoldsRepliesAgainstTheClaim(t *testing.T) {
	device := func(name string) *drav1.Device {
		return &drav1.Device{RequestNames: []string{"gpus"}, PoolName: nodeName, DeviceName: name, CdiDeviceIds: []string{"x.com/gpu=" + name}}
	}
	reply := func(uid string, devices ...*drav1.Device) *drav1.NodePrepareResourcesResponse {
		return &drav1.NodePrepareResourcesResponse{Claims: map[string]*drav1.NodePrepareResourceResponse{uid: {Devices: devices}}}
	}
	for name, test := range map[string]struct {
		reply *drav1.NodePrepareResourcesResponse
		err   error
		check string
		state node.State
		text  string
	}{
		"an error":        {nil, errScripted, checkCall, node.Problem, "the driver says no"},
		"an empty map":    {&drav1.NodePrepareResourcesResponse{}, nil, checkReply, node.Problem, "does not have the claim"},
		"another claim":   {reply("uid-2", device("gpu-0")), nil, checkReply, node.Problem, "has 1 claim not asked for (uid-2)"},
		"a device twice":  {reply("uid-1", device("gpu-0"), device("gpu-0")), nil, checkAllocated, node.Problem, "node-1/gpu-0 twice"},
		"another device":  {reply("uid-1", device("gpu-0"), device("gpu-7")), nil, checkAllocated, node.Problem, "node-1/gpu-7, which the claim does not have"},
		"no name":         {reply("uid-1", device("")), nil, checkAllocated, node.Problem, "a device without a name"},
		"fewer devices":   {reply("uid-1"), nil, checkAllocated, node.Unknown, "does not have node-1/gpu-0"},
		"the right one":   {reply("uid-1", device("gpu-0")), nil, checkAllocated, node.OK, "has the 1 device that the claim has"},
		"far too many":    {reply("uid-1", &drav1.Device{PoolName: strings.Repeat("x", 5<<20)}), nil, checkCall, node.Problem, "sends too much"},
		"an empty answer": {reply("uid-1", nil), nil, checkAllocated, node.Problem, "a device without a pool"},
	} {
		t.Run(name, func(t *testing.T) {
			host := kubeletDir(t)
			serve(t, host, gpu, &scripted{prepare: func(*drav1.Claim) (*drav1.NodePrepareResourcesResponse, error) { return test.reply, test.err }})
			done := do(t, host, order(PrepareOperation, allocated(gpu, nodeName, "gpu-0")), calling())
			want(t, done.Checks, test.check, test.state, test.text)
		})
	}
}

func TestPrepareFindsWhatIsNotIdempotent(t *testing.T) {
	host := kubeletDir(t)
	calls := 0
	serve(t, host, gpu, &scripted{prepare: func(c *drav1.Claim) (*drav1.NodePrepareResourcesResponse, error) {
		calls++
		return &drav1.NodePrepareResourcesResponse{Claims: map[string]*drav1.NodePrepareResourceResponse{c.GetUid(): {Devices: []*drav1.Device{
			{PoolName: nodeName, DeviceName: "gpu-0", CdiDeviceIds: []string{strings.Repeat("x", calls)}},
		}}}}, nil
	}})
	o := order(PrepareOperation, allocated(gpu, nodeName, "gpu-0"))
	o.Twice = true
	want(t, do(t, host, o, calling()).Checks, checkIdempotent, node.Problem, "brings other devices or CDI names")
}

func TestPrepareGivesUpInTime(t *testing.T) {
	host := kubeletDir(t)
	free := make(chan struct{})
	t.Cleanup(func() { close(free) })
	serve(t, host, gpu, &scripted{prepare: func(*drav1.Claim) (*drav1.NodePrepareResourcesResponse, error) {
		<-free
		return nil, errScripted
	}})
	opts := calling()
	opts.Timeout = 300 * time.Millisecond
	done := do(t, host, order(PrepareOperation, allocated(gpu, nodeName, "gpu-0")), opts)
	want(t, done.Checks, checkCall, node.Problem, "does not answer in time")
}

// TestPrepareReportsWhatWasNotRead does not call broken what may only be in a spec
// that was not read.
func TestPrepareReportsWhatWasNotRead(t *testing.T) {
	host := kubeletDir(t)
	claim := allocated(gpu, nodeName, "gpu-0")
	start(t, host, testdriver.Config{Claims: []*resourceapi.ResourceClaim{claim}})
	opts := calling()
	opts.Resolve = func(context.Context) func(string) (*Edits, error) {
		return func(id string) (*Edits, error) {
			return nil, fmt.Errorf("%s may be in /etc/cdi/a.json, which %w", id, node.ErrNotRead)
		}
	}
	done := do(t, host, order(PrepareOperation, claim), opts)
	want(t, done.Checks, checkCDI, node.Unknown, "is not known")
	wantNo(t, done.Checks, node.Problem)
}

func TestPrepareReportsWhatDoesNotResolve(t *testing.T) {
	host := kubeletDir(t)
	claim := allocated(gpu, nodeName, "gpu-0", "gpu-1")
	start(t, host, testdriver.Config{Claims: []*resourceapi.ResourceClaim{claim}})
	opts := calling()
	opts.Resolve = func(context.Context) func(string) (*Edits, error) {
		return func(id string) (*Edits, error) {
			if strings.HasSuffix(id, "gpu-0") {
				return nil, errors.New("no spec has it")
			}
			return &Edits{Spec: "/var/run/cdi/gpu.yaml", DeviceNodes: []DeviceNode{{Path: "/dev/nvidia1", HostPath: "/dev/nvidia1", State: node.Problem, Message: "is not there"}}}, nil
		}
	}
	done := do(t, host, order(PrepareOperation, claim), opts)
	want(t, done.Checks, checkCDI, node.Problem, "gpu-0 does not resolve, so the container does not start: no spec has it")
	want(t, done.Checks, checkCDI, node.Problem, "the device file of k8s.gpu.example.com/claim=uid-1-gpu-1, named in /var/run/cdi/gpu.yaml: is not there")
}

// TestPrepareWithAVersionThatIsNotServed falls back, which the kubelet does not.
func TestPrepareWithAVersionThatIsNotServed(t *testing.T) {
	host := kubeletDir(t)
	claim := allocated(gpu, nodeName, "gpu-0")
	serve(t, host, gpu, &scripted{
		info: &registerv1.PluginInfo{
			Type: registerv1.DRAPlugin, Name: gpu, Endpoint: filepath.Join(host.Kubelet, pluginsDir, gpu, "dra.sock"),
			SupportedVersions: []string{drav1beta1.DRAPluginService, drav1.DRAPluginService},
		},
		prepare: func(*drav1.Claim) (*drav1.NodePrepareResourcesResponse, error) {
			return nil, status.Error(codes.Unimplemented, "not yet")
		},
		older: func(c *drav1beta1.Claim) (*drav1beta1.NodePrepareResourcesResponse, error) {
			return &drav1beta1.NodePrepareResourcesResponse{Claims: map[string]*drav1beta1.NodePrepareResourceResponse{c.GetUid(): {Devices: []*drav1beta1.Device{
				{PoolName: nodeName, DeviceName: "gpu-0"},
			}}}}, nil
		},
	})
	done := do(t, host, order(PrepareOperation, claim), calling())
	want(t, done.Checks, checkCall, node.OK, "NodePrepareResources done")
	want(t, done.Checks, checkVersion, node.Problem, "advertises v1.DRAPlugin and does not serve it")
}

// TestPrepareBoundsReplies looks at the specs of the node once for a call, and not
// at everything that fits into a reply.
func TestPrepareBoundsReplies(t *testing.T) {
	host := kubeletDir(t)
	serve(t, host, gpu, &scripted{prepare: func(c *drav1.Claim) (*drav1.NodePrepareResourcesResponse, error) {
		many := &drav1.Device{PoolName: nodeName, DeviceName: "gpu-0", CdiDeviceIds: slices.Repeat([]string{"x.com/gpu=0"}, 20*maxNames)}
		claims := map[string]*drav1.NodePrepareResourceResponse{c.GetUid(): {Devices: append([]*drav1.Device{many}, slices.Repeat([]*drav1.Device{{}}, 20000)...)}}
		for i := range 20000 {
			claims[fmt.Sprint("uid-x", i)] = &drav1.NodePrepareResourceResponse{}
		}
		return &drav1.NodePrepareResourcesResponse{Claims: claims}, nil
	}})
	looks := 0
	opts := calling()
	opts.Resolve = func(context.Context) func(string) (*Edits, error) {
		looks++
		return func(string) (*Edits, error) { return &Edits{}, nil }
	}
	done := do(t, host, order(PrepareOperation, allocated(gpu, nodeName, "gpu-0")), opts)
	want(t, done.Checks, checkReply, node.Problem, "has 20,000 claims not asked for")
	want(t, done.Checks, checkAllocated, node.Problem, "the reply has 20,001 devices")
	want(t, done.Checks, checkCDI, node.Unknown, "the reply has 20,000 CDI names, of which 1,000 were looked up")
	if looks != 1 || len(done.Checks) > 2*maxDevices+maxNames {
		t.Errorf("%d looks, %d checks", looks, len(done.Checks))
	}
}

func TestPrepareWithoutDriver(t *testing.T) {
	host := kubeletDir(t)
	done := do(t, host, order(PrepareOperation, allocated(gpu, nodeName, "gpu-0")), calling())
	want(t, done.Checks, checkFind, node.Problem, "driver gpu.example.com does not register here")
}
