// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

var update = flag.Bool("update", false, "Write the expected files.") //nolint:gochecknoglobals // A flag.

// example returns the example cluster and its causes.
func example(t *testing.T) (*cluster.Cluster, *cause.Found) {
	t.Helper()
	snap, err := files.Load(t.Context(), []string{"../../examples/cluster"}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.New(snap)
	return c, find(t.Context(), t, c)
}

func find(ctx context.Context, t *testing.T, c *cluster.Cluster) *cause.Found {
	t.Helper()
	found, err := cause.Find(ctx, c, cause.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := forecast.AddPlaceableTo(ctx, c, found.Status.Capacity); err != nil {
		t.Fatal(err)
	}
	return found
}

// same compares text with a file, or writes it with -update.
func same(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs; see what changed with -update:\n%s", path, got)
	}
}

// TestMetrics exports the metrics of the example cluster.
func TestMetrics(t *testing.T) {
	c, found := example(t)
	m := NewMetrics(2)
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(m); err != nil {
		t.Fatal(err)
	}
	if families, err := registry.Gather(); err != nil || len(families) != 3 {
		t.Errorf("without a snapshot: %v, %v", families, err)
	}
	at := c.Snapshot.Now()
	m.publish(c, found, at)
	m.publish(c, found, at.Add(time.Minute))
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("names and types: %v %v", problems, err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, family := range families {
		if family.GetName() == evaluationDuration {
			continue
		}
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "testdata/metrics.txt", text.Bytes())

	// The metrics say what status says.
	for _, class := range found.Status.Capacity {
		if line := fmt.Sprintf("dra_class_devices{class=%q,state=\"free\"} %d\n", class.Class, class.Devices.Free); !strings.Contains(text.String(), line) {
			t.Errorf("no %s", line)
		}
	}
	sum := 0
	for _, cause := range found.Status.Causes {
		if cause.Severity == api.SeverityError {
			sum++
		}
	}
	if sum == 0 || sum != total(text.String(), causes, `severity="error"`) {
		t.Errorf("%d causes, the metrics have %d", sum, total(text.String(), causes, `severity="error"`))
	}
}

// TestPodsCountOnce counts a pod once that two taints evict, and a pod that asks for two classes.
// Causes have the label of who can act.
func TestPodsCountOnce(t *testing.T) {
	since := metav1.NewTime(tc.Taken().Add(-time.Minute))
	broken := func(s *snapshot.Snapshot) {
		for _, key := range []string{"hot", "broken"} {
			device := &s.Slices[0].Spec.Devices[0]
			device.Taints = append(device.Taints, resourceapi.DeviceTaint{Key: key, Effect: resourceapi.DeviceTaintEffectNoExecute, TimeAdded: &since})
		}
	}
	inUse := func(s *snapshot.Snapshot) {
		at := slices.IndexFunc(s.Claims, func(c *resourceapi.ResourceClaim) bool { return c.Name == "have" })
		s.Claims[at].Namespace = tc.Namespace
		s.Claims[at].Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "evicted", UID: "uid-evicted"}}
	}
	c := cluster.New(tc.Cluster(
		tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), tc.Serving("have", "n1", "gpu-0"), inUse, broken, tc.Class("nic", "nic.example.com"),
		tc.Pod("evicted", tc.Using("have"), func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning }),
		tc.Claim("both", tc.Request("gpu", tc.ClassGPU, 1), tc.Request("nic", "nic", 1)), tc.Pod("waits", tc.Using("both")),
		tc.Claim("typo", tc.Request("gpu", tc.ClassGPU, 1, `device.attributes["gpu.example.com"].modle == "x"`)), tc.Pod("mistaken", tc.Using("typo")),
	))
	list := describe(c, find(t.Context(), t, c), tc.Taken(), 0)
	sum := func(name string, labels ...string) float64 {
		total := 0.0
		for _, s := range list {
			if s.name == name && !slices.ContainsFunc(labels, func(label string) bool { return !slices.Contains(s.labels, label) }) {
				total += s.value
			}
		}
		return total
	}
	for _, test := range []struct {
		what string
		got  float64
		want float64
	}{
		{"pods due to be evicted", sum(evictionsDue), 1},
		{"pods that wait", sum(waitingPods), 2},
		{"pods that wait for class nic", sum(classWaitingPods, "nic"), 1},
		{"pods that wait for class " + tc.ClassGPU, sum(classWaitingPods, tc.ClassGPU), 2},
		{"causes that the user of the selector can fix", sum(causes, "SelectorError", "error", "user"), 1},
		{"causes of the selector that anybody can fix", sum(causes, "SelectorError"), 1},
	} {
		if test.got != test.want {
			t.Errorf("%v %s, want %v", test.got, test.what, test.want)
		}
	}
}

// total adds up the metrics with a name and a label.
func total(text, name, label string) int {
	sum := 0
	for line := range strings.Lines(text) {
		var n int
		if at := strings.LastIndexByte(line, ' '); strings.HasPrefix(line, name+"{") && strings.Contains(line, label) && at > 0 {
			if _, err := fmt.Sscan(line[at:], &n); err == nil {
				sum += n
			}
		}
	}
	return sum
}

// TestNames bounds the values of labels, and keeps those that are known.
func TestNames(t *testing.T) {
	n, families, now := names{}, NewMetrics(0).families, time.Now()
	var list []sample
	for i := range maxNames + 10 {
		list = append(list, sample{namespaceDevices, 1, []string{fmt.Sprint("team-", i), "gpu"}}, sample{longestWait, float64(i), []string{fmt.Sprint("class-", i)}})
	}
	bound := n.bound(list, families, now)
	at := func(list []sample, name string, labels ...string) float64 {
		i := slices.IndexFunc(list, func(s sample) bool { return s.name == name && slices.Equal(s.labels, labels) })
		if i < 0 {
			return -1
		}
		return list[i].value
	}
	if got := at(bound, namespaceDevices, otherNames, "gpu"); got != 10 {
		t.Errorf("%v devices of other namespaces, want 10", got)
	}
	// "gpu" is a class, too.
	if got := at(bound, longestWait, otherNames); got != maxNames+9 {
		t.Errorf("other classes wait %v seconds, want the longest wait", got)
	}
	slices.Reverse(list)
	if again := n.bound(list, families, now); at(again, namespaceDevices, "team-0", "gpu") != 1 || at(again, namespaceDevices, fmt.Sprint("team-", maxNames), "gpu") != -1 {
		t.Error("other names are known after another order")
	}
	later := n.bound([]sample{{namespaceDevices, 1, []string{"new", "gpu"}}}, families, now.Add(2*forgetAfter))
	if at(later, namespaceDevices, "new", "gpu") != 1 {
		t.Error("names that are gone for hours are known")
	}
}

// TestDeviceSeconds adds up usage, but not over a time in which it is not known, and never
// downwards.
func TestDeviceSeconds(t *testing.T) {
	usage := func(used int) []inventory.Team {
		return []inventory.Team{{Namespace: "ml", TeamClass: api.TeamClass{Class: "gpu", Used: used}}}
	}
	d := deviceSeconds{of: map[usageKey]*usageTime{}}
	start := time.Now()
	for _, step := range []struct {
		at   time.Duration
		used []inventory.Team
		want float64
	}{
		{0, usage(2), 0},
		{10 * time.Second, usage(3), 20},
		{20 * time.Second, nil, 50},
		{30 * time.Second, usage(1), 50},
		{20 * time.Minute, usage(5), 50},
		{19 * time.Minute, usage(5), 50},
		{20 * time.Minute, usage(5), 350},
	} {
		got := d.add(step.used, start.Add(step.at))
		if len(got) != 1 || got[0].value != step.want {
			t.Errorf("after %s: %v, want %v", step.at, got, step.want)
		}
	}
}
