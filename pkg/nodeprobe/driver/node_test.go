// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package driver

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registerv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/testdriver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const (
	gpu      = "gpu.example.com"
	nodeName = "node-1"
)

// quick returns timeouts for a server on the same machine that may never answer.
func quick() Options { return Options{Timeout: 500 * time.Millisecond} }

// patient returns timeouts for servers that answer, however busy the machine is.
func patient() Options { return Options{Timeout: 5 * time.Minute} }

// longer returns timeouts for a server that never answers beside others that do.
func longer() Options { return Options{Timeout: 10 * time.Second} }

// kubeletDir returns a root directory of a kubelet, with a path that is short enough for
// sockets.
func kubeletDir(t *testing.T) *node.Host {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "dra")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, sub := range []string{registryDir, pluginsDir} {
		must(t, os.MkdirAll(filepath.Join(dir, sub), 0o750))
	}
	host := node.NewHost("/", dir, nil)
	host.Name = nodeName
	return host
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start runs a real driver until the test ends.
func start(t *testing.T, host *node.Host, config testdriver.Config) *testdriver.Driver {
	t.Helper()
	config.Kubelet = host.Kubelet
	if config.Name == "" {
		config.Name = gpu
	}
	d, err := testdriver.Start(context.Background(), config)
	must(t, err)
	t.Cleanup(d.Stop)
	return d
}

// listenAt makes a socket below the directory of the kubelet.
func listenAt(t *testing.T, host *node.Host, name string) net.Listener {
	t.Helper()
	path := filepath.Join(host.Kubelet, name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o750))
	listener, err := net.Listen("unix", path)
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// scripted is a driver that says what a test wants.
type scripted struct {
	registerv1.UnimplementedRegistrationServer
	drav1.UnimplementedDRAPluginServer
	healthv1.UnimplementedDRAResourceHealthServer

	info    *registerv1.PluginInfo
	prepare func(*drav1.Claim) (*drav1.NodePrepareResourcesResponse, error)
	// older is NodePrepareResources of v1beta1, nil for none.
	older     func(*drav1beta1.Claim) (*drav1beta1.NodePrepareResourcesResponse, error)
	unprepare func(*drav1.Claim) (*drav1.NodeUnprepareResourcesResponse, error)
	health    func(healthv1.DRAResourceHealth_NodeWatchResourcesServer) error
}

func (s *scripted) GetInfo(context.Context, *registerv1.InfoRequest) (*registerv1.PluginInfo, error) {
	return s.info, nil
}

func (s *scripted) NodePrepareResources(_ context.Context, r *drav1.NodePrepareResourcesRequest) (*drav1.NodePrepareResourcesResponse, error) {
	return s.prepare(r.GetClaims()[0])
}

func (s *scripted) NodeUnprepareResources(_ context.Context, r *drav1.NodeUnprepareResourcesRequest) (*drav1.NodeUnprepareResourcesResponse, error) {
	if s.unprepare == nil {
		return &drav1.NodeUnprepareResourcesResponse{Claims: map[string]*drav1.NodeUnprepareResourceResponse{r.GetClaims()[0].GetUid(): {}}}, nil
	}
	return s.unprepare(r.GetClaims()[0])
}

func (s *scripted) NodeWatchResources(_ *healthv1.NodeWatchResourcesRequest, stream healthv1.DRAResourceHealth_NodeWatchResourcesServer) error {
	return s.health(stream)
}

// scriptedOlder is the same driver in v1beta1.
type scriptedOlder struct {
	drav1beta1.UnimplementedDRAPluginServer

	newer *scripted
}

func (s scriptedOlder) NodePrepareResources(_ context.Context, r *drav1beta1.NodePrepareResourcesRequest) (*drav1beta1.NodePrepareResourcesResponse, error) {
	return s.newer.older(r.GetClaims()[0])
}

// serve runs a scripted driver on sockets of its own and returns its endpoint.
// It advertises v1 of everything.
func serve(t *testing.T, host *node.Host, name string, s *scripted) string {
	t.Helper()
	endpoint := filepath.Join(host.Kubelet, pluginsDir, name, "dra.sock")
	if s.info == nil {
		s.info = &registerv1.PluginInfo{
			Type: registerv1.DRAPlugin, Name: name, Endpoint: endpoint,
			SupportedVersions: []string{drav1.DRAPluginService, healthv1.DRAResourceHealthService},
		}
	}
	server := grpc.NewServer()
	registerv1.RegisterRegistrationServer(server, s)
	drav1.RegisterDRAPluginServer(server, s)
	if s.older != nil {
		drav1beta1.RegisterDRAPluginServer(server, scriptedOlder{newer: s})
	}
	healthv1.RegisterDRAResourceHealthServer(server, s)
	for _, at := range []string{registryDir + "/" + name + "-reg.sock", pluginsDir + "/" + name + "/dra.sock"} {
		listener := listenAt(t, host, at)
		go func() { _ = server.Serve(listener) }()
	}
	t.Cleanup(server.Stop)
	return endpoint
}

// raw runs a server that is no gRPC server behind a socket.
func raw(t *testing.T, host *node.Host, name string, handle func(net.Conn)) {
	t.Helper()
	listener := listenAt(t, host, name)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				handle(conn)
			}()
		}
	}()
}

// cluster returns one with two nodes and slices of drivers for the first one.
func cluster(drivers ...string) *snapshot.Snapshot {
	snap := &snapshot.Snapshot{Source: "test"}
	for _, name := range []string{nodeName, "node-2"} {
		snap.Nodes = append(snap.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}})
	}
	for _, driver := range drivers {
		snap.Slices = append(snap.Slices, &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: driver},
			Spec:       resourceapi.ResourceSliceSpec{Driver: driver, NodeName: ptr.To(nodeName)},
		})
	}
	return snap
}

// allocated returns a claim with devices of a driver on a node.
func allocated(driver, on string, devices ...string) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train", UID: "uid-1"}}
	claim.Status.Allocation = &resourceapi.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{on}}},
	}}}}
	for _, device := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Request: "gpus", Driver: driver, Pool: on, Device: device})
	}
	return claim
}

func order(operation Operation, claim *resourceapi.ResourceClaim) *Order {
	return &Order{Operation: operation, Object: claim, Claim: Claim{Namespace: claim.Namespace, Name: claim.Name, UID: string(claim.UID)}}
}

func reservedBy(claim *resourceapi.ResourceClaim, pod string, uid types.UID) *resourceapi.ResourceClaim {
	claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: pod, UID: uid})
	return claim
}

// want fails unless there is a check of that name and state whose message has
// the text.
func want(t *testing.T, checks []node.Check, name string, state node.State, text string) {
	t.Helper()
	if !slices.ContainsFunc(checks, func(c node.Check) bool {
		return c.Name == name && c.State == state && strings.Contains(c.Message, text)
	}) {
		t.Errorf("no check %s %s %q among:\n%s", name, state, text, list(checks))
	}
}

// wantNo fails if there is a check of that state.
func wantNo(t *testing.T, checks []node.Check, state node.State) {
	t.Helper()
	if slices.ContainsFunc(checks, func(c node.Check) bool { return c.State == state }) {
		t.Errorf("a check is %s:\n%s", state, list(checks))
	}
}

func list(checks []node.Check) string {
	var b strings.Builder
	for _, c := range checks {
		b.WriteString(c.Name + " " + string(c.State) + " " + c.Path + ": " + c.Message + "\n")
	}
	return b.String()
}

// look looks and fails the test if that fails.
func look(t *testing.T, host *node.Host, snap *snapshot.Snapshot, opts Options) *Findings {
	t.Helper()
	f, err := Look(context.Background(), host, snap, opts)
	must(t, err)
	return f
}

var errScripted = errors.New("the driver says no")
