// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

func adminChecks() []Check {
	return []Check{
		{
			Code: "DRA2401", Title: "class without a selector", Severity: api.SeverityWarning,
			About:  "A DeviceClass without selectors selects every device of every driver.",
			Advice: "Select the driver: device.driver == \"gpu.example.com\".",
			find:   openClasses,
		},
		{
			Code: "DRA2402", Title: "class with configuration for another driver", Severity: api.SeverityWarning,
			About:  "A DeviceClass has configuration for a driver that its selectors rule out. It is ignored without a word.",
			Advice: "Correct the driver of the configuration, or the selectors.",
			find:   classConfiguration,
		},
		{
			Code: "DRA2403", Title: "taint rule for every device", Severity: api.SeverityWarning,
			About:  "A DeviceTaintRule with an empty selector taints every device of every driver. With effect NoExecute, it evicts every pod that has a device. One without a selector selects nothing, but kube-scheduler before 1.37.1 takes it for all devices (kubernetes/kubernetes#141620).",
			Advice: "Select a driver, a pool or a device. 'kubectl dra taints preview' shows whom a rule evicts.",
			find:   openRules,
		},
		{
			Code: "DRA2404", Title: "quantity as an attribute", Severity: api.SeverityInfo,
			About:  "An attribute of a device is a text such as \"80Gi\". Selectors can compare it as a text only, and none of it can be requested.",
			Advice: "Publish it as a capacity.",
			find:   quantitiesAsText,
		},
		{
			Code: "DRA2405", Title: "quota for a class that is missing", Severity: api.SeverityWarning,
			About:  "A ResourceQuota limits the devices of a class that is not there. It limits nothing.",
			Advice: "Correct the name of the class in the key.",
			find:   quotaClasses,
		},
	}
}

// decodedAs calls for each object of a type that could be decoded.
func decodedAs[T any](in *input, each func(o *object, decoded T)) {
	for _, o := range in.objects {
		if decoded, ok := o.decoded.(T); ok && o.err == nil {
			each(o, decoded)
		}
	}
}

func openClasses(in *input) (found []finding) {
	decodedAs(in, func(o *object, class *resourceapi.DeviceClass) {
		if len(class.Spec.Selectors) == 0 && len(o.broken) == 0 {
			found = append(found, finding{
				object: o, path: "spec", message: fmt.Sprintf("class %s selects every device of every driver", o.name),
				advice: `select the driver: device.driver == "gpu.example.com"`,
			})
		}
	})
	return found
}

func classConfiguration(in *input) (found []finding) {
	decodedAs(in, func(o *object, class *resourceapi.DeviceClass) {
		drivers := in.driversIn(class.Spec.Selectors)
		for i := range class.Spec.Config {
			opaque := class.Spec.Config[i].Opaque
			if opaque == nil || opaque.Driver == "" || len(drivers) == 0 || slices.Contains(drivers, opaque.Driver) {
				continue
			}
			f := finding{
				object: o, path: indexed("spec.config", i) + ".opaque.driver", found: opaque.Driver, required: english.JoinOr(drivers),
				message: fmt.Sprintf("the configuration is for driver %s, and the class selects devices of %s: it is ignored", opaque.Driver, english.JoinAnd(drivers)),
				advice:  "write it for " + english.JoinOr(drivers),
			}
			// Parameters are in the form of a driver: only a typo is corrected.
			if len(drivers) == 1 && english.Typo(opaque.Driver, drivers) != "" {
				f.fix = []edit{{"replace", f.path, drivers[0]}}
			}
			found = append(found, f)
		}
	})
	return found
}

func openRules(in *input) (found []finding) {
	decodedAs(in, func(o *object, rule *resourceapi.DeviceTaintRule) {
		s := rule.Spec.DeviceSelector
		if s != nil && (s.Driver != nil || s.Pool != nil || s.Device != nil) || rule.Spec.Taint.Effect == resourceapi.DeviceTaintEffectNone || len(o.broken) > 0 {
			return
		}
		f := finding{object: o, path: "spec.deviceSelector", message: cluster.EveryDeviceText(rule), advice: "select a driver, a pool or a device"}
		if s == nil {
			f.message = cluster.New(in.snap).Taints.OpenRuleText(rule)
		}
		found = append(found, f)
	})
	return found
}

// amount is a text that only a quantity of something looks like.
//
//nolint:gochecknoglobals // it is never changed
var amount = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?[KMGTPE]i$`)

func quantitiesAsText(in *input) (found []finding) {
	decodedAs(in, func(o *object, slice *resourceapi.ResourceSlice) {
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			for _, name := range slices.Sorted(maps.Keys(device.Attributes)) {
				text := device.Attributes[name].StringValue
				if text == nil || !amount.MatchString(*text) {
					continue
				}
				if _, err := resource.ParseQuantity(*text); err != nil {
					continue
				}
				found = append(found, finding{
					object: o, path: fmt.Sprintf("spec.devices[%d].attributes[%q].string", i, name), found: *text,
					message: fmt.Sprintf("attribute %s of device %s is the text %q, which nobody can compare as a quantity", name, device.Name, *text),
					advice:  "publish it as a capacity",
				})
			}
		}
	})
	return found
}

func quotaClasses(in *input) (found []finding) {
	var names []string
	for _, class := range in.snap.Classes {
		names = append(names, class.Name)
	}
	decodedAs(in, func(o *object, quota *corev1.ResourceQuota) {
		for _, key := range slices.Sorted(maps.Keys(quota.Spec.Hard)) {
			class, ok := kinds.QuotaClass(key)
			if !ok || in.byClass[class] != nil {
				continue
			}
			near := meant(class, names)
			if near == "" && !in.complete(snapshot.ResourceClasses) {
				continue
			}
			f := finding{
				object: o, path: fmt.Sprintf("spec.hard[%q]", key), found: class, required: near,
				message: kinds.MissingQuotaClassText(class), advice: "correct the name of the class",
			}
			if near != "" {
				f.advice = "did you mean " + near + "?"
			}
			found = append(found, f)
		}
	})
	return found
}
