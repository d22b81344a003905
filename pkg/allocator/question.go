// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// ErrInvalidPool means that nothing fits, and that a pool of the node is invalid.
var ErrInvalidPool = errors.New("there are invalid resource pools")

// ReleasePanicError means that the allocator panics, and with it the scheduler.
type ReleasePanicError struct {
	// Because is the bug.
	Because cluster.Behavior
	text    string
}

func (e *ReleasePanicError) Error() string { return e.text }

// Question is a question to the allocator.
type Question struct {
	Facts  *cluster.Cluster
	Node   *corev1.Node
	Pools  []*cluster.NodePool
	Claims []*resourceapi.ResourceClaim
	// Matches evaluates an expression for a device.
	Matches func(ctx context.Context, expression string, device *cluster.Device) (bool, error)
	// Behaves reports what the allocator does, see [cluster.BehaviorChanges].
	Behaves func(cluster.Behavior) bool
}

// request is one request, or one alternative of a prioritized list.
type request struct {
	*cluster.Request
	class *resourceapi.DeviceClass
	// count is how many devices it needs. all has the devices of a request for all.
	count int
	all   []int
}

// choice is a request with its alternatives.
type choice struct {
	prioritized  bool
	alternatives []request
}

// matchKey is the key for the allocator's memory of a device and an alternative.
type matchKey struct {
	claim, choice, alternative, device int
}

func name(claim *resourceapi.ResourceClaim) string { return claim.Namespace + "/" + claim.Name }

// capacities are amounts by name.
type capacities map[resourceapi.QualifiedName]resource.Quantity

// with adds amounts. The result is not nil.
func (c capacities) with(amounts map[resourceapi.QualifiedName]resource.Quantity) capacities {
	sum := capacities{}
	maps.Copy(sum, c)
	for name, amount := range amounts {
		total := sum[name].DeepCopy()
		total.Add(amount)
		sum[name] = total
	}
	return sum
}

// without takes amounts away. The result is nil if nothing is left.
func (c capacities) without(amounts map[resourceapi.QualifiedName]resource.Quantity) capacities {
	rest, empty := capacities{}, true
	for name, total := range c {
		left := total.DeepCopy()
		left.Sub(amounts[name])
		rest[name] = left
		empty = empty && left.IsZero()
	}
	if empty {
		return nil
	}
	return rest
}

// device is a device of the node, and what the search has reserved of it.
type device struct {
	*cluster.Device
	pool *cluster.NodePool
	// shared devices can have several claims.
	shared bool
	// claims has a bit for each claim that has the device.
	claims uint64
	// shares is the capacity that the shares of the search take, nil if there are none.
	shares capacities
}

// constraint is a constraint of a claim with the values of the devices that it has.
type constraint struct {
	requests  []string
	attribute string
	distinct  bool
	// perRequest is true if it forgets all but the last value of each request.
	perRequest bool
	// values has the values of the devices; with perRequest, the last value of each request.
	values []string
	last   map[string]string
	// value is the value of the first device, and devices their number: a device that
	// stays because of a bug counts.
	value   string
	devices int
}

func (c *constraint) applies(r *request) bool {
	return len(c.requests) == 0 || slices.Contains(c.requests, r.Base) || slices.Contains(c.requests, r.Name)
}

// add adds a device and reports whether the constraint allows it.
func (c *constraint) add(r *request, d *device) bool {
	if !c.applies(r) {
		return true
	}
	value, has := c.valueOf(d)
	switch {
	case !has:
		return false
	case c.distinct && c.perRequest:
		if c.devices > 0 {
			for _, other := range c.last {
				if value == "" || other == value {
					return false
				}
			}
		}
		if c.last == nil {
			c.last = map[string]string{}
		}
		c.last[r.Base] = value
	case c.distinct:
		if len(c.values) > 0 && (value == "" || slices.Contains(c.values, value)) {
			return false
		}
		c.values = append(c.values, value)
	case c.devices == 0:
		c.value = value
	case value == "" || value != c.value:
		return false
	}
	c.devices++
	return true
}

// remove takes a device away that was added.
func (c *constraint) remove(r *request, d *device) {
	if !c.applies(r) {
		return
	}
	c.devices--
	if !c.distinct {
		return
	}
	if c.perRequest {
		delete(c.last, r.Base)
		return
	}
	if value, has := c.valueOf(d); has {
		if at := slices.Index(c.values, value); at >= 0 {
			c.values = slices.Delete(c.values, at, at+1)
		}
	}
}

// valueOf returns the value of the attribute, empty if it is of no kind that constraints
// compare, and false if the device does not have it.
func (c *constraint) valueOf(d *device) (string, bool) {
	a, has := d.Attributes[resourceapi.QualifiedName(c.attribute)]
	if domain, short, _ := strings.Cut(c.attribute, "/"); !has && domain == d.ID.Driver {
		a, has = d.Attributes[resourceapi.QualifiedName(short)]
	}
	switch {
	case !has:
		return "", false
	case a.StringValue != nil:
		return "string " + *a.StringValue, true
	case a.IntValue != nil:
		return fmt.Sprintf("int %d", *a.IntValue), true
	case a.BoolValue != nil:
		return fmt.Sprintf("bool %t", *a.BoolValue), true
	case a.VersionValue != nil:
		return "version " + *a.VersionValue, true
	}
	return "", true
}

// tainted reports whether a taint keeps a request from a device.
func tainted(d *device, r *request) bool {
	return slices.ContainsFunc(d.Taints, func(taint resourceapi.DeviceTaint) bool {
		return (taint.Effect == resourceapi.DeviceTaintEffectNoSchedule || taint.Effect == resourceapi.DeviceTaintEffectNoExecute) &&
			!slices.ContainsFunc(r.Tolerations, func(t resourceapi.DeviceToleration) bool { return resourceclaim.ToleratesTaint(t, taint) })
	})
}

// counterID is a counter of a pool, without the pool.
type counterID struct{ set, name string }

// account has the rest of the counters of a pool, and the charges of the search.
type account struct {
	left, charged map[counterID]resource.Quantity
}

// counters has the accounts of the pools that were asked about.
type counters struct {
	Question
	accounts map[string]*account
}

func newCounters(q Question) counters { return counters{q, map[string]*account{}} }

// of returns the account of the pool of a device. Where pools are known by their names
// alone, pools of one name share the account of the pool that is asked about first.
func (c *counters) of(d *device) *account {
	key := d.pool.Pool.Name
	if !c.Behaves(cluster.CountersByPoolName) {
		key = d.pool.Pool.Driver + "/" + key
	}
	if known := c.accounts[key]; known != nil {
		return known
	}
	a := &account{map[counterID]resource.Quantity{}, map[counterID]resource.Quantity{}}
	c.accounts[key] = a
	all := d.pool.Pool.Slices
	if d.pool.Generation != d.pool.Pool.Generation {
		all = d.pool.Slices
	}
	for _, slice := range all {
		for _, set := range slice.Spec.SharedCounters {
			for name, counter := range set.Counters {
				a.left[counterID{set.Name, name}] = counter.Value.DeepCopy()
			}
		}
	}
	for _, slice := range all {
		if len(slice.Spec.SharedCounters) > 0 {
			continue
		}
		for i := range slice.Spec.Devices {
			used := &slice.Spec.Devices[i]
			if !c.pays(cluster.DeviceID{Driver: d.ID.Driver, Pool: d.ID.Pool, Device: used.Name}) {
				continue
			}
			each(used, func(id counterID, amount resource.Quantity) {
				if left, exists := a.left[id]; exists {
					left.Sub(amount)
					a.left[id] = left
				}
			})
		}
	}
	return a
}

// pays reports whether the counters of a device are charged because claims have it.
func (c *counters) pays(id cluster.DeviceID) bool {
	if c.Facts.Usage.InUse(id) {
		return true
	}
	return !c.Behaves(cluster.SharesNotCharged) && (c.Facts.Usage.Shared(id) || c.Facts.Usage.Consumed(id) != nil)
}

// charge charges the counters of a device and reports whether there is enough: all counters
// of the account must have something left, also the counters that the device does not
// consume.
func (c *counters) charge(d *device) bool {
	a := c.of(d)
	each(d.Device.Device, func(id counterID, amount resource.Quantity) {
		charged := a.charged[id].DeepCopy()
		charged.Add(amount)
		a.charged[id] = charged
	})
	for id, left := range a.left {
		if left.Cmp(a.charged[id]) < 0 {
			c.release(d)
			return false
		}
	}
	return true
}

// release releases the counters of a device.
func (c *counters) release(d *device) {
	a := c.of(d)
	each(d.Device.Device, func(id counterID, amount resource.Quantity) {
		charged := a.charged[id].DeepCopy()
		charged.Sub(amount)
		a.charged[id] = charged
	})
}

// each visits the counters that a device consumes.
func each(d *resourceapi.Device, visit func(counterID, resource.Quantity)) {
	for _, consumption := range d.ConsumesCounters {
		for name, counter := range consumption.Counters {
			visit(counterID{consumption.CounterSet, name}, counter.Value)
		}
	}
}
