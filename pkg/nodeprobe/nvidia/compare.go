// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Comparison compares the slices published for a node with the preview.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Comparison struct {
	metav1.TypeMeta `json:",inline"`

	// Simulated names the machine if the preview is of a simulated one.
	Simulated string `json:"simulated,omitempty"`
	Driver    string `json:"driver"`
	Pool      string `json:"pool"`
	// Unknown says why nothing could be compared; then there are no differences.
	Unknown string `json:"unknown,omitempty"`
	// Published counts the devices in the newest generation of the pool, Previewed the
	// devices of the preview, Equal the devices that are the same in both.
	Published int `json:"published"`
	Previewed int `json:"previewed"`
	Equal     int `json:"equal"`
	// Differences are the differences of devices, by name, and then of counter sets.
	Differences []Difference `json:"differences"`
	// OtherSettings are settings of the driver that explain differences, if there are
	// any.
	OtherSettings *OtherSettings `json:"otherSettings,omitempty"`
}

// Change is the kind of a difference.
type Change string

const (
	// OnlyPublished is a device or counter set that the driver would not publish now.
	OnlyPublished Change = "OnlyPublished"
	// OnlyPreviewed is a device or counter set that the driver would publish and has not.
	OnlyPreviewed Change = "OnlyPreviewed"
	// Changed is a device or counter set with other values.
	Changed Change = "Changed"
)

// Difference is a device or a counter set that differs.
type Difference struct {
	// Device or CounterSet is its name.
	Device     string `json:"device,omitempty"`
	CounterSet string `json:"counterSet,omitempty"`
	Change     Change `json:"change"`
	// Fields are the changed values.
	Fields []FieldDifference `json:"fields,omitempty"`
}

// FieldDifference is one changed value. An empty side does not have it.
type FieldDifference struct {
	// Path is the path in the device or counter set: "attributes[brand]".
	Path string `json:"path"`
	// Published and Previewed are the values.
	Published string `json:"published,omitempty"`
	Previewed string `json:"previewed,omitempty"`
}

// Compare compares the preview of a node with the driver's slices for it in a snapshot. The
// distribution of devices to slices does not count, nor do taints, which the driver adds
// while it runs.
func Compare(snap *snapshot.Snapshot, f *Findings, settings Settings, previewed []*resourceapi.ResourceSlice) *Comparison {
	c := &Comparison{
		TypeMeta:  metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "GPUPreviewComparison"},
		Simulated: f.Simulated, Driver: DriverName, Pool: settings.Node, Differences: []Difference{},
	}
	published, reason := published(snap, settings.Node)
	if c.Unknown = reason; reason != "" {
		return c
	}
	before, after := parts(published), parts(previewed)
	c.Published, c.Previewed = len(before.devices), len(after.devices)
	c.Differences = append(c.Differences, differencesOf(before, after)...)
	c.Equal = len(before.devices)
	for _, d := range c.Differences {
		if d.Device != "" && d.Change != OnlyPreviewed {
			c.Equal--
		}
	}
	if len(published) > 0 {
		c.OtherSettings = otherSettings(f, settings, published, c.Differences)
	}
	return c
}

// differencesOf returns the differences of devices, then of counter sets.
func differencesOf(before, after content) []Difference {
	return slices.Concat(
		differences(before.devices, after.devices, func(name string) Difference { return Difference{Device: name} }),
		differences(before.counters, after.counters, func(name string) Difference { return Difference{CounterSet: name} }),
	)
}

// published returns the slices of the newest generation of the node's pool. reason says why
// they are not known.
func published(snap *snapshot.Snapshot, node string) (list []*resourceapi.ResourceSlice, reason string) {
	if gap := snap.Gap(snapshot.ResourceSlices); gap != nil {
		return nil, "ResourceSlices could not be read: " + gap.Reason
	}
	var newest int64
	for _, s := range snap.Slices {
		if s.Spec.Driver != DriverName || s.Spec.Pool.Name != node {
			continue
		}
		switch {
		case s.Spec.Pool.Generation > newest || len(list) == 0:
			newest, list = s.Spec.Pool.Generation, []*resourceapi.ResourceSlice{s}
		case s.Spec.Pool.Generation == newest:
			list = append(list, s)
		}
	}
	// The last written slice says how many there are.
	slices.SortFunc(list, writtenLater)
	switch {
	case len(list) == 0:
	case int64(len(list)) < list[0].Spec.Pool.ResourceSliceCount:
		return nil, fmt.Sprintf("pool %s has %d of %d slices, so it is not known what it will have", node, len(list), list[0].Spec.Pool.ResourceSliceCount)
	case int64(len(list)) > list[0].Spec.Pool.ResourceSliceCount:
		return nil, staleSlices(node, list)
	}
	return list, ""
}

// writtenLater orders slices by their time of writing, the last one first, as far as that
// is known; else by name.
func writtenLater(a, b *resourceapi.ResourceSlice) int {
	later, err := resourceversion.CompareResourceVersion(b.ResourceVersion, a.ResourceVersion)
	if err != nil {
		later = 0
	}
	return cmp.Or(later, b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// staleSlices names the surplus slices of a generation, by their time of writing. list is
// in the order of [writtenLater].
func staleSlices(node string, list []*resourceapi.ResourceSlice) string {
	count := int(max(list[0].Spec.Pool.ResourceSliceCount, 0))
	names := func(of []*resourceapi.ResourceSlice) string {
		all := make([]string, 0, len(of))
		for _, s := range of {
			all = append(all, s.Name)
		}
		return strings.Join(all, ", ")
	}
	// Only their names tell these apart.
	unknown := count > 0 && list[count-1].ResourceVersion == list[count].ResourceVersion && list[count-1].CreationTimestamp.Equal(&list[count].CreationTimestamp)
	stale := "stale: " + names(list[count:]) + ", which the driver wrote before the others"
	if unknown {
		stale = "stale, which of these is not known: " + names(list)
	}
	return fmt.Sprintf("pool %s should have %d of the %d slices of generation %d; %d %s. Nothing is allocated from the pool until the driver has removed what is stale",
		node, count, len(list), list[0].Spec.Pool.Generation, len(list)-count, map[bool]string{true: "is ", false: "are "}[len(list)-count == 1]+stale)
}

// fields are values by their paths.
type fields = map[string]string

type content struct{ devices, counters map[string]fields }

// parts splits slices into devices and counter sets.
func parts(list []*resourceapi.ResourceSlice) content {
	c := content{devices: map[string]fields{}, counters: map[string]fields{}}
	for _, s := range list {
		for i := range s.Spec.Devices {
			c.devices[s.Spec.Devices[i].Name] = deviceFields(&s.Spec.Devices[i])
		}
		for _, set := range s.Spec.SharedCounters {
			values := fields{}
			for name, counter := range set.Counters {
				values["counters["+name+"]"] = quantityText(counter.Value)
			}
			c.counters[set.Name] = values
		}
	}
	return c
}

func deviceFields(d *resourceapi.Device) fields {
	values := fields{}
	// The driver may leave its own name out.
	short := func(name resourceapi.QualifiedName) string { return strings.TrimPrefix(string(name), DriverName+"/") }
	for name, attribute := range d.Attributes {
		values["attributes["+short(name)+"]"] = AttributeText(attribute)
	}
	for name, capacity := range d.Capacity {
		path := "capacity[" + short(name) + "]"
		values[path] = quantityText(capacity.Value)
		if capacity.RequestPolicy != nil {
			values[path+".requestPolicy"] = jsonText(capacity.RequestPolicy)
		}
	}
	for _, consumed := range d.ConsumesCounters {
		for name, counter := range consumed.Counters {
			values["consumesCounters["+consumed.CounterSet+"]["+name+"]"] = quantityText(counter.Value)
		}
	}
	if d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations {
		values["allowMultipleAllocations"] = "true"
	}
	return values
}

// quantityText returns the same for the same number, however it was written.
func quantityText(q resource.Quantity) string {
	if n, ok := q.AsInt64(); ok {
		q = quantity(n)
	}
	return q.String()
}

// AttributeText returns a value with its type, which selectors depend on.
func AttributeText(a resourceapi.DeviceAttribute) string {
	switch {
	case a.VersionValue != nil:
		return "version " + *a.VersionValue
	case a.StringValue != nil:
		return fmt.Sprintf("%q", *a.StringValue)
	default:
		return jsonText(a)
	}
}

func jsonText(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func differences(before, after map[string]fields, named func(string) Difference) []Difference {
	all := maps.Clone(before)
	maps.Copy(all, after)
	var list []Difference
	for _, name := range slices.SortedFunc(maps.Keys(all), english.CompareNames) {
		d := named(name)
		old, published := before[name]
		now, previewed := after[name]
		switch {
		case !previewed:
			d.Change = OnlyPublished
		case !published:
			d.Change = OnlyPreviewed
		default:
			d.Change, d.Fields = Changed, fieldDifferences(old, now)
			if len(d.Fields) == 0 {
				continue
			}
		}
		list = append(list, d)
	}
	return list
}

func fieldDifferences(before, after fields) []FieldDifference {
	all := maps.Clone(before)
	maps.Copy(all, after)
	var list []FieldDifference
	for _, path := range slices.SortedFunc(maps.Keys(all), english.CompareNames) {
		if before[path] != after[path] {
			list = append(list, FieldDifference{Path: path, Published: before[path], Previewed: after[path]})
		}
	}
	return list
}

// OtherSettings are settings of the driver with which the preview is closer to the
// published slices: the driver probably runs with them.
type OtherSettings struct {
	// FeatureGates are the gates that differ, as "DRAListTypeAttributes=true".
	FeatureGates []string `json:"featureGates,omitempty"`
	// ConsumableShares is the value of the driver's option, if it differs.
	ConsumableShares string `json:"consumableShares,omitempty"`
	// Values counts the values that differ with the settings of the comparison, Left the
	// values that still differ with these. A device that only one side has counts as one.
	Values int `json:"values"`
	Left   int `json:"left"`
}

// otherSettings looks for settings that explain differences: it previews the machine with
// all other settings. It returns nil if none has fewer differences.
func otherSettings(f *Findings, settings Settings, published []*resourceapi.ResourceSlice, differences []Difference) *OtherSettings {
	now := valuesOf(differences)
	if now == 0 {
		return nil
	}
	before := parts(published)
	var best *OtherSettings
	rank := func(o *OtherSettings) [2]int {
		changed := len(o.FeatureGates)
		if o.ConsumableShares != "" {
			changed++
		}
		return [2]int{o.Left, changed}
	}
	for _, candidate := range settings.others(published) {
		list, err := Preview(f, candidate)
		if err != nil {
			continue
		}
		after := parts(list)
		other := settings.changes(candidate)
		other.Values, other.Left = now, valuesOf(differencesOf(before, after))
		if other.Left >= now {
			continue
		}
		if best == nil || rank(other)[0] < rank(best)[0] || rank(other)[0] == rank(best)[0] && rank(other)[1] < rank(best)[1] {
			best = other
		}
	}
	return best
}

// others returns all other settings that change the published slices, for the same release
// of Kubernetes. The number of shares of a device is taken from the slices.
func (s Settings) others(published []*resourceapi.ResourceSlice) []Settings {
	shares := []string{sharesDisabled, sharesMemory, sharesUnlimited}
	for _, slice := range published {
		for i := range slice.Spec.Devices {
			for _, name := range []resourceapi.QualifiedName{"shares", DriverName + "/shares"} {
				if count, ok := slice.Spec.Devices[i].Capacity[name]; ok && len(shares) == 3 {
					shares = append(shares, count.Value.String())
				}
			}
		}
	}
	var all []Settings
	for _, dynamic := range []bool{false, true} {
		for _, lists := range []bool{false, true} {
			for _, share := range shares {
				other := s
				other.DynamicMIG, other.ListAttributes, other.Shares = dynamic, lists, share
				all = append(all, other)
			}
		}
	}
	return all
}

// changes describes the difference from other settings.
func (s Settings) changes(other Settings) *OtherSettings {
	o := &OtherSettings{}
	gate := func(name string, before, after bool) {
		if before != after {
			o.FeatureGates = append(o.FeatureGates, fmt.Sprintf("%s=%t", name, after))
		}
	}
	gate(gateDynamicMIG, s.DynamicMIG, other.DynamicMIG)
	gate(gateListAttributes, s.ListAttributes, other.ListAttributes)
	if cmp.Or(s.Shares, sharesDisabled) != cmp.Or(other.Shares, sharesDisabled) {
		o.ConsumableShares = other.Shares
		if other.Shares != sharesDisabled && cmp.Or(s.Shares, sharesDisabled) == sharesDisabled {
			o.FeatureGates = append(o.FeatureGates, gateShares+"=true")
		}
	}
	return o
}

// valuesOf counts the values that differ.
func valuesOf(differences []Difference) int {
	n := 0
	for i := range differences {
		n += max(1, len(differences[i].Fields))
	}
	return n
}
