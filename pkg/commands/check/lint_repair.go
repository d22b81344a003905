// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"io"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/manifest"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/lint"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// explainManifests answers for the targets of manifests in a cluster that they are a
// part of. There are none if nothing in them uses devices.
func explainManifests(ctx context.Context, given *manifest.Manifests, snap *snapshot.Snapshot) ([]lint.Answer, error) {
	c := cluster.New(snap)
	targets, _, err := given.Targets(c.WantsDevices)
	var usage *cli.UsageError
	if errors.As(err, &usage) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := explain.ExplainEach(ctx, c, targets)
	if err != nil {
		return nil, err
	}
	answers := make([]lint.Answer, len(found))
	for i := range found {
		answers[i] = lint.Answer{Object: targets[i].Object, Explanation: found[i].Explanation, Err: found[i].Err}
	}
	return answers, nil
}

// maxRepairs bounds how often the changed documents are checked again.
const maxRepairs = 200

// repair changes the documents as the findings say until there is nothing left to change,
// then writes the files or the difference. It returns what is left.
func (o *lintOptions) repair(ctx context.Context, fixes *manifest.Fixes, found *api.LintReport, options lint.Options) (*api.LintReport, error) {
	fixed := 0
	for range maxRepairs {
		made := fixes.Make(found.Findings)
		if len(made) == 0 {
			break
		}
		fixed += len(made)
		var err error
		if found, err = lint.Lint(ctx, fixes.Texts(), options); err != nil {
			return nil, err
		}
	}
	if o.diff {
		return found, o.showDiff(fixes.Diff())
	}
	fixes.Check(found.Findings)
	files, err := fixes.Write()
	if err != nil {
		return nil, err
	}
	return found, cli.PrintNotes(o.streams, fmt.Sprintf("changed %s: %s", english.Count(files, "file"), english.Count(fixed, "finding")))
}

// showDiff prints a unified diff; the exit code is diff's: 1 if there is one.
func (o *lintOptions) showDiff(text string) error {
	if text == "" {
		return cli.PrintNotes(o.streams, "nothing that --fix would change")
	}
	if _, err := io.WriteString(o.streams.Out, render.EscapeLines(text)); err != nil {
		return fmt.Errorf("print the difference: %w", err)
	}
	return &cli.OutcomeError{Code: cli.ExitDoesNotFit}
}
