// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
)

// rejections collects everything that an API server rejects about devices when an object is
// created, by the rules of pkg/apis/resource/validation and pkg/apis/core/validation of Kubernetes
// v1.37.1. Unlike [CheckValues], which stops at the first, it goes on. Whether CEL expressions
// compile is for others to find out.
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
