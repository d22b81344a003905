// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// taintKey groups the taints of slices.
type taintKey struct{ key, value, effect, driver string }

// Taints lists the taints of slices, by driver, and the DeviceTaintRules, those
// with the next eviction first.
func (v *Inventory) Taints() []api.Taint {
	var list []api.Taint
	for _, rule := range v.cluster.Snapshot.TaintRules {
		list = append(list, ruleTaint(v.cluster, rule))
	}
	index := map[taintKey]int{}
	for _, d := range v.cluster.Pools.Devices() {
		for _, taint := range d.Taints {
			if v.cluster.Taints.Rule(&d, taint) != nil {
				continue
			}
			key := taintKey{taint.Key, taint.Value, string(taint.Effect), d.ID.Driver}
			at, known := index[key]
			if !known {
				at = len(list)
				index[key] = at
				list = append(list, api.Taint{
					TypeMeta: typeMeta("Taint"),
					Key:      taint.Key, Value: taint.Value, Effect: string(taint.Effect), Driver: d.ID.Driver, Since: taint.TimeAdded,
				})
			}
			taintDevice(v.cluster, &list[at], d.ID, taint, nil)
		}
	}
	for i := range list {
		list[i].ClaimsAreLowerBounds = v.notRead.claims
		list[i].PodsAreLowerBounds = v.notRead.claims || v.notRead.pods
	}
	slices.SortStableFunc(list, func(a, b api.Taint) int {
		switch {
		case a.NextEviction != nil && b.NextEviction != nil:
			return a.NextEviction.Compare(b.NextEviction.Time)
		case a.NextEviction != nil:
			return -1
		case b.NextEviction != nil:
			return 1
		}
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Driver, b.Driver))
	})
	return list
}

func ruleTaint(facts *cluster.Cluster, rule *resourceapi.DeviceTaintRule) api.Taint {
	taint := rule.Spec.Taint
	out := api.Taint{
		TypeMeta: typeMeta("Taint"),
		Key:      taint.Key, Value: taint.Value, Effect: string(taint.Effect), Since: taint.TimeAdded,
		Rule: rule.Name, Selector: RuleSelector(rule), Conditions: rule.Status.Conditions, Labels: rule.Labels,
	}
	if rule.Spec.DeviceSelector == nil && facts.Taints.TaintsAll(rule) {
		out.Selector = "all devices (no deviceSelector)"
	}
	if selector := rule.Spec.DeviceSelector; selector != nil && selector.Driver != nil {
		out.Driver = *selector.Driver
	}
	for _, id := range facts.Taints.SelectedBy(rule) {
		taintDevice(facts, &out, id, taint, rule)
	}
	return out
}

// RuleSelector says which devices a rule is about.
func RuleSelector(rule *resourceapi.DeviceTaintRule) string {
	selector := rule.Spec.DeviceSelector
	if selector == nil {
		return "no device"
	}
	var parts []string
	for _, part := range []struct {
		name  string
		value *string
	}{{"driver", selector.Driver}, {"pool", selector.Pool}, {"device", selector.Device}} {
		if part.value != nil {
			parts = append(parts, part.name+"="+*part.value)
		}
	}
	if len(parts) == 0 {
		return "all devices"
	}
	return strings.Join(parts, ",")
}

// taintDevice adds a device and who uses it to a taint.
func taintDevice(facts *cluster.Cluster, out *api.Taint, id cluster.DeviceID, taint resourceapi.DeviceTaint, rule *resourceapi.DeviceTaintRule) {
	out.Devices = append(out.Devices, id.String())
	if taint.TimeAdded != nil && (out.Since == nil || taint.TimeAdded.Before(out.Since)) {
		out.Since = taint.TimeAdded
	}
	for _, holder := range facts.Usage.Holders(id) {
		if claim := api.RefTo(api.KindClaim, holder.Claim); !slices.Contains(out.Claims, claim) {
			out.Claims = append(out.Claims, claim)
		}
		for _, pod := range facts.Claims.Users(holder.Claim.Namespace, holder.Claim.Name) {
			if uses(facts, pod, holder.Claim) {
				taintPod(facts, out, pod, id, holder, taint, rule)
			}
		}
	}
}

func taintPod(facts *cluster.Cluster, out *api.Taint, pod *corev1.Pod, id cluster.DeviceID, holder cluster.Holder, taint resourceapi.DeviceTaint, rule *resourceapi.DeviceTaintRule) {
	at := slices.IndexFunc(out.Pods, func(p api.TaintedPod) bool { return p.Namespace == pod.Namespace && p.Name == pod.Name })
	if at < 0 {
		at = len(out.Pods)
		out.Pods = append(out.Pods, api.TaintedPod{Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName, Claim: holder.Claim.Name})
	}
	p := &out.Pods[at]
	same := func(e cluster.Eviction) bool {
		return e.Rule == rule && e.Taint.Key == taint.Key && e.Taint.Value == taint.Value && e.Taint.Effect == taint.Effect && (rule != nil || e.Device.Driver == id.Driver)
	}
	for _, e := range facts.Taints.ClaimEvictions(holder.Claim) {
		if seconds := int64(e.Tolerated.Seconds()); same(e) && seconds > 0 && (p.TolerationSeconds == nil || seconds < *p.TolerationSeconds) {
			p.TolerationSeconds = &seconds
		}
	}
	if pod.DeletionTimestamp != nil {
		return
	}
	for _, e := range facts.Taints.PodEvictions(pod) {
		if !same(e) {
			if p.Anyway == nil || e.At.Before(p.Anyway.At.Time) {
				source, _ := cluster.EvictionSource(facts, &e)
				p.Anyway = &api.OtherEviction{Taint: e.Taint.String(), Device: e.Device.String(), Source: source, At: metav1.Time{Time: e.At}}
			}
			continue
		}
		p.Evicted = true
		if p.EvictionAt == nil || e.At.Before(p.EvictionAt.Time) {
			p.EvictionAt = &metav1.Time{Time: e.At}
		}
	}
	if p.EvictionAt != nil && (out.NextEviction == nil || p.EvictionAt.Before(out.NextEviction)) {
		out.NextEviction = p.EvictionAt
	}
}

// EvictionDue tells how long it takes until the next eviction; negative if it is
// overdue. It is false if there is none.
func EvictionDue(t *api.Taint, now time.Time) (left time.Duration, due bool) {
	if t.NextEviction == nil {
		return 0, false
	}
	return t.NextEviction.Sub(now), true
}
