// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
)

// TestUnendingSelectors checks claims whose selectors compute with numbers that
// are too long, or might.
func TestUnendingSelectors(t *testing.T) {
	long := `"1e` + strings.Repeat("9", 9) + `"`
	for _, test := range []struct {
		name, class, own string
		want             Outcome
	}{
		{"in the request", "", `quantity(` + long + `).isGreaterThan(quantity("1"))`, TimedOut},
		{"in the class", `quantity(` + long + `).isGreaterThan(quantity("1"))`, "", TimedOut},
		{"put together", "", `quantity("1" + "e` + strings.Repeat("9", 9) + `").isGreaterThan(quantity("1"))`, TimedOut},
		{"the class has no such device", `device.driver == "other"`, `quantity(` + long + `).isGreaterThan(quantity("1"))`, DoesNotFit},
		{"not reached", "", `device.driver == "other" && quantity(` + long + `).isGreaterThan(quantity("1"))`, DoesNotFit},
		{"an end", "", `quantity("1" + "0").isGreaterThan(quantity("1"))`, Fits},
	} {
		t.Run(test.name, func(t *testing.T) {
			deviceClass := tc.Class(tc.ClassA, tc.DriverA)
			if test.class != "" {
				deviceClass.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: test.class}}}
			}
			var own []string
			if test.own != "" {
				own = append(own, test.own)
			}
			a := newAllocator(t, tc.Snapshot(tc.StableGates(), deviceClass, tc.Slice("s", tc.DriverA, tc.Node1, tc.Device("d")).OnNode(tc.Node1)))
			verdict := a.Check(t.Context(), tc.Node(tc.Node1), []*resourceapi.ResourceClaim{tc.Claim("c", tc.Request("r", tc.ClassA, 1, own...)).ResourceClaim})
			var unending *selector.UnendingError
			if verdict.Outcome != test.want || errors.As(verdict.Err, &unending) != (test.want == TimedOut) {
				t.Errorf("got %s: %v, want %s", verdict.Outcome, verdict.Err, test.want)
			}
		})
	}
}

// TestAwaited abandons a search that takes no notice of its context.
func TestAwaited(t *testing.T) {
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := awaited(ctx, time.Millisecond, func() ([]resourceapi.AllocationResult, error) {
		<-forever
		return nil, nil
	}); !errors.Is(err, errAbandoned) {
		t.Errorf("got %v, want %v", err, errAbandoned)
	}
	if found, err := awaited(ctx, time.Hour, func() ([]resourceapi.AllocationResult, error) {
		return make([]resourceapi.AllocationResult, 1), nil
	}); len(found) != 1 || err != nil {
		t.Errorf("got %v and %v", found, err)
	}
}
