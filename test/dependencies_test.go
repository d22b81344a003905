// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// unwanted returns packages that the program can do without, with everything below them,
// and the cause that would bring them in.
func unwanted() map[string]string {
	const tests = "it is for tests"
	return map[string]string{
		"testing":                                     tests,
		"net/http/httptest":                           tests,
		"net/http/pprof":                              "it adds itself to the default server",
		"github.com/chromedp":                         tests,
		"github.com/google/go-cmp":                    tests,
		"github.com/stretchr/testify":                 tests,
		"github.com/onsi/ginkgo":                      tests,
		"github.com/onsi/gomega":                      tests,
		"k8s.io/client-go/kubernetes/fake":            tests,
		"github.com/kubectl-dra/kubectl-dra/internal": "what is there drives the tests",

		"k8s.io/kubernetes":                                "the scheduler's allocator is a library of its own",
		"k8s.io/apiserver/pkg/server":                      "of k8s.io/apiserver, CEL takes pkg/cel and little else",
		"k8s.io/apiserver/pkg/storage":                     "it stores objects in etcd",
		"k8s.io/client-go/informers":                       "lists and watches have no cache, or one of their own",
		"k8s.io/client-go/listers":                         "lists and watches have no cache, or one of their own",
		"k8s.io/dynamic-resource-allocation/kubeletplugin": "it is for drivers",
		"go.etcd.io":                                       "only the API server talks to etcd",
		"go.uber.org/zap":                                  "klog writes what is logged",
		"github.com/docker":                                "containers are the runtime's",
		"github.com/containerd":                            "containers are the runtime's",
		"github.com/moby/moby":                             "containers are the runtime's",
		"github.com/opencontainers/runc":                   "containers are the runtime's",
		"github.com/aws":                                   "credentials come from the kubeconfig",
		"github.com/Azure/azure-sdk-for-go":                "credentials come from the kubeconfig",
		"cloud.google.com/go":                              "credentials come from the kubeconfig",
		"go.opentelemetry.io/otel/exporters":               "nothing is sent to anybody",
		"go.opentelemetry.io/otel/sdk":                     "nothing is sent to anybody",
		"google.golang.org/grpc/xds":                       "the drivers of a node are on sockets of that node",
		"google.golang.org/grpc/balancer/rls":              "the drivers of a node are on sockets of that node",
		"github.com/NVIDIA/go-nvml":                        "it takes cgo, and is in builds with the tag nvml only",
		"github.com/NVIDIA/go-nvlib":                       "it takes cgo, and is in builds with the tag nvml only",
	}
}

// TestDependencies keeps packages out of the portable program that make it large
// or slow, or that nobody expects in it.
func TestDependencies(t *testing.T) {
	for _, platform := range []string{"linux", "darwin", "windows"} {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "../cmd/kubectl-dra")
		list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform, "GOARCH=amd64")
		out, err := list.Output()
		if err != nil {
			t.Fatalf("list dependencies on %s: %v", platform, err)
		}
		for dependency := range strings.FieldsSeq(string(out)) {
			for prefix, reason := range unwanted() {
				if dependency == prefix || strings.HasPrefix(dependency, prefix+"/") {
					t.Errorf("%s is in the program for %s: %s", dependency, platform, reason)
				}
			}
		}
	}
}

// TestClientsetIsNotLinked keeps packages that kubectl's own packages import from being
// used: the clients and apply configurations for all of Kubernetes, a sixth of the program
// when they are.
func TestClientsetIsNotLinked(t *testing.T) {
	program, err := os.ReadFile(filepath.Join(builtProgram(t), "kubectl-dra"))
	if err != nil {
		t.Fatal(err)
	}
	for _, unwanted := range []string{"k8s.io/client-go/kubernetes/typed/", "k8s.io/client-go/applyconfigurations/"} {
		if bytes.Contains(program, []byte(unwanted)) {
			t.Errorf("the program has code of %s", unwanted)
		}
	}
}
