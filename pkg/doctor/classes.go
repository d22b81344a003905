// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func classChecks() []Check {
	both := []string{snapshot.ResourceClasses, snapshot.ResourceSlices}
	return []Check{
		{
			Code: "DRA1301", Title: "class that selects no device", Severity: api.SeverityWarning, Needs: both, Repeats: RepeatsDevices,
			About:  "The selectors of a DeviceClass match no published device. Claims for it do not fit as long as that is so. The driver does not run, or the selector names another driver or attribute.",
			Advice: "Compare the selectors with 'kubectl dra devices -o wide'.",
			find:   classCheck(selectsNothing),
		},
		{
			Code: "DRA1302", Title: "class selector that fails", Severity: api.SeverityError, Needs: both,
			About:  "A selector of a DeviceClass does not compile, or ends with an error on a published device that lacks the attribute: one of another driver, or another kind of device of the same driver. A request whose search gets to that device fails, and then the scheduler tries no other node. The allocator is asked whether a request for one device, or one for all, gets there now.",
			Advice: "Begin the selector with device.driver == \"NAME\" &&, and ask for the attribute first: \"attribute\" in device.attributes[\"domain\"] &&.",
			find:   findFailingSelectors,
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

// classCheck returns a check of each class.
func classCheck(find func(*cluster, *api.Class) *api.Finding) func(context.Context, *cluster) ([]api.Finding, error) {
	return func(ctx context.Context, in *cluster) ([]api.Finding, error) {
		classes, err := in.classes(ctx)
		if err != nil {
			return nil, err
		}
		var found []api.Finding
		for i := range classes {
			if f := find(in, &classes[i]); f != nil {
				f.Objects = []api.ObjectRef{api.Ref(kindClass, "", classes[i].Name)}
				found = append(found, *f)
			}
		}
		return found, nil
	}
}

func selectsNothing(in *cluster, class *api.Class) *api.Finding {
	if class.Devices > 0 || class.Failing > 0 || class.DevicesAreLowerBounds {
		return nil
	}
	f := &api.Finding{Message: fmt.Sprintf("class %s selects no device", class.Name)}
	var silent []string
	for _, expression := range class.Selectors {
		for _, driver := range in.cluster.Gates.Selectors().Compile(expression).Drivers() {
			if in.opts.Makes(codeAway) && slices.ContainsFunc(in.cluster.LostPools(), func(p facts.LostPool) bool { return p.Driver == driver }) {
				// The driver is away, which is a finding of its own.
				return nil
			}
			if len(lifecycle.Publishing(in.cluster.Snapshot, []string{driver})) == 0 {
				silent = append(silent, driver)
			}
		}
	}
	if class.Claims > 0 {
		f.Severity = api.SeverityError
		f.Message += ", and " + english.Count(class.Claims, "claim") + " asks for it"
		if class.Claims > 1 {
			f.Message = fmt.Sprintf("class %s selects no device, and %d claims ask for it", class.Name, class.Claims)
		}
	}
	for i, expression := range class.Selectors {
		f.Evidence = append(f.Evidence, api.Evidence{Object: api.Ref(kindClass, "", class.Name), Path: fmt.Sprintf("spec.selectors[%d].cel.expression", i), Found: expression, Required: "true for a device"})
	}
	f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "compare the selectors with the devices", Commands: []string{"kubectl dra devices -o wide"}}
	if len(silent) > 0 {
		f.Message += ": there is no ResourceSlice of driver " + english.JoinOr(silent)
		step := lifecycle.PluginStep(in.cluster.Snapshot, silent[0])
		step.Text += ": whether it runs on a node, and what its log says"
		f.Remedy.Text = "compare the name of the driver with those that publish devices, and see whether it is installed"
		if len(step.Commands) > 0 {
			f.Remedy = &step
		}
	}
	return f
}

// uncompiled returns the first selector of a class that does not compile, and why not.
func uncompiled(in *cluster, class *api.Class) (expression, problem string) {
	evaluator := in.cluster.Gates.Selectors()
	for _, expression := range class.Selectors {
		if p := evaluator.Problem(evaluator.Compile(expression)); p != nil {
			return expression, eligibility.ProblemText(p)
		}
	}
	return "", ""
}

// findFailingSelectors asks the allocator for the effect of a failing selector on requests.
func findFailingSelectors(ctx context.Context, in *cluster) ([]api.Finding, error) {
	classes, err := in.classes(ctx)
	if err != nil {
		return nil, err
	}
	var found []api.Finding
	for i := range classes {
		class := &classes[i]
		if len(class.Failures) == 0 {
			continue
		}
		o := api.Ref(kindClass, "", class.Name)
		f := api.Finding{Objects: []api.ObjectRef{o}}
		if expression, problem := uncompiled(in, class); problem != "" {
			if in.cluster.Snapshot.Newer() {
				// That the release is newer is a finding of its own.
				continue
			}
			f.Message = fmt.Sprintf("a selector of class %s does not compile: %s; each request that gets to it fails", class.Name, problem)
			f.Evidence = []api.Evidence{{Object: o, Path: "spec.selectors", Found: expression, Required: "compiles"}}
			f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "correct the selector: the API server rejects it in new classes"}
			found = append(found, f)
			continue
		}
		for _, failure := range class.Failures {
			f.Evidence = append(f.Evidence, api.Evidence{Object: o, Path: "spec.selectors", Found: failure.Error + " on " + failure.Devices[0], Count: failure.Count})
		}
		effect := "the search for one device does not get there now, nor one for all devices"
		for _, mode := range []resourceapi.DeviceAllocationMode{resourceapi.DeviceAllocationModeExactCount, resourceapi.DeviceAllocationModeAll} {
			node, err := fails(ctx, in, class.Name, mode)
			if err != nil {
				return nil, err
			}
			if node == "" {
				continue
			}
			if effect = "a request for one device gets there on node %s and fails, and then the scheduler tries no other node"; mode == resourceapi.DeviceAllocationModeAll {
				effect = "a request for one device is allocated before the search gets there; one for all devices of node %s fails, and then the scheduler tries no other node"
			}
			effect = fmt.Sprintf(effect, node)
			break
		}
		if len(in.cluster.Snapshot.Nodes) == 0 || in.cluster.Snapshot.Gap(snapshot.ResourceNodes) != nil {
			effect = "what that does to requests is not known without the nodes"
		}
		f.Message = fmt.Sprintf("a selector of class %s fails on %s (%s): %s", class.Name, english.Count(class.Failing, "device"), inventory.FailureText(&class.Failures[0]), effect)
		f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "let the selector be false where it fails: ask for the attribute before it is compared"}
		for _, expression := range class.Selectors {
			if guarded, ok := in.cluster.Pools.Guard(ctx, in.cluster.Gates.Selectors(), expression); ok {
				f.Remedy.Text = "let the selector be false where it fails: " + guarded
			}
		}
		found = append(found, f)
	}
	return found, nil
}

// fails returns a node on which a request for devices of a class ends with an error, empty
// if there is none.
func fails(ctx context.Context, in *cluster, class string, mode resourceapi.DeviceAllocationMode) (string, error) {
	request := &resourceapi.ExactDeviceRequest{DeviceClassName: class, AllocationMode: mode}
	if mode == resourceapi.DeviceAllocationModeExactCount {
		request.Count = 1
	}
	claims := []*resourceapi.ResourceClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec:       resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: "devices", Exactly: request}}}},
	}}
	verdicts := allocator.Of(in.cluster).CheckAll(ctx, in.cluster.Snapshot.Nodes, func(*corev1.Node) ([]*resourceapi.ResourceClaim, error) { return claims, nil })
	for i, verdict := range verdicts {
		switch verdict.Outcome {
		case allocator.Cancelled:
			return "", fmt.Errorf("ask the allocator about class %s: %w", class, verdict.Err)
		case allocator.Failed:
			return in.cluster.Snapshot.Nodes[i].Name, nil
		case allocator.Fits, allocator.DoesNotFit, allocator.NodeError, allocator.TimedOut, allocator.GivenUp, allocator.NotTried:
		}
	}
	return "", nil
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
		f.Evidence = append(f.Evidence, api.Evidence{Object: api.Ref(api.KindNode, "", node), Path: "status.allocatable", Found: class.ExtendedResource})
	}
	f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "run either the device plugin or the DRA driver on these nodes"}
	return f
}

func findSharedResourceNames(_ context.Context, in *cluster) ([]api.Finding, error) {
	byName := map[string][]string{}
	var names []string
	for _, class := range in.cluster.Snapshot.Classes {
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
		if used := in.cluster.Claims.ClassOf(corev1.ResourceName(name)); used != nil {
			f.Message += ": the scheduler uses " + used.Name + " alone"
		}
		for _, class := range classes {
			f.Objects = append(f.Objects, api.Ref(kindClass, "", class))
			f.Evidence = append(f.Evidence, api.Evidence{Object: api.Ref(kindClass, "", class), Path: "spec.extendedResourceName", Found: name})
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
			// Its devices are not known.
			return nil, nil
		}
	}
	devices := map[string]int{}
	var drivers []string
	for _, d := range in.cluster.Pools.Devices() {
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
			Objects: []api.ObjectRef{api.Ref("Driver", "", driver)},
			Message: fmt.Sprintf("no class selects any of the %s of driver %s", english.Count(devices[driver], "device"), driver),
			Remedy:  &api.NextStep{Actor: api.ActorAdmin, Text: fmt.Sprintf("create a DeviceClass with the selector device.driver == %q", driver)},
		})
	}
	return found, nil
}
