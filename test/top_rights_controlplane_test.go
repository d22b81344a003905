// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

// topChange is a change that is asked for on the dashboard.
type topChange struct {
	// view is the key of the list, filter what leaves one row of it.
	view, filter string
	// taint is typed, where one is asked for.
	taint    string
	question string
	// done and failed are the messages afterwards.
	done, failed string
	// prepare creates the object to change, also where it was changed before.
	prepare func(t *testing.T)
}

// ask asks for the change and says yes.
func (x *topChange) ask(term *terminal) {
	term.t.Helper()
	term.keys(x.view, "/")
	term.types(x.filter)
	term.keys("Enter")
	term.shows("1/1 ", "filter "+x.filter)
	term.keys("x")
	if x.taint != "" {
		term.shows("with:")
		term.types(x.taint)
		term.keys("Enter")
	}
	term.shows(x.question + "? [y/N]")
	term.keys("y")
}

// TestTopRights makes each change as somebody who has no other right to write than the
// document says that it takes, and tries to as somebody who has all others.
func TestTopRights(t *testing.T) {
	c := startCluster(t, controlplane.Options{WithoutScheduler: true, WithoutControllerManager: true})
	c.topFleet(t)
	changes := c.topChanges()
	document := readRights(t)
	reading := slices.Concat(document.roles["ClusterRole kubectl-dra-devices"], document.roles["ClusterRole kubectl-dra-claims"])
	writing := slices.Concat(document.roles["ClusterRole kubectl-dra-top-changes"], document.roles["ClusterRole kubectl-dra-taints"])
	takes := topRights(t)
	if len(takes) != len(changes) || len(writing) != len(changes) {
		t.Fatalf("the document has %d changes and %d rights for %d", len(takes), len(writing), len(changes))
	}
	for name, right := range takes {
		has := func(rule rbacv1.PolicyRule) bool { return rule.Verbs[0]+" "+rightOf(rule) == right }
		if !slices.ContainsFunc(writing, has) {
			t.Fatalf("no role of the document has the right to %s", right)
		}
		user := strings.ReplaceAll(name, " ", "-")
		c.grant(t.Context(), t, "who-can-only-"+user, "", slices.Concat(reading, slices.DeleteFunc(slices.Clone(writing), func(rule rbacv1.PolicyRule) bool { return !has(rule) }))...)
		c.grant(t.Context(), t, "who-cannot-"+user, "", slices.Concat(reading, slices.DeleteFunc(slices.Clone(writing), has))...)
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			verb, resource, _ := strings.Cut(takes[name], " ")
			resource, _, _ = strings.Cut(resource, ".")
			for _, can := range []bool{false, true} {
				user := map[bool]string{false: "who-cannot-", true: "who-can-only-"}[can] + strings.ReplaceAll(name, " ", "-")
				for _, rule := range reading {
					c.waitForRight(t, user, "", rule)
				}
				change.prepare(t)
				term := openTerminal(t, programFor(t, c.kubeconfigOf(t, user)), 230, 40, "top", "--allow-changes")
				term.shows("Capacity")
				change.ask(term)
				if can {
					term.shows(change.done, "", "[y/N]")
				} else {
					term.shows(change.failed+":", fmt.Sprintf(`User "%s" cannot %s resource "%s"`, user, verb, resource), "It failed; again? [y/N]")
					term.keys("n")
				}
				term.keys("q")
				term.shows("ended with 0")
			}
		})
	}
}

// topRights returns what the document says that each change takes, as in "patch nodes".
func topRights(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile("../docs/rbac.md")
	if err != nil {
		t.Fatal(err)
	}
	rights := map[string]string{}
	for _, row := range tableRows(string(content), "change") {
		rights[row.name] = codeSpans(row.cells[0])[0] + " " + codeSpans(row.cells[1])[0]
	}
	return rights
}

// topChanges returns the changes of the document, by their names there.
func (c *cluster) topChanges() map[string]topChange {
	rules := c.kube.ResourceV1().DeviceTaintRules()
	without := func(t *testing.T, rule string) {
		if err := rules.Delete(t.Context(), rule, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	return map[string]topChange{
		"taint a device or a pool": {
			view: "3", filter: "node-1", taint: "example.com/xid=79:NoSchedule", question: "Taint pool node-1 of gpu.example.com with example.com/xid=79:NoSchedule",
			done: "DeviceTaintRule node-1-gpu.example.com-xid added", failed: "add DeviceTaintRule node-1-gpu.example.com-xid",
			prepare: func(t *testing.T) { without(t, "node-1-gpu.example.com-xid") },
		},
		"remove a taint rule": {
			view: "8", filter: "example.com/old", question: "Remove taint rule old", done: "DeviceTaintRule old removed", failed: "remove DeviceTaintRule old",
			prepare: func(t *testing.T) {
				without(t, "old")
				mustDo(t, func() error {
					_, err := rules.Create(t.Context(), &resourceapi.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "old"}, Spec: resourceapi.DeviceTaintRuleSpec{
						DeviceSelector: &resourceapi.DeviceTaintSelector{Pool: ptr.To("node-2")},
						Taint:          resourceapi.DeviceTaint{Key: "example.com/old", Effect: resourceapi.DeviceTaintEffectNoSchedule},
					}}, metav1.CreateOptions{})
					return err
				})
			},
		},
		"uncordon a node": {
			view: "2", filter: "node-2", question: "Uncordon node node-2", done: "node node-2 uncordoned", failed: "uncordon node node-2",
			prepare: func(t *testing.T) { c.cordon(t, "node-2") },
		},
		"delete a claim": {
			view: "5", filter: "spare", question: "Delete claim research/spare", done: "ResourceClaim research/spare deleted", failed: "delete ResourceClaim research/spare",
			prepare: func(t *testing.T) {
				if err := c.kube.ResourceV1().ResourceClaims("research").Delete(t.Context(), "spare", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
				c.topClaim(t, "spare", 1)
			},
		},
	}
}

// cordon makes a node unschedulable.
func (c *cluster) cordon(t *testing.T, name string) {
	t.Helper()
	mustDo(t, func() error {
		node, err := c.kube.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err == nil {
			node.Spec.Unschedulable = true
			_, err = c.kube.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
		}
		return err
	})
}
