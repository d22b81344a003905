// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
)

// NVIDIA's driver, and its class for MIG devices. Its class for whole GPUs has the driver's name.
const (
	driverGPU       = "gpu.nvidia.com"
	classMIG        = "mig.nvidia.com"
	resourceMIG     = "nvidia.com/mig-"
	attrProfile     = "profile"
	attrProductName = "productName"
	attrFamily      = "architecture"
)

// classes knows which DeviceClass stands for an extended resource.
type classes struct {
	*cluster.Cluster
	list []api.Class
	// chosen are the classes that the user chose, by resource.
	chosen map[string]string
}

// classFor returns the DeviceClass for claims in place of an extended resource, or why none is known.
func (cs *classes) classFor(resource string) (class, reason string) {
	if chosen := cs.chosen[resource]; chosen != "" {
		return chosen, ""
	}
	// The scheduler takes this one, even while the feature is off.
	if serves := cs.serving(resource); serves != "" {
		return serves, ""
	}
	want := ""
	if isMIG(resource) {
		want = classMIG
	}
	var same []string
	for i := range cs.list {
		c := &cs.list[i]
		drivers := c.Drivers
		if len(drivers) == 0 {
			// The driver does not run yet: its class has its name, as a rule.
			drivers = []string{c.Name}
		}
		switch {
		case c.Name == want:
			return c.Name, ""
		case want == "" && len(drivers) == 1 && cluster.SameHardware(drivers[0], resource) && c.Name != classMIG:
			same = append(same, c.Name)
		}
	}
	for _, name := range same {
		if len(same) == 1 || cluster.SameHardware(name, resource) {
			return name, ""
		}
	}
	if len(same) > 0 {
		return "", fmt.Sprintf("classes %s have this hardware, by the names of their drivers: choose one with --class %s=NAME", english.JoinAnd(same), resource)
	}
	for _, c := range cs.Snapshot.Classes {
		if ptr.Deref(c.Spec.ExtendedResourceName, "") == resource {
			return "", fmt.Sprintf("class %s names %s, but the feature gate DRAExtendedResource is off: turn it on, or write --class %[2]s=%[1]s", c.Name, resource)
		}
	}
	if want != "" {
		return "", fmt.Sprintf("there is no class %s, which the driver of NVIDIA installs for MIG devices", want)
	}
	return "", fmt.Sprintf("no class has drivers that are %s by their names: install the driver and its class, or choose one with --class %s=NAME", resource, resource)
}

// driverFor returns the driver that has the hardware of a resource, or why none is known.
func (cs *classes) driverFor(resource string) (driver, reason string) {
	class, reason := cs.classFor(resource)
	at := slices.IndexFunc(cs.list, func(c api.Class) bool { return c.Name == class })
	if at < 0 {
		return "", reason
	}
	switch drivers := cs.list[at].Drivers; {
	case len(drivers) == 0 && cluster.SameHardware(class, resource):
		// The driver does not run yet: its class has its name, as a rule.
		return class, ""
	case len(drivers) == 0:
		return "", fmt.Sprintf("class %s, for %s, selects no device, so that its driver is not known", class, resource)
	case len(drivers) > 1:
		return "", fmt.Sprintf("class %s, for %s, selects devices of drivers %s", class, resource, english.JoinAnd(drivers))
	case !cluster.SameHardware(drivers[0], resource) && cs.chosen[resource] == "":
		return "", fmt.Sprintf("driver %s of class %s has another name than %s: if it is the same hardware, write --class %[3]s=%[2]s", drivers[0], class, resource)
	default:
		return drivers[0], ""
	}
}

// serving returns the class that names an extended resource, empty if there is none.
func (cs *classes) serving(resource string) string {
	if class := cs.Claims.ClassOf(corev1.ResourceName(resource)); class != nil {
		return class.Name
	}
	return ""
}

func isMIG(resource string) bool { return strings.HasPrefix(resource, resourceMIG) }

// profileOf returns the MIG profile of a resource of the strategy "mixed": mig-1g.10gb.me is
// 1g.10gb+me. Names of resources and values of labels cannot have a plus.
func profileOf(resource string) string {
	name := strings.TrimPrefix(resource, resourceMIG)
	profile, attribute, found := cutAttribute(name)
	if found {
		return profile + "+" + attribute
	}
	return profile
}

// cutAttribute cuts the attribute of a MIG profile, such as "me" or "gfx", which stands behind the
// memory.
func cutAttribute(name string) (profile, attribute string, found bool) {
	parts := strings.Split(name, ".")
	if len(parts) == 3 {
		return parts[0] + "." + parts[1], parts[2], true
	}
	return name, "", false
}

// equals returns a CEL expression for devices with a value of an attribute of NVIDIA's driver.
func equals(attribute, value string) string {
	return fmt.Sprintf("device.attributes[%q].%s == %q", driverGPU, attribute, value)
}

// published returns the value of an attribute on devices of NVIDIA's driver that a label of feature
// discovery has: there, blanks are hyphens. It is empty if none has it, or several.
func (cs *classes) published(attribute, label string) string {
	var found []string
	devices := cs.Pools.Devices()
	for i := range devices {
		if devices[i].ID.Driver != driverGPU {
			continue
		}
		value, ok := selector.Lookup(devices[i].Attributes, driverGPU, attribute, driverGPU)
		if text := selector.Plain(value); ok && strings.EqualFold(strings.ReplaceAll(text, " ", "-"), label) && !slices.Contains(found, text) {
			found = append(found, text)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// selects reports whether a class selects devices now.
func (cs *classes) selects(class string) bool {
	for i := range cs.list {
		if cs.list[i].Name == class {
			return cs.list[i].Devices > 0
		}
	}
	return false
}

// nameFor returns the class that could have a resource as extendedResourceName: it has no such name yet,
// and selects devices of a driver with the same hardware. Classes for MIG devices select all profiles.
func (cs *classes) nameFor(resource string) *api.MigrationClass {
	driver, _ := cs.driverFor(resource)
	name, _ := cs.classFor(resource)
	at := slices.IndexFunc(cs.list, func(c api.Class) bool { return c.Name == name })
	if driver == "" || cs.serving(resource) != "" || name == classMIG || cs.list[at].ExtendedResource != "" || cs.list[at].Devices == 0 {
		return nil
	}
	// A map of strings can be encoded.
	patch, _ := json.Marshal(map[string]any{"spec": map[string]string{"extendedResourceName": resource}})
	return &api.MigrationClass{
		Class: name, Resource: resource, Devices: cs.list[at].Devices,
		Command: "kubectl patch " + shell.KubectlObjects("deviceclass", "", name) + " --type=merge -p " + shell.Quote(string(patch)),
	}
}

// selectorsOf writes expressions as selectors.
func selectorsOf(expressions []string) []resourceapi.DeviceSelector {
	var list []resourceapi.DeviceSelector
	for _, expression := range expressions {
		list = append(list, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}})
	}
	return list
}

// quotas returns the limits of extended resources in a quota.
func (cs *classes) quotas(quota *corev1.ResourceQuota) []api.MigrationQuota {
	var list []api.MigrationQuota
	for name, hard := range quota.Spec.Hard {
		resource, limited := cutRequests(string(name))
		if !limited || !cluster.IsExtendedResource(corev1.ResourceName(resource)) {
			continue
		}
		q := api.MigrationQuota{Namespace: quota.Namespace, Name: quota.Name, Resource: string(name), Hard: hard.Value()}
		class, reason := cs.classFor(resource)
		if serving := cs.serving(resource); serving != "" {
			// As addExtendedResourceQuota in pkg/quota/v1/evaluator/core/resource_claims.go of Kubernetes.
			q.Reason = fmt.Sprintf("it limits claims for class %s, too, which names the resource", serving)
		} else if q.Reason = reason; class != "" {
			q.Becomes = class + corev1.ResourceClaimsPerClass
			q.Commands = []string{quotaCommand(quota, q.Becomes, hard.String())}
		}
		list = append(list, q)
	}
	slices.SortFunc(list, func(a, b api.MigrationQuota) int { return cmp.Compare(a.Resource, b.Resource) })
	return list
}

// cutRequests returns the resource that a quota limits the requests of.
func cutRequests(name string) (resource string, limited bool) {
	return strings.CutPrefix(name, corev1.DefaultResourceRequestsPrefix)
}

// quotaCommand adds a limit to a quota.
func quotaCommand(quota *corev1.ResourceQuota, resource, hard string) string {
	// A map of strings can be encoded.
	patch, _ := json.Marshal(map[string]any{"spec": map[string]any{"hard": map[string]string{resource: hard}}})
	return "kubectl patch " + shell.KubectlObjects("resourcequota", quota.Namespace, quota.Name) + " --type=merge -p " + shell.Quote(string(patch))
}
