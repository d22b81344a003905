// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// Explanation turns the funnel into its public form.
func (f *Funnel) Explanation(pools int) api.RequestExplanation {
	r := f.Request
	out := api.RequestExplanation{
		Name: r.Name, DeviceClass: r.Class, Mode: string(r.Mode), AdminAccess: r.AdminAccess,
		Considered: len(f.Devices), Pools: pools, EligibleNodes: len(f.Eligible),
	}
	if !r.All() {
		out.Needs = r.Count
	}
	out.ExtendedResource = f.Checks.ExtendedResource
	for node, count := range f.Eligible {
		if count > out.MostOnOneNode || count == out.MostOnOneNode && english.CompareNames(node, out.BestNode) < 0 {
			out.MostOnOneNode, out.BestNode = count, node
		}
	}
	groups := map[rejectionKey]*rejectionGroup{}
	var order []*rejectionGroup
	for i := 0; i < len(f.Devices); {
		d := &f.Devices[i]
		why := f.Reason(d)
		if why == nil {
			out.Eligible++
			out.EligibleDevices = append(out.EligibleDevices, d.ID.String())
			i++
			continue
		}
		key := rejectionKey{code: why.Code, label: why.Label}
		if why.Code != api.ClassSelectorFalse {
			key.lacks = why.Lacks
			if why.Brief == "" || f.apart {
				key.requirement = why.Requirement()
			}
		}
		if why.Code != api.ClassSelectorFalse && f.apart {
			key.text, key.holder = why.Text, why.Holder()
		}
		group, ok := groups[key]
		if !ok {
			group = newRejectionGroup(why)
			groups[key] = group
			order = append(order, group)
		}
		with := f.rejectedWith(i)
		group.add(f.Devices[i:i+with], why)
		i += with
	}
	slices.SortStableFunc(order, func(a, b *rejectionGroup) int {
		return cmp.Or(cmp.Compare(a.check, b.check), english.CompareNames(a.label, b.label), cmp.Compare(b.count, a.count))
	})
	for _, group := range order {
		most := maxEvidence
		if f.apart {
			most = len(f.Devices)
		}
		out.Rejected = append(out.Rejected, group.rejection(r, most))
	}
	return out
}

// rejectedWith returns how many devices from one on are of the same slice, for the same
// nodes, and rejected for the same reason. Devices of another class mostly are.
func (f *Funnel) rejectedWith(first int) int {
	d, n := &f.Devices[first], 1
	if ptr.Deref(d.Slice.Spec.PerDeviceNodeSelection, false) {
		return n
	}
	for why := f.Reason(d); first+n < len(f.Devices); n++ {
		if next := &f.Devices[first+n]; next.Slice != d.Slice || f.Reason(next) != why {
			break
		}
	}
	return n
}

// rejectionKey is the same for devices that are told of together.
type rejectionKey struct {
	code                     api.Code
	label, requirement, text string
	holder                   api.ObjectRef
	lacks                    selector.Reading
}

// rejectionGroup collects the devices that one check rejects.
type rejectionGroup struct {
	check Check
	code  api.Code
	label string
	// requirement is the requirement of the reasons; empty if they have different ones.
	requirement string
	// brief counts the devices with reasons that fewer words can describe, with their
	// requirements.
	brief map[*Reason]int
	// devices has them as they were added, of which there are count.
	devices [][]cluster.Device
	count   int
	texts   english.Tally
	// values has what texts say of the value of something, if they do.
	values map[string]nameValue
	hints  english.Tally
	// taintedBy has who has set the taints, and tainted when the first was set, if that is
	// known of all.
	taintedBy english.Tally
	tainted   *metav1.Time
	// hintDrivers has for each hint the driver that it says no device is of, if so.
	hintDrivers map[string]string
	lacks       selector.Reading
	drivers     english.Tally
	facts       map[api.Evidence]int
	// claims counts the devices of each claim that they are allocated to.
	claims map[*resourceapi.ResourceClaim]int
	where  english.Tally
	pools  english.Tally
	// placed counts the devices that name a node.
	placed int
}

// nameValue is the value that something has.
type nameValue struct{ name, value string }

func newRejectionGroup(r *Reason) *rejectionGroup {
	return &rejectionGroup{
		check: r.Check, code: r.Code, label: r.Label, requirement: r.Requirement(),
		brief: map[*Reason]int{}, texts: english.Tally{}, values: map[string]nameValue{}, hints: english.Tally{}, taintedBy: english.Tally{}, hintDrivers: map[string]string{}, lacks: r.Lacks, drivers: english.Tally{}, facts: map[api.Evidence]int{}, claims: map[*resourceapi.ResourceClaim]int{}, where: english.Tally{}, pools: english.Tally{},
	}
}

// add adds devices that are rejected for the same reason, see [Funnel.rejectedWith].
func (g *rejectionGroup) add(devices []cluster.Device, r *Reason) {
	d, n := &devices[0], len(devices)
	g.devices, g.count = append(g.devices, devices), g.count+n
	g.texts[r.Text] += n
	if r.Brief != "" {
		g.brief[r] += n
	}
	if r.Value != "" {
		g.values[r.Text] = nameValue{r.Name, r.Value}
	}
	if r.Hint != "" {
		g.hints[r.Hint] += n
		if r.HintDriver != "" {
			g.hintDrivers[r.Hint] = r.HintDriver
		}
	}
	if r.Taint != nil {
		if since := r.Taint.TimeAdded; len(g.taintedBy) == 0 || g.tainted != nil && since.Before(g.tainted) {
			g.tainted = since
		}
		g.taintedBy[r.TaintedBy] += n
	}
	g.facts[r.Fact] += n
	if r.Claim != nil {
		g.claims[r.Claim] += n
	}
	g.pools[d.ID.Pool] += n
	g.drivers[d.ID.Driver] += n
	if name, _, _ := d.NodeSelection(); name != nil {
		g.where[*name] += n
		g.placed += n
	}
}

// maxEvidence limits how many facts a rejection on several nodes shows: the most frequent
// ones.
const maxEvidence = 10

func (g *rejectionGroup) rejection(r *cluster.Request, most int) api.Rejection {
	facts := make([]api.Evidence, 0, len(g.facts))
	for fact, count := range g.facts {
		fact.Count = count
		facts = append(facts, fact)
	}
	facts = first(facts, most, func(a, b api.Evidence) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), english.CompareNames(a.Object.String(), b.Object.String()), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Found, b.Found), cmp.Compare(a.Required, b.Required))
	})
	return api.Rejection{
		Code: g.code, Label: g.label, Count: g.count, Message: g.message(r),
		Hint: g.hint(), HintDriver: g.hintDrivers[g.hint()], Evidence: facts, Where: g.place(), Devices: g.names(), Holders: g.holders(),
	}
}

// names returns the names of the devices, in a list that is made once: there can be very
// many.
func (g *rejectionGroup) names() []string {
	names := make([]string, 0, g.count)
	for _, devices := range g.devices {
		for i := range devices {
			names = append(names, devices[i].ID.String())
		}
	}
	return names
}

// first sorts a list, and keeps so many of it, in a list that has room for no more. Where they
// are few of many, most are looked at once.
func first[T any](list []T, most int, compare func(a, b T) int) []T {
	kept := list[:0]
	if most >= len(list) {
		slices.SortFunc(list, compare)
		return list
	}
	for _, x := range list {
		if len(kept) == most && compare(x, kept[most-1]) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(kept, x, compare)
		kept = slices.Insert(kept[:min(len(kept), most-1)], at, x)
	}
	return slices.Clone(kept)
}

func (g *rejectionGroup) message(r *cluster.Request) string {
	if g.code == api.DeviceAllocated {
		return HoldersText(g.holders())
	}
	g.shorten()
	sorted := g.texts.Sorted()
	parts := sorted
	if len(sorted) > 1 {
		parts = g.several(sorted)
	}
	comma := ", "
	if len(parts) > 1 && strings.Contains(strings.Join(sorted, ""), comma) {
		comma = "; "
	}
	message := strings.Join(parts, comma)
	if g.requirement != "" && g.code != api.ClassSelectorFalse {
		if len(parts) > 1 {
			comma = "; "
		}
		message += comma + g.requirement
	}
	if g.lacks != (selector.Reading{}) && len(g.texts) == 1 {
		message += g.lacking(r.Class)
	}
	if len(g.taintedBy) > 0 {
		message += fmt.Sprintf(", set by %s%s", english.JoinAnd(g.taintedBy.Sorted()), SinceText(g.tainted))
	}
	if hint := g.hint(); hint != "" {
		message += "; " + hint
	}
	return message
}

// shorten leaves less words, where there are many texts or several requirements.
func (g *rejectionGroup) shorten() {
	several := false
	for r := range g.brief {
		several = several || r.Requirement() != g.requirement
	}
	if len(g.brief) == 0 || !several && len(g.texts) <= MaxTexts {
		return
	}
	g.texts = english.Tally{}
	for r, devices := range g.brief {
		text := r.Brief
		if several {
			text += english.PrecededBy(", ", r.Requirement())
		}
		g.texts[text] += devices
	}
	if several {
		g.requirement = ""
	}
}

// lacking says after the number of devices that have a value which do not.
func (g *rejectionGroup) lacking(class string) string {
	var drivers []string
	own := false
	for _, name := range g.drivers.Sorted() {
		drivers = append(drivers, fmt.Sprintf("%d of driver %s", g.drivers[name], name))
		own = own || name == g.lacks.Domain
	}
	text := ", not on " + english.JoinAnd(drivers)
	if !own && class != "" {
		// The expression is written for devices of another driver.
		text += ", which class " + class + " does not exclude"
	}
	return text
}

// rest counts the devices with other texts.
func (g *rejectionGroup) rest(texts []string) int {
	devices := 0
	for _, text := range texts {
		devices += g.texts[text]
	}
	return devices
}

// several lists the first of different facts and counts the others, each with
// the number of devices that it is about: "memory is 80Gi on 12 devices", "141Gi on
// 4", "2 other values on 3".
func (g *rejectionGroup) several(all []string) []string {
	texts, others := all[:min(len(all), MaxTexts)], all[min(len(all), MaxTexts):]
	first := g.values[texts[0]]
	oneName := !slices.ContainsFunc(texts, func(text string) bool {
		return g.values[text].value == "" || g.values[text].name != first.name
	})
	parts := make([]string, 0, len(texts))
	for i, text := range texts {
		switch count := g.texts[text]; {
		case !oneName:
			parts = append(parts, fmt.Sprintf("%s (%d)", text, count))
		case i == 0:
			parts = append(parts, fmt.Sprintf("%s is %s on %s", first.name, first.value, english.Count(count, "device")))
		default:
			parts = append(parts, fmt.Sprintf("%s on %d", g.values[text].value, count))
		}
	}
	switch {
	case len(others) == 0:
	case oneName:
		parts = append(parts, fmt.Sprintf("%s on %d", english.Count(len(others), "other value"), g.rest(others)))
	default:
		parts = append(parts, fmt.Sprintf("%s (%d)", english.Count(len(others), "other"), g.rest(others)))
	}
	return parts
}

// hint suggests another value or attribute.
func (g *rejectionGroup) hint() string {
	if hints := g.hints.Sorted(); len(hints) > 0 {
		return hints[0]
	}
	return ""
}

func (g *rejectionGroup) place() string {
	// Where not all devices name a node, the pools do.
	all := g.placed == g.count
	switch {
	case all && len(g.where) == 1:
		return g.where.Sorted()[0]
	case all && len(g.where) > 1:
		return english.Count(len(g.where), "node")
	case len(g.pools) == 1:
		return "pool " + g.pools.Sorted()[0]
	default:
		return english.Count(len(g.pools), "pool")
	}
}

// holders sums up the claims of allocated devices; it is nil for any others, and
// if the claims are not known.
func (g *rejectionGroup) holders() *api.Holders {
	if len(g.claims) == 0 {
		return nil
	}
	h, namespaces := &api.Holders{Claims: len(g.claims)}, english.Tally{}
	for claim, devices := range g.claims {
		namespaces[claim.Namespace] += devices
		if len(g.claims) == 1 {
			h.Claim = api.RefTo(api.KindClaim, claim)
		}
	}
	for _, namespace := range namespaces.Sorted() {
		h.Namespaces = append(h.Namespaces, api.NamespaceCount{Namespace: namespace, Devices: namespaces[namespace]})
	}
	return h
}

// HoldersText says whose the devices are, after "allocated".
func HoldersText(h *api.Holders) string {
	switch {
	case h == nil:
		return ""
	case h.Claim.Name != "":
		return "to claim " + h.Claim.QualifiedName()
	case len(h.Namespaces) == 1:
		return fmt.Sprintf("to %s in namespace %s", english.Count(h.Claims, "claim"), h.Namespaces[0].Namespace)
	case len(h.Namespaces) > 1:
		return fmt.Sprintf("to %s, %s in namespace %s", english.Count(h.Claims, "claim"), english.Count(h.Namespaces[0].Devices, "device"), h.Namespaces[0].Namespace)
	default:
		return ""
	}
}
