// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodeprobe

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// machine returns a node with nothing but a kubelet's directory and a boot ID.
func machine(t *testing.T, name string) *node.Host {
	t.Helper()
	host := node.NewHost(t.TempDir(), "", nil)
	host.Name = name
	for path, content := range map[string]string{"var/lib/kubelet/x": "", "proc/sys/kernel/random/boot_id": "boot-1\n"} {
		file := filepath.Join(host.Root, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return host
}

func cluster(ready corev1.ConditionStatus, bootID string) *snapshot.Snapshot {
	return &snapshot.Snapshot{Nodes: []*corev1.Node{{
		ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status: corev1.NodeStatus{
			NodeInfo:   corev1.NodeSystemInfo{BootID: bootID},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "KubeletNotReady", Message: "cni"}},
		},
	}}}
}

func TestHostChecks(t *testing.T) {
	for name, test := range map[string]struct {
		snap *snapshot.Snapshot
		// want is the state and a part of the message of a check.
		check string
		state node.State
		want  string
	}{
		"a node in order":    {cluster(corev1.ConditionTrue, "boot-1"), "host/boot", node.OK, "boot ID"},
		"it is ready":        {cluster(corev1.ConditionTrue, "boot-1"), "host/ready", node.OK, "is ready"},
		"it is not ready":    {cluster(corev1.ConditionFalse, "boot-1"), "host/ready", node.Problem, "KubeletNotReady: cni"},
		"another boot":       {cluster(corev1.ConditionTrue, "boot-2"), "host/boot", node.Problem, "another machine"},
		"no boot ID":         {cluster(corev1.ConditionTrue, ""), "host/boot", node.Unknown, "has not reported"},
		"no cluster":         {nil, "host/cluster", node.Unknown, "no cluster was read"},
		"not in the cluster": {&snapshot.Snapshot{}, "host/cluster", node.Unknown, "no node n"},
	} {
		t.Run(name, func(t *testing.T) {
			report := Probe(t.Context(), machine(t, "n"), test.snap, Options{})
			for _, check := range report.Host {
				if check.Name == test.check {
					if check.State != test.state || !strings.Contains(check.Message, test.want) {
						t.Errorf("got %+v, want %s and %q", check, test.state, test.want)
					}
					return
				}
			}
			t.Errorf("no check %s among %+v", test.check, report.Host)
		})
	}
}

func TestProbeLooksAtAll(t *testing.T) {
	report := Probe(t.Context(), machine(t, "n"), cluster(corev1.ConditionTrue, "boot-1"), Options{})
	var names []string
	for _, section := range report.Sections() {
		names = append(names, section.Name)
	}
	if got, want := strings.Join(names, " "), "host gpus plugins state cdi pods health"; got != want {
		t.Errorf("sections %s, want %s", got, want)
	}
	if report.Result != node.Worst(report.Checks()) || report.Node != "n" {
		t.Errorf("result %s of node %q", report.Result, report.Node)
	}
}

// TestPartThatHangs leaves one part behind, and the others are there.
func TestPartThatHangs(t *testing.T) {
	p := &parts{timeout: time.Millisecond}
	var hangs, works []node.Check
	forever := make(chan struct{})
	defer close(forever)
	part(t.Context(), p, "hangs", &hangs, func(context.Context) ([]node.Check, error) {
		<-forever
		return []node.Check{{}}, nil
	})
	p.wait()
	p.timeout = time.Minute
	part(t.Context(), p, "works", &works, func(context.Context) ([]node.Check, error) {
		return []node.Check{{Name: "fine"}}, nil
	})
	p.wait()
	if hangs != nil || len(works) != 1 {
		t.Errorf("found %v and %v", hangs, works)
	}
	if len(p.late) != 1 || p.late[0].Name != "hangs" || p.late[0].State != node.Unknown {
		t.Errorf("said of what hangs: %+v", p.late)
	}
}

// TestNoNode looks where there is no node: nothing is known, so nothing is
// broken, whichever check is asked.
func TestNoNode(t *testing.T) {
	for name, path := range map[string]string{"an empty root": t.TempDir(), "no root": filepath.Join(t.TempDir(), "none")} {
		t.Run(name, func(t *testing.T) {
			host := node.NewHost(path, "", nil)
			host.Name = "n"
			snap := cluster(corev1.ConditionTrue, "boot-1")
			driver := resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
			driver.Spec.Driver, driver.Spec.NodeName = "gpu.example.com", &snap.Nodes[0].Name
			snap.Slices = append(snap.Slices, &driver)
			unknown := map[string]bool{}
			for _, check := range Probe(t.Context(), host, snap, Options{}).Checks() {
				if check.State == node.Problem {
					t.Errorf("broken for certain: %+v", check)
				}
				unknown[check.Name] = unknown[check.Name] || check.State == node.Unknown
			}
			for _, name := range []string{
				"host/kubelet", "host/boot", "gpus/pci", "gpus/nvml", "plugins/registry", "plugins/unregistered", "plugins/device-plugins",
				"plugins/slices", "state/boot", "state/kubelet", "state/driver", "pods/socket", "health/stream",
			} {
				if !unknown[name] {
					t.Errorf("%s does not say that it is not known", name)
				}
			}
		})
	}
}
