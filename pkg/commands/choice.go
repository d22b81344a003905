// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"github.com/spf13/pflag"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// choiceFlags choose devices by class and driver, for the verbs that are about what
// devices publish.
type choiceFlags struct{ class, driver string }

func (f *choiceFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.class, "class", "", "Only devices of the DeviceClass `CLASS`.")
	flags.StringVar(&f.driver, "driver", "", "Only devices of this `DRIVER`.")
}

// reads are the resources that are needed to choose devices.
func (f *choiceFlags) reads() []string {
	reads := []string{snapshot.ResourceSlices, snapshot.ResourceMetrics}
	if f.class != "" {
		reads = append(reads, snapshot.ResourceClasses)
	}
	return reads
}

// asks are those of them without which there is no answer.
func (f *choiceFlags) asks() []string {
	asks := []string{snapshot.ResourceSlices}
	if f.class != "" {
		asks = append(asks, snapshot.ResourceClasses)
	}
	return asks
}

// choice is what the flags come down to in a cluster.
func (f *choiceFlags) choice(from *cli.Source) (inventory.DeviceChoice, error) {
	chosen := inventory.DeviceChoice{Driver: f.driver}
	if f.class == "" {
		return chosen, nil
	}
	selectors, err := classSelectors(from, f.class)
	chosen.Selectors = selectors
	return chosen, err
}

// classSelectors are the selectors of a DeviceClass. It fails if there is no such
// class, or if that is not known.
func classSelectors(from *cli.Source, name string) ([]resourceapi.DeviceSelector, error) {
	class := from.Snap.Class(name)
	if class != nil {
		return class.Spec.Selectors, nil
	}
	if gap := from.Snap.Gap(snapshot.ResourceClasses); gap != nil {
		return nil, &cli.GapError{Doing: "read --class " + name, Gaps: []snapshot.Gap{*gap}, Live: from.Clients != nil}
	}
	return nil, cli.Usagef("List what there is: kubectl dra classes", "read --class: DeviceClass %s not found in %s", name, from.Snap.Source)
}
