// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

// startRuns is how often each program starts: odd, for the median.
const startRuns = 21

// BenchmarkStart compares the program with a kubectl of the same release that is
// built in the same way: its size, and how long --help takes. Both are asked in
// turns, and the medians are compared.
func BenchmarkStart(b *testing.B) {
	binaries, err := controlplane.Binaries(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	program, kubectl, peak := goBuild(b, "../cmd/kubectl-dra"), filepath.Join(binaries, "kubectl"), goBuild(b, "./peak")
	for b.Loop() {
		var ours, theirs []usage
		for range startRuns {
			for _, of := range []struct {
				program string
				runs    *[]usage
			}{{program, &ours}, {kubectl, &theirs}} {
				u, out := measure(b, peak, of.program, "--help")
				if u.Exit != 0 {
					b.Fatalf("%s --help: exit code %v\n%s", of.program, u.Exit, out)
				}
				*of.runs = append(*of.runs, u)
			}
		}
		seconds, cpu := func(u usage) float64 { return u.Seconds }, func(u usage) float64 { return u.CPU }
		b.ReportMetric(1000*median(ours, seconds), "ms")
		b.ReportMetric(1000*median(theirs, seconds), "kubectl-ms")
		b.ReportMetric(median(ours, seconds)/median(theirs, seconds), "start-ratio")
		b.ReportMetric(median(ours, cpu)/median(theirs, cpu), "start-cpu-ratio")
	}
	b.ReportMetric(fileMiB(b, program), "MiB")
	b.ReportMetric(fileMiB(b, kubectl), "kubectl-MiB")
	b.ReportMetric(fileMiB(b, program)/fileMiB(b, kubectl), "size-ratio")
}

func fileMiB(b *testing.B, path string) float64 {
	b.Helper()
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return float64(info.Size()) / (1 << 20)
}

func median(runs []usage, of func(usage) float64) float64 {
	values := make([]float64, 0, len(runs))
	for _, run := range runs {
		values = append(values, of(run))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
