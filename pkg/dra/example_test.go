// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package dra_test

import (
	"context"
	"fmt"
	"log"
	"os"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/dra"
)

func ExampleCluster_Why() {
	ctx := context.Background()
	cluster, err := dra.Load(ctx, "../../examples/cluster")
	if err != nil {
		log.Fatal(err)
	}
	why, err := cluster.Why(ctx, api.Ref("Pod", "research", "pretrain-0"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(why.Verdict, why.Code)
	fmt.Println(why.Headline)
	for _, remedy := range why.Remedies {
		fmt.Println("-", remedy.Change)
	}
	// Output:
}

func ExampleCluster_Status() {
	ctx := context.Background()
	cluster, err := dra.Load(ctx, "../../examples/cluster")
	if err != nil {
		log.Fatal(err)
	}
	status, err := cluster.Status(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, cause := range status.Causes {
		if cause.Severity == api.SeverityError {
			fmt.Println(cause.Pods, "pods:", cause.Message)
		}
	}
	// Output:
}

func ExampleCluster_Fit() {
	ctx := context.Background()
	cluster, err := dra.Load(ctx, "../../examples/cluster")
	if err != nil {
		log.Fatal(err)
	}
	manifest, err := os.ReadFile("../../examples/manifests/one-gpu.yaml")
	if err != nil {
		log.Fatal(err)
	}
	fit, err := cluster.Fit(ctx, manifest, "research")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("now:", fit.Now.AtLeast)
	for _, nodes := range fit.Nodes {
		fmt.Println(nodes.Now, "on each of", nodes.Names)
	}
	// Output:
}

func ExampleCluster_With() {
	ctx := context.Background()
	cluster, err := dra.Load(ctx, "../../examples/cluster")
	if err != nil {
		log.Fatal(err)
	}
	manifest, err := os.ReadFile("../../examples/manifests/one-gpu.yaml")
	if err != nil {
		log.Fatal(err)
	}
	after, err := cluster.With(ctx, manifest, "research")
	if err != nil {
		log.Fatal(err)
	}
	why, err := after.Why(ctx, api.Ref("Pod", "research", "debug"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(why.Verdict)
	// Output: Fits
}
