// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Case is a small random cluster where a pod waits for devices.
type Case struct {
	Seed     uint64
	Snapshot *snapshot.Snapshot
	// Features are the features that were added on purpose, in the order of [Features].
	Features []string
}

// Pod returns the waiting pod.
func (c *Case) Pod() *corev1.Pod { return c.Snapshot.Pod(Namespace, Waiting) }

// Claims returns the claims of the pod that exist and have no devices yet.
func (c *Case) Claims() []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	for _, entry := range c.Pod().Spec.ResourceClaims {
		if claim := c.Snapshot.Claim(Namespace, *entry.ResourceClaimName); claim != nil && claim.Status.Allocation == nil {
			claims = append(claims, claim)
		}
	}
	return claims
}

// Names in a random cluster.
const (
	// Namespace and Waiting name the pod that waits, and the first of its claims.
	Namespace = "ml"
	Waiting   = "train"
	// Links is the second driver, and its class.
	Links = "nic.example.com"
	// fastClass selects devices of one model, anyClass has no selector.
	fastClass = "fast.example.com"
	anyClass  = "any.example.com"
	// extendedName is the extended resource of the class of Driver.
	extendedName = "example.com/gpu"
	// derivedName is an attribute that requests compute.
	derivedName = "derived/half"
	// missingClass does not exist, brokenSelector does not compile.
	missingClass   = "gpus.example.com"
	brokenSelector = "device.attributes["
)

// AllGates returns the feature gates that decide what the allocator can do.
func AllGates() []string {
	return []string{
		"DRAAdminAccess", "DRAPrioritizedList", "DRAPartitionableDevices", "DRADeviceTaints", "DRADeviceTaintRules",
		"DRAConsumableCapacity", "DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus", "DRAFractionalCapacityRange",
		"DRAListTypeAttributes", "DRADeviceCompatibilityGroups", "DRADerivedAttributes", "DRAOptionalNodeOperations",
	}
}

// The features of random clusters.
const (
	Selectors           = "selectors"
	FailingSelectors    = "failing selectors"
	OtherClasses        = "other classes"
	AllMode             = "all devices"
	PrioritizedLists    = "prioritized lists"
	AdminAccess         = "admin access"
	MatchConstraints    = "match constraints"
	DistinctConstraints = "distinct constraints"
	ListAttributes      = "list attributes"
	DerivedAttributes   = "derived attributes"
	Taints              = "taints of slices"
	TaintRules          = "taints of rules"
	Tolerations         = "tolerations"
	Counters            = "counters"
	CompatibilityGroups = "compatibility groups"
	Shares              = "shares"
	CapacityRequests    = "capacity requests"
	RequestPolicies     = "request policies"
	BindingConditions   = "binding conditions"
	NodeOperations      = "skipped node operations"
	ExtendedResources   = "extended resources"
	SeveralClaims       = "several claims"
	AllocatedClaims     = "allocated claims"
	Holders             = "devices in use"
	NodeFit             = "nodes that do not take the pod"
	IncompletePools     = "incomplete pools"
	InvalidPools        = "invalid pools"
	ObsoletePools       = "obsolete slices"
	PerDeviceNodes      = "nodes of devices"
	NetworkAttached     = "network-attached devices"
	GatesOff            = "feature gates off"
	ManyDevices         = "more than 32 devices"
	Mistakes            = "mistakes"
)

// Feature is something that a random cluster may have.
type Feature struct {
	Name string
	// remove takes it out of a snapshot that may be changed.
	remove func(*snapshot.Snapshot)
}

// Features lists all of them.
func Features() []Feature {
	return []Feature{
		{Selectors, dropSelectors(func(expression string) bool {
			return !strings.Contains(expression, ".absent") && expression != brokenSelector
		})},
		{FailingSelectors, dropSelectors(func(expression string) bool { return strings.Contains(expression, ".absent") })},
		{OtherClasses, eachRequest(func(r *requestFields) { *r.class = Class })},
		{AllMode, eachRequest(func(r *requestFields) {
			if *r.mode == resourceapi.DeviceAllocationModeAll {
				*r.mode, *r.count = resourceapi.DeviceAllocationModeExactCount, 1
			}
		})},
		{PrioritizedLists, eachClaim(onlyFirst)},
		{AdminAccess, eachClaim(func(c *resourceapi.ResourceClaim) {
			for i := range c.Spec.Devices.Requests {
				if exact := c.Spec.Devices.Requests[i].Exactly; exact != nil {
					exact.AdminAccess = nil
				}
			}
		})},
		{MatchConstraints, dropConstraints(func(c resourceapi.DeviceConstraint) bool { return c.MatchAttribute != nil })},
		{DistinctConstraints, dropConstraints(func(c resourceapi.DeviceConstraint) bool { return c.DistinctAttribute != nil })},
		{ListAttributes, eachDevice(scalars)},
		{DerivedAttributes, withoutDerived},
		{Taints, eachDevice(func(d *resourceapi.Device) { d.Taints = nil })},
		{TaintRules, func(s *snapshot.Snapshot) { s.TaintRules = nil }},
		{Tolerations, eachRequest(func(r *requestFields) { *r.tolerations = nil })},
		{Counters, eachDevice(func(d *resourceapi.Device) { d.ConsumesCounters = nil })},
		{CompatibilityGroups, eachDevice(func(d *resourceapi.Device) {
			for i := range d.ConsumesCounters {
				d.ConsumesCounters[i].CompatibilityGroups = nil
			}
		})},
		{Shares, eachDevice(func(d *resourceapi.Device) { d.AllowMultipleAllocations = nil })},
		{CapacityRequests, eachRequest(func(r *requestFields) { *r.capacity = nil })},
		{RequestPolicies, eachDevice(func(d *resourceapi.Device) {
			for name, c := range d.Capacity {
				c.RequestPolicy = nil
				d.Capacity[name] = c
			}
		})},
		{BindingConditions, eachDevice(func(d *resourceapi.Device) { d.BindingConditions, d.BindingFailureConditions = nil, nil })},
		{NodeOperations, eachSlice(func(s *resourceapi.ResourceSlice) { s.Spec.SkipNodeOperations = nil })},
		{ExtendedResources, func(s *snapshot.Snapshot) {
			for _, p := range s.Pods {
				delete(p.Spec.Containers[0].Resources.Requests, extendedName)
				delete(p.Spec.Containers[0].Resources.Limits, extendedName)
			}
		}},
		{SeveralClaims, onlyOneClaim},
		{AllocatedClaims, func(s *snapshot.Snapshot) { forget(s, Namespace) }},
		{Holders, func(s *snapshot.Snapshot) { forget(s, "serving") }},
		{NodeFit, func(s *snapshot.Snapshot) {
			for _, n := range s.Nodes {
				n.Spec.Taints, n.Spec.Unschedulable = nil, false
			}
			for _, p := range s.Pods {
				p.Spec.NodeSelector, p.Spec.Affinity = nil, nil
				delete(p.Spec.Containers[0].Resources.Requests, "cpu")
			}
		}},
		{IncompletePools, func(s *snapshot.Snapshot) {
			counts := map[resourceapi.ResourcePool]int64{}
			for _, slice := range s.Slices {
				counts[poolOf(slice)]++
			}
			for _, slice := range s.Slices {
				slice.Spec.Pool.ResourceSliceCount = counts[poolOf(slice)]
			}
		}},
		{InvalidPools, eachSlice(func(s *resourceapi.ResourceSlice) {
			seen := map[string]bool{}
			s.Spec.Devices = slices.DeleteFunc(s.Spec.Devices, func(d resourceapi.Device) bool {
				known := seen[d.Name]
				seen[d.Name] = true
				return known
			})
			for i := range s.Spec.Devices {
				d := &s.Spec.Devices[i]
				if len(d.ConsumesCounters) > 0 && d.ConsumesCounters[0].CounterSet == "missing" {
					d.ConsumesCounters = nil
				}
			}
		})},
		{ObsoletePools, func(s *snapshot.Snapshot) {
			counts := map[resourceapi.ResourcePool]int64{}
			for _, slice := range s.Slices {
				slice.Spec.Pool.Generation = 1
				counts[poolOf(slice)]++
			}
			for _, slice := range s.Slices {
				slice.Spec.Pool.ResourceSliceCount = max(slice.Spec.Pool.ResourceSliceCount, counts[poolOf(slice)])
			}
		}},
		{PerDeviceNodes, eachSlice(func(s *resourceapi.ResourceSlice) {
			if s.Spec.PerDeviceNodeSelection != nil {
				s.Spec.PerDeviceNodeSelection, s.Spec.AllNodes = nil, new(bool)
				*s.Spec.AllNodes = true
				for i := range s.Spec.Devices {
					s.Spec.Devices[i].NodeName, s.Spec.Devices[i].AllNodes = nil, nil
				}
			}
		})},
		{NetworkAttached, func(s *snapshot.Snapshot) {
			for _, slice := range s.Slices {
				if slice.Spec.PerDeviceNodeSelection == nil {
					slice.Spec.AllNodes, slice.Spec.NodeSelector, slice.Spec.NodeName = nil, nil, &s.Nodes[0].Name
				}
			}
		}},
		{GatesOff, func(s *snapshot.Snapshot) {
			for _, name := range AllGates() {
				s.Gates[name] = snapshot.Gate{Enabled: true, Source: snapshot.GateFromFlag}
			}
		}},
		{ManyDevices, func(s *snapshot.Snapshot) {
			eachRequest(func(r *requestFields) { *r.count = min(*r.count, 2) })(s)
			eachSlice(func(s *resourceapi.ResourceSlice) { s.Spec.Devices = s.Spec.Devices[:min(len(s.Spec.Devices), 4)] })(s)
		}},
		{Mistakes, func(s *snapshot.Snapshot) {
			dropSelectors(func(expression string) bool { return expression == brokenSelector })(s)
			eachRequest(func(r *requestFields) {
				if *r.class == missingClass {
					*r.class = Class
				}
			})(s)
			eachClaim(func(c *resourceapi.ResourceClaim) { c.DeletionTimestamp, c.UID = nil, "uid" })(s)
			s.Namespaces[0].Labels = map[string]string{resourceapi.DRAAdminNamespaceLabelKey: "true"}
		}},
	}
}

// Without returns the case with one of its features taken out.
func (c *Case) Without(feature string) *Case {
	out := &Case{Seed: c.Seed, Snapshot: clone(c.Snapshot)}
	for _, f := range Features() {
		if f.Name == feature {
			f.remove(out.Snapshot)
		}
	}
	return out
}

func clone(s *snapshot.Snapshot) *snapshot.Snapshot {
	out := *s
	out.Gates = maps.Clone(s.Gates)
	out.Nodes, out.Namespaces, out.Pods = copies(s.Nodes), copies(s.Namespaces), copies(s.Pods)
	out.Slices, out.Classes, out.Claims, out.TaintRules = copies(s.Slices), copies(s.Classes), copies(s.Claims), copies(s.TaintRules)
	return &out
}

func copies[T interface{ DeepCopy() T }](list []T) []T {
	out := make([]T, 0, len(list))
	for _, object := range list {
		out = append(out, object.DeepCopy())
	}
	return out
}

// requestFields are the common fields of exact requests and alternatives.
type requestFields struct {
	class       *string
	mode        *resourceapi.DeviceAllocationMode
	count       *int64
	selectors   *[]resourceapi.DeviceSelector
	tolerations *[]resourceapi.DeviceToleration
	capacity    **resourceapi.CapacityRequirements
	derived     *[]resourceapi.DeviceDerivedAttribute
}

// eachClaim changes the claims that wait.
func eachClaim(change func(*resourceapi.ResourceClaim)) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		for _, c := range s.Claims {
			if c.Namespace == Namespace && c.Status.Allocation == nil {
				change(c)
			}
		}
	}
}

func eachRequest(change func(*requestFields)) func(*snapshot.Snapshot) {
	return eachClaim(func(c *resourceapi.ResourceClaim) {
		for i := range c.Spec.Devices.Requests {
			r := &c.Spec.Devices.Requests[i]
			if e := r.Exactly; e != nil {
				change(&requestFields{&e.DeviceClassName, &e.AllocationMode, &e.Count, &e.Selectors, &e.Tolerations, &e.Capacity, &e.DerivedAttributes})
			}
			for j := range r.FirstAvailable {
				e := &r.FirstAvailable[j]
				change(&requestFields{&e.DeviceClassName, &e.AllocationMode, &e.Count, &e.Selectors, &e.Tolerations, &e.Capacity, &e.DerivedAttributes})
			}
		}
	})
}

func eachSlice(change func(*resourceapi.ResourceSlice)) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		for _, slice := range s.Slices {
			change(slice)
		}
	}
}

func eachDevice(change func(*resourceapi.Device)) func(*snapshot.Snapshot) {
	return eachSlice(func(s *resourceapi.ResourceSlice) {
		for i := range s.Spec.Devices {
			change(&s.Spec.Devices[i])
		}
	})
}

func dropSelectors(drop func(expression string) bool) func(*snapshot.Snapshot) {
	return eachRequest(func(r *requestFields) {
		*r.selectors = slices.DeleteFunc(*r.selectors, func(s resourceapi.DeviceSelector) bool { return drop(s.CEL.Expression) })
	})
}

func dropConstraints(drop func(resourceapi.DeviceConstraint) bool) func(*snapshot.Snapshot) {
	return eachClaim(func(c *resourceapi.ResourceClaim) {
		c.Spec.Devices.Constraints = slices.DeleteFunc(c.Spec.Devices.Constraints, drop)
	})
}

// onlyFirst keeps the first of the alternatives, as a request of its own.
func onlyFirst(c *resourceapi.ResourceClaim) {
	for i := range c.Spec.Devices.Requests {
		r := &c.Spec.Devices.Requests[i]
		if len(r.FirstAvailable) == 0 {
			continue
		}
		first := r.FirstAvailable[0]
		r.FirstAvailable = nil
		r.Exactly = &resourceapi.ExactDeviceRequest{
			DeviceClassName: first.DeviceClassName, AllocationMode: first.AllocationMode, Count: first.Count,
			Selectors: first.Selectors, Tolerations: first.Tolerations, Capacity: first.Capacity, DerivedAttributes: first.DerivedAttributes,
		}
	}
	for i := range c.Spec.Devices.Constraints {
		for j, name := range c.Spec.Devices.Constraints[i].Requests {
			c.Spec.Devices.Constraints[i].Requests[j], _, _ = strings.Cut(name, "/")
		}
	}
}

func scalars(d *resourceapi.Device) {
	for name, a := range d.Attributes {
		switch {
		case len(a.StringValues) > 0:
			d.Attributes[name] = resourceapi.DeviceAttribute{StringValue: &a.StringValues[0]}
		case len(a.IntValues) > 0:
			d.Attributes[name] = resourceapi.DeviceAttribute{IntValue: &a.IntValues[0]}
		}
	}
}

// withoutDerived drops derived attributes and the constraints that only they
// make sense of.
func withoutDerived(s *snapshot.Snapshot) {
	eachRequest(func(r *requestFields) { *r.derived = nil })(s)
	dropConstraints(func(c resourceapi.DeviceConstraint) bool {
		return c.MatchAttribute != nil && *c.MatchAttribute == derivedName || c.DistinctAttribute != nil && *c.DistinctAttribute == derivedName
	})(s)
}

func onlyOneClaim(s *snapshot.Snapshot) {
	for _, p := range s.Pods {
		p.Spec.ResourceClaims = p.Spec.ResourceClaims[:1]
	}
}

// forget removes claims of a namespace that hold devices.
func forget(s *snapshot.Snapshot, namespace string) {
	gone := map[string]bool{}
	s.Claims = slices.DeleteFunc(s.Claims, func(c *resourceapi.ResourceClaim) bool {
		drop := c.Namespace == namespace && c.Status.Allocation != nil
		gone[c.Name] = gone[c.Name] || drop
		return drop
	})
	for _, p := range s.Pods {
		kept := p.Spec.ResourceClaims[:0:0]
		for _, entry := range p.Spec.ResourceClaims {
			if !gone[*entry.ResourceClaimName] {
				kept = append(kept, entry)
			}
		}
		p.Spec.ResourceClaims = kept
	}
}

// poolOf identifies the generation of a pool that a slice is of.
func poolOf(s *resourceapi.ResourceSlice) resourceapi.ResourcePool {
	return resourceapi.ResourcePool{Name: s.Spec.Driver + "/" + s.Spec.Pool.Name, Generation: s.Spec.Pool.Generation}
}
