// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// TestCausesOfFieldCases compares the causes of each case that users have reported with a file that
// somebody has read and found right.
func TestCausesOfFieldCases(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("fieldcases", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v, %d cases", err, len(paths))
	}
	var text strings.Builder
	for _, path := range paths {
		snap, err := files.Load(t.Context(), []string{path}, files.Options{})
		if err != nil {
			t.Fatal(err)
		}
		found, err := cause.Find(t.Context(), facts.New(snap), cause.Options{})
		if err != nil {
			t.Fatal(err)
		}
		status := found.Status
		pods := status.Pods
		fmt.Fprintf(&text, "%s: %d waiting, %d starting, %d blocked\n", filepath.Base(path), pods.Waiting, pods.Starting, pods.Blocked)
		for i := range status.Causes {
			c := &status.Causes[i]
			fmt.Fprintf(&text, "  %s %s, pods: %d, findings: %s\n    %s\n", c.Severity, c.Code, c.Pods, strings.Join(c.Findings, " "), c.Message)
			if c.NextStep != nil {
				fmt.Fprintf(&text, "    %s: %s\n", c.NextStep.Actor, c.NextStep.Text)
			}
		}
	}
	golden.Assert(t, text.String(), filepath.Join("causes", "fieldcases.golden"))
}
