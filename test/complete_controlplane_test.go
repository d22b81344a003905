// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
)

// completions asks as a shell does, and returns the words.
func completions(t *testing.T, args ...string) []string {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	if code := commands.Run(t.Context(), append([]string{"__complete"}, args...), streams, commands.Build{}); code != 0 {
		t.Errorf("complete %s: exit code %d: %s", strings.Join(args, " "), code, errOut)
	}
	words, _, ok := strings.Cut("\n"+out.String(), "\n:")
	if !ok {
		t.Errorf("complete %s: no directive in %q", strings.Join(args, " "), out)
	}
	return offered(words)
}

// TestCompleteFromCluster completes names that only the cluster knows.
func TestCompleteFromCluster(t *testing.T) {
	c := startCluster(t, controlplane.Options{WithoutScheduler: true})
	for _, document := range strings.Split(completable, "---\n") {
		object, err := parseObject([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.create(t.Context(), object.GetNamespace(), object); err != nil {
			t.Fatal(err)
		}
	}
	for question, want := range map[string][]string{
		"claims -n ml t":                      {"train-gpus"},
		"claims -A t":                         {"test-gpus", "train-gpus"},
		"claims -n m":                         {"ml"},
		"claims --context ":                   {"test"},
		"classes ":                            {"gpu.example.com"},
		"slices ":                             {"node-1-gpus"},
		"devices --node ":                     {"node-1"},
		"devices --driver ":                   {"gpu.example.com"},
		"devices gpu.example.com/node-1/":     {"gpu.example.com/node-1/gpu-0", "gpu.example.com/node-1/gpu-1"},
		"pools ":                              {"node-1"},
		"why -n ml t":                         {"template/", "train-gpus"},
		"why -n ml pod/":                      {"pod/train-0"},
		"why -n ml deploy/":                   {"deploy/inference"},
		"why -n ml deployments.apps inf":      {"inference"},
		"why -n ml template/":                 {"template/gpus"},
		"why -n ml frobs/":                    nil,
		"taints remove ":                      nil,
		"tree node/":                          {"node/node-1"},
		"tree -n ml claim/":                   {"claim/train-gpus"},
		"tree class/":                         {"class/gpu.example.com"},
		"devices --columns model,":            {"model,memory", "model,model"},
		"claims --context nowhere -n ml trai": nil,
	} {
		words := strings.Split(question, " ")
		args := append([]string{words[0], "--kubeconfig", c.kubeconfig, "--request-timeout", decisionTimeout.String()}, words[1:]...)
		if diff := cmp.Diff(want, completions(t, args...)); diff != "" {
			t.Errorf("%q: -want +got:\n%s", question, diff)
		}
	}
}

// TestCompleteWithoutCluster waits neither for a silent server nor for a missing one.
func TestCompleteWithoutCluster(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	absent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := absent.Close(); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{silent.Addr().String(), absent.Addr().String()} {
		if got := completions(t, "claims", "--server", "http://"+address, "t"); got != nil {
			t.Errorf("got %v", got)
		}
		if diff := cmp.Diff([]string{"template/"}, completions(t, "why", "--server", "http://"+address, "t")); diff != "" {
			t.Errorf("types need no cluster: -want +got:\n%s", diff)
		}
	}
}

const completable = `apiVersion: v1
kind: Namespace
metadata: {name: ml}
---
apiVersion: v1
kind: Namespace
metadata: {name: test}
---
apiVersion: v1
kind: Node
metadata: {name: node-1}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-1-gpus}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes: {model: {string: A}}
    capacity: {memory: {value: 40Gi}}
  - name: gpu-1
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: train-gpus, namespace: ml}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: test-gpus, namespace: test}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus, namespace: ml}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: train-0, namespace: ml}
spec:
  resourceClaims: [{name: gpus, resourceClaimName: train-gpus}]
  containers: [{name: c, image: none, resources: {claims: [{name: gpus}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: plain-0, namespace: ml}
spec:
  containers: [{name: c, image: none}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: inference, namespace: ml}
spec:
  replicas: 0
  selector: {matchLabels: {app: inference}}
  template:
    metadata: {labels: {app: inference}}
    spec: {containers: [{name: c, image: none}]}
`
