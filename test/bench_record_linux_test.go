// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
)

// BenchmarkRecorder records an API server with 5,000 mixed nodes and 30 pods that wait. It takes
// minutes, and reports
//
//	rest-cpu  the share of a core in two minutes in which nothing happens
//	busy-cpu  the same in three minutes in which 100 pods a second become ready or not
//	MiB/h     the growth of the file in an hour of that
//	RSS-MiB   resident memory (VmRSS) afterwards
//	peak-MiB  the most of it (VmHWM)
func BenchmarkRecorder(b *testing.B) {
	snap := fleet.Mixed(5000)
	fleet.AddWaiting(snap, 30)
	c := startBenchCluster(b)
	c.store(b, snap)
	for b.Loop() {
		path := filepath.Join(b.TempDir(), "cluster.rec")
		recorder := exec.CommandContext(b.Context(), c.program, "record", "-o", path, "--kubeconfig", c.kubeconfig)
		if err := recorder.Start(); err != nil {
			b.Fatal(err)
		}
		size := func() float64 {
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			return float64(info.Size()) / (1 << 20)
		}
		err := poll(b.Context(), func() bool {
			r, err := recording.Open(path)
			if err != nil {
				return false
			}
			defer func() { _ = r.Close() }()
			_, _, err = r.Range(b.Context())
			return err == nil
		})
		if err != nil {
			b.Fatal(err)
		}
		process := &benchTop{pid: strconv.Itoa(recorder.Process.Pid)}
		time.Sleep(40 * time.Second)
		b.ReportMetric(process.share(b, 2*time.Minute), "rest-cpu")
		ctx, stop := context.WithCancel(b.Context())
		go c.change(ctx, snap, 100)
		before := size()
		b.ReportMetric(process.share(b, 3*time.Minute), "busy-cpu")
		b.ReportMetric((size()-before)*20, "MiB/h")
		stop()
		b.ReportMetric(process.memory(b, "VmRSS"), "RSS-MiB")
		b.ReportMetric(process.memory(b, "VmHWM"), "peak-MiB")
		if err := recorder.Process.Signal(os.Interrupt); err != nil {
			b.Fatal(err)
		}
		if err := recorder.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}
