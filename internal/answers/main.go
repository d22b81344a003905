// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Answers saves what the verbs say about many clusters, as text and as JSON: the example
// cluster, fleets, and random clusters. A change of the code that must not change what it
// says is checked with it:
//
//	git stash; go run ./internal/answers /tmp/before
//	git stash pop; go run ./internal/answers /tmp/after
//	diff -r /tmp/before /tmp/after
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

func main() {
	random := flag.Uint64("random", 2000, "how many random clusters are asked about")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: answers [-random N] DIRECTORY")
		os.Exit(2)
	}
	if err := run(context.Background(), flag.Arg(0), *random); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// subject is a cluster to ask about.
type subject struct {
	name string
	make func() *snapshot.Snapshot
}

func run(ctx context.Context, dir string, random uint64) error {
	example, err := files.Load(ctx, []string{"examples/cluster"}, files.Options{})
	if err != nil {
		return fmt.Errorf("run it in the root of the repository: %w", err)
	}
	subjects := []subject{
		{"example", func() *snapshot.Snapshot { return example }},
		{"fleet", func() *snapshot.Snapshot { return waiting(fleet.Fleet(100, 8, 300)) }},
		{"mixed", func() *snapshot.Snapshot { return waiting(fleet.Mixed(100)) }},
	}
	for seed := range random {
		subjects = append(subjects, subject{fmt.Sprintf("random-%04d", seed), func() *snapshot.Snapshot { return fleet.Random(seed).Snapshot }})
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	// The answers name the file that they are from.
	if err := os.Chdir(dir); err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	var done atomic.Int64
	for _, s := range subjects {
		group.Go(func() error {
			if err := s.ask(ctx); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if n := done.Add(1); n%100 == 0 {
				fmt.Fprintf(os.Stderr, "%d of %d clusters\n", n, len(subjects))
			}
			return nil
		})
	}
	return group.Wait()
}

func waiting(s *snapshot.Snapshot) *snapshot.Snapshot {
	fleet.AddWaiting(s, 10)
	return s
}

// ask saves all answers about a cluster in one file.
func (s subject) ask(ctx context.Context) error {
	snap := s.make()
	file := s.name + ".yaml"
	if err := files.Save(ctx, snap, file); err != nil {
		return err
	}
	var all bytes.Buffer
	questions := []string{"top --once", "snapshot --redact --format yaml"}
	for _, line := range lines(snap) {
		questions = append(questions, line, line+" -o json")
	}
	for _, line := range questions {
		args := append(strings.Fields(line), "--snapshot", file)
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		code := commands.Run(ctx, args, streams, commands.Build{Version: "v0.0.0-test"})
		fmt.Fprintf(&all, "### %s\ncode %d\n%s%s\n", line, code, out, errOut)
	}
	return errors.Join(os.Remove(file), os.WriteFile(filepath.Clean(s.name+".txt"), all.Bytes(), 0o600))
}

// lines returns commands that have text and JSON: each verb that reads a cluster, with
// names that it has.
func lines(snap *snapshot.Snapshot) []string {
	all := []string{
		"why -A", "doctor", "plan", "plan -A", "slices", "pools", "devices", "claims -A", "classes", "taints", "tree", "attributes", "devices --free",
	}
	for _, pod := range head(snap.Pods) {
		all = append(all, fmt.Sprintf("why pod/%s -n %s", pod.Name, pod.Namespace), fmt.Sprintf("tree pod/%s -n %s", pod.Name, pod.Namespace))
	}
	for _, claim := range head(snap.Claims) {
		all = append(all, fmt.Sprintf("why claim/%s -n %s", claim.Name, claim.Namespace))
	}
	for _, class := range head(snap.Classes) {
		all = append(all, "fit --class "+class.Name, "cel true --class "+class.Name)
	}
	for _, node := range head(snap.Nodes) {
		all = append(all, "impact drain "+node.Name, "impact cordon "+node.Name, "tree node/"+node.Name)
	}
	return all
}

// head returns the objects of a kind to ask about: the first ones and the last one.
func head[T any](list []T) []T {
	const first = 3
	if len(list) <= first {
		return list
	}
	return append(list[:first:first], list[len(list)-1])
}
