// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// otherOrder looks for an order of alternatives with which all members fit. The allocator
// gives each pod the first alternative that it can, whatever is left for the pods after it.
func (w *whole) otherOrder(ctx context.Context) ([]api.Remedy, error) {
	var found []api.Remedy
	pods := w.out.Members.WithDevices + w.out.Members.Waiting
	for _, template := range w.templates() {
		for i := range template.Spec.Spec.Devices.Requests {
			request := &template.Spec.Spec.Devices.Requests[i]
			for k := 1; k < len(request.FirstAvailable); k++ {
				object, list := api.RefTo(api.KindTemplate, template), fmt.Sprintf("/spec/spec/devices/requests/%d/firstAvailable", i)
				edits := w.reaching([]api.Edit{
					whatif.NewEdit(object, "remove", fmt.Sprintf("%s/%d", list, k), nil),
					whatif.NewEdit(object, "add", list+"/0", &request.FirstAvailable[k]),
				})
				r, err := w.remedy(ctx, edits, fmt.Sprintf("prefer alternative %s in request %s, before %s%s", request.FirstAvailable[k].Name, request.Name, request.FirstAvailable[0].Name,
					fitText(fitting{Fit: pods, Total: pods})), fitting.all)
				if err != nil {
					return found, err
				}
				if r != nil {
					found = append(found, *r)
					break
				}
			}
		}
	}
	return found, nil
}

// templates returns the ResourceClaimTemplates of the members that wait.
func (w *whole) templates() []*resourceapi.ResourceClaimTemplate {
	var list []*resourceapi.ResourceClaimTemplate
	for _, pod := range w.waiting() {
		for _, entry := range pod.Spec.ResourceClaims {
			template := w.cluster.Snapshot.Template(pod.Namespace, ptr.Deref(entry.ResourceClaimTemplateName, ""))
			if template != nil && !slices.Contains(list, template) {
				list = append(list, template)
			}
		}
	}
	return list
}
