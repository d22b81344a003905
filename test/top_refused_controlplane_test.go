// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

// TestTopRefused removes taint rules on the dashboard where the server refuses: as somebody who
// may not, and when the rule is gone, or is another one of the same name, by the time of the
// answer.
func TestTopRefused(t *testing.T) {
	c := startCluster(t, controlplane.Options{WithoutScheduler: true, WithoutControllerManager: true})
	c.topFleet(t)
	ctx := t.Context()
	document := readRights(t)
	reading := slices.Concat(document.roles["ClusterRole kubectl-dra-devices"], document.roles["ClusterRole kubectl-dra-claims"])
	c.grant(ctx, t, "looker", "", reading...)
	for _, rule := range reading {
		c.waitForRight(t, "looker", "", rule)
	}
	rules := c.kube.ResourceV1().DeviceTaintRules()
	add := func(name, pool string) {
		mustDo(t, func() error {
			_, err := rules.Create(ctx, &resourceapi.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.DeviceTaintRuleSpec{
				DeviceSelector: &resourceapi.DeviceTaintSelector{Pool: &pool}, Taint: resourceapi.DeviceTaint{Key: "example.com/sick", Effect: resourceapi.DeviceTaintEffectNoSchedule},
			}}, metav1.CreateOptions{})
			return err
		})
	}
	remove := func(name string) { mustDo(t, func() error { return rules.Delete(ctx, name, metav1.DeleteOptions{}) }) }
	exists := func(name string) bool {
		_, err := rules.Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	open := func(t *testing.T, kubeconfig string) *terminal {
		t.Helper()
		term := openTerminal(t, programFor(t, kubeconfig), 120, 30, "top", "--allow-changes", "--kubeconfig", kubeconfig)
		term.shows("Capacity", "tainted")
		term.keys("8")
		term.shows("1/1 taints", "rule sick")
		term.keys("x")
		term.shows("kubectl dra taints remove sick", "is taken from 2 devices", "Remove taint rule sick? [y/N]")
		return term
	}
	add("sick", "node-1")

	t.Run("not permitted", func(t *testing.T) {
		term := open(t, c.kubeconfigOf(t, "looker"))
		term.keys("y")
		term.shows("remove DeviceTaintRule sick", "forbidden", "kubectl dra taints remove sick", "It failed; again? [y/N]")
		term.keys("n")
		term.shows("1/1 taints", "rule sick", "", "forbidden")
		if !exists("sick") {
			t.Error("the rule is gone")
		}
		term.keys("q")
		term.shows("ended with 0")
	})
	t.Run("another one of that name", func(t *testing.T) {
		term := open(t, c.kubeconfig)
		remove("sick")
		add("sick", "node-2")
		term.keys("y")
		term.shows("remove DeviceTaintRule sick: it was deleted meanwhile, and this is another one of the same name", "nothing was changed; esc goes back", "", "[y/N]")
		if !exists("sick") {
			t.Error("the rule is gone that was added meanwhile")
		}
		term.keys("Escape")
		term.shows("1/1 taints", "pool=node-2")
		term.keys("q")
		term.shows("ended with 0")
	})
	t.Run("gone meanwhile", func(t *testing.T) {
		term := open(t, c.kubeconfig)
		remove("sick")
		term.keys("y")
		term.shows("remove DeviceTaintRule sick: it is gone", "nothing was changed; esc goes back", "", "[y/N]")
		term.keys("Escape")
		term.shows("[8 taints]", "", "rule sick")
		term.keys("q")
		term.shows("ended with 0")
	})
}
