// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// TeamColumns returns the columns of a list of namespaces with their used and awaited
// devices.
func TeamColumns() []render.Column[inventory.Team] {
	return []render.Column[inventory.Team]{
		{Name: "Namespace", Cell: func(t *inventory.Team) string { return t.Namespace }},
		{Name: "Class", Cell: func(t *inventory.Team) string { return t.Class }},
		bounds("Used", func(t *inventory.Team) int { return t.Used }, func(t *inventory.Team) api.Bound { return render.LowerBound(t.UsedIsLowerBound) }),
		{
			Name: "Share of class",
			Cell: func(t *inventory.Team) string {
				if t.UsedIsLowerBound {
					return "?"
				}
				return fmt.Sprintf("%.0f %%", 100*t.Share)
			},
			Sort: func(t *inventory.Team) (float64, bool) { return t.Share, !t.UsedIsLowerBound },
		},
		unlessUnknown("Waiting", func(t *inventory.Team) int { return t.Waiting }, func(t *inventory.Team) bool { return !t.PodsAreUnknown }),
		{
			Name: "Longest",
			Cell: func(t *inventory.Team) string {
				if t.Waiting == 0 {
					return ""
				}
				return render.Age(t.LongestSeconds)
			},
			Sort: func(t *inventory.Team) (float64, bool) { return float64(t.LongestSeconds), t.Waiting > 0 },
		},
		unlessUnknown("Idle", func(t *inventory.Team) int { return t.Idle }, func(t *inventory.Team) bool { return !t.PodsAreUnknown }),
	}
}

// Usage lists who uses devices.
func Usage(items []*api.Usage, by string) *metav1.Table {
	pods := func(u *api.Usage) bool { return !u.PodsAreUnknown }
	since := func(name string, count func(*api.Usage) int, seconds func(*api.Usage) int64) render.Column[api.Usage] {
		return render.Column[api.Usage]{Name: name, Cell: func(u *api.Usage) string {
			if count(u) == 0 || !pods(u) {
				return ""
			}
			return render.Age(seconds(u))
		}}
	}
	waiting, idle := func(u *api.Usage) int { return u.Waiting }, func(u *api.Usage) int { return u.Idle }
	if len(items) > 0 && items[0].Hours != nil {
		hours := func(name string, of func(*api.UsageHours) float64) render.Column[api.Usage] {
			return render.Column[api.Usage]{Name: name, Cell: func(u *api.Usage) string { return fmt.Sprintf("%.1f", of(u.Hours)) }}
		}
		return render.NewTable(items, []render.Column[api.Usage]{
			{Name: by, Key: true, Cell: func(u *api.Usage) string { return u.Name }},
			hours("Device hours", func(h *api.UsageHours) float64 { return h.Devices }),
			hours("Idle hours", func(h *api.UsageHours) float64 { return h.Idle }),
			hours("Waiting hours", func(h *api.UsageHours) float64 { return h.Waiting }),
			bounds("Used now", func(u *api.Usage) int { return u.Used }, func(u *api.Usage) api.Bound { return render.LowerBound(u.UsedIsLowerBound) }),
			unlessUnknown("Waiting now", waiting, pods),
		})
	}
	return render.NewTable(items, []render.Column[api.Usage]{
		{Name: by, Key: true, Cell: func(u *api.Usage) string { return u.Name }},
		bounds("Used", func(u *api.Usage) int { return u.Used }, func(u *api.Usage) api.Bound { return render.LowerBound(u.UsedIsLowerBound) }),
		{Name: "Share", Cell: func(u *api.Usage) string { return shareText(u.Share) }},
		unlessUnknown("Waiting", waiting, pods),
		since("Longest", waiting, func(u *api.Usage) int64 { return u.LongestSeconds }),
		unlessUnknown("Idle", idle, pods),
		since("Idle for", idle, func(u *api.Usage) int64 { return u.IdleSeconds }),
		{Name: "Classes", Cell: func(u *api.Usage) string {
			var parts []string
			for i := range u.Classes {
				c := &u.Classes[i]
				parts = append(parts, c.Class+" "+render.AtLeast(c.Used, c.UsedIsLowerBound))
			}
			return strings.Join(parts, ", ")
		}},
		{Name: "Waiting by class", Wide: true, Cell: func(u *api.Usage) string {
			var parts []string
			for i := range u.Classes {
				if c := &u.Classes[i]; c.Waiting > 0 {
					parts = append(parts, fmt.Sprintf("%s %d", c.Class, c.Waiting))
				}
			}
			return strings.Join(parts, ", ")
		}},
	})
}

// shareText returns a share as a percentage, "?" if it is not known.
func shareText(share *float64) string {
	if share == nil {
		return "?"
	}
	return fmt.Sprintf("%.0f%%", 100**share)
}
