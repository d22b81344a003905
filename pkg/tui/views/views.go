// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/tables"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// content takes what a view shows out of a picture.
func (c *Catalog) content(ctx context.Context, p *live.Picture, known *live.Causes, id ID) (widget.Content, error) {
	switch id {
	case Nodes:
		return newNodes(p, c.Look), nil
	case Pools:
		return &widget.ListOf[api.Pool]{
			Items: troubleFirst(p.Pools, poolTone), Cols: widget.First(tables.PoolColumns(), "Pool", "Driver", "State", "Total", "Free", "Allocated", "Shared", "Blocked", "Tainted", "Unhealthy", "Unusable"), ID: inventory.PoolName, Pins: 2,
			State: poolTone, StateColumn: "State", Say: func(x *api.Pool) string { return x.Reason },
		}, nil
	case Devices:
		return &widget.ListOf[api.Device]{
			Items: p.Inventory.Devices(), Cols: deviceColumns(), ID: inventory.DeviceName, Pins: 2,
			State: deviceTone, StateColumn: "State", Say: deviceRemark,
		}, nil
	case Claims:
		return newClaims(p.Claims(), widget.First(tables.ClaimColumns(true), "Namespace", "Name", "State", "Devices", "Pods", "Age", "Stage", "Flags")), nil
	case Pending:
		return newPending(p, known), nil
	case Classes:
		classes, err := p.Inventory.Classes(ctx)
		return &widget.ListOf[api.Class]{
			Items: classes, Cols: tables.ClassColumns(), ID: func(x *api.Class) string { return x.Name },
			Say: func(x *api.Class) string { return x.Failure }, State: classTone, StateColumn: "Failing",
		}, err
	case Taints:
		return &widget.ListOf[api.Taint]{
			Items: p.Inventory.Taints(), Cols: widget.First(tables.TaintColumns(p.Cluster.Snapshot.Now()), "Taint", "Devices", "Claims", "Pods", "Age", "From", "Next eviction"), ID: func(x *api.Taint) string { return inventory.TaintText(x) + "/" + x.Rule + "/" + x.Driver },
			State: taintTone, StateColumn: "Taint",
		}, nil
	case Causes:
		return newCauses(c.Look, known), nil
	case Findings:
		return newFindings(known), nil
	case Teams:
		return &widget.ListOf[inventory.Team]{
			Items: teamsWithTotals(p.Inventory), Cols: tables.TeamColumns(), ID: func(x *inventory.Team) string { return x.Namespace + "/" + x.Class }, Pins: 2,
			State: teamTone, StateColumn: "Waiting",
		}, nil
	case Pods:
		return newPods(p), nil
	default:
		return nil, fmt.Errorf("there is no list of the view %s", id)
	}
}

func newClaims(claims []api.Claim, columns []render.Column[api.Claim]) *widget.ListOf[api.Claim] {
	return &widget.ListOf[api.Claim]{
		Items: claims, Cols: columns, ID: func(x *api.Claim) string { return x.Namespace + "/" + x.Name }, Pins: 2,
		State: claimTone, StateColumn: "State", Say: claimRemark,
	}
}

func poolTone(p *api.Pool) widget.Tone {
	switch p.State {
	case api.PoolStateUsable:
		return widget.Good
	case api.PoolStateEmpty:
		return widget.Faint
	default:
		return widget.Bad
	}
}

// deviceColumns say in the state of a device, too, that it is unhealthy or used although it
// is tainted: on most terminals, there is no room for the columns about that.
func deviceColumns() []render.Column[api.Device] {
	columns := widget.First(tables.DeviceColumns(nil), "Pool", "Device", "State", "Claim", "Pods", "Health", "Taints")
	for i := range columns {
		if columns[i].Name != "State" {
			continue
		}
		state := columns[i].Cell
		columns[i].Cell = func(d *api.Device) string {
			text := state(d)
			if isUnhealthy(d) {
				text += ", unhealthy"
			}
			if isTaintedInUse(d) {
				text += ", tainted"
			}
			return text
		}
	}
	return columns
}

func isUnhealthy(d *api.Device) bool { return d.Health == string(corev1.ResourceHealthStatusUnhealthy) }

// isTaintedInUse reports whether claims use a device although it has a taint that keeps
// others away.
func isTaintedInUse(d *api.Device) bool {
	return (d.State == api.DeviceStateAllocated || d.State == api.DeviceStateShared) && slices.ContainsFunc(d.Taints, func(t api.DeviceTaint) bool {
		return t.Effect == string(resourceapi.DeviceTaintEffectNoSchedule) || t.Effect == string(resourceapi.DeviceTaintEffectNoExecute)
	})
}

func deviceTone(d *api.Device) widget.Tone {
	switch {
	case isUnhealthy(d):
		return widget.Bad
	case isTaintedInUse(d):
		return widget.Warning
	}
	switch d.State {
	case api.DeviceStateFree:
		return widget.Good
	case api.DeviceStateAllocated, api.DeviceStateShared:
		return widget.Busy
	case api.DeviceStateBlocked:
		return widget.Faint
	case api.DeviceStateTainted:
		return widget.Warning
	default:
		return widget.Bad
	}
}

func deviceRemark(d *api.Device) string {
	if d.HealthMessage != "" {
		return d.Health + ": " + d.HealthMessage
	}
	return d.Reason
}

// claimRemark returns the unexpected properties of a claim.
func claimRemark(c *api.Claim) string {
	messages := make([]string, 0, len(c.Flags))
	for _, flag := range c.Flags {
		messages = append(messages, flag.Message)
	}
	return strings.Join(messages, "; ")
}

func claimTone(c *api.Claim) widget.Tone {
	switch {
	case c.State == api.ClaimStatePending:
		return widget.Warning
	case len(c.Flags) > 0 || c.State == api.ClaimStateDeleting:
		return widget.Bad
	default:
		return widget.Busy
	}
}

func classTone(c *api.Class) widget.Tone {
	if c.Failing > 0 {
		return widget.Bad
	}
	return widget.Plain
}

func taintTone(t *api.Taint) widget.Tone {
	switch {
	case t.NextEviction != nil, t.Effect == string(resourceapi.DeviceTaintEffectNoExecute):
		return widget.Bad
	case t.Effect == string(resourceapi.DeviceTaintEffectNoSchedule):
		return widget.Warning
	default:
		return widget.Faint
	}
}

// allClasses stands for a class in the total of a namespace. No class can have this name.
const allClasses = "all classes"

// teamsWithTotals lists namespaces by class, after a row for all classes where a namespace has several.
func teamsWithTotals(inv *inventory.Inventory) []inventory.Team {
	teams := inv.Teams()
	totals := map[string]*api.Usage{}
	for _, usage := range inv.UsageBy(inventory.UsageOf{By: "namespace"}) {
		totals[usage.Name] = &usage
	}
	list := make([]inventory.Team, 0, len(teams)+len(totals))
	for i := range teams {
		name := teams[i].Namespace
		if total := totals[name]; total != nil && len(total.Classes) > 1 && (i == 0 || teams[i-1].Namespace != name) {
			list = append(list, inventory.Team{Namespace: name, TeamClass: api.TeamClass{
				Class: allClasses, Used: total.Used, Share: ptr.Deref(total.Share, 0), UsedIsLowerBound: total.UsedIsLowerBound,
				Waiting: total.Waiting, LongestSeconds: total.LongestSeconds, Idle: total.Idle, PodsAreUnknown: total.PodsAreUnknown,
			}})
		}
		list = append(list, teams[i])
	}
	return list
}

func teamTone(t *inventory.Team) widget.Tone {
	if t.Waiting > 0 {
		return widget.Warning
	}
	return widget.Plain
}

// newPods lists the pods that use claims.
func newPods(p *live.Picture) widget.Content {
	return &widget.ListOf[inventory.Pod]{
		Items: p.Inventory.Pods(), Cols: tables.PodColumns(), ID: func(x *inventory.Pod) string { return x.Namespace + "/" + x.Name }, Pins: 2,
		State: podTone, StateColumn: "Phase",
	}
}

func podTone(p *inventory.Pod) widget.Tone {
	switch p.Status.Phase {
	case corev1.PodRunning:
		return widget.Good
	case corev1.PodPending:
		return widget.Warning
	case corev1.PodFailed:
		return widget.Bad
	default:
		return widget.Faint
	}
}

// Catalog makes what views show of pictures and causes.
type Catalog struct {
	Look *widget.Look
	// Columns are the wanted columns of a view, by its name; all if there are none.
	Columns map[string][]string
}

// Of returns what a view shows of a picture, and of the causes, which may be nil.
func (c *Catalog) Of(ctx context.Context, p *live.Picture, known *live.Causes, id ID) (widget.Content, error) {
	makes := func() (widget.Content, error) {
		s, err := c.content(ctx, p, known, id)
		if err != nil {
			return nil, err
		}
		if titles := c.Columns[id.String()]; len(titles) > 0 {
			s.Only(titles)
		}
		return s, nil
	}
	if id == Causes || id == Findings || id == Pending {
		// Causes come when the picture has been there for a while.
		return makes()
	}
	return live.Once(p, id.String(), makes)
}
