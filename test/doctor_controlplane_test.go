// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
)

// sickNodes has two nodes with one driver, whose DaemonSet runs.
const sickNodes = `
apiVersion: v1
kind: Namespace
metadata: {name: sick}
---
apiVersion: v1
kind: Node
metadata: {name: sick-a, labels: {kubernetes.io/hostname: sick-a}}
` + readyNode + `---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: sick}
spec: {selectors: [{cel: {expression: 'device.driver == "sick.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: sick-a}
spec: {driver: sick.example.com, nodeName: sick-a, pool: {name: sick-a, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0, attributes: {uuid: {string: GPU-0}}}]}`

// sickDriver is the DaemonSet of the driver.
const sickDriver = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: driver}
spec:
  selector: {matchLabels: {app: driver}}
  template:
    metadata: {labels: {app: driver}}
    spec:
      nodeSelector: {$SELECTOR}
      volumes: [{name: plugins, hostPath: {path: /var/lib/kubelet/plugins}}, {name: registry, hostPath: {path: /var/lib/kubelet/plugins_registry}}]
      containers:
      - name: driver
        image: example.com/driver
        args: [--driver-name=sick.example.com]
        volumeMounts: [{name: plugins, mountPath: /var/lib/kubelet/plugins}, {name: registry, mountPath: /var/lib/kubelet/plugins_registry}]`

// sickness is a fault, and how it ends.
type sickness struct {
	code string
	// also are the codes of what follows from it.
	also []string
	// objects make it.
	objects string
	// pasted is true if the commands of the remedy end it; else end does.
	pasted bool
	end    func(*testing.T)
}

// TestDoctorOnCluster makes faults on a real control plane one after another: doctor
// is silent before, finds each, and is silent again after its remedy.
func TestDoctorOnCluster(t *testing.T) {
	c := startCluster(t, controlplane.Options{})
	const namespace = "sick"
	c.createAll(t, namespace, sickNodes)
	pod := func(name, class, count string) string {
		return strings.NewReplacer("$NAME", name, "$CLASS", class, "$COUNT", count).Replace(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: $NAME}
spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: $CLASS, count: $COUNT}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: $NAME}
spec: {resourceClaims: [{name: gpus, resourceClaimTemplateName: $NAME}], containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpus}]}}]}`)
	}
	deletePod := func(name string) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			mustDo(t, func() error {
				return c.kube.CoreV1().Pods(namespace).Delete(t.Context(), name, *metav1.NewDeleteOptions(0))
			})
		}
	}
	deleteDriver := func(t *testing.T) {
		t.Helper()
		mustDo(t, func() error {
			return c.kube.AppsV1().DaemonSets(namespace).Delete(t.Context(), "driver", metav1.DeleteOptions{})
		})
	}
	deleteSlice := func(name string) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			mustDo(t, func() error {
				return c.kube.ResourceV1().ResourceSlices().Delete(t.Context(), name, metav1.DeleteOptions{})
			})
		}
	}
	deleteClass := func(t *testing.T) {
		t.Helper()
		mustDo(t, func() error {
			return c.kube.ResourceV1().DeviceClasses().Delete(t.Context(), "wrong", metav1.DeleteOptions{})
		})
	}
	slice := func(name, spec string) string {
		return "{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: " + name + "}, spec: {driver: sick.example.com, " + spec + "}}"
	}
	class := func(expression string) string {
		return "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: wrong}, spec: {selectors: [{cel: {expression: '" + expression + "'}}]}}"
	}
	for _, s := range []sickness{
		{code: "DRA1101", also: []string{"DRA1105"}, objects: strings.ReplaceAll(sickDriver, "$SELECTOR", "nowhere: here"), end: deleteDriver},
		{code: "DRA1102", also: []string{"DRA1105"}, objects: strings.ReplaceAll(sickDriver, "nodeSelector: {$SELECTOR}", "priorityClassName: missing"), end: deleteDriver},
		{code: "DRA1103", also: []string{"DRA1102", "DRA1105"}, objects: strings.ReplaceAll(sickDriver, "$SELECTOR", "kubernetes.io/hostname: sick-a"), end: deleteDriver},
		{code: "DRA1201", objects: slice("half", "nodeName: sick-a, pool: {name: half, generation: 1, resourceSliceCount: 2}, devices: [{name: a}]"), end: deleteSlice("half")},
		{code: "DRA1205", objects: slice("gone", "nodeName: gone, pool: {name: gone, generation: 1, resourceSliceCount: 1}, devices: [{name: a}]"), pasted: true},
		{code: "DRA1206", objects: slice("empty", "nodeName: sick-a, pool: {name: empty, generation: 1, resourceSliceCount: 1}"), end: deleteSlice("empty")},
		{code: "DRA1210", objects: slice("twice", "nodeName: sick-a, pool: {name: twice, generation: 1, resourceSliceCount: 1}, devices: [{name: a, attributes: {uuid: {string: GPU-0}}}]"), end: deleteSlice("twice")},
		{code: "DRA1211", objects: slice("typed", "nodeName: sick-a, pool: {name: typed, generation: 1, resourceSliceCount: 1}, devices: [{name: a, attributes: {uuid: {int: 7}}}]"), end: deleteSlice("typed")},
		{code: "DRA1301", objects: class(`device.driver == "sikc.example.com"`), end: deleteClass},
		{code: "DRA1302", objects: class(`device.attributes["sick.example.com"].missing == "x"`), end: deleteClass},
		{code: "DRA1601", objects: pod("never", "sick", "2"), end: deletePod("never")},
		{code: "DRA1602", objects: pod("typo", "missing", "1"), end: deletePod("typo")},
	} {
		// What one fault leaves, the next one would find.
		if !t.Run(s.code, func(t *testing.T) {
			c.waitFindings(t, func(found []api.Finding) bool { return len(found) == 0 })
			c.createAll(t, namespace, s.objects)
			found := c.waitFindings(t, func(found []api.Finding) bool {
				return slices.ContainsFunc(found, func(f api.Finding) bool { return f.Code == s.code })
			})
			for _, f := range found {
				if f.Code != s.code && !slices.Contains(s.also, f.Code) {
					t.Errorf("%s is found, too: %s", f.Code, f.Message)
				}
			}
			if s.pasted {
				c.pasteAll(t, found[0].Remedy.Commands)
			} else {
				s.end(t)
			}
			c.waitFindings(t, func(found []api.Finding) bool { return len(found) == 0 })
		}) {
			return
		}
	}
}

// waitFindings asks doctor until the findings are as awaited.
func (c *cluster) waitFindings(t *testing.T, awaited func([]api.Finding) bool) []api.Finding {
	t.Helper()
	var found api.Diagnosis
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		found = api.Diagnosis{}
		code := commands.Run(ctx, []string{"doctor", "--kubeconfig", c.kubeconfig, "-o", "json"}, streams, commands.Build{Version: "v0.0.0-test"})
		if err := json.Unmarshal(out.Bytes(), &found); err != nil {
			return false, fmt.Errorf("doctor: code %d, %w: %s", code, err, errOut)
		}
		return awaited(found.Findings), nil
	})
	if err != nil {
		t.Fatalf("%v; findings: %+v", err, found.Findings)
	}
	return found.Findings
}

// pasteAll gives commands to a shell as they are.
func (c *cluster) pasteAll(t *testing.T, commands []string) {
	t.Helper()
	binaries, err := controlplane.Binaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "PATH="+binaries+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, strings.Join(commands, "\n"), out)
	}
}
