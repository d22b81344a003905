// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
)

// maxObjects limits how many objects, and how many pieces of evidence, a diagnosis names for a
// finding.
const maxObjects = 10

// cluster is the input of checks.
type cluster struct {
	opts    *Options
	cluster *facts.Cluster

	inventory *inventory.Inventory
	// Results that are computed once: the inventory, the pods that have devices and do not
	// work, and the answers for the pods that wait for devices.
	claims  func() []api.Claim
	blocked func() []lifecycle.BlockedPod
	classes func(context.Context) ([]api.Class, error)
	// explained has an answer for each of [facts.Cluster.Waiting].
	explained func(context.Context) ([]explain.Answer, error)
}

// answers lists the explanations of the pods that wait for devices.
func (in *cluster) answers(ctx context.Context) ([]*api.Explanation, error) {
	explained, err := in.explained(ctx)
	found := make([]*api.Explanation, 0, len(explained))
	for _, answer := range explained {
		if answer.Err == nil {
			found = append(found, answer.Explanation)
		}
	}
	return found, err
}

// once keeps the first result without an error.
func once[T any](find func(context.Context) (T, error)) func(context.Context) (T, error) {
	var found T
	known := false
	return func(ctx context.Context) (T, error) {
		if known {
			return found, nil
		}
		var err error
		found, err = find(ctx)
		known = err == nil
		return found, err
	}
}

// Kinds of objects with findings, besides the kinds in pkg/api.
const (
	kindSlice = "ResourceSlice"
	kindClass = "DeviceClass"
	kindRule  = "DeviceTaintRule"
	kindQuota = "ResourceQuota"
	// kindPool is no kind of the API: pools are named by driver and pool.
	kindPool = "Pool"
)
