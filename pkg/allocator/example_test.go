// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator_test

import (
	"context"
	"fmt"
	"log"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// Check asks the scheduler's allocator for the devices of claims on one node.
func ExampleAllocator_Check() {
	ctx := context.Background()
	snap, err := files.Load(ctx, []string{"../../examples/cluster"}, files.Options{})
	if err != nil {
		log.Fatal(err)
	}
	alloc := allocator.Of(cluster.New(snap))
	claim := snap.Claim("research", "finetune-0-gpus-qh957")
	for _, node := range []string{"gpu-01", "gpu-03"} {
		verdict := alloc.Check(ctx, snap.Node(node), []*resourceapi.ResourceClaim{claim})
		fmt.Println(node, verdict.Outcome)
	}
	// Output:
	// gpu-01 DoesNotFit
	// gpu-03 Fits
}
