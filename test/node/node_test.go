// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	"github.com/kubectl-dra/kubectl-dra/internal/testdriver"
)

const (
	// enableVariable is set by `make test-node`: a node changes the machine while
	// it runs.
	enableVariable = "KUBECTL_DRA_TEST_NODE"

	nodeName    = "probe-node"
	driverName  = "gpu.test.example.com"
	namespace   = "default"
	deviceCount = 4
	// patience bounds every wait for something that happens within seconds, on a
	// machine with nothing else to do.
	patience = 5 * time.Minute
)

// realNode is a node with a driver, in a cluster.
type realNode struct {
	plane      *controlplane.ControlPlane
	node       *controlplane.Node
	driver     *testdriver.Driver
	client     kubernetes.Interface
	kubeconfig string
	// program is the built kubectl-dra.
	program string
}

// start runs a control plane, a node and a driver on it until the test ends.
func start(t *testing.T) *realNode {
	t.Helper()
	if os.Getenv(enableVariable) == "" {
		t.Skipf("it starts a kubelet on this machine; run: make test-node")
	}
	if os.Getuid() != 0 {
		t.Fatal("a kubelet needs root")
	}
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r := &realNode{program: filepath.Join(t.TempDir(), "kubectl-dra")}
	build := exec.CommandContext(ctx, "go", "build", "-o", r.program, "../../cmd/kubectl-dra")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build kubectl-dra: %v\n%s", err, out)
	}
	binaries, err := controlplane.Binaries(ctx)
	must(err)
	nodeBinaries, err := controlplane.NodeBinaries(ctx)
	must(err)
	r.plane, err = controlplane.Start(ctx, controlplane.Options{
		Binaries: binaries, WithNodes: true,
		// They delete what is in a namespace, and what belonged to a pod.
		WithControllers: []string{"namespace-controller", "garbage-collector-controller"},
	})
	must(err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(r.plane.Logs())
		}
		if err := r.plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	r.kubeconfig, err = r.plane.Kubeconfig("admin", "system:masters")
	must(err)
	r.client, err = kubernetes.NewForConfig(r.plane.Config())
	must(err)
	// Before the driver stops, the kubelet has to unprepare the claims of pods.
	t.Cleanup(func() {
		if r.driver != nil {
			r.driver.Stop()
		}
	})
	forgetDevices(t)
	t.Cleanup(func() { forgetDevices(t) })
	r.node, err = r.plane.StartNode(ctx, nodeBinaries, nodeName)
	must(err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(r.node.Logs())
		}
		if err := r.node.Stop(); err != nil {
			t.Error(err)
		}
	})
	// The context of the test ends before its cleanups.
	r.driver, err = testdriver.Start(context.WithoutCancel(ctx), testdriver.Config{
		Name: driverName, Kubelet: r.node.Kubelet, CDI: r.node.CDI, Client: r.client, Node: nodeName, Devices: deviceCount,
	})
	must(err)
	r.setHealth(kubeletplugin.HealthStatusHealthy)
	_, err = r.client.ResourceV1().DeviceClasses().Create(ctx, &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: driverName},
		Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{
			CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driverName)},
		}}},
	}, metav1.CreateOptions{})
	must(err)
	return r
}

// setHealth sets the health of all devices.
func (r *realNode) setHealth(status kubeletplugin.HealthStatus) {
	var devices []kubeletplugin.DeviceHealth
	for i := range deviceCount {
		devices = append(devices, kubeletplugin.DeviceHealth{
			PoolName: nodeName, DeviceName: fmt.Sprintf("gpu-%d", i), Health: status, LastUpdated: time.Now(),
		})
	}
	r.driver.SetHealth(devices...)
}

// runPod makes a pod with a claim for one device and waits until it runs. Its
// log is its environment.
func (r *realNode) runPod(ctx context.Context, t *testing.T, name string, changes ...func(*corev1.Pod)) *resourceapi.ResourceClaim {
	t.Helper()
	return r.runPodWith(ctx, t, name, driverName, "env; ls /dev; exec sleep 100000", changes...)
}

// runPodWith is like runPod, for any class and script.
func (r *realNode) runPodWith(ctx context.Context, t *testing.T, name, class, script string, changes ...func(*corev1.Pod)) *resourceapi.ResourceClaim {
	t.Helper()
	claim, err := r.client.ResourceV1().ResourceClaims(namespace).Create(ctx, &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class},
		}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := hostPod(name, script)
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim.Name}}
	pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	for _, change := range changes {
		change(pod)
	}
	if _, err := r.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.waitPhase(ctx, t, name, corev1.PodRunning)
	if claim, err = r.client.ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	return claim
}

func hostPod(name, script string) *corev1.Pod {
	grace := int64(1)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			HostNetwork:                   true,
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: "main", Image: controlplane.NodeImage, ImagePullPolicy: corev1.PullNever, Command: []string{"sh", "-c", script},
			}},
		},
	}
}

func (r *realNode) waitPhase(ctx context.Context, t *testing.T, name string, phase corev1.PodPhase) {
	t.Helper()
	var last *corev1.Pod
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		last, err = r.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && last.Status.Phase == phase, err
	})
	if err != nil {
		t.Fatalf("pod %s does not become %s: %v; it has status %+v", name, phase, err, last.Status)
	}
}

// waitPodHealth waits until the kubelet says in the status of a pod that one of
// its devices has that health.
func (r *realNode) waitPodHealth(ctx context.Context, t *testing.T, name string, health corev1.ResourceHealthStatus) {
	t.Helper()
	var last []corev1.ResourceStatus
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		pod, err := r.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil || len(pod.Status.ContainerStatuses) == 0 {
			return false, err
		}
		last = pod.Status.ContainerStatuses[0].AllocatedResourcesStatus
		for _, status := range last {
			for _, resource := range status.Resources {
				if resource.Health == health {
					return true, nil
				}
			}
		}
		return false, nil
	})
	if err != nil {
		t.Fatalf("no device of pod %s becomes %s: %v; its status has %+v", name, health, err, last)
	}
}

func (r *realNode) logs(ctx context.Context, t *testing.T, name string) string {
	t.Helper()
	log, err := r.client.CoreV1().Pods(namespace).GetLogs(name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return string(log)
}

// here returns the flags that say where the node is for a program that runs on it.
func (r *realNode) here() []string {
	return []string{"--node-name=" + nodeName, "--kubelet-root=" + r.node.Kubelet, "--cdi-dir=" + r.node.CDI}
}

// afar returns the arguments for a program that runs elsewhere.
func (r *realNode) afar() []string {
	return []string{"--node=" + nodeName, "--image=" + controlplane.NodeImage, "--kubelet-root=" + r.node.Kubelet, "--cdi-dir=" + r.node.CDI}
}

// dra runs the program as a user with that kubeconfig.
func (r *realNode) dra(ctx context.Context, t *testing.T, kubeconfig string, args ...string) (code int, out, errOut string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.program, append([]string{"node-probe", "--kubeconfig=" + kubeconfig}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("kubectl dra node-probe %s: exit code %d\n%s%s", strings.Join(args, " "), cmd.ProcessState.ExitCode(), stdout.String(), stderr.String())
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// noProbePods waits until all pods that the program made are gone.
func (r *realNode) noProbePods(ctx context.Context, t *testing.T) {
	t.Helper()
	var left int
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		pods, err := r.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=kubectl-dra"})
		if err != nil {
			return false, err
		}
		left = len(pods.Items)
		return left == 0, nil
	})
	if err != nil {
		t.Errorf("%d pods of the program are left: %v", left, err)
	}
}
