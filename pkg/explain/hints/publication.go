// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// publication is a driver's publication for the nodes that the pod could use.
type publication struct {
	driver string
	slices []*resourceapi.ResourceSlice
	// published are the candidates that a slice of the driver is for, missing
	// the others.
	published, missing []*corev1.Node
}

func publicationOf(q *eligibility.Question, driver string) publication {
	p := publication{driver: driver}
	own := map[string]bool{}
	for _, slice := range q.Cluster.Snapshot.Slices {
		if slice.Spec.Driver != driver {
			continue
		}
		p.slices = append(p.slices, slice)
		if slice.Spec.NodeName != nil {
			own[*slice.Spec.NodeName] = true
		}
	}
	reached := func(pool *cluster.NodePool) bool { return pool.Pool.Driver == driver }
	for _, node := range q.Reach.Candidates {
		if own[node.Name] || slices.ContainsFunc(q.Reach.Pools[node.Name], reached) {
			p.published = append(p.published, node)
		} else {
			p.missing = append(p.missing, node)
		}
	}
	return p
}

// maxNamed limits how many names a hint has.
const maxNamed = 3
