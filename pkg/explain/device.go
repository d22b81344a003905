// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/claimspec"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/fieldpath"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// The ranks of the checks, in the order in which the allocator makes them
// (structured/internal/experimental: GatherPools, isSelectable,
// allocateDevice), with two exceptions. Devices of other classes come first,
// so that nothing else is said about devices that were never meant. And unless
// all devices are wanted, the allocator passes over devices in use before it
// looks at their selectors and their capacity, because that is cheap; here only
// those devices count as allocated that would have been of use.
const (
	rankClass = iota
	rankUnsuitable
	rankReach
	rankIgnored
	rankObsolete
	rankPool
	rankBinding
	rankSelector
	rankCapacity
	rankInUse
	rankCapacityLeft
	rankNodeOperations
	rankPartitions
	rankGroups
	rankCounters
	rankTaint
	rankConstraint
)

// reason is why one device is no candidate for a request.
type reason struct {
	rank int
	code api.Code
	// label names the check: "allocated", "selector 1".
	label string
	// text is the fact in a few words, without what is wanted.
	text string
	// subject and value are the two parts of the text, if it is about one value.
	subject, value string
	// wanted is what would pass, if that makes sense.
	wanted string
	// lack says after a number what is the matter with such devices, where the
	// code does not tell enough.
	lack string
	// hint says what was probably meant instead of what is wanted.
	hint string
	// claim is the one that the device is allocated to.
	claim *resourceapi.ResourceClaim
	// lacks is what the device does not have and others have.
	lacks selector.Reading
	// fact proves it.
	fact api.Evidence
}

// requirement says what would pass, after a comma; nothing if that makes no
// sense.
func (r *reason) requirement() string {
	switch {
	case r.wanted == "":
		return ""
	case r.code != api.RequestSelectorFalse && r.code != api.ClassSelectorFalse:
		return r.wanted + " required"
	case r.wanted == r.fact.Required:
		// There is no shorter way to say it than the expression.
		return "required: " + r.wanted
	default:
		return "must be " + r.wanted
	}
}

// checks decides about single devices for one request.
type checks struct {
	alloc     *allocator.Allocator
	snap      *snapshot.Snapshot
	selectors *selector.Evaluator
	channel   string
	// extendedResource is what the request stands for, if anything.
	extendedResource string
	request          *claimspec.Request
	class            *resourceapi.DeviceClass
	// static remembers what does not depend on the node.
	static  map[*resourceapi.Device]*reason
	catalog *catalog
}

// device tells why a device is no candidate on a node, or nil if it is one.
func (c *checks) device(ctx context.Context, d *allocator.Device, node *corev1.Node) *reason {
	static, known := c.static[d.Device]
	if !known {
		static = c.checkStatic(ctx, d)
		c.static[d.Device] = static
	}
	dynamic := c.checkNode(d, node)
	switch {
	case static == nil:
		return dynamic
	case dynamic == nil || static.rank < dynamic.rank:
		return static
	default:
		return dynamic
	}
}

// matches reports whether a device counts for a request that wants all of them.
func (r *reason) matches() bool {
	return r == nil || r.rank > rankCapacity
}

func (c *checks) enabled(gate string) bool { return c.alloc.FeatureEnabled(gate) }

// checkNode makes the checks that depend on the node, which the device is for.
func (c *checks) checkNode(d *allocator.Device, node *corev1.Node) *reason {
	if c.alloc.SkipsNodeOperations(d) {
		if c.alloc.NodeOperationsGateOff(d) {
			return featureOff(rankNodeOperations, "DRAOptionalNodeOperations", fieldpath.Slice(d), "spec.skipNodeOperations")
		}
		if !slices.Contains(node.Status.DeclaredFeatures, "DRAOptionalNodeOperations") {
			return &reason{
				rank: rankNodeOperations, code: api.NodeOperationUnsupported, label: "node too old",
				text: "the node does not declare DRAOptionalNodeOperations",
				fact: api.Evidence{Object: whatif.Object("Node", "", node.Name), Path: "status.declaredFeatures", Found: strings.Join(node.Status.DeclaredFeatures, ", "), Required: "DRAOptionalNodeOperations"},
			}
		}
	}
	return nil
}

// checkStatic makes the checks that are the same for all nodes.
func (c *checks) checkStatic(ctx context.Context, d *allocator.Device) *reason {
	if r := c.checkClass(ctx, d); r != nil && r.code == api.ClassSelectorFalse {
		return r
	}
	if r := c.checkBinding(d); r != nil {
		return r
	}
	inUse := c.checkInUse(d)
	if r := c.checkSelectors(ctx, d); r != nil {
		if r.code == api.SelectorError && inUse != nil && !c.request.All() {
			// The allocator does not get to see the error.
			return inUse
		}
		return r
	}
	if r := c.checkCapacity(d, rankCapacity); r != nil {
		return r
	}
	if inUse != nil {
		return inUse
	}
	if r := c.checkCapacity(d, rankCapacityLeft); r != nil {
		return r
	}
	if r := c.checkPartition(d); r != nil {
		return r
	}
	if r := c.checkTaints(d); r != nil {
		return r
	}
	return c.checkConstraints(ctx, d)
}

func (c *checks) checkInUse(d *allocator.Device) *reason {
	if c.request.AdminAccess || !c.alloc.InUse(d.ID) {
		return nil
	}
	r := &reason{
		rank: rankInUse, code: api.DeviceAllocated, label: "allocated", text: "allocated",
		fact: api.Evidence{Path: "status.allocation.devices.results"},
	}
	for _, holder := range c.alloc.Holders(d.ID) {
		if holder.Result.AdminAccess == nil || !*holder.Result.AdminAccess {
			r.claim, r.fact.Object = holder.Claim, whatif.ClaimObject(holder.Claim)
			break
		}
	}
	return r
}

func (c *checks) checkBinding(d *allocator.Device) *reason {
	if !c.alloc.BindingGatesOff(d) {
		return nil
	}
	return &reason{
		rank: rankBinding, code: api.BindingConditionsUnsupported, label: "binding conditions",
		text: allocator.NeedsBindingGates,
		fact: api.Evidence{Object: fieldpath.Slice(d), Path: fieldpath.Device(d, "bindingConditions"), Found: strings.Join(d.BindingConditions, ", ")},
	}
}

const (
	// classLabel is for devices that the class does not select.
	classLabel = "other class"
	// classSelectorLabel is for those for which that cannot be told.
	classSelectorLabel = "class selector"
	// failsSuffix is in the label of a selector that has no result.
	failsSuffix = " fails"
)

func (c *checks) checkClass(ctx context.Context, d *allocator.Device) *reason {
	if c.class == nil {
		return nil
	}
	for i, s := range c.class.Spec.Selectors {
		path := fmt.Sprintf("spec.selectors[%d].cel.expression", i)
		if r := c.checkSelector(ctx, d, s, rankClass, api.ClassSelectorFalse, classLabel, whatif.Object("DeviceClass", "", c.class.Name), path); r != nil {
			return r
		}
	}
	return nil
}

func (c *checks) checkSelectors(ctx context.Context, d *allocator.Device) *reason {
	if r := c.checkClass(ctx, d); r != nil {
		return r
	}
	for i, s := range c.request.Selectors {
		path := fmt.Sprintf("%s.selectors[%d].cel.expression", c.request.Path, i)
		if r := c.checkSelector(ctx, d, s, rankSelector, api.RequestSelectorFalse, selectorLabel(i, len(c.request.Selectors)), whatif.ClaimObject(c.request.Claim), path); r != nil {
			return r
		}
	}
	return nil
}

func (c *checks) checkSelector(ctx context.Context, d *allocator.Device, s resourceapi.DeviceSelector, rank int, code api.Code, label, holder, path string) *reason {
	if s.CEL == nil {
		return nil
	}
	sel := c.selectors.Compile(s.CEL.Expression)
	result := c.selectors.Evaluate(ctx, sel, d.ID.Driver, d.Device)
	if result.Matches {
		return nil
	}
	detail := result.Detail(ctx)
	found := english.JoinAnd(detail.Found)
	if result.Err != nil {
		if code == api.ClassSelectorFalse {
			label = classSelectorLabel
		}
		text, lacks := c.failure(ctx, sel, result)
		return &reason{
			rank: rank, code: api.SelectorError, label: label + failsSuffix, text: text, lacks: lacks,
			fact: api.Evidence{Object: holder, Path: path, Found: found, Required: s.CEL.Expression},
		}
	}
	r := &reason{
		rank: rank, code: code, label: label, text: found, wanted: s.CEL.Expression,
		fact: api.Evidence{Object: holder, Path: path, Found: found, Required: s.CEL.Expression},
	}
	if detail.Failed != nil {
		r.wanted, r.fact.Required, r.hint = detail.Failed.Wanted, detail.Failed.Expression, c.catalog.unknownValue(detail.Failed)
		r.subject, r.value, _ = detail.Failed.Reading(d.ID.Driver, d.Device)
	}
	return r
}

// checkCapacity checks what the request takes against all that the device has
// (rankCapacity), or against what others leave of it (rankCapacityLeft).
func (c *checks) checkCapacity(d *allocator.Device, rank int) *reason {
	if !c.enabled("DRAConsumableCapacity") {
		return nil
	}
	var used map[resourceapi.QualifiedName]resource.Quantity
	if rank == rankCapacityLeft {
		used = c.alloc.Consumed(d.ID)
	}
	short, err := capacityShortage(c.request.Capacity, d.Device, used, c.enabled("DRAFractionalCapacityRange"))
	switch {
	case err != nil:
		return &reason{
			rank: rank, code: api.CapacityInsufficient, label: "capacity", text: err.Error(), lack: "with a capacity that cannot be shared out",
			fact: api.Evidence{Object: fieldpath.Slice(d), Path: fieldpath.Device(d, "capacity")},
		}
	case short == nil:
		return nil
	}
	return &reason{
		rank: rank, code: api.CapacityInsufficient, label: "capacity", text: short.message, wanted: short.required, lack: short.lack,
		fact: api.Evidence{
			Object: fieldpath.Slice(d), Path: fieldpath.Device(d, fmt.Sprintf("capacity[%q]", short.capacity)),
			Found: short.found, Required: short.wanted,
		},
	}
}

func (c *checks) checkTaints(d *allocator.Device) *reason {
	if !c.enabled("DRADeviceTaints") {
		return nil
	}
	for _, taint := range d.Taints {
		if taint.Effect != resourceapi.DeviceTaintEffectNoSchedule && taint.Effect != resourceapi.DeviceTaintEffectNoExecute {
			continue
		}
		if slices.ContainsFunc(c.request.Tolerations, func(t resourceapi.DeviceToleration) bool {
			return resourceclaim.ToleratesTaint(t, taint)
		}) {
			continue
		}
		holder, path := fieldpath.TaintSource(c.alloc, d, taint)
		return &reason{
			rank: rankTaint, code: api.DeviceTainted, label: "tainted", text: taint.String(),
			fact: api.Evidence{Object: holder, Path: path, Found: taint.String(), Required: "a toleration in " + c.request.Path + ".tolerations"},
		}
	}
	return nil
}

// checkConstraints finds devices that no constraint can ever take, whatever
// the other devices are: those without the attribute, and those of which it is
// an empty list (attributeAsSet of structured/internal/experimental).
func (c *checks) checkConstraints(ctx context.Context, d *allocator.Device) *reason {
	for _, constraint := range c.request.Constraints {
		name := constraint.Attribute
		fact := api.Evidence{Object: fieldpath.Slice(d), Path: fieldpath.Device(d, fmt.Sprintf("attributes[%q]", name)), Found: "not set", Required: constraint.String()}
		if at := c.request.DerivedAt(name); at >= 0 {
			fact.Object, fact.Path = whatif.ClaimObject(c.request.Claim), fmt.Sprintf("%s.derivedAttributes[%d]", c.request.Path, at)
			if !c.enabled("DRADerivedAttributes") {
				return featureOff(rankConstraint, "DRADerivedAttributes", fact.Object, fact.Path)
			}
		}
		value, ok, err := c.attribute(ctx, d, name)
		switch {
		case err != nil:
			fact.Found = err.Error()
			return &reason{rank: rankConstraint, code: api.SelectorError, label: "derived attribute fails", text: err.Error(), fact: fact}
		case !ok:
			return &reason{
				rank: rankConstraint, code: api.AttributeMissing, label: "attribute missing",
				text: fmt.Sprintf("has no attribute %s%s", name, c.nearAttribute(name)),
				lack: fmt.Sprintf("without attribute %s", name), fact: fact,
			}
		case c.enabled("DRAListTypeAttributes") && len(valueTexts(value)) == 0:
			fact.Found = "an empty list"
			return &reason{
				rank: rankConstraint, code: api.AttributeMissing, label: "attribute empty",
				text: fmt.Sprintf("attribute %s is an empty list, which no constraint takes", name),
				lack: "with an empty list as the attribute of a constraint", fact: fact,
			}
		}
	}
	return nil
}

// attribute looks up what a constraint compares: a derived attribute of the
// request or else one of the device.
func (c *checks) attribute(ctx context.Context, d *allocator.Device, name resourceapi.FullyQualifiedName) (resourceapi.DeviceAttribute, bool, error) {
	if at := c.request.DerivedAt(name); at >= 0 && c.enabled("DRADerivedAttributes") {
		derived := &c.request.Derived[at]
		value, err := c.selectors.DerivedAttribute(ctx, derived, d.ID.Driver, d.Device)
		if err != nil || value == nil {
			return resourceapi.DeviceAttribute{}, false, err
		}
		return *value, true, nil
	}
	if value, ok := d.Attributes[resourceapi.QualifiedName(name)]; ok {
		return value, true, nil
	}
	domain, id, _ := strings.Cut(string(name), "/")
	value, ok := selector.Lookup(d.Attributes, domain, id, d.ID.Driver)
	return value, ok, nil
}

// nearAttribute suggests the attribute that was probably meant by one that a
// device does not have.
func (c *checks) nearAttribute(name resourceapi.FullyQualifiedName) string {
	text := ", which " + c.catalog.spread(selector.Attribute(resourceapi.QualifiedName(name), ""))
	if !c.missingEverywhere(name) {
		return text
	}
	return text + c.meantAttribute(name)
}

// missingEverywhere reports whether no device at all has an attribute that a
// constraint is about, and the request does not derive it.
func (c *checks) missingEverywhere(name resourceapi.FullyQualifiedName) bool {
	return c.request.DerivedAt(name) < 0 && c.catalog.words().Count(selector.Attribute(resourceapi.QualifiedName(name), "")) == 0
}

// meantAttribute suggests an attribute that some device has.
func (c *checks) meantAttribute(name resourceapi.FullyQualifiedName) string {
	return naming.DidYouMean(string(name), c.catalog.attributes())
}

func featureOff(rank int, gate, holder, path string) *reason {
	return &reason{
		rank: rank, code: api.FeatureDisabled, label: "feature off", text: "needs the feature gate " + gate,
		fact: api.Evidence{Object: holder, Path: path, Required: gate + "=true"},
	}
}
