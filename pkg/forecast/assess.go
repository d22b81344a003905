// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyapi "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Assess says what a change does. It fails with a [*NotFoundError] if there is nothing to
// change, and with the error of ctx.
func Assess(ctx context.Context, snap *snapshot.Snapshot, c Change) (*api.Impact, error) {
	changed, err := c.apply(snap)
	if err != nil {
		return nil, err
	}
	before := cluster.New(snap)
	after := before.Amended(changed)
	out := &api.Impact{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Impact"},
		Change:   c.text, Source: snap.Source, Pods: []api.ImpactPod{},
	}
	a := &assessment{out: out, emptied: c.emptied, before: before, state: after, placed: map[types.NamespacedName]*explain.Decision{}}
	if c.updates != nil {
		out.Update = updateOf(snap, c.updates)
		out.Drivers = replacedDrivers(before, c.updates, c.drivers, out.Update)
	} else if err := a.decideAll(ctx, &c); err != nil {
		return nil, err
	}
	if c.steps != nil {
		out.Steps = c.steps(snap, out)
	}
	if c.notes != nil {
		out.Notes = append(out.Notes, c.notes(before, after)...)
	}
	if c.updates == nil {
		out.Notes = append(out.Notes, aside(before, c.emptied)...)
	}
	a.assume()
	for i := range out.Pods {
		count(&out.Counts, &out.Pods[i])
	}
	for i := range out.Drivers {
		out.Counts.NeedDriver += needed(&out.Drivers[i])
	}
	return out, nil
}

// decideAll decides what becomes of the pods, the claims and the budgets.
func (a *assessment) decideAll(ctx context.Context, c *Change) error {
	plugins := pluginsOf(a.before.Snapshot)
	list := fates(c.emptied, c.gone, a.before, a.state, plugins)
	a.out.Drivers = leavingDrivers(a.before, plugins, list)
	for i := range a.out.Drivers {
		d := &a.out.Drivers[i]
		if !slices.ContainsFunc(d.Drivers, func(driver string) bool { _, known := lifecycle.DriverPods(a.before.Snapshot, driver); return !known }) {
			continue
		}
		a.out.Assumptions = append(a.out.Assumptions, fmt.Sprintf("pod %s is of driver %s: it has a plugin of the kubelet, and nothing tells of which driver", english.Sample(english.Texts(d.Pods, func(o api.ObjectRef) string { return o.Namespace + "/" + o.Name }), 2), english.JoinOr(d.Drivers)))
	}
	a.out.Claims = unmatched(ctx, a.before, a.state)
	if err := a.decide(ctx, list); err != nil {
		return err
	}
	if c.evicts {
		a.heedBudgets()
	}
	if c.emptied != "" {
		a.assumeDrivers(plugins)
	}
	return nil
}

func count(counts *api.ImpactCounts, pod *api.ImpactPod) {
	switch pod.Effect {
	case api.EffectEvicted:
		counts.Evicted++
	case api.EffectDevicesLost:
		counts.DevicesLost++
	case api.EffectFitLost:
		counts.FitLost++
		return
	case api.EffectFitGained:
		counts.FitGained++
		return
	case api.EffectStays, api.EffectRemoved:
		return
	}
	switch pod.Outcome {
	case api.OutcomePlaced:
		counts.Placed++
	case api.OutcomeNoPlace:
		counts.NoPlace++
	case api.OutcomeNotRecreated:
		counts.NotRecreated++
	case api.OutcomeUndetermined:
		counts.Undetermined++
	}
}

// decide evicts pods at their times, and decides after each of them who finds a place.
func (a *assessment) decide(ctx context.Context, list []fate) error {
	nodeBefore := map[types.NamespacedName]string{}
	decisions, _, err := explain.DecideQueue(ctx, a.before, waiting(a.before), explain.QueueOptions{})
	if err != nil {
		return fmt.Errorf("decide the queue: %w", err)
	}
	for i := range decisions {
		nodeBefore[key(decisions[i].Pod)] = ""
		if reserved := decisions[i].Reservation; reserved != nil {
			nodeBefore[key(decisions[i].Pod)] = reserved.Node
		}
	}
	leaving := of(list, api.EffectEvicted)
	for first := true; first || len(leaving) > 0; first = false {
		n := 0
		for n < len(leaving) && leaving[n].at.Equal(leaving[0].at) {
			n++
		}
		if err := a.settle(ctx, leaving[:n]); err != nil {
			return err
		}
		leaving = leaving[n:]
	}
	a.compareWaiting(nodeBefore)
	if lost := of(list, api.EffectDevicesLost); len(lost) > 0 {
		if err := a.settle(ctx, lost); err != nil {
			return err
		}
	}
	for _, f := range slices.Concat(of(list, api.EffectStays), of(list, api.EffectRemoved)) {
		a.out.Pods = append(a.out.Pods, described(&f))
	}
	slices.SortStableFunc(a.out.Pods, func(x, y api.ImpactPod) int { return cmp.Compare(rank(x.Effect), rank(y.Effect)) })
	return nil
}

// aside names the pods that a change concerns and the queue does not decide about: pods
// with scheduling gates, and pods that are nominated for the emptied node.
func aside(before *cluster.Cluster, emptied string) []string {
	var gated, nominated []string
	for _, pod := range before.Waiting() {
		name := pod.Namespace + "/" + pod.Name
		if len(pod.Spec.SchedulingGates) > 0 {
			gated = append(gated, name)
		}
		if emptied != "" && pod.Status.NominatedNodeName == emptied {
			nominated = append(nominated, name)
		}
	}
	var notes []string
	if len(gated) > 0 {
		notes = append(notes, fmt.Sprintf("not evaluated, because of scheduling gates: %s", english.Sample(gated, 5)))
	}
	if len(nominated) > 0 {
		notes = append(notes, fmt.Sprintf("node %s is nominated for %s: the scheduler has to find another node", emptied, english.Sample(nominated, 5)))
	}
	return notes
}

// rank returns the order in which effects are listed.
func rank(effect api.ImpactEffect) int {
	return slices.Index([]api.ImpactEffect{api.EffectEvicted, api.EffectDevicesLost, api.EffectFitLost, api.EffectFitGained, api.EffectRemoved, api.EffectStays}, effect)
}

func of(list []fate, effect api.ImpactEffect) []fate {
	return slices.DeleteFunc(slices.Clone(list), func(f fate) bool { return f.effect != effect })
}

// compareWaiting lists the waiting pods for which the change makes a difference, and names
// the pods that only get another node. A pod that does not fit now has no node.
func (a *assessment) compareWaiting(nodeBefore map[types.NamespacedName]string) {
	for i := range a.decided {
		d := &a.decided[i]
		node := nodeBefore[key(d.Pod)]
		if node != "" && d.Reservation == nil && a.placed[key(d.Pod)] == nil {
			out := api.ImpactPod{Namespace: d.Pod.Namespace, Name: d.Pod.Name, Owner: whatif.Owner(d.Pod), Effect: api.EffectFitLost}
			judge(&out, d)
			a.explainDeleted(&out, d.Pod)
			a.out.Pods = append(a.out.Pods, out)
		}
	}
	var moved []string
	for _, pod := range a.before.Snapshot.Pods {
		node, waited := nodeBefore[key(pod)]
		d := a.placed[key(pod)]
		switch {
		case d == nil || !waited:
		case node != "" && node == a.emptied && pod.Status.NominatedNodeName == node:
			// It is named for that.
		case node != "" && d.Reservation.Node != node:
			moved = append(moved, fmt.Sprintf("%s/%s (%s instead of %s)", pod.Namespace, pod.Name, d.Reservation.Node, node))
		case node == "":
			a.out.Pods = append(a.out.Pods, api.ImpactPod{
				Namespace: pod.Namespace, Name: pod.Name, Owner: whatif.Owner(pod), Effect: api.EffectFitGained, Outcome: api.OutcomePlaced, Placement: placed(d.Reservation),
			})
		}
	}
	if len(moved) > 0 {
		a.out.Notes = append(a.out.Notes, fmt.Sprintf("waiting pods that get another node: %s", english.Sample(moved, 2)))
	}
}

// assume lists the facts that were not verified.
func (a *assessment) assume() {
	say := func(format string, args ...any) {
		a.out.Assumptions = append(a.out.Assumptions, fmt.Sprintf(format, args...))
	}
	if slices.ContainsFunc(a.out.Pods, func(pod api.ImpactPod) bool { return pod.Placement != nil }) {
		say("where several nodes fit, the scheduler may choose another one")
	}
	if update := a.out.Update; update != nil && update.MaxSurge > 0 {
		say("the driver can run in two pods on a node: its sockets have the UID of the pod in their names (kubectl dra node-probe plugins)")
	}
	if a.withoutDevices {
		say("pods without devices are placed after all pods with devices, whatever their priority")
	}
	if gap := a.before.Snapshot.PlacementGap(snapshot.ResourceTemplates); gap != nil {
		say("there may be more: %s", strings.TrimSuffix(english.Sentence(gap.Reason), "."))
	}
}

// assumeDrivers names the drivers of the emptied node whose pods are not known. They may
// leave the node before pods that need them to end.
func (a *assessment) assumeDrivers(plugins map[*corev1.Pod][]string) {
	var unknown []string
	for _, u := range usesOn(a.before)[a.emptied] {
		unknown = append(unknown, u.drivers...)
	}
	for pod, drivers := range plugins {
		if pod.Spec.NodeName == a.emptied {
			unknown = slices.DeleteFunc(unknown, func(driver string) bool { return slices.Contains(drivers, driver) })
		}
	}
	if slices.Sort(unknown); len(unknown) > 0 {
		a.out.Assumptions = append(a.out.Assumptions, fmt.Sprintf("the pods of driver %s on the node are of DaemonSets, or static, and stay: none of them is known", english.JoinAnd(slices.Compact(unknown))))
	}
}

// heedBudgets says which PodDisruptionBudgets have to allow the evictions. The API server
// refuses an eviction as long as the budget of the pod allows none, and "kubectl drain"
// tries again (canIgnorePDB and checkAndDecrement in pkg/registry/core/pod/storage/eviction.go
// of Kubernetes v1.37.1). Taints do not ask them.
func (a *assessment) heedBudgets() {
	snap := a.before.Snapshot
	if why := snap.Unknown(snapshot.ResourceBudgets, ""); why != "" {
		a.out.Assumptions = append(a.out.Assumptions, "no PodDisruptionBudget delays an eviction: "+why)
	}
	for _, budget := range snap.Budgets {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			// The API server stores none like that.
			continue
		}
		out := api.ImpactBudget{Namespace: budget.Namespace, Name: budget.Name, Allowed: int(budget.Status.DisruptionsAllowed)}
		stuck := false
		for i := range a.out.Pods {
			p := &a.out.Pods[i]
			pod := snap.Pod(p.Namespace, p.Name)
			if p.Effect != api.EffectEvicted || pod == nil || pod.Namespace != budget.Namespace || !selector.Matches(labels.Set(pod.Labels)) || ignoresBudget(pod, budget) {
				continue
			}
			p.Budgets = append(p.Budgets, budget.Name)
			out.Pods = append(out.Pods, pod.Name)
			stuck = stuck || p.Outcome == api.OutcomeNoPlace || p.Outcome == api.OutcomeNotRecreated
		}
		if len(out.Pods) == 0 {
			continue
		}
		switch {
		case out.Allowed == 0:
			out.Effect = api.BudgetBlocks
		case out.Allowed >= len(out.Pods):
			out.Effect = api.BudgetAllows
		case stuck:
			out.Effect = api.BudgetStops
		default:
			out.Effect = api.BudgetDelays
		}
		a.out.Budgets = append(a.out.Budgets, out)
	}
	for i := range a.out.Pods {
		if p := &a.out.Pods[i]; len(p.Budgets) > 1 {
			a.out.Notes = append(a.out.Notes, fmt.Sprintf("pod %s has %d PodDisruptionBudgets: the API server refuses to evict such a pod", english.QualifiedName(a.before.Snapshot.Pod(p.Namespace, p.Name)), len(p.Budgets)))
		}
	}
}

// ignoresBudget reports whether a pod is evicted whatever its budget says: it does not run
// yet, or it is not ready and the budget lets such pods go.
func ignoresBudget(pod *corev1.Pod, budget *policyapi.PodDisruptionBudget) bool {
	if pod.Status.Phase == corev1.PodPending {
		return true
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return false
		}
	}
	if policy := budget.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyapi.AlwaysAllow {
		return true
	}
	// By default they go if the budget is met without them.
	return budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0
}

// unmatched lists the allocated claims with devices that a changed class no longer
// selects.
func unmatched(ctx context.Context, before, after *cluster.Cluster) []api.ImpactClaim {
	changed := map[string]*resourceapi.DeviceClass{}
	for _, class := range after.Snapshot.Classes {
		if old := before.Snapshot.Class(class.Name); old != nil && !equality.Semantic.DeepEqual(old.Spec.Selectors, class.Spec.Selectors) {
			changed[class.Name] = class
		}
	}
	var list []api.ImpactClaim
	for _, claim := range before.Snapshot.Claims {
		if claim.Status.Allocation == nil || len(changed) == 0 {
			continue
		}
		for _, alternatives := range cluster.Requests(claim) {
			for _, request := range alternatives {
				class := changed[request.Class]
				if class == nil {
					continue
				}
				if devices := unselected(ctx, before, after, claim, request, class); len(devices) > 0 {
					list = append(list, api.ImpactClaim{Namespace: claim.Namespace, Name: claim.Name, DeviceClass: class.Name, Devices: devices, Pods: podsOf(claim)})
				}
			}
		}
	}
	return list
}

// unselected lists the devices of a request that its class does not select after the
// change, and did before.
func unselected(ctx context.Context, before, after *cluster.Cluster, claim *resourceapi.ResourceClaim, request *cluster.Request, class *resourceapi.DeviceClass) []string {
	var devices []string
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		device := after.Pools.Device(cluster.DeviceID{Driver: result.Driver, Pool: result.Pool, Device: result.Device})
		if result.Request != request.Name || device == nil {
			continue
		}
		if selects(ctx, before, before.Snapshot.Class(class.Name), device) && !selects(ctx, after, class, device) {
			devices = append(devices, device.ID.String())
		}
	}
	return devices
}

// selects reports whether all selectors of a class are true for a device.
func selects(ctx context.Context, facts *cluster.Cluster, class *resourceapi.DeviceClass, device *cluster.Device) bool {
	selectors := facts.Gates.Selectors()
	return !slices.ContainsFunc(class.Spec.Selectors, func(s resourceapi.DeviceSelector) bool {
		if s.CEL == nil {
			return false
		}
		compiled := selectors.Compile(s.CEL.Expression)
		return compiled.Err != nil || !selectors.Evaluate(ctx, compiled, device.ID.Driver, device.Device).Matches
	})
}

func podsOf(claim *resourceapi.ResourceClaim) []string {
	var pods []string
	for _, consumer := range claim.Status.ReservedFor {
		if consumer.APIGroup == "" && consumer.Resource == "pods" {
			pods = append(pods, consumer.Name)
		}
	}
	return pods
}
