// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/advice"
)

// builder is the work on one explanation.
type builder struct {
	*verdict.Verdict
	depth   depth
	reasons *advice.Reasons
	// contents tell which nodes are equivalent, confirmer asks about what-if clusters.
	contents  *verdict.NodeContents
	confirmer *verdict.Confirmer
	// equivalent has for each candidate the first equivalent one.
	equivalent []int
	// outlook is nil until it is begun.
	outlook *advice.OutlookCase
	// replaced is set if the pod waits for those that it replaces.
	replaced *replaced
	// devices are the devices to describe, and described their descriptions.
	devices   []*cluster.Device
	described []*api.DeviceExplanation
	out       *api.Explanation
}

func newBuilder(v *verdict.Verdict, d depth) *builder {
	confirmer := &verdict.Confirmer{}
	return &builder{
		Verdict:   v,
		depth:     d,
		reasons:   advice.NewReasons(v.Question, v.Signatures, confirmer),
		contents:  verdict.NewNodeContents(),
		confirmer: confirmer,
		out: &api.Explanation{
			TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Explanation"},
			Target:   v.Target.Object,
		},
	}
}

// depth is how much is looked for beyond the verdict and its reasons.
type depth int

// The depths.
const (
	reasonsOnly depth = iota
	withOutlook
	withAdvice
)

// replaced is the outlook of a pod that waits for the pods that it replaces: where it fits, and
// when.
type replaced struct{ node, when string }
