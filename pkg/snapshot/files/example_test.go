// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"context"
	"fmt"
	"log"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// A snapshot comes from files, as here, or from Collect, which reads an API server.
// The rest of the program cannot tell them apart.
func ExampleLoad() {
	snap, err := files.Load(context.Background(), []string{"../../../examples/cluster"}, files.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(snap.Nodes), "nodes of Kubernetes", snap.ServerVersion)
	fmt.Println(len(snap.Slices), "ResourceSlices,", len(snap.Claims), "ResourceClaims")
	// Output:
	// 14 nodes of Kubernetes v1.37.1
	// 20 ResourceSlices, 35 ResourceClaims
}
