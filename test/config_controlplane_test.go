// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// TestConfigOnCluster applies config, and runs the controller with the arguments and the rights
// that it gives: everything in the cluster can be read, and only those see the metrics who may.
func TestConfigOnCluster(t *testing.T) {
	ctx := t.Context()
	c := rightsCluster(t)
	for _, object := range kustomized(t, "events") {
		mustDo(t, func() error { return c.create(ctx, object.GetNamespace(), object) })
	}
	objects, _ := buildConfig(t, "events")
	template := configObject[*appsv1.Deployment](t, objects, "Deployment dra-controller").Spec.Template
	c.checkAdmission(ctx, t, template)

	kubeconfig, err := c.plane.Kubeconfig("system:serviceaccount:kubectl-dra:"+template.Spec.ServiceAccountName, "system:serviceaccounts", "system:serviceaccounts:kubectl-dra")
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	args := append(template.Spec.Containers[0].Args, "--kubeconfig="+kubeconfig, "--namespace=kubectl-dra", "--metrics-bind-address="+address, "--health-probe-bind-address=0")
	running, stop := context.WithCancel(ctx)
	controller := exec.CommandContext(running, builtController(t), args...)
	controller.Cancel = func() error { return controller.Process.Signal(os.Interrupt) }
	var log strings.Builder
	// It has no home that it can write to.
	controller.Stderr, controller.Env = &log, append(os.Environ(), "HOME=/proc")
	if err := controller.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end := func() string {
		if stop(); !ended {
			_ = controller.Wait()
			ended = true
		}
		return log.String()
	}
	defer end()

	reader, stranger := c.tokenOf(ctx, t, "reader"), c.tokenOf(ctx, t, "stranger")
	_, err = c.kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "dra-controller-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: "reader"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var metrics string
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		var status int
		status, metrics = metricsAs(t, address, reader)
		return status == http.StatusOK && strings.Contains(metrics, "\ndra_picture_timestamp_seconds "), nil
	})
	if err != nil {
		t.Fatalf("no metrics: %v\n%s\n%s", err, metrics, end())
	}
	for _, want := range []string{"\ndra_unread 0\n", "\ndra_class_devices{class=\"gpu\",state=\"free\"} "} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics have no %q:\n%s", want, metrics)
		}
	}
	for token, want := range map[string]int{"": http.StatusUnauthorized, stranger: http.StatusForbidden} {
		if status, _ := metricsAs(t, address, token); status != want {
			t.Errorf("status %d of metrics for one who may not read them, want %d", status, want)
		}
	}
	if _, err := c.kube.CoordinationV1().Leases("kubectl-dra").Get(ctx, "dra-controller", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if said := end(); strings.Contains(strings.ToLower(said), "forbidden") {
		t.Errorf("it was refused something:\n%s", said)
	}
}

// checkAdmission creates the pod of the controller in its namespace, where the API server admits
// only restricted pods.
func (c *cluster) checkAdmission(ctx context.Context, t *testing.T, template corev1.PodTemplateSpec) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "admitted", Labels: template.Labels}, Spec: template.Spec}
	create := func() error {
		_, err := c.kube.CoreV1().Pods("kubectl-dra").Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := create(); err != nil {
		t.Error(err)
	}
	pod.Spec.HostNetwork = true
	if err := create(); !apierrors.IsForbidden(err) {
		t.Errorf("a pod with the network of the host: got %v, want that it is refused", err)
	}
}

// tokenOf makes a service account, and returns a token of it.
func (c *cluster) tokenOf(ctx context.Context, t *testing.T, name string) string {
	t.Helper()
	accounts := c.kube.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

// metricsAs asks for the metrics with a token. While nothing listens, the status is 0.
func metricsAs(t *testing.T, address, token string) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, fmt.Sprintf("\n%s", body)
}

// freeAddress returns an address of this machine that nothing listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
