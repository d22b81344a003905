// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// TestWhyWithFewRights asks as users who may not see everything. What they
// cannot see must be named, and no answer may depend on it silently.
func TestWhyWithFewRights(t *testing.T) {
	ctx := t.Context()
	c := startCluster(t, controlplane.Options{WithoutScheduler: true})
	s, err := loadScenario("scenarios/count.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range s.objects {
		if err := c.create(ctx, s.name, object); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range s.Steps {
		if err := c.create(ctx, s.name, s.pods[step.Pod]); err != nil {
			t.Fatal(err)
		}
		if err := c.waitForClaims(ctx, s.name, step.Pod); err != nil {
			t.Fatal(err)
		}
	}
	// As docs/rbac.md says it for one namespace. The role view is made of this one,
	// by a controller that does not run here.
	const view = "system:aggregate-to-view"
	document := readRights(t)
	c.bind(t, "tenant", s.name, view)
	c.bind(t, "developer", s.name, view)
	c.grant(ctx, t, "developer", "", document.roles["ClusterRole kubectl-dra-devices"]...)
	for _, rule := range document.roles["ClusterRole kubectl-dra-claims"] {
		// There is no Kueue here, no group of pods, and no ComputeDomain.
		if group := rule.APIGroups[0]; group != "kueue.x-k8s.io" && group != "scheduling.k8s.io" && group != snapshot.ComputeDomainGroup {
			c.waitForRight(t, "tenant", s.name, rule)
			c.waitForRight(t, "developer", s.name, rule)
		}
	}
	for _, rule := range document.roles["ClusterRole kubectl-dra-devices"] {
		c.waitForRight(t, "developer", "", rule)
	}

	tests := map[string]struct {
		user, pod string
		verdicts  []api.Verdict
		// named are the resources that the answer must say were not seen.
		named []string
	}{
		"a tenant sees no devices": {
			user: "tenant", pod: "three",
			verdicts: []api.Verdict{api.Undetermined},
			named:    []string{snapshot.ResourceClasses},
		},
		"a developer does not see who else has devices": {
			user: "developer", pod: "three",
			verdicts: []api.Verdict{api.Fits, api.Undetermined},
			named:    []string{snapshot.ResourceClaims, snapshot.ResourcePods},
		},
		"a developer sees that there are not enough devices": {
			user: "developer", pod: "four",
			verdicts: []api.Verdict{api.DoesNotFit},
			named:    []string{snapshot.ResourceClaims},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kubeconfig, err := c.plane.Kubeconfig(test.user)
			if err != nil {
				t.Fatal(err)
			}
			got, err := why(t, kubeconfig, s.name, test.pod)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(test.verdicts, got.Verdict) {
				t.Errorf("verdict %s (%s), want one of %v", got.Verdict, got.Summary, test.verdicts)
			}
			for _, want := range test.named {
				said := append([]string{got.Summary}, got.Assumptions...)
				if !slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, want) }) {
					t.Errorf("neither the summary nor an assumption names %s: %q", want, said)
				}
			}
			got.checkReplay(t.Context(), t)
		})
	}
	t.Run("a stranger", func(t *testing.T) {
		kubeconfig, err := c.plane.Kubeconfig("stranger")
		if err != nil {
			t.Fatal(err)
		}
		_, err = why(t, kubeconfig, s.name, "three")
		var forbidden *collect.ForbiddenError
		if !errors.As(err, &forbidden) {
			t.Errorf("got %v, want a ForbiddenError", err)
		}
	})
}

// grant gives a user rights in a namespace, or everywhere if that is empty.
func (c *cluster) grant(ctx context.Context, t *testing.T, user, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	rbac := c.kube.RbacV1()
	meta := metav1.ObjectMeta{Name: user}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	var err, bindErr error
	if namespace == "" {
		_, err = rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		_, bindErr = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		}, metav1.CreateOptions{})
	} else {
		_, err = rbac.Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		_, bindErr = rbac.RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		}, metav1.CreateOptions{})
	}
	if err := errors.Join(err, bindErr); err != nil {
		t.Fatal(err)
	}
}
