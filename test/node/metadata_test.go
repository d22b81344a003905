// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/dynamic-resource-allocation/api/metadata"

	"github.com/kubectl-dra/kubectl-dra/internal/testdriver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/checkpoint"
	probed "github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// testMetadata looks at the metadata that the upstream helper writes, a kubelet hands over,
// and a container reads.
func (r *realNode) testMetadata(t *testing.T) {
	const name = "metadata.test.example.com"
	ctx := t.Context()
	r.startDriver(t, testdriver.Config{Name: name, Kubelet: r.node.Kubelet, CDI: r.node.CDI, Client: r.client, Node: nodeName, Devices: 1, Metadata: true})
	claim := r.runPodWith(ctx, t, "metadata", name, "cat "+metadata.ResourceClaimFilePath(name, "metadata", "gpu")+"; exec sleep 100000")
	// The pod is Running before its command has written anything.
	var log string
	if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		log = r.logs(ctx, t, "metadata")
		return strings.Contains(log, string(claim.UID)), nil
	}); err != nil {
		t.Errorf("the container reads %q", log)
	}
	look := func() (*checkpoint.Findings, []probed.Check) {
		code, out, _ := r.dra(ctx, t, r.kubeconfig, append([]string{"state", "-o", "json"}, r.here()...)...)
		var f checkpoint.Findings
		if err := json.Unmarshal([]byte(out), &f); err != nil {
			t.Fatalf("exit code %d: %v", code, err)
		}
		return &f, slices.DeleteFunc(slices.Clone(f.Checks), func(c probed.Check) bool { return c.Name != "state/metadata" })
	}
	f, checks := look()
	if len(f.Metadata) != 1 || f.Metadata[0].UID != string(claim.UID) || f.Metadata[0].Request != "gpu" || len(f.Metadata[0].Devices) != 1 || f.Metadata[0].Devices[0].Device != "gpu-0" {
		t.Fatalf("%+v", f.Metadata)
	}
	if len(checks) != 1 || checks[0].State != probed.OK {
		t.Errorf("%+v", checks)
	}
	if err := os.Remove(f.Metadata[0].Path); err != nil {
		t.Fatal(err)
	}
	if _, checks = look(); len(checks) != 1 || checks[0].State != probed.Problem || checks[0].Path != f.Metadata[0].Path {
		t.Errorf("without the file: %+v", checks)
	}
	// The kubelet has to unprepare the claim before the driver ends.
	if err := r.client.CoreV1().Pods(namespace).Delete(ctx, "metadata", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, err := r.client.CoreV1().Pods(namespace).Get(ctx, "metadata", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		t.Error("the pod is left")
	}
}
