// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// BenchmarkMCP asks each tool of the server about a mixed fleet of 600 nodes where 59 pods wait.
// It reports
//
//	short-tokens, wide-tokens, json-tokens  the length of the text, in bytes divided by 4
//	left-out                                in how many of the three something is left out
//	short-s                                 how long the short answer took
func BenchmarkMCP(b *testing.B) {
	snap := fleet.Mixed(600)
	fleet.AddWaiting(snap, 59)
	dir := b.TempDir()
	path, before := filepath.Join(dir, "fleet.json"), filepath.Join(dir, "before.json")
	if err := files.Save(b.Context(), snap, path); err != nil {
		b.Fatal(err)
	}
	waiting := snap.Pods[slices.IndexFunc(snap.Pods, func(pod *corev1.Pod) bool { return strings.HasPrefix(pod.Name, "waits-") })]
	pod := map[string]any{"target": "pod/" + waiting.Name, "namespace": waiting.Namespace}
	node := inUse(snap)
	earlier := *snap
	earlier.Slices = earlier.Slices[1:]
	if err := files.Save(b.Context(), &earlier, before); err != nil {
		b.Fatal(err)
	}
	a := newAgent(b, "--snapshot", path, "--before", before)
	tools, err := a.session.ListTools(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("tools/list", func(b *testing.B) {
		for b.Loop() {
			text, err := json.Marshal(tools)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(len(text))/4, "short-tokens")
		}
	})
	for _, c := range []struct {
		name, tool string
		args       map[string]any
	}{
		{"status", "status", nil},
		{"why-pod", "why", pod},
		{"why-all", "why", nil},
		{"why-node", "why", map[string]any{"target": "node/" + node}},
		{"doctor", "doctor", nil},
		{"fit-pod", "fit", pod},
		{"fit", "fit", nil},
		{"plan", "plan", nil},
		{"impact-drain", "impact", map[string]any{"change": "drain", "target": node}},
		{"diff", "diff", nil},
		{"lint", "lint", map[string]any{"manifest": podManifest, "cluster": true}},
		{"cel", "cel", map[string]any{"expression": `device.driver == "gpu.example.com"`}},
		{"devices", "devices", nil},
		{"devices-by-state", "devices", map[string]any{"by": "state"}},
		{"devices-node", "devices", map[string]any{"node": node}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				leftOut := 0
				for _, detail := range []string{"short", "wide", "json"} {
					args := map[string]any{"detail": detail}
					for name, value := range c.args {
						args[name] = value
					}
					begun := time.Now()
					text, answer, isError := a.call(b, c.tool, args)
					if isError {
						b.Fatal(text)
					}
					if detail == "short" {
						b.ReportMetric(time.Since(begun).Seconds(), "short-s")
					}
					if answer.LeftOut != "" {
						leftOut++
					}
					b.ReportMetric(float64(len(text))/4, detail+"-tokens")
				}
				b.ReportMetric(float64(leftOut), "left-out")
			}
		})
	}
}
