// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// attributeHints shows side by side what a constraint compares and what a
// device has under the same name in another domain. A name without a domain
// belongs to the domain of the driver.
func (h *finder) attributeHints() {
	if h.out.Verdict != api.DoesNotFit {
		return
	}
	seen := map[resourceapi.FullyQualifiedName]bool{}
	for i := range h.Claims {
		for _, alternatives := range h.Claims[i].Funnels {
			for _, f := range alternatives {
				for j := range f.Devices {
					d := &f.Devices[j]
					if r := f.Reason(d); r == nil || r.Code != api.AttributeMissing {
						continue
					}
					for _, c := range f.Request.Constraints {
						if !seen[c.Attribute] {
							seen[c.Attribute] = h.attributeHint(d, c.Attribute)
						}
					}
				}
			}
		}
	}
}

// attributeHint reports whether there is something to say. An attribute without a
// domain, where that is forgotten most easily, comes before others.
func (h *finder) attributeHint(d *cluster.Device, wanted resourceapi.FullyQualifiedName) bool {
	domain, id, _ := strings.Cut(string(wanted), "/")
	if _, has := selector.Lookup(d.Attributes, domain, id, d.ID.Driver); has {
		return false
	}
	own := resourceapi.QualifiedName(id)
	names := []resourceapi.QualifiedName{own}
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		if strings.HasSuffix(string(name), "/"+id) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		value, has := d.Attributes[name]
		if !has {
			continue
		}
		text := fmt.Sprintf("%s of %s (%s) does not count as %s", name, d.ID.Device, selector.Literal(value), wanted)
		if name == own {
			text = fmt.Sprintf("%s of %s counts as %s/%s (%s), not as %s: a name without a domain belongs to the domain of the driver",
				name, d.ID.Device, d.ID.Driver, id, selector.Literal(value), wanted)
		}
		h.hint(text, api.Evidence{Object: cluster.SliceObject(d), Path: cluster.DevicePath(d, fmt.Sprintf("attributes[%q]", name)), Found: selector.Literal(value), Required: "attribute " + string(wanted)})
		return true
	}
	return false
}
