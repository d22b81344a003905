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
	// DoesNotFit ConstraintUnsatisfiable
	// Node gpu-03 has 8 available, at most 4 with the same pcieRoot; request gpus needs 8 devices.
	// - request 4 devices instead of 8 in request gpus
	// - remove the constraint: the same resource.kubernetes.io/pcieRoot
}

func ExampleCluster_Status() {
	ctx := context.Background()
	cluster := load(ctx)
	status, err := cluster.Status(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, class := range status.Capacity {
		fmt.Println(class.Class, "has room for", class.Placeable.AtLeast)
	}
	for _, cause := range status.Causes[:2] {
		fmt.Println(cause.Code, cause.Severity, cause.Pods)
	}
	// Output:
	// decoder.example.com has room for 1
	// gpu-partition.example.com has room for 3
	// gpu.example.com has room for 13
	// nic.example.com has room for 61
	// ConstraintUnsatisfiable Error 1
	// DeviceTainted Error 1
}

func ExampleCluster_Fit() {
	ctx := context.Background()
	cluster := load(ctx)
	fit, err := cluster.Fit(ctx, manifestOf("one-gpu"), "research")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("now:", fit.Now.AtLeast)
	for _, nodes := range fit.Nodes {
		if nodes.Now > 0 {
			fmt.Println(nodes.Now, "on each of", nodes.Names)
		}
	}
	// Output:
	// now: 10
	// 6 on each of [gpu-03]
	// 2 on each of [gpu-04]
	// 2 on each of [gpu-02]
}

func ExampleCluster_With() {
	ctx := context.Background()
	cluster := load(ctx)
	after, err := cluster.With(ctx, manifestOf("one-gpu"), "research")
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

// load returns the example cluster.
func load(ctx context.Context) *dra.Cluster {
	cluster, err := dra.Load(ctx, "../../examples/cluster")
	if err != nil {
		log.Fatal(err)
	}
	return cluster
}

// manifestOf returns an example manifest.
func manifestOf(name string) []byte {
	manifest, err := os.ReadFile("../../examples/manifests/" + name + ".yaml")
	if err != nil {
		log.Fatal(err)
	}
	return manifest
}
