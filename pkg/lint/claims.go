// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/big"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func claimChecks() []Check {
	return []Check{
		{
			Code: "DRA2201", Title: "class that looks like a driver", Severity: api.SeverityWarning,
			About:  "deviceClassName is the name of a driver for which there is a class of another name, and no class has that name. The claim waits until there is one. Made only where all classes are known, with --cluster or --snapshot: many drivers bring a class that has their name.",
			Advice: "Name a DeviceClass; 'kubectl dra classes' lists them.",
			find:   driversAsClasses,
		},
		{
			Code: "DRA2202", Title: "more devices than a claim can have", Severity: api.SeverityError,
			About:  fmt.Sprintf("The requests of a claim ask for more than %d devices together. No claim can have more: it is never allocated.", resourceapi.AllocationResultsMaxSize),
			Advice: "Divide the claim.",
			find:   tooManyDevices,
		},
		{
			Code: "DRA2203", Title: "constraint over one device", Severity: api.SeverityWarning,
			About:  "A constraint compares the devices of requests that get one device together. All that it does is to reject devices without the attribute.",
			Advice: "Name the other requests in it, or remove it.",
			find:   loneConstraints,
		},
		{
			Code: "DRA2204", Title: "alternative that is never reached", Severity: api.SeverityWarning,
			About:  "An alternative of a prioritized list asks for no less than one before it. Where it fits, the earlier one does too, and that one is taken.",
			Advice: "Put the alternative that asks for more first.",
			find:   unreachedAlternatives,
		},
		{
			Code: "DRA2205", Title: "toleration of everything", Severity: api.SeverityWarning,
			About:  "A toleration without a key and without an effect tolerates every taint, also those of devices that are broken or about to be removed.",
			Advice: "Name the key of the taint, and the effect.",
			find:   broadTolerations,
		},
		{
			Code: "DRA2206", Title: "admin access where it is not permitted", Severity: api.SeverityError,
			About:  "A request has adminAccess, and its namespace lacks the label " + resourceapi.DRAAdminNamespaceLabelKey + ": \"true\". The API server rejects the claim or the template. Where the namespace is not known, this is information.",
			Advice: "Use a namespace that has the label, or remove adminAccess.",
			find:   adminAccess,
		},
		{
			Code: "DRA2207", Title: "configuration for another driver", Severity: api.SeverityWarning,
			About:  "Opaque configuration is for a driver of which none of the requested devices can be, by the selectors of their classes. It is ignored without a word.",
			Advice: "Correct the driver, or the requests that the configuration is for.",
			find:   foreignConfiguration,
		},
		{
			Code: "DRA2208", Title: "class that is missing", Severity: api.SeverityWarning,
			About:  "deviceClassName names no class in the files, and there is one of a similar name in them or in the cluster, or the cluster that was read has none of that name. Pods with such a claim are not scheduled.",
			Advice: "Correct the name. 'kubectl dra classes' lists the classes of a cluster.",
			find:   missingClasses,
		},
		{
			Code: "DRA2209", Title: "toleration that does not keep a pod running", Severity: api.SeverityInfo,
			About:  "A toleration of devices without an effect is one of every effect to the scheduler, and of none to the controller that evicts pods for device taints: only a toleration with effect NoExecute keeps a pod on a device with such a taint. It is a warning where the files or the cluster have a taint with effect NoExecute that it matches.",
			Advice: "Give the effect: a toleration for NoExecute, and another one for NoSchedule.",
			find:   weakTolerations,
		},
	}
}

// eachRequest calls for each request and each alternative.
func (in *input) eachRequest(each func(c *claim, r *cluster.Request)) {
	for _, c := range in.claims {
		for _, alternatives := range c.requests {
			for _, r := range alternatives {
				each(c, r)
			}
		}
	}
}

func driversAsClasses(in *input) []finding {
	if !in.complete(snapshot.ResourceClasses) {
		return nil
	}
	classes := map[string][]string{}
	for _, class := range in.snap.Classes {
		for _, driver := range in.driversIn(class.Spec.Selectors) {
			classes[driver] = append(classes[driver], class.Name)
		}
	}
	var found []finding
	in.eachRequest(func(c *claim, r *cluster.Request) {
		names, driver := classes[r.Class]
		if !driver || in.byClass[r.Class] != nil || len(names) == 0 {
			return
		}
		f := finding{
			object: c.object, path: c.at(r.Path) + ".deviceClassName", found: r.Class, required: english.JoinOr(names),
			message: fmt.Sprintf("%s is a driver, and no DeviceClass has that name", r.Class),
			advice:  "create the class, or name a class of the driver that selects the devices that are wanted: " + english.JoinOr(names),
		}
		c.reject(f.path)
		found = append(found, f)
	})
	return found
}

func missingClasses(in *input) []finding {
	var names []string
	for _, class := range in.snap.Classes {
		names = append(names, class.Name)
	}
	var found []finding
	in.eachRequest(func(c *claim, r *cluster.Request) {
		path := c.at(r.Path) + ".deviceClassName"
		if r.Class == "" || in.byClass[r.Class] != nil || c.rejected(path) {
			return
		}
		meant := in.meantClass(r, names)
		if meant == "" && !in.complete(snapshot.ResourceClasses) {
			return
		}
		f := finding{object: c.object, path: path, found: r.Class, required: meant, message: fmt.Sprintf("DeviceClass %s does not exist", r.Class)}
		if !in.complete(snapshot.ResourceClasses) {
			f.message = fmt.Sprintf("DeviceClass %s is not in the files", r.Class)
		}
		if f.advice = "create the class, or name another one"; meant != "" {
			f.advice = "did you mean " + meant + "?"
		}
		found = append(found, f)
	})
	return found
}

// meantClass returns the class that was probably meant by the name of a missing one, empty
// if none is close. It is no class for devices of another driver than the selectors of the
// request name.
func (in *input) meantClass(r *cluster.Request, names []string) string {
	if len(names) > maxMeant {
		return ""
	}
	wanted := in.driversIn(r.Selectors)
	return meant(r.Class, slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		has := in.driversIn(in.byClass[name].Spec.Selectors)
		return len(wanted) > 0 && len(has) > 0 && !slices.ContainsFunc(wanted, func(driver string) bool { return slices.Contains(has, driver) })
	}))
}

// leastDevices returns how many devices a request gets at least.
func leastDevices(alternatives []*cluster.Request) int64 {
	least := int64(-1)
	for _, r := range alternatives {
		count := max(r.Count, 0)
		if r.All() {
			count = 1
		}
		if least < 0 || count < least {
			least = count
		}
	}
	return max(least, 0)
}

func tooManyDevices(in *input) []finding {
	var found []finding
	for _, c := range in.claims {
		var largest *cluster.Request
		for _, alternatives := range c.requests {
			for _, r := range alternatives {
				if !r.All() && (largest == nil || r.Count > largest.Count) {
					largest = r
				}
				if len(alternatives) > 1 && !r.All() && r.Count > resourceapi.AllocationResultsMaxSize {
					found = append(found, finding{
						object: c.object, path: c.at(r.Path) + ".count", found: fmt.Sprint(r.Count), required: fmt.Sprintf("at most %d", resourceapi.AllocationResultsMaxSize),
						message: fmt.Sprintf("alternative %s asks for %d devices; a claim can have %d", r.Name, r.Count, resourceapi.AllocationResultsMaxSize),
						advice:  "ask for less, or divide the claim",
					})
				}
			}
		}
		total := sumOf(c.requests)
		if largest == nil || total.Cmp(big.NewInt(resourceapi.AllocationResultsMaxSize)) <= 0 {
			continue
		}
		found = append(found, finding{
			object: c.object, path: c.at(largest.Path) + ".count", found: total.String(), required: fmt.Sprintf("at most %d", resourceapi.AllocationResultsMaxSize),
			message: fmt.Sprintf("the requests ask for %d devices together; a claim can have %d", total, resourceapi.AllocationResultsMaxSize),
			advice:  "ask for less, or divide the claim",
		})
	}
	return found
}

// sumOf returns how many devices requests get at least, together. Counts have no limit.
func sumOf(requests [][]*cluster.Request) *big.Int {
	sum := &big.Int{}
	for _, alternatives := range requests {
		sum.Add(sum, big.NewInt(leastDevices(alternatives)))
	}
	return sum
}

func loneConstraints(in *input) []finding {
	var found []finding
	for _, c := range in.claims {
		for i := range c.devices.Constraints {
			constraint := &c.devices.Constraints[i]
			path := indexed(c.path+".constraints", i)
			if c.rejected(path) {
				continue
			}
			most, named := int64(0), 0
			for _, alternatives := range c.requests {
				one := int64(0)
				for _, r := range alternatives {
					switch {
					case len(constraint.Requests) > 0 && !slices.Contains(constraint.Requests, r.Name) && !slices.Contains(constraint.Requests, r.Base):
					case r.All():
						one, named = 2, named+1
					default:
						one, named = max(one, r.Count), named+1
					}
				}
				most += min(one, 2)
			}
			if most > 1 || named == 0 {
				continue
			}
			f := finding{
				object: c.object, path: path, message: "the constraint is about one device, which it compares with nothing",
				advice: "name the other requests in it, or remove it",
			}
			if len(constraint.Requests) > 0 {
				f.message = "the constraint is about one device of request " + english.JoinAnd(constraint.Requests) + ", which it compares with nothing"
			}
			found = append(found, f)
		}
	}
	return found
}

func unreachedAlternatives(in *input) []finding {
	var found []finding
	for _, c := range in.claims {
		for _, alternatives := range c.requests {
			for j, later := range alternatives {
				for _, earlier := range alternatives[:j] {
					if !asksNoLess(later, earlier, c.devices.Constraints) {
						continue
					}
					found = append(found, finding{
						object: c.object, path: c.at(later.Path), found: later.Name,
						message: fmt.Sprintf("alternative %s is never reached: where it fits, %s before it does too", later.Name, earlier.Name),
						advice:  "put the alternative that asks for more first",
					})
					break
				}
			}
		}
	}
	return found
}

// asksNoLess reports whether devices that serve one alternative always serve another
// one, too, as far as that shows.
func asksNoLess(more, less *cluster.Request, constraints []resourceapi.DeviceConstraint) bool {
	if more.Class != less.Class || more.All() != less.All() || more.All() || less.Count > more.Count || len(more.Derived)+len(less.Derived) > 0 || less.AdminAccess != more.AdminAccess {
		return false
	}
	for _, constraint := range constraints {
		if slices.Contains(constraint.Requests, less.Name) || slices.Contains(constraint.Requests, more.Name) {
			return false
		}
	}
	has := func(r *cluster.Request, expression string) bool {
		return slices.ContainsFunc(r.Selectors, func(s resourceapi.DeviceSelector) bool {
			return s.CEL != nil && normalized(s.CEL.Expression) == expression
		})
	}
	for _, s := range less.Selectors {
		if s.CEL == nil || !has(more, normalized(s.CEL.Expression)) {
			return false
		}
	}
	for _, t := range more.Tolerations {
		if !slices.ContainsFunc(less.Tolerations, func(other resourceapi.DeviceToleration) bool { return sameJSON(t, other) }) {
			return false
		}
	}
	return less.Capacity == nil || sameJSON(less.Capacity, more.Capacity)
}

func normalized(expression string) string { return strings.Join(strings.Fields(expression), " ") }

func sameJSON(a, b any) bool {
	one, err := json.Marshal(a)
	if err != nil {
		return false
	}
	other, err := json.Marshal(b)
	return err == nil && string(one) == string(other)
}

func broadTolerations(in *input) []finding {
	var found []finding
	in.eachRequest(func(c *claim, r *cluster.Request) {
		for i, t := range r.Tolerations {
			if t.Key != "" || t.Operator != resourceapi.DeviceTolerationOpExists || t.Effect != "" {
				continue
			}
			found = append(found, finding{
				object: c.object, path: indexed(c.at(r.Path)+".tolerations", i),
				message: fmt.Sprintf("request %s tolerates every taint, also those of broken devices", r.Name),
				advice:  "name the key of the taint, and the effect",
			})
		}
	})
	return found
}

// weakTolerations finds tolerations without an effect, of which claimEvictionTime in
// pkg/controller/devicetainteviction of Kubernetes takes no notice.
func weakTolerations(in *input) []finding {
	var found []finding
	in.eachRequest(func(c *claim, r *cluster.Request) {
		for i, t := range r.Tolerations {
			if t.Effect != "" || t.Key == "" {
				continue
			}
			f := finding{
				object: c.object, path: indexed(c.at(r.Path)+".tolerations", i), required: "effect: " + string(resourceapi.DeviceTaintEffectNoExecute),
				message: fmt.Sprintf("the toleration of %s names no effect: taints with effect NoExecute evict the pod all the same", t.Key),
				advice:  "if the pod is to stay, add a toleration with effect NoExecute",
			}
			kept := func(taint resourceapi.DeviceTaint) bool {
				return slices.ContainsFunc(r.Tolerations, func(t resourceapi.DeviceToleration) bool {
					return t.Effect == resourceapi.DeviceTaintEffectNoExecute && resourceclaim.ToleratesTaint(t, taint)
				})
			}
			for source, taint := range in.evicting(c.object, in.driversOf(r.Class, r.Selectors)) {
				if resourceclaim.ToleratesTaint(t, taint) && !kept(taint) {
					f.severity = api.SeverityWarning
					f.message += ", such as that of " + source
					break
				}
			}
			if f.severity == "" && kept(resourceapi.DeviceTaint{Key: t.Key, Value: t.Value, Effect: resourceapi.DeviceTaintEffectNoExecute}) {
				continue
			}
			found = append(found, f)
		}
	})
	return found
}

// evicting yields the taints with effect NoExecute of devices of some drivers, or of any if
// there are none, and what has them.
func (in *input) evicting(o *object, drivers []string) iter.Seq2[string, resourceapi.DeviceTaint] {
	of := func(driver *string) bool {
		return driver == nil || len(drivers) == 0 || slices.Contains(drivers, *driver)
	}
	return func(yield func(string, resourceapi.DeviceTaint) bool) {
		for _, rule := range in.snap.TaintRules {
			s := rule.Spec.DeviceSelector
			if rule.Spec.Taint.Effect == resourceapi.DeviceTaintEffectNoExecute && (s == nil || of(s.Driver)) && !yield("DeviceTaintRule "+rule.Name, rule.Spec.Taint) {
				return
			}
		}
		for _, slice := range in.near(o).slices {
			if !of(&slice.Spec.Driver) {
				continue
			}
			for i := range slice.Spec.Devices {
				for _, taint := range slice.Spec.Devices[i].Taints {
					if taint.Effect == resourceapi.DeviceTaintEffectNoExecute && !yield(fmt.Sprintf("device %s in ResourceSlice %s", slice.Spec.Devices[i].Name, slice.Name), taint) {
						return
					}
				}
			}
		}
	}
}

func adminAccess(in *input) []finding {
	var found []finding
	in.eachRequest(func(c *claim, r *cluster.Request) {
		if !r.AdminAccess {
			return
		}
		path := c.at(r.Path) + ".adminAccess"
		label := resourceapi.DRAAdminNamespaceLabelKey
		if namespace := in.namespaces[c.namespace]; namespace != nil {
			if namespace.Labels[label] != "true" {
				c.reject(path)
				found = append(found, finding{
					object: c.object, path: path, found: "true", message: fmt.Sprintf("namespace %s lacks the label %s: \"true\" that adminAccess needs", c.namespace, label),
					advice: "use a namespace that has the label, or remove adminAccess",
				})
			}
			return
		}
		found = append(found, finding{
			object: c.object, path: path, severity: api.SeverityInfo, found: "true",
			message: fmt.Sprintf("adminAccess needs the label %s: \"true\" on namespace %s, which is not known here", label, c.namespace),
			advice:  "--cluster looks whether the namespace has the label",
		})
	})
	return found
}

func foreignConfiguration(in *input) []finding {
	var found []finding
	for _, c := range in.claims {
		for i := range c.devices.Config {
			config := &c.devices.Config[i]
			if config.Opaque == nil || config.Opaque.Driver == "" {
				continue
			}
			drivers, known := in.driversFor(c, config.Requests)
			if !known || slices.Contains(drivers, config.Opaque.Driver) {
				continue
			}
			path := indexed(c.path+".config", i) + ".opaque.driver"
			f := finding{
				object: c.object, path: path, found: config.Opaque.Driver, required: english.JoinOr(drivers),
				message: fmt.Sprintf("the configuration is for driver %s, and the requested devices are of %s: it is ignored", config.Opaque.Driver, english.JoinAnd(drivers)),
				advice:  "write it for " + english.JoinOr(drivers),
			}
			// Parameters are in the form of a driver: only a typo is corrected.
			if len(drivers) == 1 && english.Typo(config.Opaque.Driver, drivers) != "" {
				f.fix = []edit{{"replace", path, drivers[0]}}
			}
			found = append(found, f)
		}
	}
	return found
}

// driversFor lists the drivers of which the devices of requests have to be; it is not
// known if one of them does not say.
func (in *input) driversFor(c *claim, requests []string) (drivers []string, known bool) {
	for _, alternatives := range c.requests {
		for _, r := range alternatives {
			if len(requests) > 0 && !slices.Contains(requests, r.Name) && !slices.Contains(requests, r.Base) {
				continue
			}
			of := in.driversOf(r.Class, r.Selectors)
			if len(of) == 0 {
				return nil, false
			}
			drivers = append(drivers, of...)
		}
	}
	slices.Sort(drivers)
	return slices.Compact(drivers), len(drivers) > 0
}
