// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

// TestTop works with the dashboard in a real terminal, on a real cluster.
func TestTop(t *testing.T) {
	ctx := t.Context()
	options := controlplane.Options{}
	c := startCluster(t, options)
	c.topFleet(t)
	p := programFor(t, c.kubeconfig)
	term := openTerminal(t, p, 120, 30, "top")
	term.shows("gpu.example.com", "0 %      4", "1 claim without a pod", "Causes")

	t.Run("find and sort", func(t *testing.T) {
		term.t = t
		term.keys("4")
		term.shows("1/4 devices", "node-2")
		term.keys("/")
		term.types("!node-1")
		term.shows("1/2 of 4 devices", "", "node-1  gpu")
		term.keys("Enter", ".", ".", "r")
		term.shows("DEVICE ▼", "filter !node-1")
		// A key right behind Escape would be one with Alt.
		term.keys("Escape")
		term.shows("4 devices", "", "filter !")
		term.keys(",", ",", "r")
		term.shows("4 devices", "", "▼", "▲")
	})
	t.Run("drill down", func(t *testing.T) {
		term.t = t
		term.keys("7")
		term.shows("1/1 classes")
		term.keys("Enter")
		term.shows("pools of class gpu.example.com", "node-1", "node-2")
		term.keys("Down", "Enter")
		term.shows("devices of pool gpu.example.com/node-2", "1/2 of 4 devices")
		term.keys("Escape")
		if screen := term.shows("pools of class", "", "devices of pool"); !strings.Contains(screen, "›"+" node-2") {
			t.Errorf("another row is selected than before:\n%s", screen)
		}
	})
	t.Run("why", func(t *testing.T) {
		term.t = t
		term.keys("6")
		term.shows("too-many", "does not fit, no pod uses it")
		term.keys("w")
		term.shows("why ResourceClaim research/too-many", "does not fit on any of 2 nodes")
		term.resize(80, 24)
		term.shows("does not fit on any of 2 nodes", "q back")
		term.resize(120, 30)
		term.keys("Escape")
		term.shows("1/1 rows", "", "why ResourceClaim")
	})
	t.Run("a restart of the API server", func(t *testing.T) {
		term.t = t
		term.keys("5")
		term.shows("too-many", "Pending")
		if err := c.plane.Restart(ctx, options); err != nil {
			t.Fatal(err)
		}
		// A change that comes after it arrives.
		c.topClaim(t, "late", 1)
		term.shows("late", "2/2 claims", "", "connection refused")
	})
	term.t = t
	term.keys("1")
	term.shows("claim research/late was created")
	term.keys("q")
	term.shows("ended with 0", "", "Capacity")
}

// topFleet makes two nodes of two devices, and a claim for three.
func (c *cluster) topFleet(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	mustDo(t, func() error {
		_, err := c.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "research"}}, metav1.CreateOptions{})
		return err
	})
	mustDo(t, func() error {
		_, err := c.kube.ResourceV1().DeviceClasses().Create(ctx, &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: lifeDriver}}, metav1.CreateOptions{})
		return err
	})
	for i := 1; i <= 2; i++ {
		node := fmt.Sprintf("node-%d", i)
		mustDo(t, func() error {
			_, err := c.kube.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
			return err
		})
		mustDo(t, func() error {
			_, err := c.kube.ResourceV1().ResourceSlices().Create(ctx, &resourceapi.ResourceSlice{
				ObjectMeta: metav1.ObjectMeta{Name: node + "-gpus"},
				Spec: resourceapi.ResourceSliceSpec{
					Driver: lifeDriver, NodeName: ptr.To(node), Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
					Devices: []resourceapi.Device{{Name: "gpu-0"}, {Name: "gpu-1"}},
				},
			}, metav1.CreateOptions{})
			return err
		})
	}
	c.topClaim(t, "too-many", 3)
}

func (c *cluster) topClaim(t *testing.T, name string, count int64) {
	t.Helper()
	mustDo(t, func() error {
		_, err := c.kube.ResourceV1().ResourceClaims("research").Create(t.Context(), &resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
				Name: "gpus", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: lifeDriver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count},
			}}}},
		}, metav1.CreateOptions{})
		return err
	})
}
