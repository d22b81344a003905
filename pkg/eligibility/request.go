// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// findFunc is a check with the same result for all nodes.
type findFunc func(ctx context.Context, c *Checks, d *cluster.Device) *Reason

// Checks makes the checks of devices for one request.
type Checks struct {
	Cluster *cluster.Cluster

	Selectors *selector.Evaluator
	Channel   string
	// ExtendedResource is the resource that the request stands for, if any.
	ExtendedResource string
	Request          *cluster.Request
	Class            *resourceapi.DeviceClass
	Catalog          *Catalog

	// static are the checks with the same result for all nodes, and found has their
	// results.
	static []findFunc
	found  cluster.DeviceTable[*Reason]
	// unmatched has the reasons of selectors so far.
	unmatched map[unmatched]*Reason
}

func (c *Checks) enabled(gate string) bool { return c.Cluster.Gates.Enabled(gate) }

// CheckNode makes the checks that depend on the node, for which the device must be.
func (c *Checks) CheckNode(d *cluster.Device, node *corev1.Node) *Reason {
	return onNode(c.Cluster, d, node)
}

// CheckNodeOperations rejects a device without node operations, for a node that does not
// support that.
func (c *Checks) CheckNodeOperations(d *cluster.Device, node *corev1.Node) *Reason {
	return nodeOperations(c.Cluster.Gates, d, node)
}

// CheckInUse rejects a device that is allocated and cannot be shared.
func (c *Checks) CheckInUse(d *cluster.Device) *Reason {
	if c.Request.AdminAccess || !c.Cluster.Usage.InUse(d.ID) {
		return nil
	}
	r := &Reason{
		Check: InUse, Code: api.DeviceAllocated, Label: "allocated", Text: "allocated",
		Fact: api.Evidence{Path: "status.allocation.devices.results"},
	}
	for _, holder := range c.Cluster.Usage.Holders(d.ID) {
		if holder.Result.AdminAccess == nil || !*holder.Result.AdminAccess {
			r.Claim, r.Fact.Object = holder.Claim, api.RefTo(api.KindClaim, holder.Claim)
			break
		}
	}
	return r
}

// CheckBinding rejects a device with binding conditions that the cluster does not
// support.
func (c *Checks) CheckBinding(d *cluster.Device) *Reason {
	return bindingConditions(c.Cluster.Gates, d)
}

const (
	// classLabel is the label of devices that the class does not select.
	classLabel = "other class"
	// classSelectorLabel is the label where the part of the selector is not known.
	classSelectorLabel = "class selector"
)

// CheckClass rejects a device that the class does not select.
func (c *Checks) CheckClass(ctx context.Context, d *cluster.Device) *Reason {
	if c.Class == nil {
		return nil
	}
	for i, s := range c.Class.Spec.Selectors {
		if r := c.checkSelector(ctx, d, s, Class, i); r != nil {
			return r
		}
	}
	return nil
}

// ClassTakesAllOrNone reports whether the class selects all devices of a slice or none, for
// one reason.
func (c *Checks) ClassTakesAllOrNone(slice *resourceapi.ResourceSlice) bool {
	return c.Class == nil || !slices.ContainsFunc(c.Class.Spec.Selectors, func(s resourceapi.DeviceSelector) bool {
		return s.CEL != nil && !c.Selectors.SameForAll(c.Selectors.Compile(s.CEL.Expression), slice.Spec.Devices)
	})
}

// CheckSelectors rejects a device that a selector of the request does not match.
func (c *Checks) CheckSelectors(ctx context.Context, d *cluster.Device) *Reason {
	if r := c.CheckClass(ctx, d); r != nil {
		return r
	}
	for i, s := range c.Request.Selectors {
		if r := c.checkSelector(ctx, d, s, Selector, i); r != nil {
			return r
		}
	}
	return nil
}

// unmatched is a selector that does not match: its number in the request, or in its class,
// and its result.
type unmatched struct {
	request *cluster.Request
	result  *selector.Result
	check   Check
	index   int
}

// checkSelector rejects a device that a selector of the class or of the request does not
// match. Devices with the same result have the same values, and so the same reason.
func (c *Checks) checkSelector(ctx context.Context, d *cluster.Device, s resourceapi.DeviceSelector, check Check, index int) *Reason {
	if s.CEL == nil {
		return nil
	}
	result := c.Selectors.Evaluate(ctx, c.Selectors.Compile(s.CEL.Expression), d.ID.Driver, d.Device)
	if result.Matches {
		return nil
	}
	key := unmatched{c.Request, result, check, index}
	r, known := c.unmatched[key]
	if known {
		return r
	}
	if check == Class {
		r = c.CheckSelector(ctx, d, s, check, api.ClassSelectorFalse, classLabel,
			api.Ref("DeviceClass", "", c.Class.Name), fmt.Sprintf("spec.selectors[%d].cel.expression", index))
	} else {
		object, path := cluster.ClaimSpecPath(c.Request.Claim, fmt.Sprintf("%s.selectors[%d].cel.expression", c.Request.Path, index))
		r = c.CheckSelector(ctx, d, s, check, api.RequestSelectorFalse, SelectorLabel(index, len(c.Request.Selectors)), object, path)
	}
	if c.unmatched == nil {
		c.unmatched = map[unmatched]*Reason{}
	}
	c.unmatched[key] = r
	return r
}

// CheckSelector rejects a device that one selector does not match. holder and path are the
// place of the selector.
func (c *Checks) CheckSelector(ctx context.Context, d *cluster.Device, s resourceapi.DeviceSelector, check Check, code api.Code, label string, holder api.ObjectRef, path string) *Reason {
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
			label = classSelectorLabel
		}
		text, lacks := c.failure(ctx, sel, result)
		return &Reason{
			Check: check, Code: api.SelectorError, Label: label + " fails", Checked: label, Text: text, Lacks: lacks,
			Fact: api.Evidence{Object: holder, Path: path, Found: found, Required: s.CEL.Expression},
		}
	}
	r := &Reason{
		Check: check, Code: code, Label: label, Text: found, wanted: s.CEL.Expression,
		Fact: api.Evidence{Object: holder, Path: path, Found: found, Required: s.CEL.Expression},
	}
	if detail.Failed != nil {
		unknown := c.Catalog.UnknownValue(detail.Failed)
		r.wanted, r.Fact.Required, r.Hint, r.HintDriver = detail.Failed.Wanted, detail.Failed.Expression, unknown.Text, unknown.Driver
		r.Name, r.Value, _ = detail.Failed.Reading(d.ID.Driver, d.Device)
	}
	return r
}

// failure says why a selector fails on a device, and which value the device lacks, if that
// is the reason.
func (c *Checks) failure(ctx context.Context, sel *selector.Selector, result *selector.Result) (text string, lacks selector.Reading) {
	text = english.OneLine(result.Err)
	if sel.Err != nil {
		return "does not compile", selector.Reading{}
	}
	if strings.Contains(text, "actual cost limit exceeded") {
		return overBudget(c.Selectors.Cost(sel)), selector.Reading{}
	}
	_, key, found := strings.Cut(text, "no such key: ")
	if !found {
		if part := result.Detail(ctx).Failed; part != nil {
			text += english.PrecededBy("; ", c.Catalog.mismatch(part))
		}
		return text, selector.Reading{}
	}
	for _, r := range result.Detail(ctx).Missing {
		if r.Domain == "" || r.Name != key {
			// A map in the expression itself can lack a key, too.
			continue
		}
		text += "; " + r.Noun() + " " + spread(c.Catalog.Words(), r)
		if c.Catalog.Words().Count(r) > 0 {
			return text, r
		}
		if !c.Catalog.Words().HasDomain(r.Domain) {
			text += ", and nothing else of that domain does"
		}
		return text + misnamed(c.Catalog.WordsOf(ctx, c.Class), r), selector.Reading{}
	}
	return text, selector.Reading{}
}

// CheckCapacity compares the capacity of the request with all capacity of the device
// ([Capacity]), or with its free part ([CapacityLeft]).
func (c *Checks) CheckCapacity(d *cluster.Device, check Check) *Reason {
	if !c.enabled("DRAConsumableCapacity") {
		return nil
	}
	var used map[resourceapi.QualifiedName]resource.Quantity
	if check == CapacityLeft {
		used = c.Cluster.Usage.Consumed(d.ID)
	}
	short, err := capacityShortage(c.Request.Capacity, d.Device, used, c.enabled("DRAFractionalCapacityRange"))
	switch {
	case err != nil:
		return &Reason{
			Check: check, Code: api.CapacityInsufficient, Label: "capacity", Text: err.Error(), Lack: "with a capacity that cannot be shared out",
			Fact: api.Evidence{Object: cluster.SliceObject(d), Path: cluster.DevicePath(d, "capacity")},
		}
	case short == nil:
		return nil
	}
	hint := ""
	if short.capacity != "" {
		hint = c.Catalog.unmeasured(selector.Capacity(short.capacity, d.ID.Driver)).String()
	}
	return &Reason{
		Check: check, Code: api.CapacityInsufficient, Label: "capacity", Text: short.message, wanted: short.required, Lack: short.lack, Hint: hint,
		Fact: api.Evidence{
			Object: cluster.SliceObject(d), Path: cluster.DevicePath(d, fmt.Sprintf("capacity[%q]", short.capacity)),
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
		holder, path := cluster.TaintSource(c.Cluster, d, taint)
		by := "driver " + d.ID.Driver
		if rule := c.Cluster.Taints.Rule(d, taint); rule != nil {
			by = "DeviceTaintRule " + rule.Name
		}
		return &Reason{
			Check: Taint, Code: api.DeviceTainted, Label: "tainted", Text: taint.String(), Taint: &taint, TaintedBy: by,
			Fact: api.Evidence{Object: holder, Path: path, Found: taint.String(), Required: "a toleration in " + c.Request.Path + ".tolerations"},
		}
	}
	return nil
}

// SinceText says since when a taint exists, as the end of a clause; empty if that is not
// known.
func SinceText(added *metav1.Time) string {
	if added == nil {
		return ""
	}
	return " since " + added.UTC().Format(time.RFC3339)
}

// CheckConstraints finds devices that no constraint can accept, whatever the other devices
// are: they lack the attribute, or it is an empty list (attributeAsSet of
// structured/internal/experimental).
func (c *Checks) CheckConstraints(ctx context.Context, d *cluster.Device) *Reason {
	for _, constraint := range c.Request.Constraints {
		name := constraint.Attribute
		fact := api.Evidence{Object: cluster.SliceObject(d), Path: cluster.DevicePath(d, fmt.Sprintf("attributes[%q]", name)), Found: "not set", Required: constraint.String()}
		if at := c.Request.DerivedAt(name); at >= 0 {
			fact.Object, fact.Path = cluster.ClaimSpecPath(c.Request.Claim, fmt.Sprintf("%s.derivedAttributes[%d]", c.Request.Path, at))
			if !c.enabled("DRADerivedAttributes") {
				return featureOff(Constraint, "DRADerivedAttributes", fact.Object, fact.Path)
			}
		}
		value, ok, err := c.Attribute(ctx, d, name)
		switch {
		case err != nil:
			fact.Found = err.Error()
			return &Reason{Check: Constraint, Code: api.SelectorError, Label: "derived attribute fails", Text: err.Error(), Fact: fact}
		case !ok:
			return &Reason{
				Check: Constraint, Code: api.AttributeMissing, Label: "attribute missing",
				Text: fmt.Sprintf("has no attribute %s%s", name, c.nearAttribute(name)),
				Lack: fmt.Sprintf("without attribute %s", name), Fact: fact,
			}
		case c.Cluster.Gates.ListsCompared() && len(ValueTexts(value)) == 0:
			fact.Found = "an empty list"
			return &Reason{
				Check: Constraint, Code: api.AttributeMissing, Label: "attribute empty",
				Text: fmt.Sprintf("attribute %s is an empty list, which no constraint takes", name),
				Lack: "with an empty list as the attribute of a constraint", Fact: fact,
			}
		}
	}
	return nil
}

// Attribute returns the attribute that a constraint compares: a derived attribute of the
// request or else of the device.
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

// nearAttribute suggests an attribute with a name similar to the required one, which the
// device lacks.
func (c *Checks) nearAttribute(name resourceapi.FullyQualifiedName) string {
	text := ", which " + spread(c.Catalog.Words(), selector.Attribute(resourceapi.QualifiedName(name), ""))
	if !c.MissingEverywhere(name) {
		return text
	}
	return text + c.NearAttribute(name)
}

// MissingEverywhere reports whether no device has the attribute of a constraint, and the
// request does not derive it.
func (c *Checks) MissingEverywhere(name resourceapi.FullyQualifiedName) bool {
	return c.Request.DerivedAt(name) < 0 && c.Catalog.Words().Count(selector.Attribute(resourceapi.QualifiedName(name), "")) == 0
}

// NearAttribute suggests an attribute that some device has.
func (c *Checks) NearAttribute(name resourceapi.FullyQualifiedName) string {
	return english.DidYouMean(string(name), c.Catalog.Attributes())
}

// SelectorLabel names one of several selectors of a request.
func SelectorLabel(index, count int) string {
	if count == 1 {
		return "selector"
	}
	return fmt.Sprintf("selector %d", index+1)
}

// bindingConditions rejects a device with binding conditions if the gates for them are off:
// the allocator then uses it for no request (isSelectable).
func bindingConditions(gates *cluster.Gates, d *cluster.Device) *Reason {
	if len(d.BindingConditions) == 0 || gates.BindingConditions() {
		return nil
	}
	return &Reason{
		Check: BindingConditions, Code: api.BindingConditionsUnsupported, Label: "binding conditions",
		Text: "has binding conditions, which need the feature gates " + cluster.GateBindingConditions + " and " + cluster.GateDeviceStatus,
		Fact: api.Evidence{Object: cluster.SliceObject(d), Path: cluster.DevicePath(d, "bindingConditions"), Found: strings.Join(d.BindingConditions, ", ")},
	}
}

// skipsNodeOperations reports whether the allocator uses a device only for nodes that
// declare DRAOptionalNodeOperations, and only if that gate is on. Only the experimental
// implementation knows the field (allocateDevice); the others allocate such devices like
// any other.
func skipsNodeOperations(gates *cluster.Gates, d *cluster.Device) bool {
	return len(d.Slice.Spec.SkipNodeOperations) > 0 && gates.Channel() == cluster.ChannelExperimental
}

// onNode makes the checks of a device whose result depends on the node.
func onNode(facts *cluster.Cluster, d *cluster.Device, node *corev1.Node) *Reason {
	if r := nodeOperations(facts.Gates, d, node); r != nil {
		return r
	}
	return partitionReason(d, facts.Partitions.ConflictOn(d, node))
}

// nodeOperations rejects a device without node operations if the gate is off, or the node
// does not support that. Without a node, only the gate counts.
func nodeOperations(gates *cluster.Gates, d *cluster.Device, node *corev1.Node) *Reason {
	switch {
	case !skipsNodeOperations(gates, d):
		return nil
	case !gates.Enabled(cluster.GateOptionalNodeOps):
		return featureOff(NodeOperations, cluster.GateOptionalNodeOps, cluster.SliceObject(d), "spec.skipNodeOperations")
	case node == nil || slices.Contains(node.Status.DeclaredFeatures, cluster.GateOptionalNodeOps):
		return nil
	}
	return &Reason{
		Check: NodeOperations, Code: api.NodeOperationUnsupported, Label: "node too old",
		Text: "the node does not declare " + cluster.GateOptionalNodeOps,
		Fact: api.Evidence{
			Object: api.Ref(api.KindNode, "", node.Name), Path: "status.declaredFeatures",
			Found: strings.Join(node.Status.DeclaredFeatures, ", "), Required: cluster.GateOptionalNodeOps,
		},
	}
}

// CheckPartition compares shared counters and compatibility groups with the rest that the
// allocated devices of the pool leave. Without a node, that is the rest for all nodes.
func (c *Checks) CheckPartition(d *cluster.Device, node *corev1.Node) *Reason {
	if h := c.Cluster.Partitions.ConflictOn(d, node); h != nil {
		return partitionReason(d, h)
	}
	return partitionReason(d, c.Cluster.Partitions.Conflict(d))
}

func partitionReason(d *cluster.Device, h *cluster.CounterConflict) *Reason {
	switch {
	case h == nil:
		return nil
	case h.Gate != "":
		return featureOff(Partition, h.Gate, cluster.SliceObject(d), cluster.DevicePath(d, "consumesCounters"))
	case h.CounterSet != "":
		others := groupsText(sets.List(h.Others.Groups))
		if h.Others.Declared && h.Others.Groups.Len() == 0 {
			others = "compatibility groups that have nothing in common"
		}
		return &Reason{
			Check: CompatibilityGroups, Code: api.CompatibilityGroupConflict, Label: "incompatible",
			Text: fmt.Sprintf("counter set %s is used by devices of %s", h.CounterSet, others),
			Fact: api.Evidence{
				Object: cluster.SliceObject(d), Path: cluster.DevicePath(d, "consumesCounters.compatibilityGroups"),
				Found: groupsText(h.Groups), Required: others,
			},
		}
	case h.Overcommitted != nil:
		text := fmt.Sprintf("counter %s of %s is overcommitted, so no device of its pool that uses counters can be allocated", h.Overcommitted.Counter, h.Overcommitted.CounterSet)
		return &Reason{
			Check: Counters, Code: api.CountersExhausted, Label: "counters", Text: text, Brief: text,
			Fact: api.Evidence{Object: cluster.PoolObject(d.Pool), Path: cluster.CounterPath(*h.Overcommitted), Found: h.Overcommitted.Left.String() + " available"},
		}
	default:
		use := h.Short
		by := make([]string, 0, len(use.By))
		for _, id := range use.By {
			by = append(by, id.Device)
		}
		brief := fmt.Sprintf("%s of %s available in counter %s", selector.QuantityText(use.Left), selector.QuantityText(use.Total), use.Counter)
		text := brief
		if len(by) > 0 {
			text += fmt.Sprintf(", used by %s", english.Sample(by, 3))
		}
		return &Reason{
			Check: Counters, Code: api.CountersExhausted, Label: "counters", Text: text, Brief: brief, wanted: selector.QuantityText(h.Required),
			Fact: api.Evidence{
				Object: cluster.PoolObject(d.Pool), Path: cluster.CounterPath(*use),
				Found: fmt.Sprintf("%s of %s available", use.Left.String(), use.Total.String()), Required: h.Required.String(),
			},
		}
	}
}

func groupsText(groups []string) string {
	if len(groups) == 0 {
		return "no compatibility group"
	}
	return "compatibility group " + english.JoinAnd(groups)
}
