// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Command allocator asks the allocator of one release. It is compiled with that release of
// k8s.io/dynamic-resource-allocation. It reads cases from its standard input, one JSON
// object each, and writes an answer for each.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
)

type request struct {
	// Features are the allocator's features, Selectors the features for the evaluation of
	// selectors.
	Features, Selectors json.RawMessage
	Node                *corev1.Node
	Classes             classes
	Slices              []*resourceapi.ResourceSlice
	// Claims are to be allocated, Allocated are.
	Claims, Allocated []*resourceapi.ResourceClaim
	// Times is how often the allocator is asked.
	Times int
}

type answer struct {
	Outcome, Error string
	// Devices has "request driver/pool/device capacity=amount" for each claim.
	Devices [][]string `json:",omitempty"`
}

type classes []*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) { return c, nil }

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range c {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclass"), name)
}

func main() {
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	for in.More() {
		var r request
		if err := in.Decode(&r); err != nil {
			fail(err)
		}
		var answers []answer
		for range max(1, r.Times) {
			answers = append(answers, ask(&r))
		}
		if err := encoder.Encode(answers); err != nil {
			fail(err)
		}
	}
	if err := out.Flush(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func ask(r *request) (a answer) {
	defer func() {
		if panicked := recover(); panicked != nil {
			a = answer{Outcome: "Panics", Error: fmt.Sprint(panicked)}
		}
	}()
	var features structured.Features
	if err := json.Unmarshal(r.Features, &features); err != nil {
		fail(err)
	}
	var seen struct{ ConsumableCapacity bool }
	if err := json.Unmarshal(r.Features, &seen); err != nil {
		fail(err)
	}
	var celFeatures cel.Features
	if err := json.Unmarshal(r.Selectors, &celFeatures); err != nil {
		fail(err)
	}
	ctx, cancel := context.WithTimeout(klog.NewContext(context.Background(), klog.Logger{}), 10*time.Second)
	defer cancel()
	allocator, err := structured.NewAllocator(ctx, features, stateOf(r.Allocated, seen.ConsumableCapacity), r.Classes, r.Slices, cel.NewCache(10, celFeatures))
	if err != nil {
		return answer{Outcome: "Failed", Error: err.Error()}
	}
	results, err := allocator.Allocate(ctx, r.Node, r.Claims)
	switch {
	case ctx.Err() != nil:
		return answer{Outcome: "TimedOut"}
	case err != nil && errors.Is(err, structured.ErrFailedAllocationOnNode):
		return answer{Outcome: "DoesNotFit", Error: err.Error()}
	case err != nil:
		return answer{Outcome: "Failed", Error: err.Error()}
	case len(results) != len(r.Claims):
		return answer{Outcome: "DoesNotFit"}
	}
	a.Outcome = "Fits"
	for _, result := range results {
		devices := []string{}
		for _, d := range result.Devices.Results {
			devices = append(devices, fmt.Sprintf("%s %s/%s/%s%s", d.Request, d.Driver, d.Pool, d.Device, takes(d.ConsumedCapacity)))
		}
		a.Devices = append(a.Devices, devices)
	}
	return a
}

// takes returns amounts as the API server stores them, by parsing the written form.
func takes(amounts map[resourceapi.QualifiedName]resource.Quantity) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		amount := amounts[name]
		read := resource.MustParse(amount.String())
		text += fmt.Sprintf(" %s=%s", name, read.String())
	}
	return text
}

// stateOf returns what claims have, as kube-scheduler gathers it.
func stateOf(claims []*resourceapi.ResourceClaim, consumableCapacity bool) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, d := range claim.Status.Allocation.Devices.Results {
			if d.AdminAccess != nil && *d.AdminAccess {
				continue
			}
			id := structured.MakeDeviceID(d.Driver, d.Pool, d.Device)
			if !consumableCapacity || d.ShareID == nil {
				state.AllocatedDevices.Insert(id)
				continue
			}
			share := types.UID(*d.ShareID)
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, &share))
			if d.ConsumedCapacity != nil {
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, d.ConsumedCapacity))
			}
		}
	}
	return state
}
