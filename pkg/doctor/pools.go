// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// settled is how long a driver may take to publish a generation of its pool: until then, an
// odd pool is an update under way.
const settled = 5 * time.Minute

func poolChecks() []Check {
	published := []string{snapshot.ResourceSlices}
	return []Check{
		{
			Code: "DRA1201", Title: "incomplete pool", Severity: api.SeverityError, Needs: published,
			About:  "A pool has fewer ResourceSlices of its newest generation than its driver declares. The scheduler takes no device of it, and requests for all devices fail on every node that the pool is for.",
			Advice: "Read the log of the driver: the API server may have rejected a slice.",
			find:   poolCheck(incomplete),
		},
		{
			Code: "DRA1202", Title: "pool with too many slices", Severity: api.SeverityError, Needs: published,
			About:  "A pool has more ResourceSlices of its newest generation than its driver declares: an earlier driver has left one behind, or two drivers publish under one name. The scheduler takes no device of it for nodes whose own slices are not exactly as many as declared.",
			Advice: "Delete the slice that the running driver has not published.",
			find:   poolCheck(tooMany),
		},
		{
			Code: "DRA1203", Title: "invalid pool", Severity: api.SeverityError, Needs: published,
			About:  "A pool has two devices of one name, or a device consumes counters that no slice of the pool has. The scheduler takes no device of it.",
			Advice: "It is a bug of the driver, or two drivers share the name of the pool.",
			find:   poolCheck(invalid),
		},
		{
			Code: "DRA1204", Title: "slices of an earlier generation left", Severity: api.SeverityWarning, Needs: published,
			About:  "A pool still has ResourceSlices of an earlier generation, minutes after a newer one was published. Devices that are only in these are ignored, or still allocated for nodes that the newer generation has no slice for.",
			Advice: "If the driver runs, its log may say why it does not delete them; delete the slices if nobody updates them.",
			find:   poolCheck(leftOver),
		},
		{
			Code: "DRA1205", Title: "slice of a node that does not exist", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourceSlices, snapshot.ResourceNodes},
			About:  "A ResourceSlice names a node that the cluster does not have any more. Its devices count in lists and quotas of capacity, and no pod can get them.",
			Advice: "Delete the slice.",
			find:   findSlicesOfGoneNodes,
		},
		{
			Code: "DRA1206", Title: "slice without devices", Severity: api.SeverityWarning, Needs: published,
			About:  "A ResourceSlice has neither devices nor counters. The driver has found no hardware: it may have started before the kernel driver, or on the wrong node.",
			Advice: "Restart the driver's pod once the hardware is there, or keep the driver off the node.",
			find:   findEmptySlices,
		},
		{
			Code: "DRA1207", Title: "counters overcommitted", Severity: api.SeverityError, Needs: []string{snapshot.ResourceSlices, snapshot.ResourceClaims},
			About:  "The devices in use of a pool consume more of a counter than there is, mostly after a driver has changed its slices. The scheduler takes no further device of the pool that consumes counters.",
			Advice: "Nothing that runs has to be deleted: the scheduler places no further pod until enough devices are released. Find out what the driver changed, and let it publish the counters as they are.",
			find:   poolCheck(overcommitted),
		},
		{
			Code: "DRA1208", Title: "pool without a usable device", Severity: api.SeverityWarning, Needs: published,
			About:  "A pool is complete and has devices, of which the scheduler takes none on any node, whatever a claim asks for.",
			Advice: "'kubectl dra devices --pool NAME -o wide' has the reason for each device.",
			find:   findUnusablePools,
		},
		{
			Code: "DRA1209", Title: "slice of an earlier node", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourceSlices, snapshot.ResourceNodes},
			About:  "A ResourceSlice is owned by a node with another UID than the one that has the name now: the node was removed and came back, and the slice tells what the earlier one had. The garbage collector deletes such slices, and the driver publishes new ones.",
			Advice: "Check that kube-controller-manager runs, and restart the driver's pod on the node.",
			find:   findSlicesOfEarlierNodes,
		},
		{
			Code: "DRA1210", Title: "same hardware published twice", Severity: api.SeverityError, Needs: published,
			About:  "Two devices have the same UUID, or devices of two drivers on one node the same PCI address: both are one piece of hardware, which two claims can get at the same time.",
			Advice: "Run one driver for the hardware, or exclude it from one of them.",
			find:   findSameHardware,
		},
		{
			Code: "DRA1211", Title: "attribute with differing types", Severity: api.SeverityWarning, Needs: published,
			About:  "Devices of one driver have an attribute of the same name with different types, as during the update of a driver. A selector that compares it fails on those of the other type, and a selector that fails on one device keeps the scheduler from all nodes.",
			Advice: "Update the driver on all nodes.",
			find:   findMixedTypes,
		},
	}
}

// poolCheck returns a check of each pool.
func poolCheck(find func(*cluster, *facts.Pool) *api.Finding) func(context.Context, *cluster) ([]api.Finding, error) {
	return func(_ context.Context, in *cluster) ([]api.Finding, error) {
		var found []api.Finding
		for _, pool := range in.cluster.Pools.All() {
			if f := find(in, pool); f != nil {
				found = append(found, *f)
			}
		}
		return found, nil
	}
}

// aboutPool returns a finding about a pool with its slices as evidence.
func aboutPool(pool *facts.Pool, message string, evidence ...api.Evidence) *api.Finding {
	f := &api.Finding{Message: fmt.Sprintf("pool %s of driver %s %s", pool.Name, pool.Driver, message), Evidence: evidence}
	for _, slice := range pool.Slices {
		f.Objects = append(f.Objects, api.RefTo(kindSlice, slice))
	}
	return f
}

func declared(pool *facts.Pool) api.Evidence {
	return api.Evidence{
		Object: api.RefTo(kindSlice, pool.Slices[0]), Path: "spec.pool.resourceSliceCount",
		Found: fmt.Sprintf("%s of generation %d", english.Count(len(pool.Slices), "slice"), pool.Generation), Required: fmt.Sprint(pool.Expected),
	}
}

func incomplete(in *cluster, pool *facts.Pool) *api.Finding {
	if !pool.Incomplete || len(pool.Slices) >= int(pool.Expected) {
		return nil
	}
	f := aboutPool(pool, "is incomplete: "+pool.WhyIncomplete(), declared(pool))
	f.Remedy = pluginOf(in, pool)
	f.Remedy.Text += ": if the API server rejected a slice, its log may say why"
	return f
}

func tooMany(_ *cluster, pool *facts.Pool) *api.Finding {
	if !pool.Incomplete || len(pool.Slices) < int(pool.Expected) {
		return nil
	}
	f := aboutPool(pool, "has "+pool.WhyIncomplete(), declared(pool))
	f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "delete the slice that the running driver has not published"}
	return f
}

func invalid(_ *cluster, pool *facts.Pool) *api.Finding {
	if pool.Invalid == "" {
		return nil
	}
	f := aboutPool(pool, "is invalid: "+pool.Invalid, api.Evidence{Object: facts.PoolObject(pool), Path: "spec.devices", Found: pool.Invalid})
	f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "report it to the makers of the driver, or give the pools of two drivers different names"}
	return f
}

func leftOver(in *cluster, pool *facts.Pool) *api.Finding {
	newest := slices.MaxFunc(pool.Slices, func(a, b *resourceapi.ResourceSlice) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	if len(pool.Obsolete) == 0 || newest.CreationTimestamp.IsZero() || in.cluster.Snapshot.Now().Sub(newest.CreationTimestamp.Time) < settled {
		return nil
	}
	f := &api.Finding{Message: fmt.Sprintf("pool %s of driver %s still has %s of an earlier generation than %d",
		pool.Name, pool.Driver, english.Count(len(pool.Obsolete), "slice"), pool.Generation)}
	for _, slice := range pool.Obsolete {
		f.Objects = append(f.Objects, api.RefTo(kindSlice, slice))
		f.Evidence = append(f.Evidence, api.Evidence{
			Object: api.RefTo(kindSlice, slice), Path: "spec.pool.generation", Found: fmt.Sprint(slice.Spec.Pool.Generation), Required: fmt.Sprint(pool.Generation),
		})
	}
	f.Remedy = deleteSlices("delete them if no driver updates them any more", pool.Obsolete...)
	return f
}

func overcommitted(in *cluster, pool *facts.Pool) *api.Finding {
	use := in.cluster.Partitions.Use(pool).Overcommitted
	if use == nil {
		return nil
	}
	f := aboutPool(pool, fmt.Sprintf("has counter %s of counter set %s overcommitted: %s of %s used", use.Counter, use.CounterSet, use.Used.String(), use.Total.String()),
		api.Evidence{Object: facts.PoolObject(pool), Path: facts.CounterPath(*use), Found: use.Used.String() + " used", Required: "at most " + use.Total.String()})
	f.Remedy = &api.NextStep{
		Actor: api.ActorAdmin, Text: "this lists which devices use the counter; find out what the driver changed, and leave the claims alone",
		Commands: []string{"kubectl dra pools " + shell.Quote(pool.Driver+"/"+pool.Name) + " -o wide"},
	}
	return f
}

// pluginOf returns the step to look at the plugin that publishes a pool.
func pluginOf(in *cluster, pool *facts.Pool) *api.NextStep {
	var nodes []string
	if node := ptr.Deref(pool.Slices[0].Spec.NodeName, ""); node != "" {
		nodes = []string{node}
	}
	step := lifecycle.PluginStep(in.cluster.Snapshot, pool.Driver, nodes...)
	return &step
}

func deleteSlices(text string, list ...*resourceapi.ResourceSlice) *api.NextStep {
	step := &api.NextStep{Actor: api.ActorAdmin, Text: text}
	for _, slice := range list[:min(len(list), maxObjects)] {
		step.Commands = append(step.Commands, "kubectl delete "+shell.KubectlObjects("resourceslice", "", slice.Name))
	}
	return step
}

func findSlicesOfGoneNodes(_ context.Context, in *cluster) ([]api.Finding, error) {
	if len(in.cluster.Snapshot.Nodes) == 0 {
		// A file that only has slices.
		return nil, nil
	}
	byNode := map[string][]*resourceapi.ResourceSlice{}
	var nodes []string
	for _, slice := range in.cluster.Snapshot.Slices {
		name := ptr.Deref(slice.Spec.NodeName, "")
		if name == "" || in.cluster.Snapshot.Node(name) != nil {
			continue
		}
		if byNode[name] == nil {
			nodes = append(nodes, name)
		}
		byNode[name] = append(byNode[name], slice)
	}
	var found []api.Finding
	for _, node := range nodes {
		list := byNode[node]
		f := api.Finding{Message: fmt.Sprintf("node %s does not exist, but %s published for it", node, plural(len(list), "slice is", "slices are"))}
		for _, slice := range list {
			f.Objects = append(f.Objects, api.RefTo(kindSlice, slice))
			f.Evidence = append(f.Evidence, api.Evidence{Object: api.RefTo(kindSlice, slice), Path: "spec.nodeName", Found: node, Required: "a node that exists"})
		}
		f.Remedy = deleteSlices("delete the slices", list...)
		found = append(found, f)
	}
	return found, nil
}

func findSlicesOfEarlierNodes(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, slice := range in.cluster.Snapshot.Slices {
		for i, owner := range slice.OwnerReferences {
			node := in.cluster.Snapshot.Node(owner.Name)
			if owner.Kind != api.KindNode || node == nil || node.UID == "" || owner.UID == "" || node.UID == owner.UID {
				continue
			}
			found = append(found, api.Finding{
				Objects:  []api.ObjectRef{api.RefTo(kindSlice, slice), api.RefTo(api.KindNode, node)},
				Message:  fmt.Sprintf("slice %s is of an earlier node %s than the one that there is", slice.Name, node.Name),
				Evidence: []api.Evidence{{Object: api.RefTo(kindSlice, slice), Path: fmt.Sprintf("metadata.ownerReferences[%d].uid", i), Found: string(owner.UID), Required: string(node.UID)}},
				Remedy:   deleteSlices("delete the slice, and restart the driver's pod on the node if it does not publish a new one", slice),
			})
		}
	}
	return found, nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n) + " " + many
}

func findEmptySlices(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, slice := range in.cluster.Snapshot.Slices {
		if len(slice.Spec.Devices) > 0 || len(slice.Spec.SharedCounters) > 0 {
			continue
		}
		where := ""
		if name := ptr.Deref(slice.Spec.NodeName, ""); name != "" {
			where = " for node " + name
		}
		found = append(found, api.Finding{
			Objects:  []api.ObjectRef{api.RefTo(kindSlice, slice)},
			Message:  fmt.Sprintf("driver %s publishes slice %s%s without a device", slice.Spec.Driver, slice.Name, where),
			Evidence: []api.Evidence{{Object: api.RefTo(kindSlice, slice), Path: "spec.devices", Found: "none"}},
			Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: "read the log of the driver; restart its pod if the hardware came later than the driver"},
		})
	}
	return found, nil
}

func findUnusablePools(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, pool := range in.inventory.Usage() {
		if pool.State != api.PoolStateUnusable {
			continue
		}
		found = append(found, api.Finding{
			Objects: []api.ObjectRef{api.Ref(kindPool, "", inventory.PoolName(&pool))},
			Message: fmt.Sprintf("no node can use a device of pool %s of driver %s: %s", pool.Name, pool.Driver, pool.Reason),
			Remedy: &api.NextStep{
				Actor: api.ActorAdmin, Text: "this has the reason of each device",
				Commands: []string{"kubectl dra devices --pool " + shell.Quote(pool.Name) + " -o wide"},
			},
		})
	}
	return found, nil
}

const (
	// uuid is the attribute by which drivers identify the hardware.
	uuid = "uuid"
	// pciAddress is the one of the DRA library (deviceattribute of
	// k8s.io/dynamic-resource-allocation).
	pciAddress = "resource.kubernetes.io/pciBusID"
)

// hardware identifies a piece of hardware that several devices may stand for.
type hardware struct {
	attribute, value string
	// node is the node of the devices, empty for an identity that is unique everywhere.
	node string
}

func findSameHardware(_ context.Context, in *cluster) ([]api.Finding, error) {
	devices := map[hardware][]*facts.Device{}
	all := in.cluster.Pools.Devices()
	for i := range all {
		d := &all[i]
		if len(d.ConsumesCounters) > 0 {
			// Partitions are parts of one piece, as their counters show.
			continue
		}
		for name, attribute := range d.Attributes {
			value := ptr.Deref(attribute.StringValue, "")
			short := string(name)[strings.LastIndex(string(name), "/")+1:]
			switch {
			case value == "":
			case strings.EqualFold(short, uuid):
				key := hardware{attribute: uuid, value: value}
				devices[key] = append(devices[key], d)
			case name == pciAddress && ptr.Deref(d.Slice.Spec.NodeName, "") != "":
				key := hardware{attribute: pciAddress, value: value, node: *d.Slice.Spec.NodeName}
				devices[key] = append(devices[key], d)
			}
		}
	}
	var found []api.Finding
	for _, key := range slices.SortedFunc(maps.Keys(devices), func(a, b hardware) int {
		return cmp.Or(cmp.Compare(a.attribute, b.attribute), cmp.Compare(a.node, b.node), cmp.Compare(a.value, b.value))
	}) {
		list := devices[key]
		drivers := map[string]bool{}
		for _, d := range list {
			drivers[d.ID.Driver] = true
		}
		// One driver may publish the functions of a device under its address.
		if len(list) < 2 || key.attribute == pciAddress && len(drivers) < 2 {
			continue
		}
		var names []string
		f := api.Finding{}
		for _, d := range list {
			names = append(names, d.ID.String())
			if o := facts.SliceObject(d); !slices.Contains(f.Objects, o) {
				f.Objects = append(f.Objects, o)
			}
			f.Evidence = append(f.Evidence, api.Evidence{Object: facts.SliceObject(d), Path: facts.DevicePath(d, "attributes["+key.attribute+"]"), Found: key.value, Required: "a value of its own"})
		}
		f.Message = fmt.Sprintf("devices %s have the same %s %s: they are one piece of hardware", english.JoinAnd(names[:min(len(names), maxObjects)]), key.attribute, key.value)
		f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "let one driver publish it, and exclude it from the other"}
		found = append(found, f)
	}
	return found, nil
}

// typed is an attribute of a driver.
type typed struct{ driver, attribute string }

func findMixedTypes(_ context.Context, in *cluster) ([]api.Finding, error) {
	// first has, by type, a device that has it.
	first := map[typed]map[string]*facts.Device{}
	all := in.cluster.Pools.Devices()
	for i := range all {
		d := &all[i]
		for name, attribute := range d.Attributes {
			key := typed{d.ID.Driver, string(name)}
			if first[key] == nil {
				first[key] = map[string]*facts.Device{}
			}
			if kind := typeOf(attribute); first[key][kind] == nil {
				first[key][kind] = d
			}
		}
	}
	var found []api.Finding
	for _, key := range slices.SortedFunc(maps.Keys(first), func(a, b typed) int {
		return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.attribute, b.attribute))
	}) {
		if len(first[key]) < 2 {
			continue
		}
		var kinds []string
		f := api.Finding{}
		for _, kind := range slices.Sorted(maps.Keys(first[key])) {
			d := first[key][kind]
			kinds = append(kinds, fmt.Sprintf("%s on %s", kind, d.ID))
			if o := facts.SliceObject(d); !slices.Contains(f.Objects, o) {
				f.Objects = append(f.Objects, o)
			}
			f.Evidence = append(f.Evidence, api.Evidence{Object: facts.SliceObject(d), Path: facts.DevicePath(d, "attributes["+key.attribute+"]"), Found: kind})
		}
		f.Message = fmt.Sprintf("attribute %s of driver %s has type %s", key.attribute, key.driver, english.JoinAnd(kinds))
		f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "run one version of the driver on all nodes"}
		found = append(found, f)
	}
	return found, nil
}

// typeOf returns the type of an attribute. A list and its single value compare as equal.
func typeOf(a resourceapi.DeviceAttribute) string {
	switch {
	case a.BoolValue != nil || len(a.BoolValues) > 0:
		return "bool"
	case a.IntValue != nil || len(a.IntValues) > 0:
		return "int"
	case a.VersionValue != nil || len(a.VersionValues) > 0:
		return "version"
	default:
		return "string"
	}
}
