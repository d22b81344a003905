// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

func holderTexts(holders []api.Holder) string {
	var claims []string
	for _, h := range holders {
		claim := h.Namespace + "/" + h.Claim
		if h.AdminAccess {
			claim += "(admin)"
		}
		if !slices.Contains(claims, claim) {
			claims = append(claims, claim)
		}
	}
	return render.SomeOf(claims, len(claims))
}

func podTexts(holders []api.Holder) string {
	var pods []string
	unnamed := 0
	for _, h := range holders {
		pods = append(pods, h.Pods...)
		unnamed += max(0, h.PodCount-len(h.Pods))
	}
	slices.Sort(pods)
	pods = slices.Compact(pods)
	return render.SomeOf(pods, len(pods)+unnamed)
}

func taintTexts(taints []api.DeviceTaint) string {
	texts := make([]string, 0, len(taints))
	for _, t := range taints {
		taint := resourceapi.DeviceTaint{Key: t.Key, Value: t.Value, Effect: resourceapi.DeviceTaintEffect(t.Effect)}
		texts = append(texts, taint.String())
	}
	return strings.Join(texts, ",")
}

// failureTexts lists the errors of a class's selectors.
func failureTexts(c *api.Class) string {
	texts := make([]string, 0, len(c.Failures))
	for i := range c.Failures {
		texts = append(texts, inventory.FailureText(&c.Failures[i]))
	}
	return strings.Join(texts, "; ")
}

func capacityTexts(list []api.Capacity) string {
	texts := make([]string, 0, len(list))
	for _, c := range list {
		texts = append(texts, fmt.Sprintf("%s=%s%s/%s", render.ShortName(c.Name), least(c.ConsumedIsLowerBound), inventory.QuantityText(c.Consumed), inventory.QuantityText(c.Total)))
	}
	return strings.Join(texts, ",")
}

func networkTexts(d *api.Device) string {
	var texts []string
	for _, h := range d.Holders {
		if text := render.NetworkText(h.Status); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, ",")
}

func conditionShort(c *metav1.Condition) string { return c.Type + "=" + string(c.Status) }

// healthTexts returns the kubelets' reports about a device, and its unexpected conditions.
func healthTexts(d *api.Device) string {
	var texts []string
	if d.Health != "" {
		texts = append(texts, d.Health)
	}
	for _, h := range d.Holders {
		texts = append(texts, render.OddConditions(h.Status, conditionShort)...)
	}
	return strings.Join(texts, ",")
}

// deviceReasons returns why a device is in its state, and in its health.
func deviceReasons(d *api.Device) string {
	var texts []string
	for _, text := range []string{d.Reason, d.HealthMessage} {
		if text != "" {
			texts = append(texts, text)
		}
	}
	for _, h := range d.Holders {
		texts = append(texts, render.OddConditions(h.Status, inventory.ConditionText)...)
	}
	return strings.Join(texts, "; ")
}

func requestTexts(c *api.Claim) string {
	texts := make([]string, 0, len(c.Requests))
	for _, r := range c.Requests {
		name := r.Name
		if r.Container != "" {
			name = r.Container + ":" + r.ExtendedResource
		}
		text := fmt.Sprintf("%s=%dx%s", name, max(r.Count, 1), r.DeviceClass)
		switch {
		case len(r.DeviceClasses) > 0:
			text = r.Name + "=" + strings.Join(r.DeviceClasses, "|")
		case r.Mode == "All":
			text = r.Name + "=all " + r.DeviceClass
		}
		if r.AdminAccess {
			text += "(admin)"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ",")
}

// deviceTexts names the devices of a claim, grouped by pool.
func deviceTexts(c *api.Claim) string {
	var pools []string
	devices := map[string][]string{}
	for _, r := range c.Requests {
		for _, d := range r.Devices {
			if devices[d.Pool] == nil {
				pools = append(pools, d.Pool)
			}
			devices[d.Pool] = append(devices[d.Pool], d.Device)
		}
	}
	texts := make([]string, 0, len(pools))
	for _, pool := range pools {
		texts = append(texts, pool+":"+strings.Join(english.CollapseTo("…", devices[pool]), ","))
	}
	return strings.Join(texts, " ")
}

func flagTexts(c *api.Claim) string {
	var names []string
	for _, f := range c.Flags {
		if !slices.Contains(names, string(f.Name)) {
			names = append(names, string(f.Name))
		}
	}
	return strings.Join(names, ",")
}

// alignmentCell names what the devices of a claim have in common, and what not.
func alignmentCell(c *api.Claim) string {
	names := make([]string, 0, len(c.Alignment))
	for i := range c.Alignment {
		a := &c.Alignment[i]
		name := inventory.AlignmentName(a)
		if a.Aligned {
			names = append(names, name+"="+a.Values[0].Value)
		} else {
			names = append(names, name+" differs")
		}
	}
	return strings.Join(names, ",")
}

// least returns the sign in front of a lower bound.
func least(bound bool) string {
	if bound {
		return "≥"
	}
	return ""
}

// deviceState returns the state, with a question mark if it is uncertain.
func deviceState(d *api.Device) string {
	if d.Uncertain {
		return string(d.State) + "?"
	}
	return string(d.State)
}

// eviction says when the next pod is evicted, with a question mark if a pod that could not
// be seen may be evicted before.
func eviction(t *api.Taint, now time.Time) string {
	left, due := inventory.EvictionDue(t, now)
	mark := ""
	if t.PodsAreLowerBounds && t.Effect == string(resourceapi.DeviceTaintEffectNoExecute) {
		mark = "?"
	}
	switch {
	case due && left <= 0:
		return "now"
	case due:
		return "in " + duration.HumanDuration(left) + mark
	default:
		return mark
	}
}

func taintedPods(t *api.Taint) []string {
	names := make([]string, 0, len(t.Pods))
	for _, p := range t.Pods {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return names
}

func ruleStatus(t *api.Taint) string {
	texts := make([]string, 0, len(t.Conditions))
	for _, c := range t.Conditions {
		texts = append(texts, fmt.Sprintf("%s=%s: %s", c.Type, c.Status, c.Message))
	}
	return strings.Join(texts, "; ")
}

// longValue is how many characters of a value a cell has room for.
const longValue = 60

// valueTexts returns the most frequent values of an attribute with the number of devices,
// and counts the others, which include long ones.
func valueTexts(a *api.Attribute) string {
	if len(a.Values) > render.InCell && a.Values[0].Devices == 1 {
		return fmt.Sprintf("%d on 1 device each", len(a.Values)+a.MoreValues)
	}
	var texts []string
	for i := range a.Values[:min(len(a.Values), render.InCell)] {
		if value := &a.Values[i]; len(value.Value) <= longValue {
			texts = append(texts, fmt.Sprintf("%s (%d)", value.Value, value.Devices))
		}
	}
	more := len(a.Values) + a.MoreValues - len(texts)
	switch {
	case more == 0:
		return strings.Join(texts, ", ")
	case len(texts) == 0:
		return english.Count(more, "value")
	default:
		return fmt.Sprintf("%s, %d more", strings.Join(texts, ", "), more)
	}
}

// matchText returns for how many devices an expression is true.
func matchText(a *api.Attribute) string {
	if a.Expression == "" {
		return ""
	}
	return fmt.Sprintf("%d/%d", a.Matches, a.TotalDevices)
}

// domainCell returns the ComputeDomains of a claim for a table.
func domainCell(c *api.Claim) string {
	texts := make([]string, 0, len(c.ComputeDomains))
	for i := range c.ComputeDomains {
		d := &c.ComputeDomains[i]
		switch {
		case d.Problem != "":
			texts = append(texts, d.Problem)
		case d.Name == "":
			texts = append(texts, d.ID+"?")
		default:
			texts = append(texts, fmt.Sprintf("%s %s %d/%d", d.Name, cmp.Or(d.Status, "-"), d.ReadyNodes, max(d.JoinedNodes, d.NumNodes)))
		}
	}
	return strings.Join(texts, "; ")
}

// numbers returns a column of whole numbers.
func numbers[T any](name string, of func(*T) int) render.Column[T] {
	return bounds(name, of, func(*T) api.Bound { return "" })
}

// bounds returns a column of whole numbers that may only be bounds.
func bounds[T any](name string, of func(*T) int, bound func(*T) api.Bound) render.Column[T] {
	return render.Column[T]{
		Name: name,
		Cell: func(item *T) string { return render.Bounded(of(item), bound(item)) },
		Sort: func(item *T) (float64, bool) { return float64(of(item)), true },
	}
}

// counts returns the columns of device counts, each made by number.
func counts[T any](number func(name string, of func(*api.DeviceCounts) int) render.Column[T]) []render.Column[T] {
	return []render.Column[T]{
		number("Total", func(c *api.DeviceCounts) int { return c.Total }),
		number("Free", func(c *api.DeviceCounts) int { return c.Free }),
		number("Allocated", func(c *api.DeviceCounts) int { return c.Allocated }),
		number("Shared", func(c *api.DeviceCounts) int { return c.Shared }),
		number("Blocked", func(c *api.DeviceCounts) int { return c.Blocked }),
		number("Tainted", func(c *api.DeviceCounts) int { return c.Tainted }),
		number("Unhealthy", func(c *api.DeviceCounts) int { return c.Unhealthy }),
		number("Unusable", func(c *api.DeviceCounts) int { return c.Unusable }),
	}
}

// withGone inserts a column that counts gone devices, if there are some.
func withGone[T any](items []*T, columns []render.Column[T], at int, gone func(*T) int) []render.Column[T] {
	if !slices.ContainsFunc(items, func(item *T) bool { return gone(item) > 0 }) {
		return columns
	}
	return slices.Insert(columns, at, numbers("Gone", gone))
}

// unlessUnknown returns a column of numbers; an unknown number is a question mark.
func unlessUnknown[T any](name string, of func(*T) int, known func(*T) bool) render.Column[T] {
	return render.Column[T]{
		Name: name,
		Cell: func(item *T) string {
			if !known(item) {
				return "?"
			}
			return fmt.Sprint(of(item))
		},
		Sort: func(item *T) (float64, bool) { return float64(of(item)), known(item) },
	}
}

// ages returns the column for the time since something was made.
func ages[T any](of func(*T) (seconds int64, created *metav1.Time)) render.Column[T] {
	return render.Column[T]{
		Name: "Age",
		Cell: func(item *T) string { return age(of(item)) },
		Sort: func(item *T) (float64, bool) {
			seconds, created := of(item)
			return float64(seconds), created != nil
		},
	}
}

// age returns an age as kubectl writes it, empty if it is not known.
func age(seconds int64, since *metav1.Time) string {
	if since == nil {
		return ""
	}
	return render.Age(seconds)
}
