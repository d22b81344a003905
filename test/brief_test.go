// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/explanation"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// checkBrief checks that an answer fits on a terminal of 80 by 24, with the first fix in the
// upper third. Only a word that is longer than the line may stick out.
func checkBrief(t *testing.T, e *api.Explanation) {
	t.Helper()
	var out bytes.Buffer
	if err := explanation.Brief(&out, e, render.Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) > 20 {
		t.Errorf("%d lines:\n%s", len(lines), out.String())
	}
	fix := 0
	for i, line := range lines {
		if fix == 0 && (strings.HasPrefix(line, "Fix") || strings.HasPrefix(line, "Next")) {
			fix = i + 1
		}
		if ansi.StringWidth(line) > 80 && len(strings.Fields(strings.TrimSuffix(line, " …"))) > 1 {
			t.Errorf("a line is too long: %q", line)
		}
	}
	if hasFix := len(e.Remedies)+len(e.NextSteps) > 0; fix > 8 || hasFix != (fix > 0) {
		t.Errorf("the first fix is on line %d:\n%s", fix, out.String())
	}
}

// TestBriefAnswers asks about every pod and claim of the example cluster.
func TestBriefAnswers(t *testing.T) {
	snap, err := files.Load(t.Context(), []string{filepath.Join("..", "examples", "cluster")}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var refs []api.ObjectRef
	for _, pod := range snap.Pods {
		refs = append(refs, api.RefTo(api.KindPod, pod))
	}
	for _, claim := range snap.Claims {
		refs = append(refs, api.RefTo(api.KindClaim, claim))
	}
	for _, ref := range refs {
		t.Run(ref.String(), func(t *testing.T) {
			e, err := unhurried(t, snap, explain.Options{Object: ref})
			if err != nil {
				t.Fatal(err)
			}
			checkBrief(t, e)
		})
	}
}
