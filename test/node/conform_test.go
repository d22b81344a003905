// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	probed "github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// testConform tries the driver of a real kubelet through its socket, with claims that
// no pod uses, and leaves the running pod alone.
func (r *realNode) testConform(t *testing.T) {
	ctx := t.Context()
	one, two := r.allocated(ctx, t, "conform-one", "gpu-2"), r.allocated(ctx, t, "conform-two", "gpu-3")
	code, out, _ := r.dra(ctx, t, r.kubeconfig, append(r.afar(), "conform", "conform-one", "conform-two", "-n", namespace, "-o", "json")...)
	var found driver.Conformance
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatalf("exit code %d: %v", code, err)
	}
	// Without a restart and other claims not everything is known.
	if code != 2 || found.Driver != driverName {
		t.Errorf("exit code %d, driver %q", code, found.Driver)
	}
	tried := map[string]probed.State{}
	for _, result := range found.Results {
		tried[result.Name] = result.State
		if result.State == probed.Problem {
			t.Errorf("%s: %s", result.Name, result.Message)
		}
	}
	for _, name := range []string{"slices", "prepare", "cdi", "prepare-twice", "prepare-replaced", "unprepare", "unprepare-twice", "unprepare-unknown", "several-claims"} {
		if tried["conform/"+name] != probed.OK {
			t.Errorf("%s is %q", name, tried["conform/"+name])
		}
	}
	if r.driver.Prepared(one.UID)+r.driver.Prepared(two.UID) != 0 || len(r.specs(t, one))+len(r.specs(t, two)) != 0 {
		t.Errorf("the claims are still prepared")
	}
	// That of a running pod is not touched.
	if code, _, errOut := r.dra(ctx, t, r.kubeconfig, append(r.afar(), "conform", "train", "-n", namespace)...); code != 3 || !strings.Contains(errOut, "reserved for pods/train") {
		t.Errorf("exit code %d, want 3 for the claim of a pod: %s", code, errOut)
	}
	r.noProbePods(ctx, t)
}
