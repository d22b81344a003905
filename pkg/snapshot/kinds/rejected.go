// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// The functions in this file, and methods of rejections, find everything that an API server rejects
// about devices when an object is created, by the rules of
// pkg/apis/resource/validation and pkg/apis/core/validation of Kubernetes v1.37.1.
// Unlike [Values], which is for those who stop at the first, they go on. Whether CEL
// expressions compile is for others to find out.

// Rejected finds what an API server rejects in an object that is to be created.
// Paths are those of the newest version.
func Rejected(object metav1.Object, apiVersion string) []*FieldError {
	r := &rejections{}
	switch object := object.(type) {
	case *resourceapi.ResourceClaim:
		r.claim(&object.Spec.Devices, "spec.devices")
	case *resourceapi.ResourceClaimTemplate:
		r.claim(&object.Spec.Spec.Devices, "spec.spec.devices")
	case *resourceapi.DeviceClass:
		r.class(&object.Spec)
	case *resourceapi.ResourceSlice:
		r.slice(&object.Spec)
	case *resourceapi.DeviceTaintRule:
		r.taintRule(&object.Spec)
	case *corev1.ResourceQuota:
		r.quota(&object.Spec)
	case *corev1.Pod:
		r.pod(&object.Spec, "spec")
	case *snapshot.Workload:
		r.pod(&object.Template.Spec, templatePath(apiVersion, object.Kind)+".spec")
	}
	return r.found
}

// templatePath returns where a kind has its pod template.
func templatePath(apiVersion, kind string) string {
	switch KnownWorkload(groupOf(apiVersion).Group, kind) {
	case TemplateInJob:
		return "spec.jobTemplate.spec.template"
	case TemplateOnTop:
		return "template"
	case TemplateInSpec, NotWorkload:
	}
	return "spec.template"
}

type rejections struct{ found []*FieldError }

func (r *rejections) add(path, format string, args ...any) {
	r.found = append(r.found, AtField(path, fmt.Errorf(format, args...)))
}

// is adds what does not have a form.
func (r *rejections) is(form form, name, path string) {
	if name == "" {
		r.add(path, "expected %s, found none", form.words)
	} else if err := wantForm(form, name, path); err != nil {
		var at *FieldError
		if errors.As(err, &at) {
			r.found = append(r.found, at)
		}
	}
}

// atMost adds a list that is too long, and reports whether it is not.
func (r *rejections) atMost(found, limit int, path string) bool {
	if found > limit {
		r.add(path, "expected at most %d elements, found %d", limit, found)
	}
	return found <= limit
}

// once adds what a list has twice.
func (r *rejections) once(names []string, path string) {
	for i, name := range names {
		if name != "" && slices.Contains(names[:i], name) {
			r.add(fmt.Sprintf("%s[%d]", path, i), "%q is in the list twice", name)
		}
	}
}

func (r *rejections) driver(name, path string) {
	r.is(driverName(), name, path)
	if len(name) > resourceapi.DriverNameMaxLength {
		r.add(path, "expected at most %d characters, found %d", resourceapi.DriverNameMaxLength, len(name))
	}
}

func (r *rejections) pool(name, path string) {
	r.is(poolName(), name, path)
	if len(name) > resourceapi.PoolNameMaxLength {
		r.add(path, "expected at most %d characters, found %d", resourceapi.PoolNameMaxLength, len(name))
	}
}

// qualified rejects values that are not a name with or, unless full, without a domain.
func (r *rejections) qualified(name, path string, full bool) {
	domain, id, found := strings.Cut(name, "/")
	switch {
	case name == "":
		r.add(path, "expected a name, found none")
		return
	case strings.Count(name, "/") > 1:
		// The API server does not look at those.
		return
	case !found && full:
		r.add(path, "expected a domain and a name separated by \"/\", found %q", name)
		return
	case !found:
		id = name
	default:
		r.driver(domain, path)
	}
	switch {
	case id == "":
		r.add(path, "expected a name after the domain, found none")
	case len(id) > resourceapi.DeviceMaxIDLength:
		r.add(path, "expected a name of at most %d characters, found %d", resourceapi.DeviceMaxIDLength, len(id))
	case len(content.IsCIdentifier(id)) > 0:
		r.add(path, "expected letters, digits and \"_\", and no digit first, found %q", id)
	}
}

func (r *rejections) labelKey(key, path string) {
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		r.add(path, "expected a label key such as example.com/name, found %q", key)
	}
}

func (r *rejections) labelValue(value, path string) {
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		r.add(path, "expected a label value (letters, digits, \"-\", \"_\" and \".\"), found %q", value)
	}
}

func (r *rejections) effect(effect resourceapi.DeviceTaintEffect, path string) {
	effects := []resourceapi.DeviceTaintEffect{resourceapi.DeviceTaintEffectNoExecute, resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNone}
	if !slices.Contains(effects, effect) {
		r.add(path, "expected NoExecute, NoSchedule or None, found %q", effect)
	}
}

func (r *rejections) taint(taint *resourceapi.DeviceTaint, path string) {
	r.labelKey(taint.Key, path+".key")
	r.labelValue(taint.Value, path+".value")
	r.effect(taint.Effect, path+".effect")
}

func (r *rejections) taintRule(spec *resourceapi.DeviceTaintRuleSpec) {
	if s := spec.DeviceSelector; s != nil {
		if s.Driver != nil {
			r.driver(*s.Driver, "spec.deviceSelector.driver")
		}
		if s.Pool != nil {
			r.pool(*s.Pool, "spec.deviceSelector.pool")
		}
		if s.Device != nil {
			r.is(label(), *s.Device, "spec.deviceSelector.device")
		}
	}
	r.taint(&spec.Taint, "spec.taint")
}

func (r *rejections) class(spec *resourceapi.DeviceClassSpec) {
	r.selectors(spec.Selectors, "spec.selectors")
	if r.atMost(len(spec.Config), resourceapi.DeviceConfigMaxSize, "spec.config") {
		for i := range spec.Config {
			r.configuration(&spec.Config[i].DeviceConfiguration, fmt.Sprintf("spec.config[%d]", i))
		}
	}
	if name := spec.ExtendedResourceName; name != nil && !isExtendedResource(*name) {
		r.add("spec.extendedResourceName", "expected the name of an extended resource such as example.com/gpu, found %q", *name)
	}
}

// quota rejects what ValidateResourceQuotaSpec rejects about numbers. isExtendedResource is
// IsExtendedResourceName of pkg/apis/core/v1/helper.
func (r *rejections) quota(spec *corev1.ResourceQuotaSpec) {
	for _, key := range slices.Sorted(maps.Keys(spec.Hard)) {
		path := fmt.Sprintf("spec.hard[%q]", key)
		hard := spec.Hard[key]
		switch {
		case hard.Sign() < 0:
			r.add(path, "expected 0 or more, found %s", hard.String())
		case strings.Contains(string(key), resourceapi.GroupName) || strings.Contains(string(key), "deviceclass."):
			if whole := resource.NewQuantity(hard.Value(), resource.DecimalSI); whole.Cmp(hard) != 0 {
				r.add(path, "expected a whole number, found %s", hard.String())
			}
		}
	}
}

func isExtendedResource(name string) bool {
	if !strings.Contains(name, "/") || strings.Contains(name, corev1.ResourceDefaultNamespacePrefix) || strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+name)) == 0
}

func (r *rejections) pod(spec *corev1.PodSpec, path string) {
	var names []string
	for i := range spec.ResourceClaims {
		c := &spec.ResourceClaims[i]
		at := fmt.Sprintf("%s.resourceClaims[%d]", path, i)
		r.is(label(), c.Name, at+".name")
		if c.Name != "" && slices.Contains(names, c.Name) {
			r.add(at+".name", "%q is also the name of another before it; each needs its own", c.Name)
		}
		names = append(names, c.Name)
		if c.ResourceClaimName != nil {
			r.is(subdomain(), *c.ResourceClaimName, at+".resourceClaimName")
		}
		if c.ResourceClaimTemplateName != nil {
			r.is(subdomain(), *c.ResourceClaimTemplateName, at+".resourceClaimTemplateName")
		}
	}
	for _, list := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", spec.InitContainers}, {"containers", spec.Containers}} {
		for i := range list.containers {
			r.containerClaims(list.containers[i].Resources.Claims, fmt.Sprintf("%s.%s[%d].resources.claims", path, list.name, i))
		}
	}
}

// containerClaims adds what a container names twice.
func (r *rejections) containerClaims(claims []corev1.ResourceClaim, path string) {
	for i, c := range claims {
		if c.Request != "" {
			r.is(label(), c.Request, fmt.Sprintf("%s[%d].request", path, i))
		}
		for _, before := range claims[:i] {
			if before.Name == c.Name && (before.Request == c.Request || before.Request == "" || c.Request == "") {
				r.add(fmt.Sprintf("%s[%d]", path, i), "%q is in the list twice", c.Name)
				break
			}
		}
	}
}
