// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func TestStart(t *testing.T) {
	ctx := t.Context()
	dir, err := Binaries(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Start(ctx, Options{Binaries: dir})
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	_, err = clients.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	t.Log(err)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
}
