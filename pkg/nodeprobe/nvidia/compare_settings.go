// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"cmp"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
)

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
