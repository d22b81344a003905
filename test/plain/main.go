// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Command plain is the least that anybody could do to find out where a claim
// fits: it loads a snapshot and asks the scheduler's allocator about each node,
// one after the other. It prints on how many nodes the claim fits. Benchmarks
// compare with it.
//
//	plain FILE [NAMESPACE CLAIM]
//
// Without a claim it only loads the file.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

func main() {
	ctx := context.Background()
	snap, err := files.Load(ctx, os.Args[1:2], files.Options{})
	if err == nil && len(os.Args) > 2 {
		err = ask(ctx, snap, os.Args[2], os.Args[3])
	}
	if err != nil {
		log.Fatal(err)
	}
}

func ask(ctx context.Context, snap *snapshot.Snapshot, namespace, name string) error {
	c := cluster.New(snap)
	claims := []*resourceapi.ResourceClaim{snap.Claim(namespace, name)}
	fits := 0
	for _, node := range snap.Nodes {
		switch verdict := allocator.Of(c).Check(ctx, node, claims); verdict.Outcome {
		case allocator.Fits:
			fits++
		case allocator.DoesNotFit:
		default:
			return fmt.Errorf("node %s: %s: %w", node.Name, verdict.Outcome, verdict.Err)
		}
	}
	_, err := fmt.Fprintln(os.Stdout, fits)
	return err
}
