// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"iter"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
)

type whyOptions struct {
	reader  *cli.Reader
	printer *cli.Printer
	// args are the unparsed targets.
	args    []string
	targets []snapshot.Argument
	files   []string
	// kustomize is the directory of a kustomization, in place of files.
	kustomize string
	near      scopeFlags
	// waiting chooses pods if there are neither targets nor files.
	waiting waitingPods
	// allRemedies asks for all remedies, not only the most useful ones.
	allRemedies bool
	// whySince asks how the answer changed since a time, as the user wrote it; empty for the answer
	// alone. moments reads the states of the cluster since then.
	since   string
	moments func(ctx context.Context, since time.Time) (iter.Seq2[recording.Moment, error], error)
	streams genericiooptions.IOStreams
}
