// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"context"
	"fmt"
	"log"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// Explain says why a pod's claims fit or not: devices, nodes, the conflict, and what
// could be changed.
func ExampleExplain() {
	ctx := context.Background()
	snap, err := files.Load(ctx, []string{"../../examples/cluster"}, files.Options{})
	if err != nil {
		log.Fatal(err)
	}
	explanation, err := explain.Explain(ctx, snap, explain.Options{Object: api.Ref("Pod", "research", "pretrain-0")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(explanation.Verdict, explanation.Code)
	for _, rejection := range explanation.Claims[0].Requests[0].Rejected {
		fmt.Println(rejection.Count, rejection.Code)
	}
	for _, fact := range explanation.Conflict.Facts {
		fmt.Println(fact.Text)
	}
	// Output:
	// DoesNotFit ConstraintUnsatisfiable
	// 44 ClassSelectorFalse
	// 16 NodeUnsuitable
	// 4 PoolIncomplete
	// 8 RequestSelectorFalse
	// 18 DeviceAllocated
	// 1 DeviceTainted
	// request gpus needs 8 devices
	// all devices must have the same resource.kubernetes.io/pcieRoot
}
