// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package experimental

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured/internal"
	"k8s.io/dynamic-resource-allocation/structured/internal/allocatortesting"
)

// recorder writes down what the cases of the table ask.
type recorder struct {
	internal.Allocator
	out  *json.Encoder
	lock *sync.Mutex
	row  row
}

type row struct {
	Name     string
	Features Features
	Node     *v1.Node
	Classes  []*resourceapi.DeviceClass
	Slices   []*resourceapi.ResourceSlice
	Claims   []*resourceapi.ResourceClaim
	Devices  []string
	Shares   []string
	Capacity map[string]ConsumedCapacity
}

func (r *recorder) Allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	r.row.Node, r.row.Claims = node, claims
	r.lock.Lock()
	if err := r.out.Encode(&r.row); err != nil {
		panic(err)
	}
	r.lock.Unlock()
	return r.Allocator.Allocate(ctx, node, claims)
}

// TestRecord runs the table, with a recorder before the allocator.
func TestRecord(t *testing.T) {
	file, err := os.Create(os.Getenv("RECORD_TO"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out, lock := json.NewEncoder(file), &sync.Mutex{}
	newAllocator := func(ctx context.Context, features Features, state AllocatedState, lister DeviceClassLister, slices []*resourceapi.ResourceSlice, cache *cel.Cache) (internal.Allocator, error) {
		allocator, err := NewAllocator(ctx, features, state, lister, slices, cache)
		if err != nil {
			return nil, err
		}
		r := row{Features: features, Slices: slices, Capacity: map[string]ConsumedCapacity{}}
		if r.Classes, err = lister.List(); err != nil {
			return nil, err
		}
		for id := range state.AllocatedDevices {
			r.Devices = append(r.Devices, id.String())
		}
		for id := range state.AllocatedSharedDeviceIDs {
			r.Shares = append(r.Shares, id.String())
		}
		for id, capacity := range state.AggregatedCapacity {
			r.Capacity[id.String()] = capacity
		}
		return &recorder{Allocator: allocator, out: out, lock: lock, row: r}, nil
	}
	allocatortesting.TestAllocator(t, SupportedFeatures, newAllocator)
	allocatortesting.TestLexicographicalAllocator(t, SupportedFeatures, newAllocator)
}
