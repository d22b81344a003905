// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"path/filepath"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
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
		"custom-columns": {"-o", "custom-columns=KIND:.kind,NAME:.name"},
	}
	verbs := map[string][]string{
		"slices":         {"slices", "*-01-*", "fabric-*", "gpu-09-*"},
		"pools":          {"pools", "mig-01", "gpu-02", "gpu-09", "fabric-r2"},
		"devices":        {"devices", "--node", "gpu-02"},
		"claims":         {"claims", "-n", "research"},
		"claims-pending": {"claims", "-A", "--pending"},
		"classes":        {"classes"},
		"nodes":          {"nodes"},
		"usage":          {"usage"},
		"attributes":     {"attributes"},
		"taints":         {"taints"},
	}
	for verb, args := range verbs {
		for output, flags := range outputs {
			t.Run(verb+"/"+output, func(t *testing.T) {
				all := append([]string{}, args...)
				all = append(all, "--snapshot", filepath.Join("..", "examples", "cluster"))
				goldenRun(t, filepath.Join("verbs", verb, output+".golden"), "200", append(all, flags...)...)
			})
		}
	}
	for _, output := range []string{"wide", "name", "json", "yaml"} {
		t.Run("tree/"+output, func(t *testing.T) {
			goldenRun(t, filepath.Join("verbs", "tree", output+".golden"), "200", "tree", "claim/ablation-0-nic-45jj7", "pod/ablation-0", "-n", "research",
				"--snapshot", filepath.Join("..", "examples", "cluster"), "-o", output)
		})
	}
	for output, flags := range map[string][]string{"text": nil, "wide": {"-o", "wide"}, "json": {"-o", "json"}} {
		for name, args := range map[string][]string{
			"cel":         {`device.attributes["gpu.example.com"].productName == "Atlas-80" && device.attributes["gpu.example.com"].numa == 0`, "--class", "gpu.example.com", "--compare", `device.attributes["gpu.example.com"].numa == 0`},
			"cel-typo":    {`device.attributes["gpu.exmaple.com"].produtName == "Atlas-80"`},
			"cel-problem": {"device.driver ==\n  devcie.drivr"},
			"cel-like":    {"--from-device", "gpu-01/gpu-0"},
		} {
			t.Run(name+"/"+output, func(t *testing.T) {
				all := append([]string{"cel", "--snapshot", filepath.Join("..", "examples", "cluster")}, args...)
				goldenRun(t, filepath.Join("verbs", name, output+".golden"), "80", append(all, flags...)...)
			})
		}
	}
	for output, flags := range map[string][]string{"text": nil, "wide": {"-o", "wide"}, "json": {"-o", "json"}, "yaml": {"-o", "yaml"}} {
		t.Run("fit/"+output, func(t *testing.T) {
			args := []string{"fit", "-f", filepath.Join("testdata", "fit.yaml"), "--replicas", "12", "--snapshot", filepath.Join("..", "examples", "cluster")}
			goldenRun(t, filepath.Join("verbs", "fit", output+".golden"), "80", append(args, flags...)...)
		})
		t.Run("fit-shapes/"+output, func(t *testing.T) {
			args := []string{"fit", "--snapshot", filepath.Join("..", "examples", "cluster")}
			goldenRun(t, filepath.Join("verbs", "fit-shapes", output+".golden"), "80", append(args, flags...)...)
		})
	}
	for output, flags := range map[string][]string{"text": nil, "wide": {"-o", "wide"}, "commands": {"--commands", "-n", "research"}, "json": {"-o", "json"}, "yaml": {"-o", "yaml"}} {
		t.Run("migrate/"+output, func(t *testing.T) {
			all := append([]string{"migrate", "--snapshot", filepath.Join("..", "examples", "migration")}, flags...)
			goldenRun(t, filepath.Join("verbs", "migrate", output+".golden"), "80", all...)
		})
	}
	for output, flags := range map[string][]string{"text": nil, "commands": {"--commands", "-n", "vision"}, "json": {"-o", "json"}, "yaml": {"-o", "yaml"}} {
		t.Run("sharing/"+output, func(t *testing.T) {
			all := append([]string{"sharing", "gpu-partition.example.com", "--snapshot", filepath.Join("..", "examples", "cluster")}, flags...)
			goldenRun(t, filepath.Join("verbs", "sharing", output+".golden"), "80", all...)
		})
	}
	for name, args := range map[string][]string{
		"drain": {"drain", "gpu-02"}, "cordon": {"cordon", "gpu-03"}, "remove": {"remove", "driver/nic.example.com"}, "taint": {"taint", "example.com/x:NoExecute", "--pool", "gpu-02"},
		"upgrade-driver": {"upgrade-driver", "gpu-plugin", "--snapshot", filepath.Join("..", "examples", "drivers", "gpu.yaml")},
		"drain-driver":   {"drain", "gpu-04", "--snapshot", filepath.Join("..", "examples", "drivers", "deployment.yaml")},
	} {
		for output, flags := range map[string][]string{"text": nil, "wide": {"-o", "wide"}, "json": {"-o", "json"}, "yaml": {"-o", "yaml"}} {
			t.Run("impact-"+name+"/"+output, func(t *testing.T) {
				all := append([]string{"impact", "--snapshot", filepath.Join("..", "examples", "cluster")}, args...)
				goldenRun(t, filepath.Join("verbs", "impact-"+name, output+".golden"), "80", append(all, flags...)...)
			})
		}
	}
	for _, output := range []string{"wide", "json", "yaml"} {
		t.Run("doctor/"+output, func(t *testing.T) {
			goldenRun(t, filepath.Join("verbs", "doctor", output+".golden"), "80", "doctor", "--snapshot", filepath.Join("..", "examples", "cluster"), "-o", output)
		})
	}
	for _, output := range cli.ReportFormats() {
		t.Run("doctor/"+output, func(t *testing.T) {
			goldenRun(t, filepath.Join("verbs", "doctor", output+".golden"), "80", "doctor", "--only", "DRA12", "--snapshot", filepath.Join("..", "examples", "cluster"), "-o", output)
		})
	}
	for _, output := range append(cli.ReportFormats(), "wide", "json", "yaml") {
		t.Run("lint/"+output, func(t *testing.T) {
			goldenRun(t, filepath.Join("verbs", "lint", output+".golden"), "80", "lint", "testdata/lint-faults.yaml", "-o", output)
		})
	}
	for name, targets := range map[string][]string{"why-device": {"device/gpu-02/gpu-3"}, "why-node": {"node/gpu-03"}, "why-devices": {"device/gpu-03/gpu-0", "node/mig-01"}} {
		for output, flags := range map[string][]string{"text": nil, "wide": {"-o", "wide"}, "json": {"-o", "json"}} {
			t.Run(name+"/"+output, func(t *testing.T) {
				args := append([]string{"why", "--snapshot", filepath.Join("..", "examples", "cluster")}, targets...)
				goldenRun(t, filepath.Join("verbs", name, output+".golden"), "80", append(args, flags...)...)
			})
		}
	}
	for _, output := range []string{"json", "yaml"} {
		t.Run("top/"+output, func(t *testing.T) {
			goldenRun(t, filepath.Join("verbs", "top", output+".golden"), "80", "top", "--snapshot", filepath.Join("..", "examples", "cluster"), "-o", output)
		})
	}
	for _, output := range []string{"wide", "json", "yaml"} {
		t.Run("status/"+output, func(t *testing.T) {
			goldenRun(t, filepath.Join("verbs", "status", output+".golden"), "80", "status", "--snapshot", filepath.Join("..", "examples", "cluster"), "-o", output)
		})
	}
	for _, output := range []string{"wide", "json", "yaml"} {
		t.Run("plan/"+output, func(t *testing.T) {
			goldenRun(t, filepath.Join("verbs", "plan", output+".golden"), "80", "plan", "--snapshot", filepath.Join("..", "examples", "cluster"), "-o", output)
		})
	}
	for name, args := range map[string][]string{
		"doctor":         {"doctor"},
		"status":         {"status"},
		"status-team":    {"status", "-n", "research", "--commands"},
		"plan":           {"plan"},
		"plan-drain":     {"plan", "--drain", "node/gpu-02", "--add", "node=gpu-03", "--without", "pod/serving/embed-0"},
		"doctor-only":    {"doctor", "--only", "DRA12,DRA1602", "--commands"},
		"tree-pod":       {"tree", "pod/ablation-0", "-n", "research"},
		"tree-claim":     {"tree", "claim/ablation-0-nic-45jj7", "-n", "research"},
		"tree-device":    {"tree", "device/gpu-02/gpu-4"},
		"tree-node":      {"tree", "node/gpu-02"},
		"tree-class":     {"tree", "class/decoder.example.com"},
		"taints-add":     {"taints", "add", "--pool", "gpu-02", "example.com/x=1:NoExecute", "--dry-run=client"},
		"taints-preview": {"taints", "preview", "-f", filepath.Join("testdata", "taintrule.yaml")},
		"gpus":           {"node-probe", "gpus", "--simulate", "dgx-h100"},
		"gpu-preview":    {"node-probe", "preview", "--simulate", "dgx-h200", "--driver-feature-gates", "DynamicMIG=true"},
		"gpu-diff":       {"node-probe", "preview", "--simulate", "dgx-a100", "--node-name", "gpu-01", "--diff"},
		"fit-class":      {"fit", "--class", "gpu.example.com", "--count", "4", "--same", "resource.kubernetes.io/pcieRoot"},
		"fit-add":        {"fit", "--class", "gpu.example.com", "--count", "8", "--add", "node=gpu-03,count=2"},
		"devices-free":   {"devices", "--free", "--columns", "productName,memory"},
	} {
		t.Run(name, func(t *testing.T) {
			goldenRun(t, filepath.Join("verbs", name+".golden"), "200", append(args, "--snapshot", filepath.Join("..", "examples", "cluster"))...)
		})
	}
	for output, flags := range map[string][]string{"text": nil, "wide": {"-o", "wide"}, "json": {"-o", "json"}, "yaml": {"-o", "yaml"}} {
		t.Run("diff/"+output, func(t *testing.T) {
			args := []string{"diff", filepath.Join("..", "docs", "diff", "before.yaml"), filepath.Join("..", "docs", "diff", "after.yaml")}
			goldenRun(t, filepath.Join("verbs", "diff", output+".golden"), "80", append(args, flags...)...)
		})
	}
	for _, width := range []string{"80", "120"} {
		t.Run("status-"+width, func(t *testing.T) {
			goldenRun(t, filepath.Join("verbs", "status-"+width+".golden"), width, "status", "--snapshot", filepath.Join("..", "examples", "cluster"))
		})
	}
	// What stands below a table is as wide as the terminal.
	for _, width := range []string{"80", "120"} {
		t.Run("pools-"+width, func(t *testing.T) {
			goldenRun(t, filepath.Join("verbs", "pools-"+width+".golden"), width,
				append(verbs["pools"], "-o", "wide", "--snapshot", filepath.Join("..", "examples", "cluster"))...)
		})
	}
}

// TestInventories compares what verbs say about clusters where something is
// special. The comments in the fixtures tell what it is.
func TestInventories(t *testing.T) {
	for fixture, questions := range map[string]map[string][]string{
		"migration": {
			"classes":      {"classes"},
			"classes-wide": {"classes", "-o", "wide"},
			"classes-json": {"classes", "gpu", "-o", "json"},
			"classes-off":  {"classes", "-o", "wide", "--feature-gates", "DRAExtendedResource=false"},
			"tree-nodes":   {"tree", "node/"},
			"tree-class":   {"tree", "class/gpu"},
			"tree-json":    {"tree", "node/both-1", "-o", "json"},
		},
		"sharing": {
			"accelerator": {"sharing", "accelerator"},
			"gpu":         {"sharing", "gpu.nvidia.com"},
			"gpu-json":    {"sharing", "gpu.nvidia.com", "-o", "json"},
			"mig":         {"sharing", "mig.nvidia.com"},
			"off":         {"sharing", "mig.nvidia.com", "--kubernetes-version", "v1.35.0", "--feature-gates", "DRAPartitionableDevices=false"},
			"time-sliced": {"sharing", "time-sliced"},
		},
		"network": {
			"claims":       {"claims"},
			"claims-wide":  {"claims", "-o", "wide"},
			"claims-json":  {"claims", "train-0", "-o", "json"},
			"devices":      {"devices"},
			"devices-wide": {"devices", "-o", "wide"},
			"pools-wide":   {"pools", "-o", "wide"},
			"tree-pod":     {"tree", "pod/train-0"},
			"tree-device":  {"tree", "device/node-1/nic-2"},
			"why-claim":    {"why", "claim/train-0", "-n", "ml"},
			"why-json":     {"why", "claim/train-0", "-n", "ml", "-o", "json"},
		},
		"claims": {
			"claims":         {"claims"},
			"claims-wide":    {"claims", "-o", "wide"},
			"claims-pending": {"claims", "--pending"},
		},
	} {
		for name, args := range questions {
			t.Run(fixture+"/"+name, func(t *testing.T) {
				goldenRun(t, filepath.Join("inventory", fixture, name+".golden"), "120", append(args, "--snapshot", filepath.Join("inventory", fixture+".yaml"))...)
			})
		}
	}
}

// TestVerbsWithHiddenClaims compares the answers for a user who sees only the claims of one
// namespace, with and without the cluster's own counts.
func TestVerbsWithHiddenClaims(t *testing.T) {
	hidden := []string{"--snapshot", filepath.Join("testdata", "hidden.yaml")}
	for _, name := range []string{"classes", "gpus", "namespaces", "nics", "nodes", "partitions", "snapshot", "taint-rules", "tenant-research"} {
		hidden = append(hidden, "--snapshot", filepath.Join("..", "examples", "cluster", name+".yaml"))
	}
	counted := append([]string{"--snapshot", filepath.Join("testdata", "counted.yaml")}, hidden...)
	for name, args := range map[string][]string{
		"slices":               append([]string{"slices", "gpu-0[1-4]*", "mig-*"}, hidden...),
		"pools":                append([]string{"pools"}, hidden...),
		"pools-wide":           append([]string{"pools", "mig-01", "gpu-02", "-o", "wide"}, hidden...),
		"pools-name":           append([]string{"pools", "gpu-02", "-o", "name"}, hidden...),
		"pools-json":           append([]string{"pools", "mig-01", "-o", "json"}, hidden...),
		"pools-counted":        append([]string{"pools"}, counted...),
		"pools-counted-json":   append([]string{"pools", "gpu-02", "-o", "json"}, counted...),
		"devices":              append([]string{"devices", "--node", "gpu-02"}, hidden...),
		"devices-wide":         append([]string{"devices", "--pool", "mig-01", "-o", "wide"}, hidden...),
		"devices-free-headers": append([]string{"devices", "--free", "--node", "gpu-07", "--no-headers"}, hidden...),
		"devices-certain":      append([]string{"devices", "--field-selector", "state=Free,uncertain=false"}, hidden...),
		"classes":              append([]string{"classes"}, hidden...),
		"tree":                 append([]string{"tree", "node/gpu-02"}, hidden...),
		"tree-json":            append([]string{"tree", "device/gpu-07/gpu-0", "-o", "json"}, hidden...),
	} {
		t.Run(name, func(t *testing.T) {
			goldenRun(t, filepath.Join("verbs", "hidden", name+".golden"), "200", args...)
		})
	}
}
