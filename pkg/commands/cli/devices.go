// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/pflag"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// DeviceFlags choose devices by class and driver, for the verbs on published devices.
type DeviceFlags struct{ Class, Driver string }

// AddTo adds the flags.
func (f *DeviceFlags) AddTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.Class, "class", "", "Only devices of the DeviceClass `CLASS`.")
	flags.StringVar(&f.Driver, "driver", "", "Only devices of this `DRIVER`.")
}

// Reads returns the resources for choosing devices.
func (f *DeviceFlags) Reads() []string {
	reads := []string{snapshot.ResourceSlices, snapshot.ResourceMetrics}
	if f.Class != "" {
		reads = append(reads, snapshot.ResourceClasses)
	}
	return reads
}

// Asks returns the resources without which there is no answer.
func (f *DeviceFlags) Asks() []string {
	asks := []string{snapshot.ResourceSlices}
	if f.Class != "" {
		asks = append(asks, snapshot.ResourceClasses)
	}
	return asks
}

// Choice resolves the flags in a cluster. It fails for a class or a driver that does not exist.
func (f *DeviceFlags) Choice(from *Source) (inventory.DeviceChoice, error) {
	chosen := inventory.DeviceChoice{Driver: f.Driver}
	if err := Absent(from.Snap, nameDriver, f.Driver); err != nil || f.Class == "" {
		return chosen, err
	}
	selectors, err := ClassSelectors(from, f.Class)
	chosen.Selectors = selectors
	return chosen, err
}

// ClassSelectors returns the selectors of a DeviceClass. It fails if the class does not
// exist, or if that is not known.
func ClassSelectors(from *Source, name string) ([]resourceapi.DeviceSelector, error) {
	if class := from.Snap.Class(name); class != nil {
		return class.Spec.Selectors, nil
	}
	if gap := from.Snap.Gap(snapshot.ResourceClasses); gap != nil {
		return nil, &GapError{Doing: "read --class " + name, Gaps: []snapshot.Gap{*gap}, Live: from.Clients != nil}
	}
	return nil, Absent(from.Snap, nameClass, name)
}

// maxFailures limits how many errors of selectors are printed.
const maxFailures = 3

// FailureNotes returns notes on the errors of selectors, with the number of devices.
func FailureNotes(failures []api.SelectorFailure) []string {
	var notes []string
	for i := range failures[:min(len(failures), maxFailures)] {
		notes = append(notes, fmt.Sprintf("not listed: %s on which a selector fails: %s", english.Count(failures[i].Count, "device"), inventory.FailureText(&failures[i])))
	}
	if more := len(failures) - maxFailures; more > 0 {
		left := 0
		for i := range failures[maxFailures:] {
			left += failures[maxFailures+i].Count
		}
		notes = append(notes, fmt.Sprintf("not listed: %s on which a selector fails in %d other ways", english.Count(left, "device"), more))
	}
	return notes
}
