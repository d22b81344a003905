// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// gpuResource is the resource of a device plugin with the hardware of the driver, by its name.
const gpuResource = "test.example.com/gpu"

// testMigrate moves a workload from a device plugin to the driver on a real node with the commands that
// "migrate" prints, and back. The test starts and stops the device plugin where a comment says so.
func (u *upgrade) testMigrate(t *testing.T) {
	ctx := t.Context()
	stop := startPlugin(t)
	t.Cleanup(func() { stop() })
	register(ctx, t, gpuResource)
	u.waitAllocatable(ctx, t, gpuResource, 2)
	labels := map[string]string{"app": "moved"}
	pod := hostPod("", "exec sleep 100000").Spec
	pod.RestartPolicy = corev1.RestartPolicyAlways
	pod.Containers[0].Resources.Limits = corev1.ResourceList{gpuResource: resource.MustParse("1")}
	if _, err := u.client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "moved"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	u.waitMoved(ctx, t, false)

	text, printed := u.migrate(t, "-o", "json"), u.migrate(t, "--commands")
	plan := filepath.Join(u.dir, "plan.json")
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	found := &api.Migration{}
	if err := json.Unmarshal([]byte(text), found); err != nil {
		t.Fatal(err)
	}
	if len(found.Steps) != 1 || len(found.Workloads) != 1 || !slices.Equal(found.Steps[0].Moves, []api.ObjectRef{found.Workloads[0].Object}) {
		t.Fatalf("steps %+v, workloads %+v", found.Steps, found.Workloads)
	}
	step := found.Steps[0]
	for _, command := range slices.Concat(step.Commands, found.Workloads[0].Commands, step.Back) {
		if !strings.Contains(printed, "  "+command+"\n") && !strings.Contains(printed, "# "+command+"\n") {
			t.Errorf("--commands does not print: %s", command)
		}
	}
	paste := func(commands []string, plugin func()) {
		t.Helper()
		for _, command := range commands {
			if strings.HasPrefix(command, "# let the DaemonSet of the device plugin for "+gpuResource) {
				plugin()
			}
			u.shell(t, command)
		}
	}
	paste(step.Commands, func() { stop() })
	paste(found.Workloads[0].Commands, nil)
	u.waitMoved(ctx, t, true)
	if text := u.migrate(t, "--verify", plan); !strings.Contains(text, "1: taken, as planned") {
		t.Errorf("after the step: %s", text)
	}

	paste(step.Back, func() {
		stop = startPlugin(t)
		register(ctx, t, gpuResource)
		u.waitAllocatable(ctx, t, gpuResource, 2)
	})
	u.waitMoved(ctx, t, false)
	if text := u.migrate(t, "--verify", plan); !strings.Contains(text, "1: not taken yet") {
		t.Errorf("after the way back: %s", text)
	}
	if err := u.client.AppsV1().Deployments(namespace).Delete(ctx, "moved", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// migrate runs the verb and returns what it prints.
func (u *upgrade) migrate(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), u.program, append([]string{"migrate", "--kubeconfig=" + u.kubeconfig}, args...)...)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("migrate %v: %v\n%s%s", args, err, out, errOut.String())
	}
	return string(out)
}

// waitMoved waits until the one pod of the workload runs, with a claim or with a device of the plugin.
func (u *upgrade) waitMoved(ctx context.Context, t *testing.T, claim bool) {
	t.Helper()
	u.until(ctx, t, "the pod of the workload runs", func() bool {
		pods, err := u.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=moved"})
		return err == nil && len(pods.Items) == 1 && pods.Items[0].DeletionTimestamp == nil && pods.Items[0].Status.Phase == corev1.PodRunning &&
			(len(pods.Items[0].Spec.ResourceClaims) > 0) == claim && (len(pods.Items[0].Spec.Containers[0].Resources.Limits) > 0) != claim
	})
}
