// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

const watchObjects = `
{apiVersion: v1, kind: Namespace, metadata: {name: watch}}
---
apiVersion: v1
kind: Node
metadata: {name: watch-a}
` + readyNode + `---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: watch}
spec: {selectors: [{cel: {expression: "device.driver == 'watch.example.com'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: slice-a}
spec:
  driver: watch.example.com
  nodeName: watch-a
  pool: {name: pool-a, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}]
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: claim-1}, spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: watch}}]}}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: claim-2}, spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: watch}}]}}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: claim-3}, spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: watch}}]}}}
`

// watchPod uses a claim.
func watchPod(name, claim string) string {
	return `{apiVersion: v1, kind: Pod, metadata: {name: ` + name + `}, spec: {resourceClaims: [{name: gpu, resourceClaimName: ` + claim + `}],
  containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpu}]}}]}}`
}

// TestWatchFollowsTheCluster lets the scheduler allocate while the program
// watches, and takes the API server away in between.
func TestWatchFollowsTheCluster(t *testing.T) {
	options := controlplane.Options{}
	c := startCluster(t, options)
	p := programFor(t, c.kubeconfig)
	c.createAll(t, "watch", watchObjects)

	claims := p.start(t, "claims", "--watch", "-n", "watch")
	devices := p.start(t, "devices", "--watch")
	pools := p.start(t, "pools", "--watch")
	slicesOf := p.start(t, "slices", "--watch")
	names := p.start(t, "claims", "--watch", "-n", "watch", "-o", "name")
	events := p.start(t, "pools", "--watch", "--output-watch-events", "-o", `jsonpath={.type} {.object.driver}/{.object.name}{"\n"}`)
	status := p.start(t, "status", "--watch", "-o", `jsonpath=causes: {.causes[*].code}{"\n"}`)
	all := []*running{claims, devices, pools, slicesOf, names, events, status}

	t.Run("what there is", func(t *testing.T) {
		claims.waitRow(t, "ADDED", "claim-1", "Pending")
		claims.waitRow(t, "ADDED", "claim-2", "Pending")
		devices.waitRow(t, "gpu-0", "Free")
		devices.waitRow(t, "gpu-1", "Free")
		pools.waitRow(t, "pool-a", "Usable")
		slicesOf.waitRow(t, "slice-a", "Current")
		names.waitRow(t, "resourceclaim.resource.k8s.io/claim-2")
		status.waitRow(t, "causes:")
	})
	t.Run("an allocation", func(t *testing.T) {
		c.createAll(t, "watch", watchPod("pod-1", "claim-1"))
		claims.waitRow(t, "MODIFIED", "claim-1", "Reserved", "pod-1")
		devices.waitRow(t, "gpu-0", "Allocated", "watch/claim-1")
		pools.waitValue(t, "FREE", "1")
		slicesOf.waitValue(t, "FREE", "1")
		names.waitRow(t, "resourceclaim.resource.k8s.io/claim-1")
	})
	t.Run("without the API server", func(t *testing.T) {
		c.plane.Halt()
		for _, r := range all {
			r.wait(t, r.stderr, "that the connection is lost", func(line string) bool { return strings.HasPrefix(line, "Trying again for up to 2m; ") })
		}
		if err := c.plane.Restart(t.Context(), options); err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			r.wait(t, r.stderr, "that it is connected again", func(line string) bool { return line == "Connected again." })
		}
		c.createAll(t, "watch", watchPod("pod-2", "claim-2"))
		claims.waitRow(t, "claim-2", "Reserved", "pod-2")
		devices.waitRow(t, "gpu-1", "Allocated", "watch/claim-2")
		pools.waitValue(t, "FREE", "0")
		slicesOf.waitValue(t, "FREE", "0")
		names.waitRow(t, "resourceclaim.resource.k8s.io/claim-2")
	})
	t.Run("what is gone", func(t *testing.T) {
		mustDo(t, func() error {
			return c.kube.ResourceV1().ResourceSlices().Delete(t.Context(), "slice-a", metav1.DeleteOptions{})
		})
		slicesOf.waitRow(t, "DELETED", "slice-a")
		devices.waitRow(t, "MODIFIED", "gpu-0", "Gone", "watch/claim-1")
		devices.waitRow(t, "MODIFIED", "gpu-1", "Gone", "watch/claim-2")
		pools.waitRow(t, "MODIFIED", "pool-a", "NoSlices")
		claims.waitRow(t, "MODIFIED", "claim-2", "DeviceGone")
		status.wait(t, status.stdout, "a cause", func(line string) bool { return strings.HasPrefix(line, "causes: DRA") })
		mustDo(t, func() error {
			return c.kube.ResourceV1().ResourceClaims("watch").Delete(t.Context(), "claim-3", metav1.DeleteOptions{})
		})
		claims.waitRow(t, "DELETED", "claim-3")
		names.wait(t, names.stderr, "what is gone", func(line string) bool { return line == "claim-3 is gone" })
	})
	t.Run("devices without a slice that are released", func(t *testing.T) {
		for i := range 2 {
			mustDo(t, func() error {
				return c.kube.CoreV1().Pods("watch").Delete(t.Context(), fmt.Sprint("pod-", i+1), *metav1.NewDeleteOptions(0))
			})
		}
		devices.waitRow(t, "DELETED", "gpu-0")
		devices.waitRow(t, "DELETED", "gpu-1")
		pools.waitRow(t, "DELETED", "pool-a")
		events.wait(t, events.stdout, "the event", func(line string) bool { return strings.HasPrefix(line, "DELETED watch.example.com/pool-a") })
	})
	t.Run("Ctrl-C", func(t *testing.T) {
		for _, r := range all {
			code, stdout, stderr := r.interrupt(t)
			if code != 0 {
				t.Errorf("%s ends with code %d", r.name, code)
			}
			for _, line := range stderr {
				if !slices.ContainsFunc([]string{"Trying again for up to 2m; what was printed", "Connected again.", " is gone", c.plane.Config().Host}, func(part string) bool { return strings.Contains(line, part) }) {
					t.Errorf("%s prints %q", r.name, line)
				}
			}
			if headers := headersOf(stdout); len(stdout) == 0 || len(slices.Compact(headers)) != len(headers) || len(headers) > 0 && headers[0] != stdout[0] {
				t.Errorf("%s prints %q", r.name, stdout)
			}
		}
	})
}

// headersOf returns the headers of a table. There is another one where the columns change.
func headersOf(rows []string) []string {
	return slices.DeleteFunc(slices.Clone(rows), func(row string) bool { return !strings.HasPrefix(row, "EVENT ") })
}

// waitValue waits for a row that has a value below the header of a column,
// exactly below it.
func (r *running) waitValue(t *testing.T, column, value string) {
	t.Helper()
	at := strings.Index(r.stdout.sofar()[0], " "+column+" ")
	r.wait(t, r.stdout, value+" in column "+column, func(line string) bool {
		return at >= 0 && at < len(line) && strings.HasPrefix(line[at:], " "+value+" ")
	})
}

// TestWatchAsSomebodyWhoMayNotWatch only has the rights to list.
func TestWatchAsSomebodyWhoMayNotWatch(t *testing.T) {
	ctx := t.Context()
	c := startCluster(t, controlplane.Options{WithoutScheduler: true})
	c.createAll(t, "watch", watchObjects)
	c.grant(ctx, t, "lister", "", rbacv1.PolicyRule{
		Verbs: []string{"list"}, APIGroups: []string{"resource.k8s.io"}, Resources: []string{"*"},
	})
	c.grant(ctx, t, "lister", "watch", rbacv1.PolicyRule{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"pods"}})
	kubeconfig, err := c.plane.Kubeconfig("lister")
	if err != nil {
		t.Fatal(err)
	}
	p := programFor(t, kubeconfig)
	claims := p.start(t, "claims", "--watch", "-n", "watch")
	claims.waitRow(t, "claim-1", "Pending")
	for _, want := range []string{
		"Note: this user may not list pods at the cluster scope; only those in namespace watch could be read",
		"Note: this user may not watch resourceclaims.resource.k8s.io at the cluster scope; they are as they were at ",
	} {
		claims.stderr.rewind()
		claims.wait(t, claims.stderr, want, func(line string) bool { return strings.HasPrefix(line, want) })
	}
	if code, _, stderr := claims.interrupt(t); code != 0 || slices.ContainsFunc(stderr, func(line string) bool { return !strings.HasPrefix(line, "Note: ") }) {
		t.Errorf("code %d, %q", code, stderr)
	}
}

// rewind makes the next wait begin with the first line.
func (l *lines) rewind() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = 0
}
