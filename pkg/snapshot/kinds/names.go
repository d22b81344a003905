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
