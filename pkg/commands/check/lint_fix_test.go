// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
)

// runLint runs the verb, and returns what it prints and whether it found something.
func runLint(t testing.TB, args ...string) (out string, clean bool) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}
	cmd := NewLint(streams, genericclioptions.NewConfigFlags(false), "test")
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(context.Background())
	var outcome *cli.OutcomeError
	if err != nil && !errors.As(err, &outcome) {
		t.Fatalf("lint %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String() + stderr.String(), err == nil
}

// manyFaults returns a manifest with faults, of about so many bytes.
func manyFaults(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: t%[1]d, namespace: team}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        deviceClassName: gpu.example.com
        # so many
        count: 2
---
apiVersion: v1
kind: Pod
metadata: {name: p%[1]d, namespace: team}
spec:
  containers:
  - name: main
    image: registry.example.com/main:1
    resources:
      claims:
      - name: gpu
        request: gpus
  resourceClaims:
  - name: gpu
    resourceClaimTemplateName: t%[1]d
`, i)
	}
	return b.String()
}

// BenchmarkFix changes files of several sizes: the time for a byte stays the same.
func BenchmarkFix(b *testing.B) {
	for _, size := range []int{100_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			text := manyFaults(size)
			b.SetBytes(int64(len(text)))
			path := filepath.Join(b.TempDir(), "m.yaml")
			for b.Loop() {
				b.StopTimer()
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if out, clean := runLint(b, path, "--fix"); !clean {
					b.Fatalf("left: %s", out[:min(len(out), 2000)])
				}
			}
		})
	}
}

// TestFixDoes looks at every finding: where it says so, --fix puts it right, and where it does
// not, it stays. A second time, nothing changes.
func TestFixDoes(t *testing.T) {
	faults, err := os.ReadFile(filepath.Join("..", "..", "..", "test", "testdata", "lint-faults.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	class := "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {selectors: [{cel: {expression: 'device.driver == \"gpu.example.com\"'}}], config: [{opaque: {driver: gpu.exmaple.com, parameters: {}}}]}\n"
	slice := "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: gpu.example.com, nodeName: node-1, pool: {name: node-1, generation: 1, resourceSliceCount: 1}, devices: [{name: a, attributes: {model: {string: x}, cores: {int: 8}}}, {name: b, attributes: {cores: {int: 8}}}]}\n"
	claim := func(version, name, request string) string {
		return "---\napiVersion: resource.k8s.io/" + version + "\nkind: ResourceClaim\nmetadata: {name: " + name + "}\nspec:\n  devices:\n    requests:\n" + request
	}
	selecting := func(expressions ...string) string {
		text := "    - name: r\n      exactly:\n        deviceClassName: gpu\n        selectors:\n"
		for _, e := range expressions {
			text += "        - cel:\n            expression: " + e + "\n"
		}
		return text
	}
	cores := `device.attributes["gpu.example.com"].crores == 8`
	for name, test := range map[string]struct {
		text string
		// does is how many of the findings say that --fix does, of all the others.
		does, others int
	}{
		"many": {string(faults), 5, 8},
		"equal ones": {
			claim("v1", "c", selecting(cores, cores, cores)+strings.Replace(selecting(cores), "name: r", "name: q", 1)) + claim("v1", "d", selecting(cores)) + class + slice, 6, 0,
		},
		"several of one expression": {
			claim("v1", "c", selecting(`device.attributes["gpu.example.com"].v.isLessThan(semver("1.02.3")) && device.attributes["gpu.example.com"].v.isLessThan(semver("v1.2")) && device.capacity["gpu.example.com"].m.isLessThan(quantity("80 GB"))`)), 3, 0,
		},
		"old versions": {
			claim("v1beta1", "c", "    - {name: a, deviceClassName: gpu}\n    - name: b\n      deviceClassName: gpu # all\n      count: 2\n") + claim("v1beta2", "d", "    - {name: a, exactly: {deviceClassName: gpu}}\n") +
				"---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: resource.k8s.io/v1beta1\n  kind: ResourceClaim\n  metadata: {name: e}\n  spec: {devices: {requests: [{name: a, deviceClassName: gpu}]}}\n- {apiVersion: resource.k8s.io/v1beta1, kind: ResourceClaim, metadata: {name: f}, spec: {devices: {requests: [{name: a, deviceClassName: gpu}]}}}\n", 4, 0,
		},
		"aliases": {
			claim("v1", "c", "    - &a {name: a, deviceClassName: gpu}\n") + claim("v1", "d", "    - name: b\n      exactly: &e {deviceClassName: gpu, selectors: [{cel: {expression: 'device.driver = \"x\"'}}]}\n    - {name: c, exactly: *e}\n"), 0, 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, lineEnd := range []string{"\n", "\r\n"} {
				path := filepath.Join(t.TempDir(), "m.yaml")
				if err := os.WriteFile(path, []byte(strings.ReplaceAll(test.text, "\n", lineEnd)), 0o600); err != nil {
					t.Fatal(err)
				}
				before, _ := runLint(t, path)
				does, others := splitFindings(before)
				if len(does) != test.does || len(others) != test.others {
					t.Errorf("--fix does %d and not %d:\n%s", len(does), len(others), before)
				}
				runLint(t, path, "--fix")
				fixed, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Count(string(fixed), "\n"); strings.Count(string(fixed), lineEnd) != got {
					t.Errorf("the ends of lines changed:\n%q", fixed)
				}
				after, _ := runLint(t, path)
				left, kept := splitFindings(after)
				for _, message := range does {
					if slices.Contains(left, message) || slices.Contains(kept, message) {
						t.Errorf("left: %s\n%s", message, fixed)
					}
				}
				for _, message := range others {
					if !slices.Contains(kept, message) {
						t.Errorf("gone: %s\n%s", message, after)
					}
				}
				if out, _ := runLint(t, path, "--fix"); !strings.Contains(out, "changed 0 files: 0 findings") {
					t.Errorf("changed again:\n%s", out)
				}
			}
		})
	}
}

// splitFindings returns the messages of findings, of which does are followed by the word
// that --fix puts them right.
func splitFindings(out string) (does, others []string) {
	lines := strings.Split(out, "\n")
	for i, line := range lines {
		_, message, finding := strings.Cut(line, " DRA")
		switch {
		case !finding || strings.HasPrefix(line, "  "):
		case strings.HasSuffix(lines[i+1], " (--fix does)"):
			does = append(does, message)
		default:
			others = append(others, message)
		}
	}
	return does, others
}
