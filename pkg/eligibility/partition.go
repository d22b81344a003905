// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// CheckPartition compares shared counters and compatibility groups with the rest that the
// allocated devices of the pool leave. Without a node, that is the rest for all nodes.
func (c *Checks) CheckPartition(d *cluster.Device, node *corev1.Node) *Reason {
	if h := c.Cluster.Partitions.ConflictOn(d, node); h != nil {
		return partitionReason(d, h)
	}
	return partitionReason(d, c.Cluster.Partitions.Conflict(d))
}

func partitionReason(d *cluster.Device, h *cluster.CounterConflict) *Reason {
	switch {
	case h == nil:
		return nil
	case h.Gate != "":
		return featureOff(Partition, h.Gate, cluster.SliceObject(d), cluster.DevicePath(d, "consumesCounters"))
	case h.CounterSet != "":
		others := groupsText(sets.List(h.Others.Groups))
		if h.Others.Declared && h.Others.Groups.Len() == 0 {
			others = "compatibility groups that have nothing in common"
		}
		return &Reason{
			Check: CompatibilityGroups, Code: api.CompatibilityGroupConflict, Label: "incompatible",
			Text: fmt.Sprintf("counter set %s is used by devices of %s", h.CounterSet, others),
			Fact: api.Evidence{
				Object: cluster.SliceObject(d), Path: cluster.DevicePath(d, "consumesCounters.compatibilityGroups"),
				Found: groupsText(h.Groups), Required: others,
			},
		}
	case h.Overcommitted != nil:
		text := fmt.Sprintf("counter %s of %s is overcommitted, so no device of its pool that uses counters can be allocated", h.Overcommitted.Counter, h.Overcommitted.CounterSet)
		return &Reason{
			Check: Counters, Code: api.CountersExhausted, Label: "counters", Text: text, Brief: text,
			Fact: api.Evidence{Object: cluster.PoolObject(d.Pool), Path: cluster.CounterPath(*h.Overcommitted), Found: h.Overcommitted.Left.String() + " available"},
		}
	default:
		use := h.Short
		by := make([]string, 0, len(use.By))
		for _, id := range use.By {
			by = append(by, id.Device)
		}
		brief := fmt.Sprintf("%s of %s available in counter %s", selector.QuantityText(use.Left), selector.QuantityText(use.Total), use.Counter)
		text := brief
		if len(by) > 0 {
			text += fmt.Sprintf(", used by %s", english.Sample(by, 3))
		}
		return &Reason{
			Check: Counters, Code: api.CountersExhausted, Label: "counters", Text: text, Brief: brief, wanted: selector.QuantityText(h.Required),
			Fact: api.Evidence{
				Object: cluster.PoolObject(d.Pool), Path: cluster.CounterPath(*use),
				Found: fmt.Sprintf("%s of %s available", use.Left.String(), use.Total.String()), Required: h.Required.String(),
			},
		}
	}
}

func groupsText(groups []string) string {
	if len(groups) == 0 {
		return "no compatibility group"
	}
	return "compatibility group " + english.JoinAnd(groups)
}
