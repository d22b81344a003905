// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
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
