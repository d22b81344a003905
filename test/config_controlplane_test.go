// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestConfigOnCluster applies config where there is something for each right to see. The pod of the
// controller is admitted where only restricted ones are, and its rights are enough to read
// everything; its metrics are for those alone who have the role for them. Without a right, it says so.
func TestConfigOnCluster(t *testing.T) {
	c := rightsCluster(t)
	c.installController(t)
	objects, _ := buildConfig(t)
	template := configObject[*appsv1.Deployment](t, objects, "Deployment dra-controller").Spec.Template
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "admitted", Labels: template.Labels}, Spec: template.Spec}
	create := func() error {
		_, err := c.kube.CoreV1().Pods(controllerNamespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	mustDo(t, create)
	pod.Spec.HostNetwork = true
	if err := create(); !apierrors.IsForbidden(err) {
		t.Errorf("a pod with the network of the host: got %v, want that it is refused", err)
	}

	c.createAll(t, "ml", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: prometheus}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: prometheus}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: dra-controller-metrics-reader}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: ml}]`)
	token := c.token(t, "ml", "prometheus")
	account := fmt.Sprintf("system:serviceaccount:%s:%s", controllerNamespace, template.Spec.ServiceAccountName)
	controller := c.startController(t, builtController(t), c.kubeconfigOf(t, account))
	var metrics string
	err := poll(t.Context(), func() bool {
		_, metrics = get(t, "https://"+controller.metrics+"/metrics", token)
		return value(metrics, "dra_snapshot_timestamp_seconds") > 0
	})
	if err != nil {
		t.Fatalf("no metrics: %v\n%s\n%v", err, metrics, controller.stderr.sofar())
	}
	if got := value(metrics, "dra_gaps"); got != 0 {
		t.Errorf("%v things could not be read: %v", got, controller.stderr.sofar())
	}
	if code, _, stderr := controller.interrupt(t); code != 0 {
		t.Errorf("the controller ends with %d: %v", code, stderr)
	}
	c.checkEachRight(t, configObject[*rbacv1.ClusterRole](t, objects, "ClusterRole dra-controller").Rules)
}
