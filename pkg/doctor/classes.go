// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func classChecks() []Check {
	both := []string{snapshot.ResourceClasses, snapshot.ResourceSlices}
	return []Check{
		{
			Code: "DRA1301", Title: "class that selects no device", Severity: api.SeverityWarning, Needs: both,
			About:  "The selectors of a DeviceClass match no published device. Claims for it never fit. The driver does not run, or the selector names another driver or attribute.",
			Advice: "Compare the selectors with 'kubectl dra devices -o wide'.",
			find:   classCheck(selectsNothing),
		},
		{
			Code: "DRA1302", Title: "class selector that fails", Severity: api.SeverityError, Needs: both,
			About:  "A selector of a DeviceClass ends with an error on a published device, mostly one of another driver that lacks the attribute. Then the scheduler gives up for all nodes, and no claim for the class can be allocated.",
			Advice: "Begin the selector with device.driver == \"NAME\" &&, and ask for the attribute with has() or in.",
			find:   classCheck(selectorFails),
		},
		{
			Code: "DRA1303", Title: "class with devices of several drivers", Severity: api.SeverityWarning, Needs: both,
			About:  "A DeviceClass selects devices of several drivers. Claims for it may get any of them, also those for which their configuration means nothing.",
			Advice: "Begin the selector with device.driver == \"NAME\" && if that is not intended.",
			find:   classCheck(severalDrivers),
		},
		{
			Code: "DRA1304", Title: "extended resource of several classes", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourceClasses},
			About:  "Several DeviceClasses have the same extendedResourceName. The scheduler uses one of them alone.",
			Advice: "Keep the name in one class.",
			find:   findSharedResourceNames,
		},
		{
			Code: "DRA1305", Title: "extended resource also of a device plugin", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourceClasses, snapshot.ResourceNodes},
			About:  "On some nodes a device plugin offers the extended resource of a DeviceClass. There the scheduler uses the device plugin alone, and the same hardware may be handed out by both.",
			Advice: "Run either the device plugin or the DRA driver on a node.",
			find:   classCheck(besidePlugin),
		},
		{
			Code: "DRA1306", Title: "driver without a class", Severity: api.SeverityInfo, Needs: both,
			About:  "No DeviceClass selects any device of a driver, so that no claim can ask for them.",
			Advice: "Create a class whose selector is device.driver == \"NAME\".",
			find:   findUnclassedDrivers,
		},
	}
}

// classCheck is a check that looks at one class after the other.
func classCheck(find func(*cluster, *api.Class) *api.Finding) func(context.Context, *cluster) ([]api.Finding, error) {
	return func(ctx context.Context, in *cluster) ([]api.Finding, error) {
		classes, err := in.classes(ctx)
		if err != nil {
			return nil, err
		}
		var found []api.Finding
		for i := range classes {
			if f := find(in, &classes[i]); f != nil {
				f.Objects = []string{kindClass + "/" + classes[i].Name}
				found = append(found, *f)
			}
		}
		return found, nil
	}
}

func selectsNothing(_ *cluster, class *api.Class) *api.Finding {
	if class.Devices > 0 || class.Failing > 0 || class.DevicesAreLowerBounds {
		return nil
	}
	f := &api.Finding{Message: fmt.Sprintf("class %s selects no device", class.Name)}
	if class.Claims > 0 {
		f.Severity = api.SeverityError
		f.Message += ", and " + english.Count(class.Claims, "claim") + " asks for it"
		if class.Claims > 1 {
			f.Message = fmt.Sprintf("class %s selects no device, and %d claims ask for it", class.Name, class.Claims)
		}
	}
	for i, expression := range class.Selectors {
		f.Evidence = append(f.Evidence, api.Evidence{Object: kindClass + "/" + class.Name, Path: fmt.Sprintf("spec.selectors[%d].cel.expression", i), Found: expression, Required: "true for a device"})
	}
	f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "compare the selectors with the devices", Commands: []string{"kubectl dra devices -o wide"}}
	return f
}

func selectorFails(_ *cluster, class *api.Class) *api.Finding {
	if len(class.Failures) == 0 {
		return nil
	}
	f := &api.Finding{Message: fmt.Sprintf("a selector of class %s fails on %s: no claim for the class can be allocated on any node", class.Name, english.Count(class.Failing, "device"))}
	for _, failure := range class.Failures {
		f.Evidence = append(f.Evidence, api.Evidence{Object: kindClass + "/" + class.Name, Path: "spec.selectors", Found: failure.Error + " on " + english.JoinAnd(failure.Devices[:1]), Count: failure.Count})
	}
	f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "compare device.driver before the attributes, so that the selector is not evaluated further for devices of other drivers"}
	return f
}

func severalDrivers(_ *cluster, class *api.Class) *api.Finding {
	if len(class.Drivers) < 2 {
		return nil
	}
	drivers := slices.Sorted(slices.Values(class.Drivers))
	return &api.Finding{
		Message: fmt.Sprintf("class %s selects devices of drivers %s", class.Name, english.JoinAnd(drivers)),
		Remedy:  &api.NextStep{Actor: api.ActorAdmin, Text: "compare device.driver in the selector, unless this is intended"},
	}
}

func besidePlugin(_ *cluster, class *api.Class) *api.Finding {
	if len(class.PluginNodes) == 0 {
		return nil
	}
	f := &api.Finding{Message: fmt.Sprintf("a device plugin offers the extended resource of class %s on %s: the scheduler uses the device plugin alone there", class.Name, english.Count(len(class.PluginNodes), "node"))}
	for _, node := range class.PluginNodes {
		f.Evidence = append(f.Evidence, api.Evidence{Object: nodeObject(node), Path: "status.allocatable", Found: class.ExtendedResource})
	}
	f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "run either the device plugin or the DRA driver on these nodes"}
	return f
}

func findSharedResourceNames(_ context.Context, in *cluster) ([]api.Finding, error) {
	byName := map[string][]string{}
	var names []string
	for _, class := range in.snap.Classes {
		if name := class.Spec.ExtendedResourceName; name != nil {
			if byName[*name] == nil {
				names = append(names, *name)
			}
			byName[*name] = append(byName[*name], class.Name)
		}
	}
	var found []api.Finding
	for _, name := range names {
		classes := byName[name]
		if len(classes) < 2 {
			continue
		}
		f := api.Finding{
			Message: fmt.Sprintf("classes %s have the same extended resource %s", english.JoinAnd(classes), name),
			Remedy:  &api.NextStep{Actor: api.ActorAdmin, Text: "keep spec.extendedResourceName in one of them"},
		}
		if used := in.facts.Claims.ClassOf(corev1.ResourceName(name)); used != nil {
			f.Message += ": the scheduler uses " + used.Name + " alone"
		}
		for _, class := range classes {
			f.Objects = append(f.Objects, kindClass+"/"+class)
			f.Evidence = append(f.Evidence, api.Evidence{Object: kindClass + "/" + class, Path: "spec.extendedResourceName", Found: name})
		}
		found = append(found, f)
	}
	return found, nil
}

func findUnclassedDrivers(ctx context.Context, in *cluster) ([]api.Finding, error) {
	classes, err := in.classes(ctx)
	if err != nil {
		return nil, err
	}
	var classed []string
	for i := range classes {
		classed = append(classed, classes[i].Drivers...)
		if classes[i].Failing > 0 {
			// It cannot be known what it selects.
			return nil, nil
		}
	}
	devices := map[string]int{}
	var drivers []string
	for _, d := range in.facts.Pools.Devices() {
		if slices.Contains(classed, d.ID.Driver) {
			continue
		}
		if devices[d.ID.Driver] == 0 {
			drivers = append(drivers, d.ID.Driver)
		}
		devices[d.ID.Driver]++
	}
	var found []api.Finding
	for _, driver := range drivers {
		found = append(found, api.Finding{
			Objects: []string{"Driver/" + driver},
			Message: fmt.Sprintf("no class selects any of the %s of driver %s", english.Count(devices[driver], "device"), driver),
			Remedy:  &api.NextStep{Actor: api.ActorAdmin, Text: fmt.Sprintf("create a DeviceClass with the selector device.driver == %q", driver)},
		})
	}
	return found, nil
}
