// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const unendingObjects = `apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: unending}
spec:
  selectors:
  - cel: {expression: %q}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: unending, namespace: default}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: unending}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: one}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: d0
    attributes: {text: {string: "1%s"}}
    capacity: {memory: {value: %s}}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
`

// TestUnending asks about a class whose selector computes with a number that is
// too long.
func TestUnending(t *testing.T) {
	long := "e" + strings.Repeat("9", 9)
	memory := `device.capacity["gpu.example.com"].memory`
	p := programFor(t, "")
	for name, expression := range map[string]string{
		"written down": memory + `.compareTo(quantity("1` + long + `")) < 0`,
		"an attribute": memory + `.compareTo(quantity(device.attributes["gpu.example.com"].text)) < 0`,
	} {
		cluster := filepath.Join(t.TempDir(), "cluster.yaml")
		if err := os.WriteFile(cluster, fmt.Appendf(nil, unendingObjects, expression, long, "1Gi"), 0o600); err != nil {
			t.Fatal(err)
		}
		sentence := "valuating " + expression + " does not end, and a scheduler that evaluates it may not come back either"
		for _, test := range []struct {
			args string
			code int
			says bool
		}{
			{"why claim/unending", 2, true},
			{"classes", 4, true},
			{"classes -o wide", 4, true},
			{"devices --class unending", 4, true},
			{"classes -o jsonpath={.items[0].failures[0].unending}", 4, true},
			{"top --once", 4, true},
			{"tree class/unending", 0, false},
		} {
			t.Run(name+", "+test.args, func(t *testing.T) {
				code, out := p.endsSoon(t, nil, append(strings.Fields(test.args), "--snapshot", cluster)...)
				if code != test.code || test.says && !strings.Contains(strings.Join(strings.Fields(out), " "), sentence) {
					t.Errorf("exit code %d, want %d and %q:\n%s", code, test.code, sentence, out)
				}
			})
		}
	}
	t.Run("capacity", func(t *testing.T) {
		cluster := filepath.Join(t.TempDir(), "cluster.yaml")
		if err := os.WriteFile(cluster, fmt.Appendf(nil, unendingObjects, "true", "", `"1e-`+long[1:]+`"`), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out := p.endsSoon(t, nil, "classes", "--snapshot", cluster)
		if said := cluster + `, document 3: ResourceSlice/one: spec.devices[0].capacity["memory"].value: expected a quantity with an exponent between -99 and 99, found`; code != 3 || !strings.Contains(out, said) {
			t.Errorf("exit code %d, want 3 and %q:\n%s", code, said, out)
		}
	})
}

// TestUnendingInterrupted ends with one signal what looks at such a class.
func TestUnendingInterrupted(t *testing.T) {
	cluster := filepath.Join(t.TempDir(), "cluster.yaml")
	expression := `quantity("1e` + strings.Repeat("9", 9) + `").isLessThan(` + `device.capacity["gpu.example.com"].memory)`
	if err := os.WriteFile(cluster, fmt.Appendf(nil, unendingObjects, expression, "", "1Gi"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := programFor(t, "")
	for _, args := range []string{"why claim/unending", "classes", "top --once", "devices --class unending"} {
		for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(args+" "+signal.String(), func(t *testing.T) {
				p.endsSoon(t, signal, append(strings.Fields(args), "--snapshot", cluster)...)
			})
		}
	}
}

// endsSoon runs the program, which gets a signal if there is one, and fails if it
// does not end. It returns the exit code and all that was printed.
func (p *program) endsSoon(t *testing.T, signal os.Signal, args ...string) (code int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var printed bytes.Buffer
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, &printed, &printed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if signal != nil {
		// It may have ended already.
		if err := cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait()
	if ctx.Err() != nil {
		t.Fatalf("kubectl dra %s does not end", strings.Join(args, " "))
	}
	return cmd.ProcessState.ExitCode(), printed.String()
}
