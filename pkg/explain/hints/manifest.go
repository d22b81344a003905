// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// unusedClaims warns of containers that run without the devices of a claim. Where
// nothing else is wrong, the summary says it, too: a pod that runs and sees no
// device is not what anybody wanted.
func (h *finder) unusedClaims() {
	pod := h.Pod
	if pod == nil || snapshot.Finished(pod) {
		return
	}
	for i, unused := range cluster.UnusedClaims(pod, h.PodClaims) {
		text, required, suggestion := unused.Text(), "a container that names claim "+unused.Entry, ""
		if unused.Request != "" {
			suggestion, required = english.DidYouMean(unused.Request, unused.Requests), english.JoinOr(unused.Requests)
		}
		h.hint(english.Sentence(text+": "+unused.Effect()+suggestion), api.Evidence{Object: api.RefTo(api.KindPod, pod), Path: unused.Path, Found: unused.Found, Required: required})
		if i == 0 && (h.out.Verdict == api.Fits || h.out.Verdict == api.Allocated) {
			h.found.Warning = "warning: " + text + suggestion
		}
	}
}

// droppedHints names fields that were applied and that the API server did not
// store.
func (h *finder) droppedHints() {
	seen := map[api.ObjectRef]bool{}
	tell := func(kind string, holder metav1.Object) {
		name := api.RefTo(kind, holder)
		if seen[name] {
			return
		}
		seen[name] = true
		// The specs of claims and templates cannot be changed.
		since := ""
		if kind == "DeviceClass" {
			since = ", unless it was removed since"
		}
		for _, field := range snapshot.DroppedFields(holder) {
			h.hint(
				fmt.Sprintf("%s %s lacks the field %s, which was applied: the API server drops it while its feature gate %s is off%s",
					kind, english.QualifiedName(holder), field.Path, field.Gate, since),
				api.Evidence{Object: name, Path: field.Path, Found: "not set", Required: "as in the annotation " + corev1.LastAppliedConfigAnnotation},
			)
		}
	}
	for i := range h.PodClaims {
		pc := &h.PodClaims[i]
		if pc.Claim == nil {
			continue
		}
		tell(api.KindClaim, pc.Claim)
		if template := h.Cluster.Snapshot.Template(pc.Claim.Namespace, pc.Template); template != nil {
			tell(api.KindTemplate, template)
		}
		for _, alternatives := range cluster.Requests(pc.Claim) {
			for _, r := range alternatives {
				if class := h.Cluster.Snapshot.Class(r.Class); class != nil {
					tell("DeviceClass", class)
				}
			}
		}
	}
}

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

// defaultRequestHint tells where a request comes from that a node has no room for, and that
// nobody has written into the pod.
func (h *finder) defaultRequestHint() {
	if h.Pod == nil {
		return
	}
	for _, u := range h.Reach.Unsuitable {
		name := u.Misfit.Resource
		if u.Misfit.Filter != cluster.FilterResources {
			continue
		}
		note := func(kind string, list []corev1.Container) bool {
			for i := range list {
				if of := kind + list[i].Name; kinds.HasDefaultRequest(h.Pod, of, name) {
					request := list[i].Resources.Requests[name]
					h.hint(fmt.Sprintf("%s has its request of %s %s from a LimitRange of namespace %s", of, request.String(), name, h.Pod.Namespace),
						api.Evidence{Object: api.RefTo(api.KindPod, h.Pod), Path: "metadata.annotations['kubernetes.io/limit-ranger']", Found: h.Pod.Annotations["kubernetes.io/limit-ranger"]})
					return true
				}
			}
			return false
		}
		if note("container ", h.Pod.Spec.Containers) || note("init container ", h.Pod.Spec.InitContainers) {
			return
		}
	}
}
