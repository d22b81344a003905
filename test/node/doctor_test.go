// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	"github.com/kubectl-dra/kubectl-dra/internal/testdriver"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestDoctor makes faults of a driver on a real node: its pod is started again, it is
// not registered, and the kubelet has other feature gates than the API server.
func TestDoctor(t *testing.T) {
	ctx := t.Context()
	r := start(t)
	front := r.front(ctx, t)
	if found := r.doctor(ctx, t, "--kubelets", "--server", front); len(found) > 0 {
		t.Errorf("on a healthy node: %+v", found)
	}

	t.Run("logs", func(t *testing.T) {
		set := r.failingDriver()
		if _, err := r.client.AppsV1().DaemonSets(namespace).Create(ctx, set, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		r.waitRestarted(ctx, t)
		found := r.doctor(ctx, t, "--logs", "--only", "DRA1103")
		if len(found) != 1 {
			t.Fatalf("found %+v", found)
		}
		for _, want := range []api.Evidence{
			{Path: "log[container=driver], previous run", Found: "error: run 1 cannot open the device"},
			{Path: "log[container=driver]", Found: "error: run 2 waits for the device"},
			{Path: "log[container=sidecar]", Found: "failed to log in with token=[redacted]"},
		} {
			if !slices.ContainsFunc(found[0].Evidence, func(e api.Evidence) bool { return e.Path == want.Path && e.Found == want.Found }) {
				t.Errorf("the evidence lacks %+v: %+v", want, found[0].Evidence)
			}
		}
		if err := r.client.AppsV1().DaemonSets(namespace).Delete(ctx, set.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		// No garbage collector does it.
		err := r.client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{LabelSelector: "app=failing"})
		if err != nil {
			t.Fatal(err)
		}
		r.noPods(ctx, t)
	})

	t.Run("gates of the kubelet", func(t *testing.T) {
		err := r.plane.Restart(ctx, controlplane.Options{WithNodes: true, FeatureGates: map[string]bool{"ResourceHealthStatus": false, "ResourceHealthStatusMessage": false}})
		if err != nil {
			t.Fatal(err)
		}
		found := r.doctor(ctx, t, "--kubelets", "--server", front)
		if len(found) != 1 || found[0].Code != "DRA1008" || !strings.Contains(found[0].Message, "ResourceHealthStatus is off in the API server and on in the kubelet of 1 node") {
			t.Errorf("found %+v", found)
		}
	})

	t.Run("not registered", func(t *testing.T) {
		r.driver.Stop()
		r.driver = nil
		claim := &resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "lost"},
			Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
				Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: driverName},
			}}}},
		}
		if _, err := r.client.ResourceV1().ResourceClaims(namespace).Create(ctx, claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pod := hostPod("lost", "exec sleep 100000")
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim.Name}}
		pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
		if _, err := r.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		const says = "driver " + driverName + " is not registered with the kubelet of node " + nodeName + ": 1 pod waits"
		var found []api.Finding
		err := wait.PollUntilContextTimeout(ctx, time.Second, patience, true, func(ctx context.Context) (bool, error) {
			found = r.doctor(ctx, t, "--only", "DRA1107")
			return len(found) == 1 && found[0].Message == says, nil
		})
		if err != nil {
			t.Errorf("%v: found %+v", err, found)
		}
		// Without a driver, the kubelet would not let the pod go either.
		r.driver, err = testdriver.Start(context.WithoutCancel(ctx), testdriver.Config{
			Name: driverName, Kubelet: r.node.Kubelet, CDI: r.node.CDI, Client: r.client, Node: nodeName, Devices: deviceCount,
		})
		if err != nil {
			t.Fatal(err)
		}
		r.waitPhase(ctx, t, pod.Name, corev1.PodRunning)
		if found := r.doctor(ctx, t, "--only", "DRA1107"); len(found) > 0 {
			t.Errorf("once the driver is back: %+v", found)
		}
	})
}

// front returns the address of a server that does what the API server does but for one
// thing: it passes requests for the kubelet on although that listens on loopback, which no
// API server does.
func (r *realNode) front(ctx context.Context, t *testing.T) string {
	t.Helper()
	node, err := r.client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(r.plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	to := func(address string) http.Handler {
		target, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.Transport = transport
		return proxy
	}
	kubelet := "/api/v1/nodes/" + nodeName + "/proxy"
	mux := http.NewServeMux()
	mux.Handle("/", to(r.plane.Config().Host))
	mux.Handle(kubelet+"/", http.StripPrefix(kubelet, to(fmt.Sprintf("https://127.0.0.1:%d", node.Status.DaemonEndpoints.KubeletEndpoint.Port))))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// failingDriver returns the DaemonSet of a driver that fails once and is not ready then.
func (r *realNode) failingDriver() *appsv1.DaemonSet {
	labels := map[string]string{"app": "failing"}
	pod := hostPod("", `if mkdir /state/second; then echo "error: run 1 cannot open the device"; exit 1; fi
echo "error: run 2 waits for the device"; exec sleep 100000`).Spec
	pod.RestartPolicy = corev1.RestartPolicyAlways
	pod.Containers[0].Name = "driver"
	pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "registry", MountPath: "/registry"}, {Name: "plugins", MountPath: "/plugins"}, {Name: "state", MountPath: "/state"}}
	pod.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"false"}}}}
	sidecar := hostPod("", `echo "failed to log in with token=abc"; exec sleep 100000`).Spec.Containers[0]
	sidecar.Name = "sidecar"
	pod.Containers = append(pod.Containers, sidecar)
	hostPath := func(name, directory string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: r.node.Kubelet + "/" + directory}}}
	}
	pod.Volumes = []corev1.Volume{
		hostPath("registry", "plugins_registry"), hostPath("plugins", "plugins"),
		{Name: "state", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	pod.Containers[0].Args = []string{"--driver-name=" + driverName}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "failing"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}

// waitRestarted waits until the kubelet runs the container of the failing driver again.
func (r *realNode) waitRestarted(ctx context.Context, t *testing.T) {
	t.Helper()
	var last []corev1.Pod
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		pods, err := r.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=failing"})
		if err != nil {
			return false, err
		}
		last = pods.Items
		for i := range last {
			running := 0
			for _, status := range last[i].Status.ContainerStatuses {
				if status.State.Running != nil && (status.Name == "sidecar" || status.RestartCount > 0) {
					running++
				}
			}
			if running == 2 {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		t.Fatalf("the driver is not started again: %v: %+v", err, last)
	}
}

// noPods waits until the pods of the test are gone.
func (r *realNode) noPods(ctx context.Context, t *testing.T) {
	t.Helper()
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		pods, err := r.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// doctor returns what doctor finds as an admin.
func (r *realNode) doctor(ctx context.Context, t *testing.T, args ...string) []api.Finding {
	t.Helper()
	cmd := exec.CommandContext(ctx, r.program, append([]string{"doctor", "--kubeconfig=" + r.kubeconfig, "-o", "json"}, args...)...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	// The exit code is that of the findings.
	_ = cmd.Run()
	var diagnosis api.Diagnosis
	if err := json.Unmarshal(out.Bytes(), &diagnosis); err != nil {
		t.Fatalf("doctor %v: %v\n%s", args, err, errOut.String())
	}
	return diagnosis.Findings
}
