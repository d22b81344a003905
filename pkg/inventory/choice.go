// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// maxFailing limits how many devices a failure names.
const maxFailing = 10

// Choose lists the devices that match all selectors, in the order in which the
// allocator tries them, and how selectors fail on others: these are not chosen.
// It fails only if the context is done.
func (v *Inventory) Choose(ctx context.Context, selectors []resourceapi.DeviceSelector) ([]cluster.DeviceID, []api.SelectorFailure, error) {
	chosen, err := choose(ctx, v.cluster, v.cluster.Gates.Selectors(), selectors)
	if err != nil {
		return nil, nil, err
	}
	ids := make([]cluster.DeviceID, 0, len(chosen.devices))
	for _, d := range chosen.devices {
		ids = append(ids, d.ID)
	}
	return ids, chosen.failures, nil
}

// choice has the results of selectors on the devices.
type choice struct {
	devices  []*cluster.Device
	failures []api.SelectorFailure
}

// selection returns which devices were chosen.
func (c *choice) selection() selection {
	chosen := make(selection, len(c.devices))
	for _, d := range c.devices {
		chosen[d.ID] = true
	}
	return chosen
}

// choose evaluates the selectors of each device up to the first decisive one, as the
// allocator does.
func choose(ctx context.Context, facts *cluster.Cluster, evaluator *selector.Evaluator, selectors []resourceapi.DeviceSelector) (choice, error) {
	var out choice
	failures := map[*selector.Result]int{}
	all := facts.Pools.Devices()
devices:
	for i := range all {
		if err := ctx.Err(); err != nil {
			return choice{}, fmt.Errorf("evaluate selectors: %w", err)
		}
		d := &all[i]
		for k, s := range selectors {
			if s.CEL == nil {
				continue
			}
			result := evaluator.Evaluate(ctx, evaluator.Compile(s.CEL.Expression), d.ID.Driver, d.Device)
			if result.Matches {
				continue
			}
			if result.Err != nil {
				at, known := failures[result]
				if !known {
					at = out.failure(k, result.Err)
					failures[result] = at
				}
				addFailing(&out.failures[at], d.ID)
			}
			continue devices
		}
		out.devices = append(out.devices, d)
	}
	return out, nil
}

// failure returns the index of the failure with that text, which may be a new one.
func (c *choice) failure(k int, err error) int {
	text := fmt.Sprintf("selector %d: %s", k+1, strings.Join(strings.Fields(err.Error()), " "))
	for at := range c.failures {
		if c.failures[at].Error == text {
			return at
		}
	}
	var unending *selector.UnendingError
	c.failures = append(c.failures, api.SelectorFailure{Error: text, Unending: errors.As(err, &unending)})
	return len(c.failures) - 1
}

// UnendingText describes the first failure of an expression that does not end, so that the
// result is not known. It is empty if there is none.
func UnendingText(failures []api.SelectorFailure) string {
	for i := range failures {
		if failures[i].Unending {
			return FailureText(&failures[i])
		}
	}
	return ""
}

// FailureText names the first of the devices: "selector 1: no such key: model (on
// gpu.example.com/node-1/gpu-0 and 3 more)".
func FailureText(f *api.SelectorFailure) string {
	if f.Count == 1 {
		return fmt.Sprintf("%s (on %s)", f.Error, f.Devices[0])
	}
	return fmt.Sprintf("%s (on %s and %d more)", f.Error, f.Devices[0], f.Count-1)
}

func addFailing(f *api.SelectorFailure, id cluster.DeviceID) {
	f.Count++
	if len(f.Devices) < maxFailing {
		f.Devices = append(f.Devices, id.String())
	}
}

// selection remembers which devices a class selects. One on which a selector
// fails is not selected.
type selection map[cluster.DeviceID]bool
