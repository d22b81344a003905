// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package funnel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/claimspec"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
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
	RankReach
	rankIgnored
	rankObsolete
	RankPool
	RankBinding
	RankSelector
	RankCapacity
	RankInUse
	RankCapacityLeft
	rankNodeOperations
	rankPartitions
	rankGroups
	RankCounters
	rankTaint
	RankConstraint
)

// Reason is why one device is no candidate for a request.
type Reason struct {
	Rank int
	Code api.Code
	// Label names the check: "allocated", "selector 1".
	Label string
	// Text is the fact in a few words, without what is wanted.
	Text string
	// subject and value are the two parts of the text, if it is about one value.
	subject, value string
	// wanted is what would pass, if that makes sense.
	wanted string
	// lack says after a number what is the matter with such devices, where the
	// code does not tell enough.
	lack string
	// hint says what was probably meant instead of what is wanted.
	hint string
	// Claim is the one that the device is allocated to.
	Claim *resourceapi.ResourceClaim
	// lacks is what the device does not have and others have.
	lacks selector.Reading
	// Fact proves it.
	Fact api.Evidence
}

// Requirement says what would pass, after a comma; nothing if that makes no
// sense.
func (r *Reason) Requirement() string {
	switch {
	case r.wanted == "":
		return ""
	case r.Code != api.RequestSelectorFalse && r.Code != api.ClassSelectorFalse:
		return r.wanted + " required"
	case r.wanted == r.Fact.Required:
		// There is no shorter way to say it than the expression.
		return "required: " + r.wanted
	default:
		return "must be " + r.wanted
	}
}

// Checks decides about single devices for one request.
type Checks struct {
	Facts     *cluster.Cluster
	Snap      *snapshot.Snapshot
	Selectors *selector.Evaluator
	Channel   string
	// ExtendedResource is what the request stands for, if anything.
	ExtendedResource string
	Request          *claimspec.Request
	Class            *resourceapi.DeviceClass
	// Static remembers what does not depend on the node.
	Static  map[*resourceapi.Device]*Reason
	Catalog *Catalog
}

// Device tells why a device is no candidate on a node, or nil if it is one.
func (c *Checks) Device(ctx context.Context, d *cluster.Device, node *corev1.Node) *Reason {
	static, known := c.Static[d.Device]
	if !known {
		static = c.checkStatic(ctx, d)
		c.Static[d.Device] = static
	}
	dynamic := c.CheckNode(d, node)
	switch {
	case static == nil:
		return dynamic
	case dynamic == nil || static.Rank < dynamic.Rank:
		return static
	default:
		return dynamic
	}
}

// Matches reports whether a device counts for a request that wants all of them.
func (r *Reason) Matches() bool {
	return r == nil || r.Rank > RankCapacity
}

func (c *Checks) enabled(gate string) bool { return c.Facts.Gates.Enabled(gate) }

// CheckNode makes the checks that depend on the node, which the device is for.
func (c *Checks) CheckNode(d *cluster.Device, node *corev1.Node) *Reason {
	if eligibility.SkipsNodeOperations(c.Facts.Gates, d) {
		if eligibility.NodeOperationsGateOff(c.Facts.Gates, d) {
			return featureOff(rankNodeOperations, "DRAOptionalNodeOperations", fieldpath.Slice(d), "spec.skipNodeOperations")
		}
		if !slices.Contains(node.Status.DeclaredFeatures, "DRAOptionalNodeOperations") {
			return &Reason{
				Rank: rankNodeOperations, Code: api.NodeOperationUnsupported, Label: "node too old",
				Text: "the node does not declare DRAOptionalNodeOperations",
				Fact: api.Evidence{Object: whatif.Object("Node", "", node.Name), Path: "status.declaredFeatures", Found: strings.Join(node.Status.DeclaredFeatures, ", "), Required: "DRAOptionalNodeOperations"},
			}
		}
	}
	return nil
}

// checkStatic makes the checks that are the same for all nodes.
func (c *Checks) checkStatic(ctx context.Context, d *cluster.Device) *Reason {
	if r := c.CheckClass(ctx, d); r != nil && r.Code == api.ClassSelectorFalse {
		return r
	}
	if r := c.CheckBinding(d); r != nil {
		return r
	}
	inUse := c.CheckInUse(d)
	if r := c.CheckSelectors(ctx, d); r != nil {
		if r.Code == api.SelectorError && inUse != nil && !c.Request.All() {
			// The allocator does not get to see the error.
			return inUse
		}
		return r
	}
	if r := c.CheckCapacity(d, RankCapacity); r != nil {
		return r
	}
	if inUse != nil {
		return inUse
	}
	if r := c.CheckCapacity(d, RankCapacityLeft); r != nil {
		return r
	}
	if r := c.CheckPartition(d); r != nil {
		return r
	}
	if r := c.CheckTaints(d); r != nil {
		return r
	}
	return c.CheckConstraints(ctx, d)
}

// CheckInUse rejects a device that is allocated and cannot be shared.
func (c *Checks) CheckInUse(d *cluster.Device) *Reason {
	if c.Request.AdminAccess || !c.Facts.Usage.InUse(d.ID) {
		return nil
	}
	r := &Reason{
		Rank: RankInUse, Code: api.DeviceAllocated, Label: "allocated", Text: "allocated",
		Fact: api.Evidence{Path: "status.allocation.devices.results"},
	}
	for _, holder := range c.Facts.Usage.Holders(d.ID) {
		if holder.Result.AdminAccess == nil || !*holder.Result.AdminAccess {
			r.Claim, r.Fact.Object = holder.Claim, whatif.ClaimObject(holder.Claim)
			break
		}
	}
	return r
}

// CheckBinding rejects a device with binding conditions that the cluster does not
// support.
func (c *Checks) CheckBinding(d *cluster.Device) *Reason {
	if !eligibility.BindingGatesOff(c.Facts.Gates, d) {
		return nil
	}
	return &Reason{
		Rank: RankBinding, Code: api.BindingConditionsUnsupported, Label: "binding conditions",
		Text: eligibility.NeedsBindingGates,
		Fact: api.Evidence{Object: fieldpath.Slice(d), Path: fieldpath.Device(d, "bindingConditions"), Found: strings.Join(d.BindingConditions, ", ")},
	}
}

const (
	// classLabel is for devices that the class does not select.
	classLabel = "other class"
	// ClassSelectorLabel is for those for which that cannot be told.
	ClassSelectorLabel = "class selector"
	// FailsSuffix is in the label of a selector that has no result.
	FailsSuffix = " fails"
)

// CheckClass rejects a device that the class does not select.
func (c *Checks) CheckClass(ctx context.Context, d *cluster.Device) *Reason {
	if c.Class == nil {
		return nil
	}
	for i, s := range c.Class.Spec.Selectors {
		path := fmt.Sprintf("spec.selectors[%d].cel.expression", i)
		if r := c.CheckSelector(ctx, d, s, rankClass, api.ClassSelectorFalse, classLabel, whatif.Object("DeviceClass", "", c.Class.Name), path); r != nil {
			return r
		}
	}
	return nil
}

// CheckSelectors rejects a device that a selector of the request does not match.
func (c *Checks) CheckSelectors(ctx context.Context, d *cluster.Device) *Reason {
	if r := c.CheckClass(ctx, d); r != nil {
		return r
	}
	for i, s := range c.Request.Selectors {
		path := fmt.Sprintf("%s.selectors[%d].cel.expression", c.Request.Path, i)
		if r := c.CheckSelector(ctx, d, s, RankSelector, api.RequestSelectorFalse, selectorLabel(i, len(c.Request.Selectors)), whatif.ClaimObject(c.Request.Claim), path); r != nil {
			return r
		}
	}
	return nil
}

// CheckSelector rejects a device that one selector does not match. holder and path
// are where the selector is written.
func (c *Checks) CheckSelector(ctx context.Context, d *cluster.Device, s resourceapi.DeviceSelector, rank int, code api.Code, label, holder, path string) *Reason {
	if s.CEL == nil {
		return nil
	}
	sel := c.Selectors.Compile(s.CEL.Expression)
	result := c.Selectors.Evaluate(ctx, sel, d.ID.Driver, d.Device)
	if result.Matches {
		return nil
	}
	detail := result.Detail(ctx)
	found := english.JoinAnd(detail.Found)
	if result.Err != nil {
		if code == api.ClassSelectorFalse {
			label = ClassSelectorLabel
		}
		text, lacks := c.failure(ctx, sel, result)
		return &Reason{
			Rank: rank, Code: api.SelectorError, Label: label + FailsSuffix, Text: text, lacks: lacks,
			Fact: api.Evidence{Object: holder, Path: path, Found: found, Required: s.CEL.Expression},
		}
	}
	r := &Reason{
		Rank: rank, Code: code, Label: label, Text: found, wanted: s.CEL.Expression,
		Fact: api.Evidence{Object: holder, Path: path, Found: found, Required: s.CEL.Expression},
	}
	if detail.Failed != nil {
		r.wanted, r.Fact.Required, r.hint = detail.Failed.Wanted, detail.Failed.Expression, c.Catalog.unknownValue(detail.Failed)
		r.subject, r.value, _ = detail.Failed.Reading(d.ID.Driver, d.Device)
	}
	return r
}

// CheckCapacity checks what the request takes against all that the device has
// (rankCapacity), or against what others leave of it (rankCapacityLeft).
func (c *Checks) CheckCapacity(d *cluster.Device, rank int) *Reason {
	if !c.enabled("DRAConsumableCapacity") {
		return nil
	}
	var used map[resourceapi.QualifiedName]resource.Quantity
	if rank == RankCapacityLeft {
		used = c.Facts.Usage.Consumed(d.ID)
	}
	short, err := capacityShortage(c.Request.Capacity, d.Device, used, c.enabled("DRAFractionalCapacityRange"))
	switch {
	case err != nil:
		return &Reason{
			Rank: rank, Code: api.CapacityInsufficient, Label: "capacity", Text: err.Error(), lack: "with a capacity that cannot be shared out",
			Fact: api.Evidence{Object: fieldpath.Slice(d), Path: fieldpath.Device(d, "capacity")},
		}
	case short == nil:
		return nil
	}
	return &Reason{
		Rank: rank, Code: api.CapacityInsufficient, Label: "capacity", Text: short.message, wanted: short.required, lack: short.lack,
		Fact: api.Evidence{
			Object: fieldpath.Slice(d), Path: fieldpath.Device(d, fmt.Sprintf("capacity[%q]", short.capacity)),
			Found: short.found, Required: short.wanted,
		},
	}
}

// CheckTaints rejects a device with a taint that the request does not tolerate.
func (c *Checks) CheckTaints(d *cluster.Device) *Reason {
	if !c.enabled("DRADeviceTaints") {
		return nil
	}
	for _, taint := range d.Taints {
		if taint.Effect != resourceapi.DeviceTaintEffectNoSchedule && taint.Effect != resourceapi.DeviceTaintEffectNoExecute {
			continue
		}
		if slices.ContainsFunc(c.Request.Tolerations, func(t resourceapi.DeviceToleration) bool {
			return resourceclaim.ToleratesTaint(t, taint)
		}) {
			continue
		}
		holder, path := fieldpath.TaintSource(c.Facts, d, taint)
		return &Reason{
			Rank: rankTaint, Code: api.DeviceTainted, Label: "tainted", Text: taint.String(),
			Fact: api.Evidence{Object: holder, Path: path, Found: taint.String(), Required: "a toleration in " + c.Request.Path + ".tolerations"},
		}
	}
	return nil
}

// CheckConstraints finds devices that no constraint can ever take, whatever
// the other devices are: those without the attribute, and those of which it is
// an empty list (attributeAsSet of structured/internal/experimental).
func (c *Checks) CheckConstraints(ctx context.Context, d *cluster.Device) *Reason {
	for _, constraint := range c.Request.Constraints {
		name := constraint.Attribute
		fact := api.Evidence{Object: fieldpath.Slice(d), Path: fieldpath.Device(d, fmt.Sprintf("attributes[%q]", name)), Found: "not set", Required: constraint.String()}
		if at := c.Request.DerivedAt(name); at >= 0 {
			fact.Object, fact.Path = whatif.ClaimObject(c.Request.Claim), fmt.Sprintf("%s.derivedAttributes[%d]", c.Request.Path, at)
			if !c.enabled("DRADerivedAttributes") {
				return featureOff(RankConstraint, "DRADerivedAttributes", fact.Object, fact.Path)
			}
		}
		value, ok, err := c.Attribute(ctx, d, name)
		switch {
		case err != nil:
			fact.Found = err.Error()
			return &Reason{Rank: RankConstraint, Code: api.SelectorError, Label: "derived attribute fails", Text: err.Error(), Fact: fact}
		case !ok:
			return &Reason{
				Rank: RankConstraint, Code: api.AttributeMissing, Label: "attribute missing",
				Text: fmt.Sprintf("has no attribute %s%s", name, c.nearAttribute(name)),
				lack: fmt.Sprintf("without attribute %s", name), Fact: fact,
			}
		case c.enabled("DRAListTypeAttributes") && len(ValueTexts(value)) == 0:
			fact.Found = "an empty list"
			return &Reason{
				Rank: RankConstraint, Code: api.AttributeMissing, Label: "attribute empty",
				Text: fmt.Sprintf("attribute %s is an empty list, which no constraint takes", name),
				lack: "with an empty list as the attribute of a constraint", Fact: fact,
			}
		}
	}
	return nil
}

// Attribute looks up what a constraint compares: a derived attribute of the
// request or else one of the device.
func (c *Checks) Attribute(ctx context.Context, d *cluster.Device, name resourceapi.FullyQualifiedName) (resourceapi.DeviceAttribute, bool, error) {
	if at := c.Request.DerivedAt(name); at >= 0 && c.enabled("DRADerivedAttributes") {
		derived := &c.Request.Derived[at]
		value, err := c.Selectors.DerivedAttribute(ctx, derived, d.ID.Driver, d.Device)
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
func (c *Checks) nearAttribute(name resourceapi.FullyQualifiedName) string {
	text := ", which " + c.Catalog.spread(selector.Attribute(resourceapi.QualifiedName(name), ""))
	if !c.MissingEverywhere(name) {
		return text
	}
	return text + c.NearAttribute(name)
}

// MissingEverywhere reports whether no device at all has an attribute that a
// constraint is about, and the request does not derive it.
func (c *Checks) MissingEverywhere(name resourceapi.FullyQualifiedName) bool {
	return c.Request.DerivedAt(name) < 0 && c.Catalog.Words().Count(selector.Attribute(resourceapi.QualifiedName(name), "")) == 0
}

// NearAttribute suggests an attribute that some device has.
func (c *Checks) NearAttribute(name resourceapi.FullyQualifiedName) string {
	return naming.DidYouMean(string(name), c.Catalog.Attributes())
}

func featureOff(rank int, gate, holder, path string) *Reason {
	return &Reason{
		Rank: rank, Code: api.FeatureDisabled, Label: "feature off", Text: "needs the feature gate " + gate,
		Fact: api.Evidence{Object: holder, Path: path, Required: gate + "=true"},
	}
}

// MayPass reports whether a reason against a device may pass while the device
// and what is asked for stay the same.
func (r *Reason) MayPass() bool {
	switch r.Code {
	case api.DeviceAllocated, api.CountersExhausted, api.CompatibilityGroupConflict, api.DeviceTainted, api.PoolIncomplete, api.FeatureDisabled, api.BindingConditionsUnsupported:
		return true
	case api.CapacityInsufficient:
		return r.Rank == RankCapacityLeft
	default:
		return false
	}
}

// holder is the claim that has the device, if that is the reason.
func (r *Reason) holder() string {
	if r.Code != api.DeviceAllocated {
		return ""
	}
	return r.Fact.Object
}
