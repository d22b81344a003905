// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// The functions in this file refuse names that nothing in a cluster can have:
// names end up in commands for the shell, and in other objects.

// form is the required form of a name.
type form struct {
	words string
	valid func(string) bool
}

func subdomain() form {
	return form{`a DNS subdomain (lowercase letters, digits, "-" and ".")`, isSubdomain}
}

func label() form {
	return form{`a DNS label (lowercase letters, digits and "-")`, isLabel}
}

func poolName() form {
	return form{`DNS subdomains separated by "/"`, func(name string) bool { return allOf(name, isSubdomain) }}
}

func requestName() form {
	return form{"the name of a request, or of a request and an alternative separated by \"/\"", func(name string) bool { return allOf(name, isLabel) }}
}

func driverName() form {
	return form{"a DNS subdomain", func(name string) bool {
		return isSubdomain(name) || isSubdomain(strings.ToLower(name))
	}}
}

func kindName() form {
	return form{"a kind (letters, digits and \"-\")", func(kind string) bool { return isLabel(strings.ToLower(kind)) }}
}

// anyName returns the form for objects of kinds that may have other rules than the kinds in
// a snapshot.
func anyName() form {
	return form{`a name (letters, digits, "-", ".", "_" and ":")`, func(name string) bool {
		return isSubdomain(name) || !strings.ContainsFunc(name, func(r rune) bool {
			return !strings.ContainsRune("-._:", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		})
	}}
}

func allOf(name string, valid func(string) bool) bool {
	for part := range strings.SplitSeq(name, "/") {
		if !valid(part) {
			return false
		}
	}
	return true
}

// isLabel reports whether a plain name is valid without the regular expressions of
// Kubernetes, which decide about the others. So does isSubdomain.
func isLabel(name string) bool {
	return isPlainName(name, '-') && len(name) <= validation.DNS1123LabelMaxLength || len(validation.IsDNS1123Label(name)) == 0
}

func isSubdomain(name string) bool {
	return isPlainName(name, '.') && len(name) <= validation.DNS1123SubdomainMaxLength || len(validation.IsDNS1123Subdomain(name)) == 0
}

// isPlainName reports whether a name has lowercase letters, digits and between them
// single hyphens or another character.
func isPlainName(name string, other byte) bool {
	separated := true
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			separated = false
		case (c == '-' || c == other) && !separated:
			separated = true
		default:
			return false
		}
	}
	return !separated
}

// wantForm fails for a name at a path that has another form. A name that is not
// given is for others to miss.
func wantForm(form form, name, path string, indexes ...any) error {
	if name == "" || form.valid(name) {
		return nil
	}
	if len(indexes) > 0 {
		path = fmt.Sprintf(path, indexes...)
	}
	return AtField(path, fmt.Errorf("expected %s, found %s", form.words, Shortened(name)))
}

func wantPointer(form form, name *string, path string, indexes ...any) error {
	if name == nil {
		return nil
	}
	return wantForm(form, *name, path, indexes...)
}

// CheckType fails for what no API server serves.
func CheckType(apiVersion, kind string) error {
	return firstError(wantVersion(apiVersion, "apiVersion"), wantForm(kindName(), kind, "kind"))
}

func wantVersion(apiVersion, path string) error {
	if apiVersion == "" {
		return nil
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Group != "" && !isSubdomain(gv.Group) || !isLabel(gv.Version) {
		return AtField(path, fmt.Errorf("expected a group and a version such as %s, found %s", resourceapi.SchemeGroupVersion, Shortened(apiVersion)))
	}
	return nil
}

// CheckHeader fails for names that no feature gate, resource or namespace has.
func CheckHeader(h *snapshot.Header) error {
	for name := range h.Gates {
		if err := wantForm(kindName(), name, "gates"); err != nil {
			return err
		}
	}
	for i, gap := range h.Gaps {
		if err := wantForm(label(), gap.Namespace, "gaps[%d].namespace", i); err != nil {
			return err
		}
		if gap.Resource == snapshot.ResourceMetrics {
			continue
		}
		plural, group, _ := strings.Cut(gap.Resource, ".")
		if err := firstError(wantForm(label(), plural, "gaps[%d].resource", i), wantForm(subdomain(), group, "gaps[%d].resource", i)); err != nil {
			return err
		}
	}
	for i, resource := range h.Listed {
		if err := wantForm(subdomain(), resource, "listed[%d]", i); err != nil {
			return err
		}
	}
	for i, resource := range h.Served {
		if err := wantForm(subdomain(), resource, "served[%d]", i); err != nil {
			return err
		}
	}
	version := form{"a version such as v1.36.1", func(version string) bool {
		_, err := snapshot.ParseVersion(version)
		return err == nil
	}}
	return firstError(wantForm(version, h.ServerVersion, "serverVersion"), wantForm(version, h.Emulator, "emulator"))
}

// checkIdentity fails for an object with a name, or a reference to another one,
// that cannot exist.
func checkIdentity(object metav1.Object, kind string) error {
	if err := checkMeta(object, kind); err != nil {
		return err
	}
	switch object := object.(type) {
	case *resourceapi.ResourceSlice:
		return checkSliceNames(&object.Spec)
	case *resourceapi.ResourceClaim:
		return firstError(checkClaimNames(&object.Spec.Devices, "spec.devices"), checkStatusNames(&object.Status))
	case *resourceapi.ResourceClaimTemplate:
		return checkClaimNames(&object.Spec.Spec.Devices, "spec.spec.devices")
	case *resourceapi.DeviceClass:
		for i := range object.Spec.Config {
			if opaque := object.Spec.Config[i].Opaque; opaque != nil {
				if err := wantForm(driverName(), opaque.Driver, "spec.config[%d].opaque.driver", i); err != nil {
					return err
				}
			}
		}
	case *resourceapi.DeviceTaintRule:
		if selector := object.Spec.DeviceSelector; selector != nil {
			return firstError(
				wantPointer(driverName(), selector.Driver, "spec.deviceSelector.driver"),
				wantPointer(poolName(), selector.Pool, "spec.deviceSelector.pool"),
				wantPointer(label(), selector.Device, "spec.deviceSelector.device"),
			)
		}
	case *corev1.Pod:
		return checkPodNames(&object.Spec, "spec")
	case *snapshot.Workload:
		return checkPodNames(&object.Template.Spec, "spec.template.spec")
	case *corev1.Event:
		return Reference(&object.InvolvedObject, "involvedObject")
	}
	return nil
}

func checkMeta(object metav1.Object, kind string) error {
	name := subdomain()
	if kind == "Namespace" {
		name = label()
	}
	if err := firstError(
		wantForm(name, object.GetName(), "metadata.name"),
		wantForm(label(), object.GetNamespace(), "metadata.namespace"),
		wantForm(form{"the beginning of " + name.words, func(prefix string) bool { return name.valid(prefix + "x") }}, object.GetGenerateName(), "metadata.generateName"),
	); err != nil {
		return err
	}
	for i, owner := range object.GetOwnerReferences() {
		if err := Owner(&owner, i); err != nil {
			return err
		}
	}
	return nil
}

// Owner fails for an owner that cannot exist.
func Owner(owner *metav1.OwnerReference, i int) error {
	if isLabel(strings.ToLower(owner.Kind)) && isSubdomain(owner.Name) && wantVersion(owner.APIVersion, "") == nil {
		return nil
	}
	return firstError(
		wantForm(kindName(), owner.Kind, "metadata.ownerReferences[%d].kind", i),
		wantVersion(owner.APIVersion, fmt.Sprintf("metadata.ownerReferences[%d].apiVersion", i)),
		wantForm(anyName(), owner.Name, "metadata.ownerReferences[%d].name", i),
	)
}

// Reference fails for a reference to an object that cannot exist.
func Reference(ref *corev1.ObjectReference, path string) error {
	return firstError(
		wantForm(kindName(), ref.Kind, "%s.kind", path),
		wantVersion(ref.APIVersion, path+".apiVersion"),
		wantForm(anyName(), ref.Name, "%s.name", path),
		wantForm(label(), ref.Namespace, "%s.namespace", path),
	)
}

func checkSliceNames(spec *resourceapi.ResourceSliceSpec) error {
	if err := firstError(
		wantForm(driverName(), spec.Driver, "spec.driver"),
		wantForm(poolName(), spec.Pool.Name, "spec.pool.name"),
		wantPointer(subdomain(), spec.NodeName, "spec.nodeName"),
	); err != nil {
		return err
	}
	device := label()
	for i := range spec.Devices {
		if isLabel(spec.Devices[i].Name) && spec.Devices[i].NodeName == nil {
			continue
		}
		if err := firstError(
			wantForm(device, spec.Devices[i].Name, "spec.devices[%d].name", i),
			wantPointer(subdomain(), spec.Devices[i].NodeName, "spec.devices[%d].nodeName", i),
		); err != nil {
			return err
		}
	}
	return nil
}

func checkClaimNames(devices *resourceapi.DeviceClaim, path string) error {
	for i := range devices.Requests {
		request := &devices.Requests[i]
		if err := wantForm(label(), request.Name, "%s.requests[%d].name", path, i); err != nil {
			return err
		}
		if exactly := request.Exactly; exactly != nil {
			if err := wantForm(subdomain(), exactly.DeviceClassName, "%s.requests[%d].exactly.deviceClassName", path, i); err != nil {
				return err
			}
		}
		for j := range request.FirstAvailable {
			alternative := &request.FirstAvailable[j]
			if err := firstError(
				wantForm(label(), alternative.Name, "%s.requests[%d].firstAvailable[%d].name", path, i, j),
				wantForm(subdomain(), alternative.DeviceClassName, "%s.requests[%d].firstAvailable[%d].deviceClassName", path, i, j),
			); err != nil {
				return err
			}
		}
	}
	for i := range devices.Config {
		if opaque := devices.Config[i].Opaque; opaque != nil {
			if err := wantForm(driverName(), opaque.Driver, "%s.config[%d].opaque.driver", path, i); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkStatusNames(status *resourceapi.ResourceClaimStatus) error {
	for i := range status.ReservedFor {
		if err := Consumer(&status.ReservedFor[i], i); err != nil {
			return err
		}
	}
	if status.Allocation != nil {
		for i := range status.Allocation.Devices.Results {
			result := &status.Allocation.Devices.Results[i]
			if isLabel(result.Request) && isSubdomain(result.Driver) && isSubdomain(result.Pool) && isLabel(result.Device) {
				continue
			}
			const path = "status.allocation.devices.results[%d]."
			if err := firstError(
				wantForm(requestName(), result.Request, path+"request", i),
				wantForm(driverName(), result.Driver, path+"driver", i),
				wantForm(poolName(), result.Pool, path+"pool", i),
				wantForm(label(), result.Device, path+"device", i),
			); err != nil {
				return err
			}
		}
	}
	for i := range status.Devices {
		device := &status.Devices[i]
		if err := firstError(
			wantForm(driverName(), device.Driver, "status.devices[%d].driver", i),
			wantForm(poolName(), device.Pool, "status.devices[%d].pool", i),
			wantForm(label(), device.Device, "status.devices[%d].device", i),
		); err != nil {
			return err
		}
	}
	return nil
}

// Consumer fails for a consumer of a claim that cannot exist.
func Consumer(consumer *resourceapi.ResourceClaimConsumerReference, i int) error {
	return firstError(
		wantForm(subdomain(), consumer.APIGroup, "status.reservedFor[%d].apiGroup", i),
		wantForm(label(), consumer.Resource, "status.reservedFor[%d].resource", i),
		wantForm(anyName(), consumer.Name, "status.reservedFor[%d].name", i),
	)
}

func checkPodNames(spec *corev1.PodSpec, path string) error {
	if err := firstError(
		wantForm(subdomain(), spec.NodeName, "%s.nodeName", path),
		wantForm(subdomain(), spec.ServiceAccountName, "%s.serviceAccountName", path),
		wantForm(subdomain(), spec.PriorityClassName, "%s.priorityClassName", path),
	); err != nil {
		return err
	}
	for i := range spec.ResourceClaims {
		claim := &spec.ResourceClaims[i]
		if err := firstError(
			wantForm(label(), claim.Name, "%s.resourceClaims[%d].name", path, i),
			wantPointer(subdomain(), claim.ResourceClaimName, "%s.resourceClaims[%d].resourceClaimName", path, i),
			wantPointer(subdomain(), claim.ResourceClaimTemplateName, "%s.resourceClaims[%d].resourceClaimTemplateName", path, i),
		); err != nil {
			return err
		}
	}
	for i := range spec.InitContainers {
		if err := wantForm(label(), spec.InitContainers[i].Name, "%s.initContainers[%d].name", path, i); err != nil {
			return err
		}
	}
	for i := range spec.Containers {
		if err := wantForm(label(), spec.Containers[i].Name, "%s.containers[%d].name", path, i); err != nil {
			return err
		}
	}
	return nil
}
