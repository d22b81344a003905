// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// allocated makes a claim that has a device of the node and that no pod uses.
func (r *realNode) allocated(ctx context.Context, t *testing.T, name, device string) *resourceapi.ResourceClaim {
	t.Helper()
	claims := r.client.ResourceV1().ResourceClaims(namespace)
	claim, err := claims.Create(ctx, &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: driverName},
		}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{
		{Request: "gpu", Driver: driverName, Pool: nodeName, Device: device},
	}}}
	if claim, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return claim
}

// specs returns the CDI specs of a claim on the node.
func (r *realNode) specs(t *testing.T, claim *resourceapi.ResourceClaim) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(r.node.CDI, "*"+string(claim.UID)+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// testPrepare lets the driver prepare and unprepare a claim, through its socket on the
// node.
func (r *realNode) testPrepare(t *testing.T) {
	ctx := t.Context()
	claim := r.allocated(ctx, t, "spare", "gpu-3")
	code, out, _ := r.dra(ctx, t, r.kubeconfig, append(r.afar(), "prepare", "spare", "-n", namespace)...)
	if code != 0 || !strings.Contains(out, string(claim.UID)+"-gpu-3") {
		t.Errorf("exit code %d, want 0 and the CDI device:\n%s", code, out)
	}
	if r.driver.Prepared(claim.UID) != 1 || len(r.specs(t, claim)) != 1 {
		t.Errorf("the driver has prepared the claim %d times, specs %v", r.driver.Prepared(claim.UID), r.specs(t, claim))
	}
	if code, _, _ := r.dra(ctx, t, r.kubeconfig, append(r.afar(), "unprepare", "spare", "-n", namespace)...); code != 0 {
		t.Errorf("unprepare ends with exit code %d", code)
	}
	if r.driver.Prepared(claim.UID) != 0 || len(r.specs(t, claim)) != 0 {
		t.Errorf("the driver has prepared the claim %d times, specs %v", r.driver.Prepared(claim.UID), r.specs(t, claim))
	}

	// That of a running pod is not touched.
	code, _, errOut := r.dra(ctx, t, r.kubeconfig, append(r.afar(), "unprepare", "train", "-n", namespace)...)
	if code != 3 || !strings.Contains(errOut, "--force") {
		t.Errorf("exit code %d, want 3 for the claim of a pod: %s", code, errOut)
	}
	r.noProbePods(ctx, t)
}

// testCleanup runs prepare --cleanup --twice.
func (r *realNode) testCleanup(t *testing.T) {
	ctx := t.Context()
	claim := r.allocated(ctx, t, "spare-too", "gpu-2")
	code, _, _ := r.dra(ctx, t, r.kubeconfig, append(r.afar(), "prepare", "spare-too", "--twice", "--cleanup")...)
	if code != 0 || r.driver.Prepared(claim.UID) != 0 || len(r.specs(t, claim)) != 0 {
		t.Errorf("exit code %d, prepared %d times, specs %v", code, r.driver.Prepared(claim.UID), r.specs(t, claim))
	}
}

// testWatch interrupts a program on the node that would run on.
func (r *realNode) testWatch(t *testing.T) {
	r.noProbePods(t.Context(), t)
	cmd := exec.CommandContext(t.Context(), r.program, append([]string{"node-probe", "health", "--watch", "--kubeconfig=" + r.kubeconfig}, r.afar()...)...)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatalf("nothing is printed: %v: %s", err, errOut.String())
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || errOut.Len() > 0 {
		t.Errorf("a watch that is interrupted has done what it should: %v: %s", err, errOut.String())
	}
	r.noProbePods(t.Context(), t)
}
