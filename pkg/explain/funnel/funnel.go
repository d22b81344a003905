// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package funnel

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
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

// Cluster is the cluster as one explanation sees it: the nodes where the pod may
// go, those where it may not, and the pools that each can reach.
type Cluster struct {
	Alloc      *allocator.Allocator
	Candidates []*corev1.Node
	// Unsuitable has the first misfit of each node that the pod cannot use,
	// Misfits all of them by the node's name.
	Unsuitable []UnsuitableNode
	Misfits    map[string][]UnsuitableNode
	// Pools are those of each candidate, in the allocator's order.
	Pools map[string][]*cluster.NodePool
}

// UnsuitableNode is a node that the pod cannot use, and one reason.
type UnsuitableNode struct {
	Node   *corev1.Node
	Misfit cluster.Misfit
	Code   api.Code
	// Claim is the pod's allocated claim that the misfit is about, if any.
	Claim *resourceapi.ResourceClaim
}

// Evidence proves that the pod cannot use the node.
func (u UnsuitableNode) Evidence() api.Evidence {
	e := api.Evidence{Object: whatif.Object(api.KindNode, "", u.Node.Name), Path: u.Misfit.Path, Found: u.Misfit.Found, Required: u.Misfit.Wanted}
	if u.Claim != nil {
		e.Object, e.Found, e.Required = whatif.ClaimObject(u.Claim), u.Misfit.Wanted, u.Node.Name
	}
	return e
}

// Funnel accounts for every device of every pool for one request.
type Funnel struct {
	Checks  *Checks
	Request *claimspec.Request
	// Reasons has the furthest reason over all nodes, nil for a device that is
	// eligible on at least one.
	Reasons map[*resourceapi.Device]*Reason
	Devices []cluster.Device
	// Eligible counts the eligible devices by node.
	Eligible map[string]int
	// shared counts the eligible devices of the pools that look the same to
	// several nodes, and counts has what else is known about them.
	shared map[PoolOnNode]int
	counts map[PoolOnNode]*Counts
	// apart is set if devices are listed together only if the same fact holds
	// for them.
	apart bool
}

// PoolOnNode is what a node sees of a pool, as far as it differs between nodes.
type PoolOnNode struct {
	pool *cluster.NodePool
	// Optional reports whether the node can do without node operations.
	Optional bool
}

// OnNode is what the node sees of the pool.
func OnNode(pool *cluster.NodePool, node *corev1.Node) PoolOnNode {
	return PoolOnNode{pool, slices.Contains(node.Status.DeclaredFeatures, "DRAOptionalNodeOperations")}
}

// New makes the funnel of all devices, or that of those which a certain
// node can reach.
func New(ctx context.Context, s *Cluster, only *corev1.Node, c *Checks) (*Funnel, error) {
	f := &Funnel{
		Checks: c, Request: c.Request,
		Reasons:  make(map[*resourceapi.Device]*Reason),
		Eligible: make(map[string]int),
		shared:   make(map[PoolOnNode]int),
		counts:   make(map[PoolOnNode]*Counts),
	}
	if only != nil {
		f.addOnly(ctx, s, only)
		return f, ctx.Err()
	}
	for _, pool := range s.Alloc.Facts.Pools.All() {
		f.addDevices(ctx, pool, pool.Obsolete)
		f.addDevices(ctx, pool, pool.Slices)
	}
	for _, node := range s.Candidates {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, pool := range s.Pools[node.Name] {
			if count := f.addPool(ctx, node, pool); count > 0 {
				f.Eligible[node.Name] += count
			}
		}
	}
	f.addUnsuitable(s)
	f.addRest()
	return f, nil
}

// addDevices lists devices and finds those of other classes, which no further
// check is made for.
func (f *Funnel) addDevices(ctx context.Context, pool *cluster.Pool, from []*resourceapi.ResourceSlice) {
	for _, slice := range from {
		for i := range slice.Spec.Devices {
			d := DeviceIn(pool, slice, i)
			f.Devices = append(f.Devices, d)
			if r := f.Checks.CheckClass(ctx, &d); r != nil && r.Code == api.ClassSelectorFalse {
				f.Reasons[d.Device] = r
			}
		}
	}
}

// DeviceIn is the device of a slice at an index.
func DeviceIn(pool *cluster.Pool, slice *resourceapi.ResourceSlice, index int) cluster.Device {
	device := &slice.Spec.Devices[index]
	return cluster.Device{
		ID:     cluster.DeviceID{Driver: pool.Driver, Pool: pool.Name, Device: device.Name},
		Device: device, Slice: slice, Pool: pool,
	}
}

// note keeps the reason that got a device furthest.
func (f *Funnel) record(device *resourceapi.Device, r *Reason) {
	have, known := f.Reasons[device]
	if !known || have != nil && have.Code != api.ClassSelectorFalse && (r == nil || r.Rank > have.Rank) {
		f.Reasons[device] = r
	}
}

// addPool notes what becomes of the devices that a pool has for a node, and
// returns how many of them are eligible.
func (f *Funnel) addPool(ctx context.Context, node *corev1.Node, pool *cluster.NodePool) int {
	seen := OnNode(pool, node)
	if count, known := f.shared[seen]; known {
		return count
	}
	count := 0
	EachDevice(pool, func(d *cluster.Device, r *Reason) {
		if r == nil {
			r = f.Checks.Device(ctx, d, node)
		}
		f.record(d.Device, r)
		if r == nil {
			count++
		}
	})
	if !pool.Local {
		f.shared[seen] = count
	}
	return count
}

// EachDevice visits what a pool has for a node. Kept is why the allocator does
// not get to see a device, because of its pool or its slice, or nil if it does.
func EachDevice(pool *cluster.NodePool, visit func(d *cluster.Device, kept *Reason)) {
	slice := func(s *resourceapi.ResourceSlice, kept *Reason) {
		for i := range s.Spec.Devices {
			d := DeviceIn(pool.Pool, s, i)
			visit(&d, kept)
		}
	}
	for i := range pool.Ignored {
		slice(pool.Ignored[i].Slice, IgnoredReason(&pool.Ignored[i]))
	}
	for _, s := range pool.Older {
		slice(s, obsoleteReason(pool.Pool))
	}
	if kept := PoolReason(pool); kept != nil {
		for _, s := range pool.Slices {
			slice(s, kept)
		}
	}
	for i := range pool.Devices {
		visit(&pool.Devices[i], nil)
	}
}

// IgnoredReason tells why the allocator does not look at a slice.
func IgnoredReason(ignored *cluster.IgnoredSlice) *Reason {
	r := &Reason{
		Rank: rankIgnored, Code: api.FeatureDisabled, Label: "feature off", Text: ignored.Reason,
		Fact: api.Evidence{Object: whatif.Object("ResourceSlice", "", ignored.Slice.Name), Required: ignored.Gate + "=true"},
	}
	if ignored.Gate == "" {
		r.Code, r.Label, r.Fact.Required = api.PoolInvalid, "slice invalid", ""
	}
	return r
}

// PoolReason tells why a whole pool is of no use on a node.
func PoolReason(pool *cluster.NodePool) *Reason {
	switch {
	case pool.Outdated:
		return obsoleteReason(pool.Pool)
	case pool.Incomplete:
		text := fmt.Sprintf("%d of %d slices of pool %s published", len(pool.Pool.Slices), pool.Pool.Expected, pool.Pool.Name)
		if int64(len(pool.Pool.Slices)) > pool.Pool.Expected {
			text = fmt.Sprintf("pool %s has %s", pool.Pool.Name, pool.Pool.WhyIncomplete())
		}
		return &Reason{
			Rank: RankPool, Code: api.PoolIncomplete, Label: "pool incomplete",
			Text: text,
			Fact: api.Evidence{
				Object: fieldpath.Pool(pool.Pool), Path: "spec.pool.resourceSliceCount",
				Found: english.Count(len(pool.Pool.Slices), "slice"), Required: fmt.Sprint(pool.Pool.Expected),
			},
		}
	case pool.Invalid != "":
		return &Reason{
			Rank: RankPool, Code: api.PoolInvalid, Label: "pool invalid",
			Text: fmt.Sprintf("pool %s: %s", pool.Pool.Name, pool.Invalid),
			Fact: api.Evidence{Object: fieldpath.Pool(pool.Pool), Found: pool.Invalid},
		}
	default:
		return nil
	}
}

func obsoleteReason(pool *cluster.Pool) *Reason {
	return &Reason{
		Rank: rankObsolete, Code: api.PoolObsolete, Label: "obsolete",
		Text: fmt.Sprintf("older than generation %d of pool %s", pool.Generation, pool.Name),
		Fact: api.Evidence{Object: fieldpath.Pool(pool), Path: "spec.pool.generation", Required: fmt.Sprint(pool.Generation)},
	}
}

// addUnsuitable notes the nodes that the pod cannot use for the devices that
// they have, of a device for several of them the first.
func (f *Funnel) addUnsuitable(s *Cluster) {
	seen := map[*cluster.NodePool]bool{}
	for _, u := range s.Unsuitable {
		r := UnsuitableReason(u)
		for _, pool := range s.Pools[u.Node.Name] {
			if seen[pool] {
				continue
			}
			seen[pool] = true
			EachDevice(pool, func(d *cluster.Device, _ *Reason) {
				if d.Slice.Spec.Pool.Generation == pool.Pool.Generation {
					f.record(d.Device, r)
				}
			})
		}
	}
}

// UnsuitableReason is the reason for the devices of a node that the pod cannot use.
func UnsuitableReason(u UnsuitableNode) *Reason {
	return &Reason{
		Rank: rankUnsuitable, Code: u.Code, Label: "node not suitable", Text: u.Misfit.Reason,
		Fact: u.Evidence(),
	}
}

// addRest accounts for the devices that no node can reach.
func (f *Funnel) addRest() {
	for i := range f.Devices {
		d := &f.Devices[i]
		if _, known := f.Reasons[d.Device]; known {
			continue
		}
		if slices.Contains(d.Pool.Obsolete, d.Slice) {
			f.record(d.Device, obsoleteReason(d.Pool))
			continue
		}
		f.record(d.Device, Unreached(f.Checks.Snap, d))
	}
}

// Unreached is the reason for a device that no node can reach.
func Unreached(snap *snapshot.Snapshot, d *cluster.Device) *Reason {
	name, all, selector := d.NodeSelection()
	text, field := eligibility.OutOfReach(snap, d), "nodeName"
	fact := api.Evidence{Object: fieldpath.Slice(d), Required: "a node of the cluster"}
	switch {
	case name != nil && *name != "":
		fact.Found = *name
	case all != nil && *all:
		field, fact.Found = "allNodes", "true"
	case selector != nil:
		field, fact.Found = "nodeSelector", DeviceNodes(d)
	}
	if fact.Path = "spec." + field; perDevice(d.Slice) {
		fact.Path = fieldpath.Device(d, field)
	}
	return &Reason{Rank: RankReach, Code: api.NodeNotReachable, Label: "not reachable", Text: text, Fact: fact}
}

// ClassHasDevices reports whether the class has devices anywhere.
func (f *Funnel) ClassHasDevices() bool {
	return slices.ContainsFunc(f.Devices, func(d cluster.Device) bool { return !f.OtherClass(d.Device) })
}

// OtherClass reports whether the class does not select a device.
func (f *Funnel) OtherClass(device *resourceapi.Device) bool {
	r := f.Reasons[device]
	return r != nil && r.Code == api.ClassSelectorFalse
}

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
		if count > out.MostOnOneNode || count == out.MostOnOneNode && naming.Compare(node, out.BestNode) < 0 {
			out.MostOnOneNode, out.BestNode = count, node
		}
	}
	groups := map[string]*rejectionGroup{}
	var order []*rejectionGroup
	for i := range f.Devices {
		d := &f.Devices[i]
		why := f.Reasons[d.Device]
		if why == nil {
			out.Eligible++
			out.EligibleDevices = append(out.EligibleDevices, d.ID.String())
			continue
		}
		key := string(why.Code) + "\x00" + why.Label
		if why.Code != api.ClassSelectorFalse {
			key += "\x00" + why.Requirement() + "\x00" + why.lacks.String()
		}
		if why.Code != api.ClassSelectorFalse && f.apart {
			key += "\x00" + why.Text + "\x00" + why.holder()
		}
		group, ok := groups[key]
		if !ok {
			group = newRejectionGroup(why)
			groups[key] = group
			order = append(order, group)
		}
		group.add(d, why)
	}
	slices.SortStableFunc(order, func(a, b *rejectionGroup) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), naming.Compare(a.label, b.label), cmp.Compare(len(b.devices), len(a.devices)))
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

// rejectionGroup collects the devices that one check rejects.
type rejectionGroup struct {
	rank  int
	code  api.Code
	label string
	// requirement is that of the reasons.
	requirement string
	devices     []string
	texts       naming.Tally
	// values has what texts say of the value of something, if they do.
	values  map[string]subjectValue
	hints   naming.Tally
	lacks   selector.Reading
	drivers naming.Tally
	facts   map[api.Evidence]int
	// claims has those that the devices are allocated to, with their number.
	claims map[*resourceapi.ResourceClaim]int
	where  naming.Tally
	pools  naming.Tally
	// placed counts the devices that name a node.
	placed int
}

// subjectValue is the value that something has.
type subjectValue struct{ subject, value string }

func newRejectionGroup(r *Reason) *rejectionGroup {
	return &rejectionGroup{
		rank: r.Rank, code: r.Code, label: r.Label, requirement: r.Requirement(),
		texts: naming.Tally{}, values: map[string]subjectValue{}, hints: naming.Tally{}, lacks: r.lacks, drivers: naming.Tally{}, facts: map[api.Evidence]int{}, claims: map[*resourceapi.ResourceClaim]int{}, where: naming.Tally{}, pools: naming.Tally{},
	}
}

func (g *rejectionGroup) add(d *cluster.Device, r *Reason) {
	g.devices = append(g.devices, d.ID.String())
	g.texts[r.Text]++
	if r.value != "" {
		g.values[r.Text] = subjectValue{r.subject, r.value}
	}
	if r.hint != "" {
		g.hints[r.hint]++
	}
	g.facts[r.Fact]++
	if r.Claim != nil {
		g.claims[r.Claim]++
	}
	g.pools[d.ID.Pool]++
	g.drivers[d.ID.Driver]++
	if name, _, _ := d.NodeSelection(); name != nil {
		g.where[*name]++
		g.placed++
	}
}

// maxEvidence is how many facts a rejection shows, unless it is about one node
// only: the most frequent ones.
const maxEvidence = 10

func (g *rejectionGroup) rejection(r *claimspec.Request, most int) api.Rejection {
	facts := make([]api.Evidence, 0, len(g.facts))
	for fact, count := range g.facts {
		fact.Count = count
		facts = append(facts, fact)
	}
	slices.SortFunc(facts, func(a, b api.Evidence) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), naming.Compare(a.Object, b.Object), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Found, b.Found))
	})
	return api.Rejection{
		Code: g.code, Label: g.label, Count: len(g.devices), Message: g.message(r),
		Hint: g.hint(), Evidence: facts[:min(len(facts), most)], Where: g.place(), Devices: g.devices, Holders: g.holders(),
	}
}

// maxTexts is how many different facts a message names.
const maxTexts = 3

func (g *rejectionGroup) message(r *claimspec.Request) string {
	if g.code == api.DeviceAllocated {
		return HoldersText(g.holders())
	}
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
	if hint := g.hint(); hint != "" {
		message += "; " + hint
	}
	return message
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
	texts, others := all[:min(len(all), maxTexts)], all[min(len(all), maxTexts):]
	first := g.values[texts[0]]
	oneSubject := !slices.ContainsFunc(texts, func(text string) bool {
		return g.values[text].value == "" || g.values[text].subject != first.subject
	})
	parts := make([]string, 0, len(texts))
	for i, text := range texts {
		switch count := g.texts[text]; {
		case !oneSubject:
			parts = append(parts, fmt.Sprintf("%s (%d)", text, count))
		case i == 0:
			parts = append(parts, fmt.Sprintf("%s is %s on %s", first.subject, first.value, english.Count(count, "device")))
		default:
			parts = append(parts, fmt.Sprintf("%s on %d", g.values[text].value, count))
		}
	}
	switch {
	case len(others) == 0:
	case oneSubject:
		parts = append(parts, fmt.Sprintf("%s on %d", english.Count(len(others), "other value"), g.rest(others)))
	default:
		parts = append(parts, fmt.Sprintf("%s (%d)", english.Count(len(others), "other"), g.rest(others)))
	}
	return parts
}

// hint says what was probably meant.
func (g *rejectionGroup) hint() string {
	if hints := g.hints.Sorted(); len(hints) > 0 {
		return hints[0]
	}
	return ""
}

func (g *rejectionGroup) place() string {
	// Where not all devices name a node, the pools do.
	all := g.placed == len(g.devices)
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

// addOnly accounts for the devices that one node can reach, whatever else
// keeps the pod away from it.
func (f *Funnel) addOnly(ctx context.Context, s *Cluster, node *corev1.Node) {
	f.apart = true
	for i := range s.Pools[node.Name] {
		EachDevice(s.Pools[node.Name][i], func(d *cluster.Device, r *Reason) {
			if r != nil && !DeviceReaches(d, node) {
				return
			}
			f.Devices = append(f.Devices, *d)
			if other := f.Checks.CheckClass(ctx, d); other != nil && other.Code == api.ClassSelectorFalse {
				r = other
			} else if r == nil {
				r = f.Checks.Device(ctx, d, node)
			}
			f.Reasons[d.Device] = r
			if r == nil {
				f.Eligible[node.Name]++
			}
		})
	}
}
