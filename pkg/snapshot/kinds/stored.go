// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// The functions in this file, and those of each kind that they call, refuse objects that no API
// server stores, by the rules of pkg/apis/resource/validation and pkg/apis/core/validation of
// Kubernetes v1.37.1 and the limits of k8s.io/api/resource/v1. Whatever works with a snapshot
// relies on them for its time and its memory, and the allocator for its life: a count below zero
// makes it panic, and so does a step of zero.

// CheckStored fails for what no API server has ever stored: numbers, lists and
// names that it refuses.
func CheckStored(object metav1.Object, apiVersion, kind string) error {
	if err := checkMeta(object, kind); err != nil {
		return err
	}
	switch object := object.(type) {
	case *resourceapi.ResourceSlice:
		return checkStoredSlice(&object.Spec, apiVersion)
	case *resourceapi.ResourceClaim:
		if err := checkStoredClaim(&object.Spec.Devices, "spec.devices", apiVersion); err != nil {
			return err
		}
		return firstError(checkStatusLengths(&object.Status), checkStatusNames(&object.Status))
	case *resourceapi.ResourceClaimTemplate:
		return checkStoredClaim(&object.Spec.Spec.Devices, "spec.spec.devices", apiVersion)
	case *resourceapi.DeviceClass:
		return checkStoredClass(&object.Spec)
	case *resourceapi.DeviceTaintRule:
		return checkStoredRule(object)
	case *corev1.Pod:
		return checkPodNames(&object.Spec, "spec")
	case *snapshot.Workload:
		return checkPodNames(&object.Template.Spec, "spec.template.spec")
	case *corev1.Event:
		return Reference(&object.InvolvedObject, "involvedObject")
	}
	return nil
}

// CheckSize fails for the text of an object that would take far more memory
// than an object of that size in a cluster.
func CheckSize(data []byte) error {
	if len(data) > MaxDocument {
		return TooLarge(len(data))
	}
	// Each value needs two characters.
	if len(data) <= 2*maxValues {
		return nil
	}
	if values := countValues(data); values > maxValues {
		return fmt.Errorf("expected at most %d values in an object, found %d", maxValues, values)
	}
	return nil
}

// countValues counts the values in a JSON text, and the empty lists and objects
// twice.
func countValues(data []byte) int {
	count := 1
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			end, err := SkipString(data, i)
			if err != nil {
				return count
			}
			i = end - 1
		case ',', '[', '{':
			count++
		}
	}
	return count
}

// maxValues limits how many values one object may have. That much does not fit into the 1.5
// MiB that etcd stores of an object.
const maxValues = 100_000

// MaxDocument is the size of the largest object, and of the largest YAML
// document that is parsed in one go. The API server stores no object of more
// than 1.5 MiB, in a form that is shorter than text.
const MaxDocument = 8 << 20

// TooLarge returns the error for a document, or an object in a List, of so many bytes.
func TooLarge(size int) error {
	const hint = "an object has at most %d MiB of text, found %.1f MiB; a List in YAML may have more as kubectl get -o yaml writes it, and any List in JSON"
	return fmt.Errorf(hint, MaxDocument>>20, float64(size)/(1<<20))
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

// atMost fails for more than so many elements of a list at a path.
func atMost(found, limit int, path string, indexes ...any) error {
	if found <= limit {
		return nil
	}
	return AtField(fmt.Sprintf(path, indexes...), fmt.Errorf("expected at most %d elements, found %d", limit, found))
}

// noLongerThan fails for a text of more than so many characters.
func noLongerThan(found, limit int, path string, indexes ...any) error {
	if found <= limit {
		return nil
	}
	return AtField(fmt.Sprintf(path, indexes...), fmt.Errorf("expected at most %d characters, found %d", limit, found))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func atLeast(least, found int64) error {
	return fmt.Errorf("expected at least %d, found %d", least, found)
}

// nameSet has the names in a list, to find those that are there twice and
// those that are referred to, but not there.
type nameSet map[string]bool

// errNoName is something without a name that needs one.
var errNoName = errors.New("expected a name, found none")

func (s nameSet) add(name, path string) error {
	switch {
	case name == "":
		return AtField(path+".name", errNoName)
	case s[name]:
		return AtField(path+".name", fmt.Errorf("%q is also the name of another before it; each needs its own", name))
	}
	s[name] = true
	return nil
}

func (s nameSet) checkReferences(requests []string, path string) error {
	for i, name := range requests {
		if !s[name] {
			return AtField(fmt.Sprintf("%s.requests[%d]", path, i), fmt.Errorf("there is no request %q", name))
		}
	}
	return nil
}

// CheckValues fails for a manifest that the API server would reject for
// what it says about devices.
func CheckValues(object metav1.Object, apiVersion string) error {
	switch object := object.(type) {
	case *resourceapi.ResourceClaim:
		return checkDevices(&object.Spec.Devices, "spec.devices", apiVersion)
	case *resourceapi.ResourceClaimTemplate:
		return checkDevices(&object.Spec.Spec.Devices, "spec.spec.devices", apiVersion)
	case *corev1.Pod:
		return checkPodClaims(&object.Spec, "spec")
	case *snapshot.Workload:
		return checkPodClaims(&object.Template.Spec, templatePath(apiVersion, object.Kind)+".spec")
	}
	return nil
}
