// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

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
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/fieldpath"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// site is the cluster as one explanation sees it: the nodes where the pod may
// go, those where it may not, and the pools that each can reach.
type site struct {
	alloc      *allocator.Allocator
	candidates []*corev1.Node
	// unsuitable has the first misfit of each node that the pod cannot use,
	// misfits all of them by the node's name.
	unsuitable []unsuitableNode
	misfits    map[string][]unsuitableNode
	// pools are those of each candidate, in the allocator's order.
	pools map[string][]*allocator.NodePool
	// contents describes nodes by all that the allocator can see of them, if
	// claims look at no more than looks; see [inquiry.twins].
	contents map[*corev1.Node]string
	looks    looks
}

type unsuitableNode struct {
	node   *corev1.Node
	misfit allocator.Misfit
	code   api.Code
	// claim is the pod's allocated claim that the misfit is about, if any.
	claim *resourceapi.ResourceClaim
}

// evidence proves that the pod cannot use the node.
func (u unsuitableNode) evidence() api.Evidence {
	e := api.Evidence{Object: whatif.Object(api.KindNode, "", u.node.Name), Path: u.misfit.Path, Found: u.misfit.Found, Required: u.misfit.Wanted}
	if u.claim != nil {
		e.Object, e.Found, e.Required = whatif.ClaimObject(u.claim), u.misfit.Wanted, u.node.Name
	}
	return e
}

// funnel accounts for every device of every pool for one request.
type funnel struct {
	checks  *checks
	request *claimspec.Request
	// reasons has the furthest reason over all nodes, nil for a device that is
	// eligible on at least one.
	reasons map[*resourceapi.Device]*reason
	devices []allocator.Device
	// eligible counts the eligible devices by node.
	eligible map[string]int
	// shared counts the eligible devices of the pools that look the same to
	// several nodes, and censuses has what else is known about them.
	shared   map[view]int
	censuses map[view]*census
	// apart is set if devices are listed together only if the same fact holds
	// for them.
	apart bool
}

// view is what a node sees of a pool, as far as it differs between nodes.
type view struct {
	pool *allocator.NodePool
	// optional reports whether the node can do without node operations.
	optional bool
}

func viewOf(pool *allocator.NodePool, node *corev1.Node) view {
	return view{pool, slices.Contains(node.Status.DeclaredFeatures, "DRAOptionalNodeOperations")}
}

// newFunnel makes the funnel of all devices, or that of those which a certain
// node can reach.
func newFunnel(ctx context.Context, s *site, only *corev1.Node, c *checks) (*funnel, error) {
	f := &funnel{
		checks: c, request: c.request,
		reasons:  make(map[*resourceapi.Device]*reason),
		eligible: make(map[string]int),
		shared:   make(map[view]int),
		censuses: make(map[view]*census),
	}
	if only != nil {
		f.addOnly(ctx, s, only)
		return f, ctx.Err()
	}
	for _, pool := range s.alloc.Pools() {
		f.addDevices(ctx, pool, pool.Obsolete)
		f.addDevices(ctx, pool, pool.Slices)
	}
	for _, node := range s.candidates {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, pool := range s.pools[node.Name] {
			if count := f.addPool(ctx, node, pool); count > 0 {
				f.eligible[node.Name] += count
			}
		}
	}
	f.addUnsuitable(s)
	f.addRest()
	return f, nil
}

// addDevices lists devices and finds those of other classes, which no further
// check is made for.
func (f *funnel) addDevices(ctx context.Context, pool *allocator.Pool, from []*resourceapi.ResourceSlice) {
	for _, slice := range from {
		for i := range slice.Spec.Devices {
			d := deviceIn(pool, slice, i)
			f.devices = append(f.devices, d)
			if r := f.checks.checkClass(ctx, &d); r != nil && r.code == api.ClassSelectorFalse {
				f.reasons[d.Device] = r
			}
		}
	}
}

func deviceIn(pool *allocator.Pool, slice *resourceapi.ResourceSlice, index int) allocator.Device {
	device := &slice.Spec.Devices[index]
	return allocator.Device{
		ID:     allocator.DeviceID{Driver: pool.Driver, Pool: pool.Name, Device: device.Name},
		Device: device, Slice: slice, Pool: pool,
	}
}

// note keeps the reason that got a device furthest.
func (f *funnel) note(device *resourceapi.Device, r *reason) {
	have, known := f.reasons[device]
	if !known || have != nil && have.code != api.ClassSelectorFalse && (r == nil || r.rank > have.rank) {
		f.reasons[device] = r
	}
}

// addPool notes what becomes of the devices that a pool has for a node, and
// returns how many of them are eligible.
func (f *funnel) addPool(ctx context.Context, node *corev1.Node, pool *allocator.NodePool) int {
	seen := viewOf(pool, node)
	if count, known := f.shared[seen]; known {
		return count
	}
	count := 0
	eachDevice(pool, func(d *allocator.Device, r *reason) {
		if r == nil {
			r = f.checks.device(ctx, d, node)
		}
		f.note(d.Device, r)
		if r == nil {
			count++
		}
	})
	if !pool.Local {
		f.shared[seen] = count
	}
	return count
}

// eachDevice visits what a pool has for a node. Kept is why the allocator does
// not get to see a device, because of its pool or its slice, or nil if it does.
func eachDevice(pool *allocator.NodePool, visit func(d *allocator.Device, kept *reason)) {
	slice := func(s *resourceapi.ResourceSlice, kept *reason) {
		for i := range s.Spec.Devices {
			d := deviceIn(pool.Pool, s, i)
			visit(&d, kept)
		}
	}
	for i := range pool.Ignored {
		slice(pool.Ignored[i].Slice, ignoredReason(&pool.Ignored[i]))
	}
	for _, s := range pool.Older {
		slice(s, obsoleteReason(pool.Pool))
	}
	if kept := poolReason(pool); kept != nil {
		for _, s := range pool.Slices {
			slice(s, kept)
		}
	}
	for i := range pool.Devices {
		visit(&pool.Devices[i], nil)
	}
}

// ignoredReason tells why the allocator does not look at a slice.
func ignoredReason(ignored *allocator.IgnoredSlice) *reason {
	r := &reason{
		rank: rankIgnored, code: api.FeatureDisabled, label: "feature off", text: ignored.Reason,
		fact: api.Evidence{Object: whatif.Object("ResourceSlice", "", ignored.Slice.Name), Required: ignored.Gate + "=true"},
	}
	if ignored.Gate == "" {
		r.code, r.label, r.fact.Required = api.PoolInvalid, "slice invalid", ""
	}
	return r
}

// poolReason tells why a whole pool is of no use on a node.
func poolReason(pool *allocator.NodePool) *reason {
	switch {
	case pool.Outdated:
		return obsoleteReason(pool.Pool)
	case pool.Incomplete:
		text := fmt.Sprintf("%d of %d slices of pool %s published", len(pool.Pool.Slices), pool.Pool.Expected, pool.Pool.Name)
		if int64(len(pool.Pool.Slices)) > pool.Pool.Expected {
			text = fmt.Sprintf("pool %s has %s", pool.Pool.Name, pool.Pool.WhyIncomplete())
		}
		return &reason{
			rank: rankPool, code: api.PoolIncomplete, label: "pool incomplete",
			text: text,
			fact: api.Evidence{
				Object: fieldpath.Pool(pool.Pool), Path: "spec.pool.resourceSliceCount",
				Found: english.Count(len(pool.Pool.Slices), "slice"), Required: fmt.Sprint(pool.Pool.Expected),
			},
		}
	case pool.Invalid != "":
		return &reason{
			rank: rankPool, code: api.PoolInvalid, label: "pool invalid",
			text: fmt.Sprintf("pool %s: %s", pool.Pool.Name, pool.Invalid),
			fact: api.Evidence{Object: fieldpath.Pool(pool.Pool), Found: pool.Invalid},
		}
	default:
		return nil
	}
}

func obsoleteReason(pool *allocator.Pool) *reason {
	return &reason{
		rank: rankObsolete, code: api.PoolObsolete, label: "obsolete",
		text: fmt.Sprintf("older than generation %d of pool %s", pool.Generation, pool.Name),
		fact: api.Evidence{Object: fieldpath.Pool(pool), Path: "spec.pool.generation", Required: fmt.Sprint(pool.Generation)},
	}
}

// addUnsuitable notes the nodes that the pod cannot use for the devices that
// they have, of a device for several of them the first.
func (f *funnel) addUnsuitable(s *site) {
	seen := map[*allocator.NodePool]bool{}
	for _, u := range s.unsuitable {
		r := unsuitableReason(u)
		for _, pool := range s.pools[u.node.Name] {
			if seen[pool] {
				continue
			}
			seen[pool] = true
			eachDevice(pool, func(d *allocator.Device, _ *reason) {
				if d.Slice.Spec.Pool.Generation == pool.Pool.Generation {
					f.note(d.Device, r)
				}
			})
		}
	}
}

func unsuitableReason(u unsuitableNode) *reason {
	return &reason{
		rank: rankUnsuitable, code: u.code, label: "node not suitable", text: u.misfit.Reason,
		fact: u.evidence(),
	}
}

// addRest accounts for the devices that no node can reach.
func (f *funnel) addRest() {
	for i := range f.devices {
		d := &f.devices[i]
		if _, known := f.reasons[d.Device]; known {
			continue
		}
		if slices.Contains(d.Pool.Obsolete, d.Slice) {
			f.note(d.Device, obsoleteReason(d.Pool))
			continue
		}
		f.note(d.Device, unreached(f.checks.snap, d))
	}
}

// unreached is the reason for a device that no node can reach.
func unreached(snap *snapshot.Snapshot, d *allocator.Device) *reason {
	name, all, selector := d.NodeSelection()
	text, field := allocator.OutOfReach(snap, d), "nodeName"
	fact := api.Evidence{Object: fieldpath.Slice(d), Required: "a node of the cluster"}
	switch {
	case name != nil && *name != "":
		fact.Found = *name
	case all != nil && *all:
		field, fact.Found = "allNodes", "true"
	case selector != nil:
		field, fact.Found = "nodeSelector", deviceNodes(d)
	}
	if fact.Path = "spec." + field; perDevice(d.Slice) {
		fact.Path = fieldpath.Device(d, field)
	}
	return &reason{rank: rankReach, code: api.NodeNotReachable, label: "not reachable", text: text, fact: fact}
}

// classHasDevices reports whether the class has devices anywhere.
func (f *funnel) classHasDevices() bool {
	return slices.ContainsFunc(f.devices, func(d allocator.Device) bool { return !f.otherClass(d.Device) })
}

func (f *funnel) otherClass(device *resourceapi.Device) bool {
	r := f.reasons[device]
	return r != nil && r.code == api.ClassSelectorFalse
}

// explanation turns the funnel into its public form.
func (f *funnel) explanation(pools int) api.RequestExplanation {
	r := f.request
	out := api.RequestExplanation{
		Name: r.Name, DeviceClass: r.Class, Mode: string(r.Mode), AdminAccess: r.AdminAccess,
		Considered: len(f.devices), Pools: pools, EligibleNodes: len(f.eligible),
	}
	if !r.All() {
		out.Needs = r.Count
	}
	out.ExtendedResource = f.checks.extendedResource
	for node, count := range f.eligible {
		if count > out.MostOnOneNode || count == out.MostOnOneNode && naming.Compare(node, out.BestNode) < 0 {
			out.MostOnOneNode, out.BestNode = count, node
		}
	}
	groups := map[string]*rejectionGroup{}
	var order []*rejectionGroup
	for i := range f.devices {
		d := &f.devices[i]
		why := f.reasons[d.Device]
		if why == nil {
			out.Eligible++
			out.EligibleDevices = append(out.EligibleDevices, d.ID.String())
			continue
		}
		key := string(why.code) + "\x00" + why.label
		if why.code != api.ClassSelectorFalse {
			key += "\x00" + why.requirement() + "\x00" + why.lacks.String()
		}
		if why.code != api.ClassSelectorFalse && f.apart {
			key += "\x00" + why.text + "\x00" + why.holder()
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
			most = len(f.devices)
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

func newRejectionGroup(r *reason) *rejectionGroup {
	return &rejectionGroup{
		rank: r.rank, code: r.code, label: r.label, requirement: r.requirement(),
		texts: naming.Tally{}, values: map[string]subjectValue{}, hints: naming.Tally{}, lacks: r.lacks, drivers: naming.Tally{}, facts: map[api.Evidence]int{}, claims: map[*resourceapi.ResourceClaim]int{}, where: naming.Tally{}, pools: naming.Tally{},
	}
}

func (g *rejectionGroup) add(d *allocator.Device, r *reason) {
	g.devices = append(g.devices, d.ID.String())
	g.texts[r.text]++
	if r.value != "" {
		g.values[r.text] = subjectValue{r.subject, r.value}
	}
	if r.hint != "" {
		g.hints[r.hint]++
	}
	g.facts[r.fact]++
	if r.claim != nil {
		g.claims[r.claim]++
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
