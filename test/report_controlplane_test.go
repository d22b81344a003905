// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
)

// TestReportServed serves the page of a cluster: it has a pod soon after the pod was created, and the
// server ends with its context.
func TestReportServed(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	c := startCluster(t, controlplane.Options{WithoutScheduler: true, WithoutControllerManager: true})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, to := io.Pipe()
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: to, ErrOut: io.Discard}
	ended := make(chan int, 1)
	go func() {
		ended <- commands.Run(ctx, []string{"report", "--serve", "--kubeconfig", c.kubeconfig}, streams, commands.Build{Version: "v0.0.0-test"})
		_ = to.Close()
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address = strings.TrimSpace(address)
	ask := func(path string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	page := func() string {
		t.Helper()
		answer := ask("")
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if text := page(); !strings.Contains(text, "The page follows the cluster.") || strings.Contains(text, "default/wants") {
		t.Errorf("the first page does not follow, or has a pod: %.300s", text)
	}
	events := ask("events")
	defer func() { _ = events.Body.Close() }()
	lines := bufio.NewScanner(events.Body)
	c.createAll(t, "default", strings.TrimPrefix(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: wanted}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: none}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: wants}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: wanted}]
  containers: [{name: main, image: none, resources: {claims: [{name: gpu}]}}]
`, "\n"))
	shown := false
	for !shown && lines.Scan() {
		shown = lines.Text() == "event: changed" && strings.Contains(page(), "default/wants")
	}
	if !shown {
		t.Errorf("the page does not show the pod: %v", lines.Err())
	}
	answer := ask("why?pod=default/wants")
	defer func() { _ = answer.Body.Close() }()
	if text, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(text), "DeviceClass none does not exist") {
		t.Errorf("%s, %v", text, err)
	}
	cancel()
	if code := <-ended; code != 0 && code != 130 {
		t.Errorf("it ended with %d", code)
	}
}
