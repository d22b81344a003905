// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestOwnersWithoutRights asks about a custom resource and its pod as somebody who may
// read everything but that resource, and as somebody who may read that, too.
func TestOwnersWithoutRights(t *testing.T) {
	c := startCluster(t, controlplane.Options{WithoutScheduler: true, WithoutControllerManager: true})
	const namespace = "trainers"
	c.createAll(t, namespace, strings.ReplaceAll(queueObjects, "$N", namespace))
	c.createAll(t, namespace, queueSlice(namespace, 1))
	c.createAll(t, "", trainerKind)
	trainers := c.dynamic.Resource(schema.GroupVersionResource{Group: "training.example.com", Version: "v1", Resource: "trainers"}).Namespace(namespace)
	if err := poll(t.Context(), func() bool {
		_, err := trainers.List(t.Context(), metav1.ListOptions{})
		return err == nil
	}); err != nil {
		t.Fatal(err)
	}
	c.mapper.Reset()
	c.createAll(t, namespace, "apiVersion: training.example.com/v1\nkind: Trainer\nmetadata: {name: w}\nspec: {}")
	trainer, err := trainers.Get(t.Context(), "w", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.createAll(t, namespace, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: w-0
  ownerReferences: [{apiVersion: training.example.com/v1, kind: Trainer, name: w, uid: %s, controller: true}]
spec: {%s}`, trainer.GetUID(), queuePodSpec))
	everything := []rbacv1.PolicyRule{}
	for group, resources := range map[string][]string{
		"":                {"pods", "nodes", "namespaces", "resourcequotas", "limitranges", "events"},
		"resource.k8s.io": {"resourceslices", "resourceclaims", "deviceclasses", "resourceclaimtemplates", "devicetaintrules"},
		"apps":            {"daemonsets"},
	} {
		everything = append(everything, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list"}})
	}
	own := rbacv1.PolicyRule{APIGroups: []string{"training.example.com"}, Resources: []string{"trainers"}, Verbs: []string{"get", "list"}}
	const gap = "this user may not get trainers.training.example.com in namespace trainers"
	for user, rules := range map[string][]rbacv1.PolicyRule{"without": everything, "with": append(everything[:len(everything):len(everything)], own)} {
		c.grant(t.Context(), t, user, "", rules...)
		for _, rule := range rules {
			c.waitForRight(t, user, "", rule)
		}
		kubeconfig := c.kubeconfigOf(t, user)
		for _, target := range []string{"trainer/w", "pod/w-0"} {
			got := c.whyText(t, target, "-n", namespace, "--kubeconfig", kubeconfig, "-o", "json")
			var e api.Explanation
			if err := json.Unmarshal([]byte(got.out), &e); err != nil {
				t.Fatalf("%s as %s: code %d, %v\n%s", target, user, got.code, err, got.errOut)
			}
			if e.Verdict != api.Fits || len(e.Pods) != 1 || e.Pods[0].Name != "w-0" {
				t.Errorf("%s as %s: %s: %s, pods %+v", target, user, e.Verdict, e.Summary, e.Pods)
			}
			said := strings.Contains(strings.Join(e.Assumptions, "\n"), gap)
			if want := user == "without" && target == "trainer/w"; said != want {
				t.Errorf("%s as %s: it says that the owner could not be read: %t, want %t: %q", target, user, said, want, e.Assumptions)
			}
		}
	}
}
