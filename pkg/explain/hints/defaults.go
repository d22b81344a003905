// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

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
