// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package test

import (
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	v1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
)

// podResources is a kubelet that knows the pods of testdata/nodeprobe.
type podResources struct {
	v1.UnimplementedPodResourcesListerServer

	pods []*v1.PodResources
}

func (p *podResources) List(context.Context, *v1.ListPodResourcesRequest) (*v1.ListPodResourcesResponse, error) {
	return &v1.ListPodResourcesResponse{PodResources: p.pods}, nil
}

func (p *podResources) Get(_ context.Context, request *v1.GetPodResourcesRequest) (*v1.GetPodResourcesResponse, error) {
	for _, pod := range p.pods {
		if pod.GetNamespace() == request.GetPodNamespace() && pod.GetName() == request.GetPodName() {
			return &v1.GetPodResourcesResponse{PodResources: pod}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "pod %s not found in namespace %s", request.GetPodName(), request.GetPodNamespace())
}

func (p *podResources) GetAllocatableResources(context.Context, *v1.AllocatableResourcesRequest) (*v1.AllocatableResourcesResponse, error) {
	return &v1.AllocatableResourcesResponse{Devices: []*v1.ContainerDevices{{ResourceName: "example.com/nic", DeviceIds: []string{"eth1", "eth2"}}}}, nil
}

func kubeletPod(name, claim, uid, device string) *v1.PodResources {
	return &v1.PodResources{Namespace: "ml", Name: name, Containers: []*v1.ContainerResources{{
		Name: "main",
		DynamicResources: []*v1.DynamicResource{{ClaimNamespace: "ml", ClaimName: claim, ClaimResources: []*v1.ClaimResource{{
			DriverName: "gpu.nvidia.com", PoolName: "node-a", DeviceName: device,
			CdiDevices: []*v1.CDIDevice{{Name: "k8s.gpu.nvidia.com/claim=" + uid + "-" + device}},
		}}}},
	}}}
}

// startNode makes the node of testdata/nodeprobe, with its kubelet.
func startNode(t *testing.T) (root string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// The path of a socket has room for 107 bytes.
	root, err := os.MkdirTemp("", "node")
	must(err)
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	must(os.CopyFS(root, os.DirFS(filepath.Join("testdata", "nodeprobe", "host"))))
	written := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	must(filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, written, written)
	}))
	dir := filepath.Join(root, "var", "lib", "kubelet", "pod-resources")
	must(os.Mkdir(dir, 0o755))
	listener, err := net.Listen("unix", filepath.Join(dir, "kubelet.sock"))
	must(err)
	server := grpc.NewServer()
	train := kubeletPod("train-0", "train-0-gpu", "dab5ab50-d59a-42a6-af16-cfd4628c0f7a", "gpu-0")
	train.Containers[0].Devices = []*v1.ContainerDevices{{ResourceName: "example.com/nic", DeviceIds: []string{"eth1"}, Topology: &v1.TopologyInfo{Nodes: []*v1.NUMANode{{ID: 0}}}}}
	train.Containers[0].CpuIds = []int64{2, 3}
	v1.RegisterPodResourcesListerServer(server, &podResources{pods: []*v1.PodResources{
		train,
		kubeletPod("serve-0", "serve-0-gpu", "7c1f4a52-9d0e-4a6b-b1c2-d3e4f5061728", "gpu-7"),
		kubeletPod("old-0", "old-0-gpu", "0badc0de-1111-4222-8333-444455556666", "gpu-3"),
	}})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return root
}

// TestNodeProbe compares what node-probe prints about a node with faults, see
// testdata/nodeprobe/README.md.
func TestNodeProbe(t *testing.T) {
	root := startNode(t)
	snapshot := filepath.Join("testdata", "nodeprobe", "cluster.yaml")
	for name, args := range map[string][]string{
		"cdi":         {"cdi"},
		"cdi-wide":    {"cdi", "-o", "wide"},
		"cdi-json":    {"cdi", "-o", "json"},
		"cdi-resolve": {"cdi", "k8s.gpu.nvidia.com/claim=dab5ab50-d59a-42a6-af16-cfd4628c0f7a-gpu-0", "nvidia.com/gpu=0", "nvidia.com/gpu=1"},
		"pods":        {"pods"},
		"pods-wide":   {"pods", "-o", "wide"},
		"pods-yaml":   {"pods", "-o", "yaml"},
		"pods-one":    {"pods", "train-0", "-n", "ml"},
		"state":       {"state"},
		"state-wide":  {"state", "-o", "wide"},
		"state-json":  {"state", "-o", "json"},
		"state-other": {"state", "--node-name", "node-b"},
	} {
		t.Run(name, func(t *testing.T) {
			all := append([]string{"node-probe"}, args...)
			goldenRun(t, filepath.Join("nodeprobe", name+".golden"), "200", append(all, "--node-root", root, "--snapshot", snapshot)...)
		})
	}
	for _, args := range [][]string{{"cdi"}, {"cdi", "-o", "wide"}, {"pods"}, {"pods", "-o", "wide"}, {"state"}, {"state", "-o", "wide"}} {
		name := strings.ReplaceAll(strings.Join(args, "-"), "-o-", "") + "-80"
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("nodeprobe", name+".golden")
			goldenRun(t, path, "80", append(append([]string{"node-probe"}, args...), "--node-root", root, "--snapshot", snapshot)...)
			text, err := os.ReadFile(filepath.Join("testdata", path))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > 80 {
					t.Errorf("a line of %d characters: %s", utf8.RuneCountInString(line), line)
				}
			}
		})
	}
}

// TestNodeProbePodNamespace asks the kubelet for a pod in the namespace that kubectl would
// use: of -n, else of the context, else the only one of a file.
func TestNodeProbePodNamespace(t *testing.T) {
	root := startNode(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{apiVersion: v1, kind: Config, current-context: ml, clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}], users: [],
contexts: [{name: ml, context: {cluster: none, namespace: ml}}, {name: other, context: {cluster: none, namespace: other}}, {name: plain, context: {cluster: none}}]}`
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	t.Setenv("COLUMNS", "200")
	file := filepath.Join("testdata", "nodeprobe", "cluster.yaml")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"the context":    {nil, "the kubelet has pod ml/train-0"},
		"another one":    {[]string{"--context", "other"}, "Get of pod other/train-0 failed"},
		"one without":    {[]string{"--context", "plain"}, "Get of pod default/train-0 failed"},
		"-n":             {[]string{"--context", "other", "-n", "ml"}, "the kubelet has pod ml/train-0"},
		"a file":         {[]string{"--snapshot", file}, "the kubelet has pod ml/train-0"},
		"a file with -n": {[]string{"--snapshot", file, "-n", "other"}, "Get of pod other/train-0 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			code := commands.Run(t.Context(), append([]string{"node-probe", "pods", "train-0", "--node-root", root}, test.args...), streams, commands.Build{})
			if code > 2 || !strings.Contains(out.String(), test.want) {
				t.Errorf("exit code %d, want %q:\n%s%s", code, test.want, out, errOut)
			}
		})
	}
}
