// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"context"
	"fmt"
	"log"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// Pools lists pools with their free and unusable devices.
func ExampleInventory_Pools() {
	ctx := context.Background()
	snap, err := files.Load(ctx, []string{"../../examples/cluster"}, files.Options{})
	if err != nil {
		log.Fatal(err)
	}
	c := cluster.New(snap)
	pools, err := inventory.New(c).Pools(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, pool := range pools[:4] {
		fmt.Printf("%s %s: %d of %d devices free\n", pool.Driver, pool.Name, pool.Devices.Free, pool.Devices.Total)
	}
	// Output:
	// fabric.example.com fabric-r2: 1 of 4 devices free
	// gpu.example.com gpu-01: 0 of 8 devices free
	// gpu.example.com gpu-02: 3 of 8 devices free
	// gpu.example.com gpu-03: 8 of 8 devices free
}
