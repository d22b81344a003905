// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/kubelet"
	probed "github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// TestNode asks about one node with one pod that has a device, in all ways.
func TestNode(t *testing.T) {
	ctx := t.Context()
	r := start(t)
	claim := r.runPod(ctx, t, "train")

	t.Run("the container has what the CDI spec says", func(t *testing.T) {
		log := r.logs(t.Context(), t, "train")
		for _, want := range []string{"TEST_DEVICE=gpu-0\n", "\ngpu-0\n"} {
			if !strings.Contains(log, want) {
				t.Errorf("the container does not have %q:\n%s", want, log)
			}
		}
	})
	t.Run("on the node", func(t *testing.T) {
		code, out, _ := r.dra(t.Context(), t, r.kubeconfig, append(r.here(), "-o", "json")...)
		r.checkReport(t, code, out, string(claim.UID), "/")
	})
	t.Run("from afar", func(t *testing.T) {
		code, out, _ := r.dra(t.Context(), t, r.kubeconfig, append(r.afar(), "-o", "json")...)
		r.checkReport(t, code, out, string(claim.UID), "/host")
		r.noProbePods(t.Context(), t)
	})
	t.Run("from afar as text", func(t *testing.T) {
		code, out, errOut := r.dra(t.Context(), t, r.kubeconfig, append(r.afar(), "--color=always")...)
		if code > 2 || errOut != "" {
			t.Errorf("exit code %d, standard error %q", code, errOut)
		}
		if !strings.Contains(out, "\x1b[1;32m✓\x1b[m") || !strings.Contains(out, driverName) {
			t.Error("no green mark, or no driver")
		}
	})
	t.Run("exit codes come back", func(t *testing.T) {
		stale := filepath.Join(r.node.Kubelet, "plugins_registry", "stale.example.com-reg.sock")
		if err := os.WriteFile(stale, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.Remove(stale) }()
		for _, where := range [][]string{r.here(), r.afar()} {
			code, out, _ := r.dra(t.Context(), t, r.kubeconfig, where...)
			if code != 1 || !strings.Contains(out, "stale.example.com-reg.sock") {
				t.Errorf("exit code %d, want 1 for a file that is no socket:\n%s", code, out)
			}
		}
	})
	t.Run("a device turns unhealthy", func(t *testing.T) {
		r.setHealth(kubeletplugin.HealthStatusUnhealthy)
		defer r.setHealth(kubeletplugin.HealthStatusHealthy)
		r.waitPodHealth(t.Context(), t, "train", corev1.ResourceHealthStatusUnhealthy)
		code, out, _ := r.dra(t.Context(), t, r.kubeconfig, append(r.here(), "-o", "json")...)
		var report nodeprobe.Report
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatal(err)
		}
		if code != 1 || report.Health == nil || len(report.Health.Drivers) != 1 || len(report.Health.Drivers[0].Devices) != deviceCount {
			t.Fatalf("exit code %d, health %+v", code, report.Health)
		}
		if device := report.Health.Drivers[0].Devices[0]; device.Health != driver.Unhealthy || len(device.Pods) != 1 || device.Pods[0].Health != driver.Unhealthy {
			t.Errorf("the device of the pod is %+v", device)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		// No event may be about a pod of before.
		r.noProbePods(t.Context(), t)
		cmd := exec.Command(r.program, append([]string{"node-probe", "--kubeconfig=" + r.kubeconfig}, r.afar()...)...)
		var errOut strings.Builder
		cmd.Stderr = &errOut
		pods, err := r.client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=kubectl-dra"})
		if err != nil {
			t.Fatal(err)
		}
		defer pods.Stop()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for event := range pods.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.Spec.NodeName == nodeName {
				break
			}
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 4 || !strings.Contains(errOut.String(), "interrupted") {
			t.Errorf("exit code %d, %q", code, errOut.String())
		}
		r.noProbePods(t.Context(), t)
	})
	t.Run("without rights", func(t *testing.T) {
		nobody, err := r.plane.Kubeconfig("nobody")
		if err != nil {
			t.Fatal(err)
		}
		code, _, errOut := r.dra(t.Context(), t, nobody, r.afar()...)
		for _, want := range []string{"get nodes", "create pods in namespace default", "create pods/exec in namespace default", "delete pods"} {
			if code != 4 || !strings.Contains(errOut, want) {
				t.Errorf("exit code %d, want 4 and %q: %s", code, want, errOut)
			}
		}
	})
	t.Run("no such node", func(t *testing.T) {
		code, _, errOut := r.dra(t.Context(), t, r.kubeconfig, "--node=elsewhere")
		if code != 3 || !strings.Contains(errOut, "elsewhere") {
			t.Errorf("exit code %d, want 3 and the name: %s", code, errOut)
		}
	})
	t.Run("a program for another machine", func(t *testing.T) {
		code, _, errOut := r.dra(t.Context(), t, r.kubeconfig, append(r.afar(), "--binary=probe_test.go")...)
		if code != 3 || !strings.Contains(errOut, "--binary") {
			t.Errorf("exit code %d, want 3 and the flag: %s", code, errOut)
		}
	})
	t.Run("the pod cannot write to the node", r.testReadOnly)
	t.Run("no such image", r.testNoImage)
	t.Run("a claim is prepared and unprepared from afar", r.testPrepare)
	t.Run("a claim is taken back from afar", r.testCleanup)
	t.Run("the driver conforms", r.testConform)
	t.Run("the script of the examples", r.testConformScript)
	t.Run("metadata of devices", r.testMetadata)
	t.Run("a watch from afar ends with Ctrl-C", r.testWatch)
	t.Run("killed", r.testKilled)
	t.Run("a device plugin", r.testDevicePlugin)
}

// checkReport looks for facts that are known about the node.
func (r *realNode) checkReport(t *testing.T, code int, out, claim, root string) {
	t.Helper()
	var report nodeprobe.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("read the report: %v", err)
	}
	if report.Node != nodeName || report.Paths.Root != root {
		t.Errorf("the report is of node %q at %q", report.Node, report.Paths.Root)
	}
	for _, check := range report.Checks() {
		if check.State == probed.Problem {
			t.Errorf("a node in order has the problem %+v", check)
		}
	}
	wanted := map[probed.State]int{probed.OK: 0, probed.Problem: 1, probed.Unknown: 2}[report.Result]
	if code != wanted {
		t.Errorf("exit code %d for result %s", code, report.Result)
	}
	if !slices.ContainsFunc(report.Plugins.Plugins, func(p driver.Plugin) bool { return p.Name == driverName && p.IsDRA() }) {
		t.Error("the driver's registration is not seen")
	}
	for name, part := range map[string]any{"state": report.State, "cdi": report.CDI} {
		content, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(content), claim) {
			t.Errorf("the claim %s is not in %s: %s", claim, name, content)
		}
	}
	if !slices.ContainsFunc(report.Pods.Pods, func(p kubelet.Pod) bool { return p.Name == "train" }) {
		t.Error("the pod is not among those of the kubelet")
	}
}

// testNoImage wants the reason, not a time that has run out.
func (r *realNode) testNoImage(t *testing.T) {
	const image = "127.0.0.1:1/none:1"
	code, _, errOut := r.dra(t.Context(), t, r.kubeconfig, "--node="+nodeName, "--image="+image)
	if code != 4 || !strings.Contains(errOut, "ImagePullBackOff") || !strings.Contains(errOut, "--image") {
		t.Errorf("exit code %d, want 4 and that the image cannot be pulled: %s", code, errOut)
	}
	r.noProbePods(t.Context(), t)
}

// testReadOnly runs the pod that --dry-run prints, with a script that tries to
// write.
func (r *realNode) testReadOnly(t *testing.T) {
	ctx := t.Context()
	code, out, _ := r.dra(ctx, t, r.kubeconfig, append(r.afar(), "--dry-run=client")...)
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(out), &pod); err != nil || code != 0 {
		t.Fatalf("exit code %d, read the pod: %v", code, err)
	}
	r.noProbePods(ctx, t)
	inRoot, inMount := filepath.Join(r.node.CDI, "written"), "/dev/shm/kubectl-dra-written"
	pod.Name, pod.GenerateName, pod.Labels = "read-only", "", nil
	pod.Spec.Containers[0].Command = []string{
		"sh", "-c",
		"cat /host/proc/version && ! echo evil >/host" + inRoot + " && ! echo evil >/host" + inMount,
	}
	if _, err := r.client.CoreV1().Pods(namespace).Create(ctx, &pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.waitPhase(ctx, t, "read-only", corev1.PodSucceeded)
	for _, path := range []string{inRoot, inMount} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("the pod has written %s of the node", path)
			_ = os.Remove(path)
		}
	}
	if log := r.logs(ctx, t, "read-only"); strings.Count(log, "Read-only file system") != 2 {
		t.Errorf("the pod says %s", log)
	}
}
