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
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

const pluginName = "plugin"

// TestDriverAway runs the driver in a DaemonSet on a real node, asks what an upgrade of it
// and a drain do to a pod with a device, and does it in the order that is printed.
func TestDriverAway(t *testing.T) {
	ctx := t.Context()
	r := start(t)
	u := upgrade{realNode: r, dir: t.TempDir()}
	t.Run("migrate", u.testMigrate)
	// From now on, pods are the driver.
	r.driver.Stop()
	r.driver = nil
	u.buildDriver(t)
	if _, err := r.client.AppsV1().DaemonSets(namespace).Create(ctx, u.daemonSet(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	u.waitDriver(ctx, t, 1)

	t.Run("away", func(t *testing.T) {
		r.runPod(ctx, t, "away")
		found := u.impact(t, 0, "upgrade-driver", pluginName)
		if len(found.Drivers) != 1 || found.Drivers[0].Effect != api.DriverAway || !slices.Equal(found.Drivers[0].Running, []api.ObjectRef{api.Ref(api.KindPod, namespace, "away")}) || found.Update.MaxUnavailable != 1 {
			t.Errorf("drivers %+v, update %+v", found.Drivers, found.Update)
		}
		u.patch(ctx, t, `{"spec":{"template":{"spec":{"nodeSelector":{"driver":"none"}}}}}`)
		u.waitDriver(ctx, t, 0)
		u.delete(ctx, t, "away")
		u.waitTerminating(ctx, t, "away")
		u.patch(ctx, t, `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`)
		u.waitGone(ctx, t, "away")
	})
	for _, test := range []struct {
		name, strategy string
		want           api.DriverEffect
	}{
		{"rolling update", `{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1,"maxSurge":0}}`, api.DriverAway},
		{"surge", `{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":0,"maxSurge":1}}`, api.DriverOverlaps},
		{"on delete", `{"type":"OnDelete","rollingUpdate":null}`, api.DriverStays},
	} {
		t.Run(test.name, func(t *testing.T) {
			u.patch(ctx, t, `{"spec":{"updateStrategy":`+test.strategy+`}}`)
			u.waitDriver(ctx, t, 1)
			before := u.driverPods(ctx, t)
			pod := strings.ReplaceAll(test.name, " ", "-")
			r.runPod(ctx, t, pod)
			found := u.impact(t, 0, "upgrade-driver", "daemonset/"+pluginName, "-n", namespace)
			if len(found.Drivers) != 1 || found.Drivers[0].Effect != test.want {
				t.Fatalf("drivers %+v, want the effect %s", found.Drivers, test.want)
			}
			// The pod ends while the driver is replaced.
			u.delete(ctx, t, pod)
			u.follow(t, found)
			u.waitGone(ctx, t, pod)
			u.waitDriver(ctx, t, 1)
			if after := u.driverPods(ctx, t); after[0].UID == before[0].UID {
				t.Errorf("pod %s of the driver was not replaced", after[0].Name)
			}
		})
	}

	t.Run("drain", func(t *testing.T) {
		template := u.daemonSet().Spec.Template
		if err := r.client.AppsV1().DaemonSets(namespace).Delete(ctx, pluginName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		u.waitDriver(ctx, t, 0)
		bare := func() {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare-driver", Labels: template.Labels}, Spec: *template.Spec.DeepCopy()}
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			if _, err := r.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			u.waitDriver(ctx, t, 1)
		}
		bare()
		// It ends later than the driver, which ends at once.
		r.runPod(ctx, t, "drained", func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = new(int64(5)) })
		found := u.impact(t, 1, "drain", nodeName)
		if len(found.Drivers) != 1 || found.Drivers[0].Effect != api.DriverLeaves || !slices.Equal(found.Drivers[0].Running, []api.ObjectRef{api.Ref(api.KindPod, namespace, "drained")}) {
			t.Fatalf("drivers %+v", found.Drivers)
		}
		u.shell(t, "kubectl drain "+nodeName+" --force --ignore-daemonsets --timeout=1s || true")
		u.waitDriver(ctx, t, 0)
		u.waitTerminating(ctx, t, "drained")
		u.shell(t, "kubectl uncordon "+nodeName)
		bare()
		u.waitGone(ctx, t, "drained")

		r.runPod(ctx, t, "drained-too")
		u.follow(t, u.impact(t, 1, "drain", nodeName))
		u.waitGone(ctx, t, "drained-too")
		u.waitDriver(ctx, t, 0)
		u.shell(t, "kubectl uncordon "+nodeName)
	})
}

// upgrade is a node whose driver runs in pods.
type upgrade struct {
	*realNode
	// dir has the program of the driver, a kubeconfig for it, and an editor.
	dir string
}

func (u *upgrade) buildDriver(t *testing.T) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(u.dir, "driver"), "./driver")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the driver: %v\n%s", err, out)
	}
	access, err := os.ReadFile(u.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	editor := "#!/bin/sh\nsed -i \"/revision:/s/:.*/: r$$/\" \"$1\"\n"
	for name, text := range map[string]string{"kubeconfig": string(access), "editor": editor} {
		if err := os.WriteFile(filepath.Join(u.dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// daemonSet returns the DaemonSet of the driver.
func (u *upgrade) daemonSet() *appsv1.DaemonSet {
	labels := map[string]string{"app": pluginName}
	pod := hostPod("", "").Spec
	pod.RestartPolicy = corev1.RestartPolicyAlways
	main := &pod.Containers[0]
	main.Command = []string{u.dir + "/driver"}
	// The UID of the pod would make the paths of its sockets longer than they can be.
	main.Args = []string{
		"--driver-name=" + driverName, "--node=" + nodeName, "--instance=$(POD_NAME)", "--kubelet=" + u.node.Kubelet, "--cdi=" + u.node.CDI,
		"--devices=4", "--kubeconfig=" + u.dir + "/kubeconfig",
	}
	main.Env = []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
	for name, directory := range map[string]string{"program": u.dir, "registry": u.node.Kubelet + "/plugins_registry", "plugins": u.node.Kubelet + "/plugins", "cdi": u.node.CDI} {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: directory}}})
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: directory})
	}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: pluginName},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"revision": "r0"}}, Spec: pod},
		},
	}
}

func (u *upgrade) patch(ctx context.Context, t *testing.T, text string) {
	t.Helper()
	if _, err := u.client.AppsV1().DaemonSets(namespace).Patch(ctx, pluginName, types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (u *upgrade) driverPods(ctx context.Context, t *testing.T) []corev1.Pod {
	t.Helper()
	pods, err := u.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + pluginName})
	if err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// waitDriver waits until there are so many pods of the driver, and all are ready.
func (u *upgrade) waitDriver(ctx context.Context, t *testing.T, count int) {
	t.Helper()
	u.until(ctx, t, "the driver has its pods", func() bool {
		pods := u.driverPods(ctx, t)
		return len(pods) == count && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
			return pod.DeletionTimestamp != nil || !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
		})
	})
}

func (u *upgrade) delete(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	if err := u.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// waitTerminating waits until the kubelet has failed to unprepare the devices of a pod: the
// pod is still there then.
func (u *upgrade) waitTerminating(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	u.until(ctx, t, "the kubelet fails to unprepare the devices of pod "+name, func() bool {
		for line := range strings.Lines(u.node.Logs()) {
			if strings.Contains(line, "unprepare dynamic resources") && strings.Contains(line, namespace+"/"+name) {
				return true
			}
		}
		return false
	})
	if pod, err := u.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil || pod.DeletionTimestamp == nil {
		t.Errorf("pod %s does not stay in Terminating: %v", name, err)
	}
}

func (u *upgrade) waitGone(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	u.until(ctx, t, "pod "+name+" is gone", func() bool {
		_, err := u.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func (u *upgrade) until(ctx context.Context, t *testing.T, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatalf("wait until %s: %v", what, err)
	}
}

// impact asks what a change does; the program has to end with a code.
func (u *upgrade) impact(t *testing.T, code int, args ...string) *api.Impact {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), u.program, append([]string{"impact", "--kubeconfig=" + u.kubeconfig, "-o", "json"}, args...)...)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, _ := cmd.Output()
	found := &api.Impact{}
	if err := json.Unmarshal(out, found); err != nil || cmd.ProcessState.ExitCode() != code {
		t.Fatalf("impact %v: %v, exit code %d, want %d\n%s%s", args, err, cmd.ProcessState.ExitCode(), code, out, errOut.String())
	}
	return found
}

// follow runs the commands of the steps. What is to be done only after a failure is left
// out, and what lists devices is repeated until there are none.
func (u *upgrade) follow(t *testing.T, found *api.Impact) {
	t.Helper()
	for _, step := range found.Steps {
		for _, command := range step.Commands {
			switch {
			case strings.HasPrefix(step.Text, "if "):
			case strings.Contains(command, "kubectl dra devices"):
				u.until(t.Context(), t, "no device is allocated", func() bool { return u.shell(t, command+" -o name") == "" })
			default:
				u.shell(t, command)
			}
		}
	}
}

// shell runs a command line as a user would who pastes it, and returns its output.
func (u *upgrade) shell(t *testing.T, line string) string {
	t.Helper()
	binaries, err := controlplane.Binaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Env = append(os.Environ(), "PATH="+strings.Join([]string{filepath.Dir(u.program), binaries, os.Getenv("PATH")}, ":"),
		"KUBECONFIG="+u.kubeconfig, "KUBE_EDITOR="+filepath.Join(u.dir, "editor"))
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	t.Logf("%s\n%s%s", line, out, errOut.String())
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return strings.TrimSpace(string(out))
}
