// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// BenchmarkLoad loads a fleet of 5,000 nodes with 40,000 devices, of which
// 20,000 are allocated. live-MB is what the snapshot itself occupies.
func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	cluster := fleet.Fleet(5000, 8, 20000)
	for _, name := range []string{"fleet.json", "fleet.json.gz", "fleet.yaml"} {
		path := filepath.Join(dir, name)
		if err := files.Save(b.Context(), cluster, path); err != nil {
			b.Fatal(err)
		}
	}
	cluster = nil
	for _, name := range []string{"fleet.json", "fleet.json.gz", "fleet.yaml"} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(dir, name)
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(info.Size())
			before := liveBytes()
			var loaded *snapshot.Snapshot
			for b.Loop() {
				if loaded, err = files.Load(b.Context(), []string{path}, files.Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(liveBytes()-before)/1e6, "live-MB")
			runtime.KeepAlive(loaded)
		})
	}
}

func liveBytes() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
