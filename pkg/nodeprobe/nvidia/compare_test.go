// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func TestCompare(t *testing.T) {
	f, settings := h100(t), Settings{Node: "node", DynamicMIG: true}
	preview := func() []*resourceapi.ResourceSlice {
		list, err := Preview(f, settings)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	device := func(list []*resourceapi.ResourceSlice, name string) *resourceapi.Device {
		devices := list[0].Spec.Devices
		return &devices[slices.IndexFunc(devices, func(d resourceapi.Device) bool { return d.Name == name })]
	}
	for name, test := range map[string]struct {
		published func([]*resourceapi.ResourceSlice) []*resourceapi.ResourceSlice
		want      []Difference
	}{
		"the same": {func(l []*resourceapi.ResourceSlice) []*resourceapi.ResourceSlice { return l }, []Difference{}},
		"taints, a long name and another notation do not count": {func(l []*resourceapi.ResourceSlice) []*resourceapi.ResourceSlice {
			d := device(l, "gpu-3")
			d.Taints = []resourceapi.DeviceTaint{{Key: "gpu.nvidia.com/xid", Value: "79", Effect: resourceapi.DeviceTaintEffectNoExecute}}
			d.Attributes["gpu.nvidia.com/brand"] = d.Attributes["brand"]
			delete(d.Attributes, "brand")
			return l
		}, []Difference{}},
		"another value, another type": {func(l []*resourceapi.ResourceSlice) []*resourceapi.ResourceSlice {
			d := device(l, "gpu-3")
			d.Attributes["brand"] = text("Tesla")
			d.Attributes["driverVersion"] = text("550.54.15")
			delete(d.Attributes, "addressingMode")
			return l
		}, []Difference{{Device: "gpu-3", Change: Changed, Fields: []FieldDifference{
			{Path: "attributes[addressingMode]", Previewed: `"HMM"`},
			{Path: "attributes[brand]", Published: `"Tesla"`, Previewed: `"Nvidia"`},
			{Path: "attributes[driverVersion]", Published: `"550.54.15"`, Previewed: "version 550.54.15"},
		}}}},
		"another device and counter": {func(l []*resourceapi.ResourceSlice) []*resourceapi.ResourceSlice {
			device(l, "gpu-3-mig-7g80gb-0-0").Name = "gpu-11"
			l[0].Spec.SharedCounters[0].Counters["encoders"] = resourceapi.Counter{Value: quantity(2)}
			return l
		}, []Difference{
			{Device: "gpu-3-mig-7g80gb-0-0", Change: OnlyPreviewed},
			{Device: "gpu-11", Change: OnlyPublished},
			{CounterSet: "gpu-3-counter-set", Change: Changed, Fields: []FieldDifference{{Path: "counters[encoders]", Published: "2", Previewed: "0"}}},
		}},
		"an older generation and other pools are left out": {func(l []*resourceapi.ResourceSlice) []*resourceapi.ResourceSlice {
			old, other := l[0].DeepCopy(), l[0].DeepCopy()
			old.Spec.Devices, other.Spec.Devices = nil, nil
			l[0].Spec.Pool.Generation = 7
			other.Spec.Pool.Name = "other"
			return append(l, old, other)
		}, []Difference{}},
	} {
		c := Compare(&snapshot.Snapshot{Slices: test.published(preview())}, f, settings, preview())
		if diff := cmp.Diff(test.want, c.Differences); diff != "" || c.Unknown != "" {
			t.Errorf("%s: %s\n%s", name, c.Unknown, diff)
		}
	}
}

// TestCompareNamesOtherSettings previews a machine with other settings than those that
// the driver is run with: they are found.
func TestCompareNamesOtherSettings(t *testing.T) {
	f := h100(t)
	numa := 1
	for i := range f.GPUs {
		f.GPUs[i].NUMANode = &numa
	}
	for name, test := range map[string]struct {
		driver, preview Settings
		change          func(*resourceapi.Device)
		want            *OtherSettings
	}{
		"the same": {Settings{}, Settings{}, nil, nil},
		"list attributes": {
			Settings{ListAttributes: true},
			Settings{},
			nil,
			&OtherSettings{FeatureGates: []string{"DRAListTypeAttributes=true"}, Values: 1},
		},
		"no list attributes": {
			Settings{},
			Settings{ListAttributes: true, Shares: "disabled"},
			nil,
			&OtherSettings{FeatureGates: []string{"DRAListTypeAttributes=false"}, Values: 1},
		},
		"a number of shares": {
			Settings{Shares: "5"},
			Settings{},
			nil,
			&OtherSettings{FeatureGates: []string{"ConsumableShares=true"}, ConsumableShares: "5", Values: 4},
		},
		"something else differs, too": {
			Settings{ListAttributes: true},
			Settings{},
			func(d *resourceapi.Device) { d.Attributes["brand"] = text("Tesla") },
			&OtherSettings{FeatureGates: []string{"DRAListTypeAttributes=true"}, Values: 2, Left: 1},
		},
		"only something else": {Settings{}, Settings{}, func(d *resourceapi.Device) { d.Attributes["brand"] = text("Tesla") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			test.driver.Node, test.preview.Node = "node", "node"
			published, err := Preview(f, test.driver)
			if err != nil {
				t.Fatal(err)
			}
			if test.change != nil {
				test.change(&published[0].Spec.Devices[0])
			}
			previewed, err := Preview(f, test.preview)
			if err != nil {
				t.Fatal(err)
			}
			c := Compare(&snapshot.Snapshot{Slices: published}, f, test.preview, previewed)
			if diff := cmp.Diff(test.want, c.OtherSettings); diff != "" {
				t.Errorf("%s\n%+v", diff, c.Differences)
			}
		})
	}
}

// TestCompareUnknown covers reasons why the published slices are not known.
func TestCompareUnknown(t *testing.T) {
	f, settings := h100(t), Settings{Node: "node"}
	list, err := Preview(f, settings)
	if err != nil {
		t.Fatal(err)
	}
	gap := &snapshot.Snapshot{Gaps: []snapshot.Gap{{Resource: snapshot.ResourceSlices, Reason: "forbidden"}}}
	if c := Compare(gap, f, settings, list); c.Unknown != "ResourceSlices could not be read: forbidden" || len(c.Differences) > 0 {
		t.Errorf("without rights: %+v", c)
	}
	part := list[0].DeepCopy()
	part.Spec.Pool.ResourceSliceCount = 2
	if c := Compare(&snapshot.Snapshot{Slices: []*resourceapi.ResourceSlice{part}}, f, settings, list); c.Unknown == "" || len(c.Differences) > 0 {
		t.Errorf("an incomplete pool: %+v", c)
	}
	if c := Compare(&snapshot.Snapshot{}, f, settings, list); len(c.Differences) != 1 || c.Differences[0].Change != OnlyPreviewed {
		t.Errorf("nothing published: %+v", c)
	}
}

// TestCompareStale covers a slice that the driver left behind: the pool says that it has
// fewer.
func TestCompareStale(t *testing.T) {
	f, settings := h100(t), Settings{Node: "node"}
	list, err := Preview(f, settings)
	if err != nil {
		t.Fatal(err)
	}
	slice := func(name, version string, age time.Duration) *resourceapi.ResourceSlice {
		s := list[0].DeepCopy()
		s.Name, s.ResourceVersion = name, version
		s.CreationTimestamp = metav1.NewTime(time.Unix(1_700_000_000, 0).Add(-age))
		return s
	}
	for name, test := range map[string]struct {
		slices []*resourceapi.ResourceSlice
		want   string
	}{
		"written before": {
			[]*resourceapi.ResourceSlice{slice("a", "17", 0), slice("b", "9", 0)},
			"pool node should have 1 of the 2 slices of generation 1; 1 is stale: b, which the driver wrote before the others",
		},
		"made before": {
			[]*resourceapi.ResourceSlice{slice("a", "", time.Hour), slice("b", "", 0)},
			"1 is stale: a, which the driver wrote before the others",
		},
		"nobody knows": {
			[]*resourceapi.ResourceSlice{slice("b", "", 0), slice("a", "", 0)},
			"1 is stale, which of these is not known: a, b.",
		},
		"two": {
			[]*resourceapi.ResourceSlice{slice("a", "3", 0), slice("b", "1", 0), slice("c", "2", 0)},
			"should have 1 of the 3 slices of generation 1; 2 are stale: c, b, which",
		},
	} {
		c := Compare(&snapshot.Snapshot{Slices: test.slices}, f, settings, list)
		if !strings.Contains(c.Unknown, test.want) || len(c.Differences) > 0 {
			t.Errorf("%s: %q, want %q", name, c.Unknown, test.want)
		}
	}
}
