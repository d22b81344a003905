// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// BenchmarkController runs the controller with events on an API server with 5,000 mixed nodes and
// 1,000 pods that wait. It takes minutes, and reports
//
//	first-s    until there are metrics of a snapshot
//	first-cpu-s the processor time of that
//	rest-cpu   the share of a core in two minutes in which nothing happens, after all events
//	busy-cpu   the same in two minutes in which 100 pods a second become ready or not
//	storm-cpu  the same in two minutes in which a node is changed each second, too, so that every
//	           answer may be another one
//	eval-s     the mean time of an evaluation until then
//	RSS-MiB    resident memory (VmRSS) afterwards
//	peak-MiB   the most of it (VmHWM)
func BenchmarkController(b *testing.B) {
	snap := fleet.Mixed(5000)
	fleet.AddWaiting(snap, 1000)
	c := startBenchCluster(b)
	c.store(b, snap)
	program := builtController(b)
	for b.Loop() {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // A free port.
		if err != nil {
			b.Fatal(err)
		}
		address := l.Addr().String()
		_ = l.Close()
		controller := exec.CommandContext(b.Context(), program, "--kubeconfig", c.kubeconfig, "--metrics-bind-address", address, "--metrics-secure=false", "--health-probe-bind-address", "0", "--events")
		controller.Stderr = os.Stderr
		began := time.Now()
		if err := controller.Start(); err != nil {
			b.Fatal(err)
		}
		metric := func(name string) float64 {
			_, text := get(b, "http://"+address+"/metrics", "")
			return value(text, name)
		}
		process := &benchTop{pid: strconv.Itoa(controller.Process.Pid)}
		await := func(what string, condition func() bool) {
			if err := poll(b.Context(), condition); err != nil {
				b.Fatalf("%s: %v", what, err)
			}
		}
		await("a snapshot", func() bool { return metric("dra_snapshot_timestamp_seconds") > 0 })
		b.ReportMetric(time.Since(began).Seconds(), "first-s")
		b.ReportMetric(process.cpu(b), "first-cpu-s")
		var events float64
		await("all events", func() bool {
			before := events
			time.Sleep(30 * time.Second)
			events = metric(`dra_events_total{result="published"}`)
			return events == before && events > 0
		})
		b.ReportMetric(events, "events")
		b.ReportMetric(process.share(b, 2*time.Minute), "rest-cpu")
		ctx, stop := context.WithCancel(b.Context())
		go c.change(ctx, snap, 100)
		b.ReportMetric(process.share(b, 2*time.Minute), "busy-cpu")
		go c.label(ctx, snap)
		b.ReportMetric(process.share(b, 2*time.Minute), "storm-cpu")
		stop()
		b.ReportMetric(metric("dra_evaluation_duration_seconds_sum")/metric("dra_evaluation_duration_seconds_count"), "eval-s")
		b.ReportMetric(metric("dra_evaluation_delay_seconds"), "delay-s")
		b.ReportMetric(process.memory(b, "VmRSS"), "RSS-MiB")
		b.ReportMetric(process.memory(b, "VmHWM"), "peak-MiB")
		if err := controller.Process.Signal(os.Interrupt); err != nil {
			b.Fatal(err)
		}
		if err := controller.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}

// label changes the label of a node each second.
func (c *benchCluster) label(ctx context.Context, snap *snapshot.Snapshot) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		patch := fmt.Sprintf(`{"metadata":{"labels":{"example.com/change":"%d"}}}`, i)
		// It fails when the benchmark ends.
		_, _ = c.kube.CoreV1().Nodes().Patch(ctx, snap.Nodes[i%len(snap.Nodes)].Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	}
}
