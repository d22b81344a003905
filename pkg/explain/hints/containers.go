// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
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
