// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// lister is a kubelet that tells what the test says.
type lister struct {
	v1.UnimplementedPodResourcesListerServer

	pods    []*v1.PodResources
	devices []*v1.ContainerDevices
	// hang makes List wait until the client gives up.
	hang bool
}

func (l *lister) List(ctx context.Context, _ *v1.ListPodResourcesRequest) (*v1.ListPodResourcesResponse, error) {
	if l.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &v1.ListPodResourcesResponse{PodResources: l.pods}, nil
}

func (l *lister) Get(_ context.Context, in *v1.GetPodResourcesRequest) (*v1.GetPodResourcesResponse, error) {
	for _, p := range l.pods {
		if p.Namespace == in.PodNamespace && p.Name == in.PodName {
			return &v1.GetPodResourcesResponse{PodResources: p}, nil
		}
	}
	return nil, fmt.Errorf("pod %s in namespace %s not found", in.PodName, in.PodNamespace)
}

func (l *lister) GetAllocatableResources(context.Context, *v1.AllocatableResourcesRequest) (*v1.AllocatableResourcesResponse, error) {
	if l.devices == nil {
		return nil, status.Error(codes.Unimplemented, "API GetAllocatableResources disabled")
	}
	return &v1.AllocatableResourcesResponse{Devices: l.devices}, nil
}

// home returns a node with room for the socket, whose path must be short.
func home(t *testing.T) (host *node.Host, socket string) {
	t.Helper()
	root, err := os.MkdirTemp("", "k")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	host = node.NewHost(root, "/k", nil)
	host.Name = "node-a"
	socket = filepath.Join(root, "k", "pod-resources", "kubelet.sock")
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	return host, socket
}

func listen(t *testing.T, socket string) net.Listener {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// serve starts a kubelet.
func serve(t *testing.T, l *lister) *node.Host {
	t.Helper()
	host, socket := home(t)
	server := grpc.NewServer(grpc.MaxSendMsgSize(1 << 30))
	v1.RegisterPodResourcesListerServer(server, l)
	listener := listen(t, socket)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return host
}

func found(f *Findings, state node.State, name, text string) *node.Check {
	for i := range f.Checks {
		if c := &f.Checks[i]; c.State == state && c.Name == name && strings.Contains(c.Message, text) {
			return c
		}
	}
	return nil
}

// holding returns a pod of the kubelet with a claim and its devices.
func holding(pod, claim string, devices ...string) *v1.PodResources {
	resource := &v1.DynamicResource{ClaimName: claim, ClaimNamespace: "ml"}
	for _, d := range devices {
		resource.ClaimResources = append(resource.ClaimResources, &v1.ClaimResource{
			DriverName: "gpu.example.com", PoolName: "node-a", DeviceName: d,
			CdiDevices: []*v1.CDIDevice{{Name: "k8s.gpu.example.com/claim=" + d}},
		})
	}
	return &v1.PodResources{Namespace: "ml", Name: pod, Containers: []*v1.ContainerResources{{Name: "main", DynamicResources: []*v1.DynamicResource{resource}}}}
}

// world is a cluster.
type world struct{ snapshot.Snapshot }

func newWorld() *world {
	w := &world{}
	w.Nodes = []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}}}
	return w
}

func (w *world) pod(name, claim, on string, phase corev1.PodPhase) *world {
	w.Pods = append(w.Pods, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{
			NodeName:       on,
			ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}},
			Containers:     []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}},
		},
		Status: corev1.PodStatus{Phase: phase},
	})
	return w
}

func (w *world) claim(name, pod string, devices ...string) *world {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name)}}
	claim.Status.Allocation = &resourceapi.AllocationResult{}
	for _, d := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Request: "gpu", Driver: "gpu.example.com", Pool: "node-a", Device: d})
	}
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: pod, UID: types.UID("uid-" + pod)}}
	w.Claims = append(w.Claims, claim)
	return w
}

// TestJoin holds the kubelet's word against the cluster's, both ways.
func TestJoin(t *testing.T) {
	running := corev1.PodRunning
	for name, test := range map[string]struct {
		pods  []*v1.PodResources
		world *world
		state node.State
		check string
		say   string
	}{
		"they agree": {
			[]*v1.PodResources{holding("p", "c", "gpu-0", "gpu-1")},
			newWorld().pod("p", "c", "node-a", running).claim("c", "p", "gpu-0", "gpu-1"),
			node.OK, checkClaims, "agree on 1 claim",
		},
		"no such pod": {
			[]*v1.PodResources{holding("p", "c", "gpu-0")},
			newWorld(),
			node.Problem, checkPods, "the cluster has no such pod",
		},
		"pod of another node": {
			[]*v1.PodResources{holding("p", "c", "gpu-0")},
			newWorld().pod("p", "c", "node-b", running).claim("c", "p", "gpu-0"),
			node.Problem, checkPods, "bound to another node",
		},
		"no such claim": {
			[]*v1.PodResources{holding("p", "c", "gpu-0")},
			newWorld().pod("p", "c", "node-a", running),
			node.Problem, checkClaims, "no such claim",
		},
		"reserved for another pod": {
			[]*v1.PodResources{holding("p", "c", "gpu-0")},
			newWorld().pod("p", "c", "node-a", running).claim("c", "other", "gpu-0"),
			node.Problem, checkClaims, "not reserved it for the pod",
		},
		"a device that is not allocated": {
			[]*v1.PodResources{holding("p", "c", "gpu-1")},
			newWorld().pod("p", "c", "node-a", running).claim("c", "p", "gpu-0"),
			node.Problem, checkClaims, "gpu.example.com/node-a/gpu-1, which is not allocated",
		},
		"half of the devices": {
			[]*v1.PodResources{holding("p", "c", "gpu-1")},
			newWorld().pod("p", "c", "node-a", running).claim("c", "p", "gpu-0", "gpu-1"),
			node.Problem, checkClaims, "gpu.example.com/node-a/gpu-0 is allocated to it",
		},
		"a running pod that the kubelet does not report": {
			nil, newWorld().pod("p", "c", "node-a", running).claim("c", "p", "gpu-0"),
			node.Problem, checkClaims, "the kubelet does not report the claim",
		},
		"a pod that does not run yet": {
			nil, newWorld().pod("p", "c", "node-a", corev1.PodPending).claim("c", "p", "gpu-0"),
			node.Unknown, checkClaims, "does not run yet",
		},
		"no such pod, with a device of a plugin": {
			[]*v1.PodResources{{Namespace: "ml", Name: "p", Containers: []*v1.ContainerResources{{
				Name: "main", Devices: []*v1.ContainerDevices{{ResourceName: "example.com/nic", DeviceIds: []string{"eth0", "eth1"}}},
			}}}},
			newWorld(),
			node.Problem, checkPods, "pod ml/p with 2 devices of device plugins, and the cluster has no such pod",
		},
		"a kubelet that reports no claims": {
			nil, newWorld().pod("p", "c", "node-a", running).claim("c", "p", "gpu-0").pod("q", "d", "node-a", running).claim("d", "q", "gpu-1"),
			node.Unknown, checkClaims, "KubeletPodResourcesDynamicResources",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := Look(t.Context(), serve(t, &lister{pods: test.pods, devices: []*v1.ContainerDevices{}}), &test.world.Snapshot)
			if found(f, test.state, test.check, test.say) == nil {
				t.Errorf("want %s of %s with %q, got %+v", test.state, test.check, test.say, f.Checks)
			}
			if test.state != node.Problem && node.Worst(f.Checks) == node.Problem {
				t.Errorf("nothing is wrong, got %+v", f.Checks)
			}
		})
	}
}

// TestForbidden says that it does not know where it may not read.
func TestForbidden(t *testing.T) {
	w := newWorld()
	w.Gaps = []snapshot.Gap{{Resource: snapshot.ResourcePods, Reason: "pods are forbidden"}}
	f := Look(t.Context(), serve(t, &lister{pods: []*v1.PodResources{holding("p", "c", "gpu-0")}}), &w.Snapshot)
	if found(f, node.Unknown, checkClaims, "pods are forbidden") == nil || node.Worst(f.Checks) == node.Problem {
		t.Errorf("missing rights are no problem of the node: %+v", f.Checks)
	}
	if found(f, node.Unknown, checkAllocatable, "does not offer") == nil {
		t.Errorf("a call that is switched off: %+v", f.Checks)
	}
	if f := Look(t.Context(), serve(t, &lister{}), nil); found(f, node.Unknown, checkClaims, "no cluster") == nil {
		t.Errorf("no cluster: %+v", f.Checks)
	}
}

// TestDevicesByResource keeps no devices apart from devices that are not known.
func TestDevicesByResource(t *testing.T) {
	devices := []*v1.ContainerDevices{
		{ResourceName: "example.com/nic", DeviceIds: []string{"eth1"}},
		{ResourceName: "example.com/nic", DeviceIds: []string{"eth0"}, Topology: &v1.TopologyInfo{Nodes: []*v1.NUMANode{{ID: 1}}}},
	}
	pod := &v1.PodResources{Namespace: "ml", Name: "p", Containers: []*v1.ContainerResources{{Name: "main", Devices: devices[:1]}}}
	for name, test := range map[string]struct {
		lister       *lister
		given, inUse string
	}{
		"both":     {&lister{devices: devices, pods: []*v1.PodResources{pod}}, "map[example.com/nic:[eth0 eth1]]", "map[example.com/nic:[eth1]]"},
		"none":     {&lister{devices: []*v1.ContainerDevices{}}, "map[]", "map[]"},
		"no calls": {&lister{hang: true}, "nil", "nil"},
	} {
		t.Run(name, func(t *testing.T) {
			f := Look(t.Context(), serve(t, test.lister), nil)
			for _, got := range []struct {
				ids  map[string][]string
				want string
			}{{f.GivenOut(), test.given}, {f.InUse(), test.inUse}} {
				text := "nil"
				if got.ids != nil {
					text = fmt.Sprint(got.ids)
				}
				if text != got.want {
					t.Errorf("got %s, want %s", text, got.want)
				}
			}
		})
	}
}

func TestDevices(t *testing.T) {
	numa := &v1.TopologyInfo{Nodes: []*v1.NUMANode{{ID: 1}}}
	pod := &v1.PodResources{Namespace: "ml", Name: "p", Containers: []*v1.ContainerResources{{
		Name: "main", CpuIds: []int64{4, 5},
		Devices: []*v1.ContainerDevices{
			{ResourceName: "nvidia.com/gpu", DeviceIds: []string{"GPU-2"}, Topology: numa},
			{ResourceName: "nvidia.com/gpu", DeviceIds: []string{"GPU-1"}, Topology: numa},
		},
	}}}
	empty := &v1.PodResources{Namespace: "ml", Name: "idle", Containers: []*v1.ContainerResources{{Name: "main"}}}
	host := serve(t, &lister{pods: []*v1.PodResources{empty, pod}, devices: []*v1.ContainerDevices{{ResourceName: "nvidia.com/gpu", DeviceIds: []string{"GPU-1"}}}})
	f := Look(t.Context(), host, nil)
	if len(f.Pods) != 1 || f.Others != 1 {
		t.Fatalf("%d pods and %d others, want 1 and 1", len(f.Pods), f.Others)
	}
	got := f.Pods[0].Containers[0]
	if len(got.Devices) != 1 || strings.Join(got.Devices[0].IDs, ",") != "GPU-1,GPU-2" || len(got.Devices[0].NUMANodes) != 1 || got.Devices[0].NUMANodes[0] != 1 || len(got.CPUs) != 2 {
		t.Errorf("the devices of the pod: %+v", got)
	}
	if len(f.Allocatable) != 1 {
		t.Errorf("allocatable: %+v", f.Allocatable)
	}
	if f := LookPod(t.Context(), host, nil, "ml", "p"); len(f.Pods) != 1 {
		t.Errorf("one pod: %+v", f)
	}
	if f := LookPod(t.Context(), host, nil, "ml", "none"); found(f, node.Problem, checkGet, "not found") == nil {
		t.Errorf("no such pod: %+v", f.Checks)
	}
}

// TestHostile covers neighbours that do not answer as a kubelet does: each is one finding,
// in bounded time.
func TestHostile(t *testing.T) {
	// answer gives every connection to a function.
	answer := func(do func(net.Conn)) func(*testing.T, string) {
		return func(t *testing.T, socket string) {
			listener := listen(t, socket)
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					go do(conn)
				}
			}()
		}
	}
	for name, test := range map[string]struct {
		make        func(t *testing.T, socket string)
		check, want string
		// known reports whether that is a problem for certain.
		known bool
	}{
		"nothing there": {func(*testing.T, string) {}, checkSocket, "no such socket", false},
		"a file": {func(t *testing.T, socket string) {
			if err := os.WriteFile(socket, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, checkSocket, "no socket", true},
		"nobody listens": {func(t *testing.T, socket string) {
			listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			listener.SetUnlinkOnClose(false)
			_ = listener.Close()
		}, checkSocket, "nobody listens", true},
		"a link out": {func(t *testing.T, socket string) {
			if err := os.Symlink("/elsewhere.sock", socket); err != nil {
				t.Fatal(err)
			}
		}, checkSocket, "was not followed", false},
		"never answers": {answer(func(net.Conn) {}), checkList, "no answer in time", true},
		"answers garbage": {answer(func(conn net.Conn) {
			_, _ = conn.Write([]byte(strings.Repeat("HTTP/1.1 400 Bad Request\r\n\r\n", 100)))
			_, _ = io.Copy(io.Discard, conn)
		}), checkList, "", true},
		"closes midway": {answer(func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 24))
			_ = conn.Close()
		}), checkList, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			host, socket := home(t)
			test.make(t, socket)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			f := Look(ctx, host, nil)
			state := node.Unknown
			if test.known {
				state = node.Problem
			}
			if found(f, state, test.check, test.want) == nil {
				t.Errorf("want %s of %s with %q, got %+v", state, test.check, test.want, f.Checks)
			}
		})
	}
	t.Run("hangs in the call", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if f := Look(ctx, serve(t, &lister{hang: true}), nil); found(f, node.Problem, checkList, "no answer in time") == nil {
			t.Errorf("got %+v", f.Checks)
		}
	})
	t.Run("sends too much", func(t *testing.T) {
		f := Look(t.Context(), serve(t, &lister{pods: []*v1.PodResources{{Name: strings.Repeat("x", 2*maxReply)}}}), nil)
		if found(f, node.Unknown, checkList, "more than it takes") == nil {
			t.Errorf("got %d checks", len(f.Checks))
		}
	})
	t.Run("long error", func(t *testing.T) {
		f := Look(t.Context(), serve(t, &lister{}), nil)
		check := failed(checkList, f.Socket, "List", status.Error(codes.Internal, strings.Repeat("x", 1<<20)))
		if len(check.Message) > 2*longestText {
			t.Errorf("a message of %d bytes", len(check.Message))
		}
	})
	t.Run("a path that is longer than an address", func(t *testing.T) {
		host := node.NewHost(t.TempDir(), "/"+strings.Repeat("k", 100), nil)
		dir := filepath.Join(host.Root, host.Kubelet, "pod-resources")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Chdir(dir)
		listen(t, "kubelet.sock")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		// Linux connects all the same, and then nobody answers.
		check, state, want := checkList, node.Problem, "no answer in time"
		if runtime.GOOS != "linux" {
			check, state, want = checkSocket, node.Unknown, "longer than"
		}
		if f := Look(ctx, host, nil); found(f, state, check, want) == nil {
			t.Errorf("got %+v", f.Checks)
		}
	})
	t.Run("no permission", func(t *testing.T) {
		check := node.Failed(checkSocket, "/s", errors.Join(os.ErrPermission))
		if check.State != node.Unknown {
			t.Errorf("missing rights: %+v", check)
		}
	})
}
