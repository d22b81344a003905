// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// unusedClaims warns of containers that run without the devices of a claim. Where
// nothing else is wrong, the summary says it, too: a pod that runs and sees no
// device is not what anybody wanted.
func (x *inquiry) unusedClaims() {
	pod := x.Pod
	if pod == nil || lifecycle.Finished(pod) {
		return
	}
	for i, unused := range allocator.UnusedClaims(pod, x.PodClaims) {
		text, required, meant := unused.Text(), "a container that names claim "+unused.Entry, ""
		if unused.Request != "" {
			meant, required = naming.DidYouMean(unused.Request, unused.Requests), english.JoinOr(unused.Requests)
		}
		x.hint(english.Sentence(text+": "+unused.Effect()+meant), api.Evidence{Object: whatif.PodObject(pod), Path: unused.Path, Found: unused.Found, Required: required})
		if i == 0 && (x.out.Verdict == api.Fits || x.out.Verdict == api.Allocated) {
			x.out.Summary = fmt.Sprintf("%s; warning: %s%s", x.out.Summary, text, meant)
		}
	}
}
