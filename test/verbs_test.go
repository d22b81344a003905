// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"path/filepath"
	"testing"
)

// TestVerbs compares what each verb that lists something prints about the
// example cluster, in each form.
func TestVerbs(t *testing.T) {
	outputs := map[string][]string{
		"text":           nil,
		"wide":           {"-o", "wide"},
		"headless":       {"--no-headers"},
		"name":           {"-o", "name"},
		"json":           {"-o", "json"},
		"yaml":           {"-o", "yaml"},
		"jsonpath":       {"-o", `jsonpath={range .items[*]}{.kind} {.name}{"\n"}{end}`},
		"template":       {"-o", `go-template={{range .items}}{{.kind}}{{"\n"}}{{end}}`},
		"custom-columns": {"-o", "custom-columns=KIND:.kind,NAME:.name"},
	}
	verbs := map[string][]string{
		"slices":         {"slices", "*-01-*", "fabric-*", "gpu-09-*"},
		"pools":          {"pools", "mig-01", "gpu-02", "gpu-09", "fabric-r2"},
		"devices":        {"devices", "--node", "gpu-02"},
		"claims":         {"claims", "-n", "research"},
		"claims-pending": {"claims", "-A", "--pending"},
		"classes":        {"classes"},
		"taints":         {"taints"},
	}
	for verb, args := range verbs {
		for output, flags := range outputs {
			t.Run(verb+"/"+output, func(t *testing.T) {
				all := append([]string{}, args...)
				all = append(all, "--snapshot", filepath.Join("..", "examples", "cluster"))
				golden(t, filepath.Join("verbs", verb, output+".golden"), "200", append(all, flags...)...)
			})
		}
	}
	for name, args := range map[string][]string{
		"tree-pod":       {"tree", "pod/ablation-0", "-n", "research"},
		"tree-claim":     {"tree", "claim/ablation-0-nic-45jj7", "-n", "research"},
		"tree-device":    {"tree", "device/gpu-02/gpu-4"},
		"tree-node":      {"tree", "node/gpu-02"},
		"tree-class":     {"tree", "class/decoder.example.com"},
		"taints-add":     {"taints", "add", "--pool", "gpu-02", "example.com/x=1:NoExecute", "--dry-run=client"},
		"taints-preview": {"taints", "preview", "-f", filepath.Join("testdata", "taintrule.yaml")},
		"devices-free":   {"devices", "--free", "--columns", "productName,memory"},
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, filepath.Join("verbs", name+".golden"), "200", append(args, "--snapshot", filepath.Join("..", "examples", "cluster"))...)
		})
	}
}
