// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func TestControlPlane(t *testing.T) {
	ctx := t.Context()
	dir, err := Binaries(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Start(ctx, Options{Binaries: dir, EmulatedVersion: "1.36"})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	version, err := admin.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.EmulationMinor != "36" {
		t.Errorf("the API server says that it is %s and emulates 1.%s, 1.36 was wanted", version, version.EmulationMinor)
	}

	kubeconfig, err := c.Kubeconfig("somebody")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	somebody, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := somebody.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a user without rights lists nodes: %v", err)
	}

	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		if !strings.Contains(c.Logs(), "log of "+name) {
			t.Errorf("there is no log of %s", name)
		}
	}
	processes := c.processes
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		if p.cmd.ProcessState == nil {
			t.Errorf("%s is still running", p.name)
		}
	}
	if _, err := os.Stat(kubeconfig); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", kubeconfig, err)
	}
}

func TestStartShowsWhyItFailed(t *testing.T) {
	dir, err := Binaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := Start(t.Context(), Options{Binaries: dir, FeatureGates: map[string]bool{"NoSuchGate": true}})
	if err == nil {
		t.Error("an unknown feature gate is no error")
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		return
	}
	for _, want := range []string{"kube-apiserver", "unrecognized feature gate: NoSuchGate"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not tell %q: %v", want, err)
		}
	}
}
