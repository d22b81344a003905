// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// BenchmarkListing lists a fleet of 5,000 nodes and 40,000 devices with the
// built program and with kubectl, in turns, from the same API server: first
// with a few claims, then with 20,000 and their pods. It reports the medians of
// the seconds (s), of the seconds of processor time (cpu-s) and of the peak
// memory (peak-MiB) of both, those of kubectl with kubectl- in front.
func BenchmarkListing(b *testing.B) {
	const nodes, devices, few, many = 5000, 8, 40, 20000
	c := startBenchCluster(b)
	kubectl := func(args ...string) *measured {
		return &measured{program: c.kubectl, args: append(args, "--kubeconfig", c.kubeconfig, "--cache-dir", c.cache)}
	}
	dra := func(args ...string) *measured {
		return &measured{program: c.program, args: append(args, "--kubeconfig", c.kubeconfig)}
	}
	whole := fleet.Fleet(nodes, devices, many)
	start := &snapshot.Snapshot{Nodes: whole.Nodes, Namespaces: whole.Namespaces, Classes: whole.Classes, Slices: whole.Slices}
	rest := &snapshot.Snapshot{}
	start.Claims, rest.Claims = whole.Claims[:few], whole.Claims[few:]
	start.Pods, rest.Pods = whole.Pods[:few], whole.Pods[few:]

	c.fill(b, start)
	b.Run(fmt.Sprintf("claims=%d", few), func(b *testing.B) {
		for _, verb := range []string{"slices", "pools", "devices", "classes"} {
			b.Run(verb, func(b *testing.B) { inTurns(b, dra(verb), kubectl("get", "resourceslices", "-o", "wide")) })
		}
	})
	b.Run("help", func(b *testing.B) {
		inTurns(b, &measured{program: c.program, args: []string{"--help"}}, &measured{program: c.kubectl, args: []string{"--help"}})
	})
	b.Run(fmt.Sprintf("claims=%d", many), func(b *testing.B) {
		c.fill(b, rest)
		for _, verb := range []string{"slices", "pools", "devices", "classes"} {
			b.Run(verb, func(b *testing.B) { inTurns(b, dra(verb), kubectl("get", "resourceslices", "-o", "wide")) })
		}
		b.Run("claims", func(b *testing.B) {
			inTurns(b, dra("claims", "-A"), kubectl("get", "resourceclaims", "-A", "-o", "wide"))
		})
	})
}

// benchCluster is an API server with nobody else at work.
type benchCluster struct {
	plane                               *controlplane.ControlPlane
	kubeconfig, program, kubectl, cache string
	kube                                kubernetes.Interface
}

func startBenchCluster(b *testing.B) *benchCluster {
	ctx := b.Context()
	binaries, err := controlplane.Binaries(ctx)
	if err != nil {
		b.Fatal(err)
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{Binaries: binaries, WithoutScheduler: true, WithoutControllerManager: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			b.Error(err)
		}
	})
	c := &benchCluster{plane: plane, program: goBuild(b, "../cmd/kubectl-dra"), kubectl: filepath.Join(binaries, "kubectl"), cache: filepath.Join(b.TempDir(), "cache")}
	if c.kubeconfig, err = plane.Kubeconfig("admin", "system:masters"); err != nil {
		b.Fatal(err)
	}
	config := rest.CopyConfig(plane.Config())
	config.ContentType = "application/vnd.kubernetes.protobuf"
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		b.Fatal(err)
	}
	return c
}

// fill creates the objects of a fleet, kind by kind.
func (c *benchCluster) fill(b *testing.B, snap *snapshot.Snapshot) {
	create := metav1.CreateOptions{}
	core, resource := c.kube.CoreV1(), c.kube.ResourceV1()
	each(b, snap.Namespaces, func(ctx context.Context, i int) error {
		_, err := core.Namespaces().Create(ctx, fresh(snap.Namespaces[i].DeepCopy()), create)
		return err
	})
	each(b, snap.Nodes, func(ctx context.Context, i int) error {
		_, err := core.Nodes().Create(ctx, fresh(snap.Nodes[i].DeepCopy()), create)
		return err
	})
	each(b, snap.Slices, func(ctx context.Context, i int) error {
		_, err := resource.ResourceSlices().Create(ctx, fresh(snap.Slices[i].DeepCopy()), create)
		return err
	})
	each(b, snap.Classes, func(ctx context.Context, i int) error {
		_, err := resource.DeviceClasses().Create(ctx, fresh(snap.Classes[i].DeepCopy()), create)
		return err
	})
	each(b, snap.Pods, func(ctx context.Context, i int) error {
		pod := snap.Pods[i]
		created, err := core.Pods(pod.Namespace).Create(ctx, fresh(pod.DeepCopy()), create)
		if err != nil {
			return err
		}
		created.Status = *pod.Status.DeepCopy()
		_, err = core.Pods(pod.Namespace).UpdateStatus(ctx, created, metav1.UpdateOptions{})
		return err
	})
	each(b, snap.Claims, func(ctx context.Context, i int) error {
		claim := snap.Claims[i]
		created, err := resource.ResourceClaims(claim.Namespace).Create(ctx, fresh(claim.DeepCopy()), create)
		if err != nil {
			return err
		}
		created.Status = *claim.Status.DeepCopy()
		_, err = resource.ResourceClaims(claim.Namespace).UpdateStatus(ctx, created, metav1.UpdateOptions{})
		return err
	})
}

// fresh takes away what only the API server sets.
func fresh[T metav1.Object](object T) T {
	object.SetResourceVersion("")
	object.SetUID("")
	return object
}

// each does something for all of a list, several at a time.
func each[T any](b *testing.B, list []T, do func(ctx context.Context, i int) error) {
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(16)
	for i := range list {
		group.Go(func() error { return do(ctx, i) })
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

// measured is a command line and what its runs took.
type measured struct {
	program string
	args    []string
	runs    []usage
	lines   int
}

func (m *measured) run(b *testing.B, peak string) {
	u, stdout := measure(b, peak, m.program, m.args...)
	if u.Exit != 0 {
		b.Fatalf("%s %s: exit code %v", filepath.Base(m.program), strings.Join(m.args, " "), u.Exit)
	}
	m.runs = append(m.runs, u)
	m.lines = bytes.Count(stdout, []byte("\n"))
}

func (m *measured) report(b *testing.B, prefix string) {
	middle := func(of func(usage) float64) float64 {
		var list []float64
		for _, u := range m.runs {
			list = append(list, of(u))
		}
		slices.Sort(list)
		return list[len(list)/2]
	}
	b.ReportMetric(middle(func(u usage) float64 { return u.Seconds }), prefix+"s")
	b.ReportMetric(middle(func(u usage) float64 { return u.CPU }), prefix+"cpu-s")
	b.ReportMetric(middle(func(u usage) float64 { return u.PeakMiB }), prefix+"peak-MiB")
}

// inTurns runs both programs five times each in every iteration.
func inTurns(b *testing.B, ours, kubectl *measured) {
	peak := goBuild(b, "./peak")
	// Once before it counts: kubectl fills its discovery cache.
	for _, m := range []*measured{ours, kubectl} {
		m.run(b, peak)
		m.runs = nil
	}
	for b.Loop() {
		for range 5 {
			ours.run(b, peak)
			kubectl.run(b, peak)
		}
	}
	ours.report(b, "")
	kubectl.report(b, "kubectl-")
	b.ReportMetric(float64(ours.lines), "lines")
	b.ReportMetric(0, "ns/op")
}
