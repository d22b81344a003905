// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// UseOfDevice says what becomes of a device, given as driver/pool/device or a part of
// that which is clear. It fails with an [*TargetError] if there is no such
// device, and with the error of ctx if that is done before there is an answer.
func UseOfDevice(ctx context.Context, c *cluster.Cluster, name string) (*api.UseExplanation, error) {
	d, err := target.FindDevice(c, name)
	if err != nil {
		return nil, err
	}
	all, _ := c.Nodes.All()
	nodes := slices.DeleteFunc(slices.Clone(all), func(node *corev1.Node) bool { return !eligibility.DeviceReaches(d, node) })
	w := newDeviceUses(c, nodes)
	return w.explain(ctx, api.Ref(api.KindDevice, "", d.ID.String()), []*cluster.Device{d})
}

// UseOfNode says what becomes of all devices that a node can reach, and what keeps
// pods away from it. It fails like [Device].
func UseOfNode(ctx context.Context, c *cluster.Cluster, name string) (*api.UseExplanation, error) {
	node, err := target.FindNode(c, name)
	if err != nil {
		return nil, err
	}
	var devices []*cluster.Device
	all := c.Pools.Devices()
	for i := range all {
		if eligibility.DeviceReaches(&all[i], node) {
			devices = append(devices, &all[i])
		}
	}
	w := newDeviceUses(c, []*corev1.Node{node})
	w.out.Node = &api.NodeUse{Name: node.Name, Blocks: w.inspection.Node(node)}
	return w.explain(ctx, api.Ref(api.KindNode, "", node.Name), devices)
}

// explain looks at each device by itself first, and then at those that are not in
// use as each kind of waiting pods sees them.
func (w *deviceUses) explain(ctx context.Context, of api.ObjectRef, devices []*cluster.Device) (*api.UseExplanation, error) {
	w.out.Target = of
	uses := make([]api.DeviceUse, len(devices))
	var open []*cluster.Device
	var at []int
	for i, d := range devices {
		facts, blocks, err := w.inspection.Device(ctx, d, w.nodes)
		if err != nil {
			return nil, err
		}
		uses[i] = api.DeviceUse{
			Driver: d.ID.Driver, Pool: d.ID.Pool, Names: []string{d.ID.Device}, Nodes: facts.Nodes,
			Holders: facts.Holders, Blocks: blocks, BindingConditions: d.BindingConditions, Classes: w.inspection.Classes(ctx, d),
		}
		if !w.cluster.Usage.InUse(d.ID) {
			open, at = append(open, d), append(at, i)
		}
	}
	answers, err := w.ask(ctx, open)
	if err != nil {
		return nil, err
	}
	for k, i := range at {
		for _, answer := range answers {
			uses[i].Requests = append(uses[i].Requests, answer.requests(k)...)
		}
	}
	counts := map[api.DeviceUseState]int{}
	for i, d := range devices {
		unknown := w.unknown(d)
		if unknown == "" && !slices.ContainsFunc(uses[i].Requests, func(r api.RequestUse) bool { return r.Outcome == api.Picked }) {
			unknown = notAllText(w.out.NotExplained)
		}
		concludeUse(&uses[i], unknown)
		if uses[i].State == api.DeviceUndetermined && w.out.Undetermined == "" {
			w.out.Undetermined = unknown
		}
		counts[uses[i].State]++
	}
	w.out.States, w.out.Devices = []api.DeviceUseCount{}, groupUses(uses)
	for _, state := range useStates() {
		if counts[state] > 0 {
			w.out.States = append(w.out.States, api.DeviceUseCount{State: state, Count: counts[state]})
		}
	}
	if w.out.Node != nil {
		w.out.Node.Misfits = waitingMisfits(answers)
	}
	w.out.Summary = english.Sentence(w.summary(uses))
	return w.out, nil
}

// unknown says why the state of a device is not known, unless it is in use. It is
// empty if nothing is missing.
func (w *deviceUses) unknown(d *cluster.Device) string {
	if gap := w.cluster.Snapshot.Gap(snapshot.ResourceClaims); gap != nil && !w.cluster.Usage.InUse(d.ID) {
		return gap.Reason + ": whether the device is in use is not known"
	}
	if gap := w.cluster.Snapshot.Gap(snapshot.ResourcePods); gap != nil {
		return gap.Reason + ": which pods wait for devices is not known"
	}
	return ""
}

// useStates lists all states, the best one first.
func useStates() []api.DeviceUseState {
	return []api.DeviceUseState{
		api.DeviceInUse, api.DeviceNext, api.DeviceRequested, api.DeviceNotRequested, api.DeviceBlocked, api.DeviceUndetermined,
	}
}

// concludeUse finds the state of a device. unknown says why it may be another one than
// in use.
func concludeUse(u *api.DeviceUse, unknown string) {
	held := slices.ContainsFunc(u.Holders, func(h api.DeviceHolder) bool { return !h.AdminAccess })
	next := slices.IndexFunc(u.Requests, func(r api.RequestUse) bool { return r.Outcome == api.Picked })
	unblocked := slices.ContainsFunc(u.Requests, func(r api.RequestUse) bool { return passesBlocks(&r, u.Blocks) })
	asked := nearestRequest(u.Requests)
	switch {
	case held && next < 0:
		u.State, u.Summary = api.DeviceInUse, "allocated to "+holdersText(u.Holders)
	case unknown != "":
		u.State, u.Summary = api.DeviceUndetermined, unknown
	case next >= 0:
		u.State, u.Summary = api.DeviceNext, u.Requests[next].Message
	case len(u.Blocks) > 0 && !unblocked:
		texts := make([]string, 0, len(u.Blocks))
		for i := range u.Blocks {
			texts = append(texts, checkText(&u.Blocks[i]))
		}
		u.State, u.Summary = api.DeviceBlocked, strings.Join(texts, "; ")
	case asked != nil && asked.Code != api.ClassSelectorFalse:
		u.State, u.Summary = api.DeviceRequested, useRequestText(asked)
	default:
		u.State, u.Summary = api.DeviceNotRequested, "no waiting pod has a request with a class that selects it"
		if len(u.Classes) == 0 {
			u.Summary += "; no DeviceClass selects it"
		}
		if asked != nil {
			u.Summary += "; closest is " + useRequestText(asked)
		}
	}
}

// passesBlocks reports whether a request of a pod for devices of the class gets
// past what blocks those that tolerate nothing.
func passesBlocks(r *api.RequestUse, blocks []api.DeviceCheck) bool {
	return r.Pod.Kind != "" && r.Code != api.ClassSelectorFalse && !slices.ContainsFunc(r.Failed, func(failed api.DeviceCheck) bool {
		return slices.ContainsFunc(blocks, func(block api.DeviceCheck) bool { return block.Check == failed.Check })
	})
}

// nearestRequest returns the request of a pod that comes closest to getting the device: one for
// which it is eligible, then one with fewer checks that fail, selectors that are false
// count by their parts. It is nil if no pod waits.
func nearestRequest(requests []api.RequestUse) *api.RequestUse {
	var best *api.RequestUse
	rank := func(r *api.RequestUse) int {
		rank := 100*len(r.Failed) + r.FalseParts
		if r.Code == api.ClassSelectorFalse {
			rank += 100_000
		}
		return rank
	}
	for i := range requests {
		if r := &requests[i]; r.Pod.Kind != "" && (best == nil || rank(r) < rank(best)) {
			best = r
		}
	}
	return best
}

// useRequestText names a request, and says why it does not get the device.
func useRequestText(r *api.RequestUse) string {
	return fmt.Sprintf("pod %s/%s, %s: %s", r.Pod.Namespace, r.Pod.Name, cluster.RequestTitle(r.Name, r.Container, r.ExtendedResource), r.Message)
}

// holdersText names the claims that have a device, and their pods.
func holdersText(holders []api.DeviceHolder) string {
	var texts []string
	for i := range holders {
		text := "claim " + holders[i].Namespace + "/" + holders[i].Name
		if users := holders[i].ReservedFor; len(users) > 0 {
			text += " for " + english.Sample(english.Texts(users, api.ObjectRef.Argument), 3)
		} else {
			text += ", which is reserved for nobody"
		}
		texts = append(texts, text)
	}
	return english.Sample(texts, 3)
}

// groupUses puts equal devices with the same answer into one. Where the evidence
// stands differs from device to device.
func groupUses(uses []api.DeviceUse) []api.DeviceUse {
	groups := []api.DeviceUse{}
	at := map[string]int{}
	for i := range uses {
		same := *uses[i].DeepCopy()
		same.Names = nil
		for k := range same.Blocks {
			same.Blocks[k].Evidence = nil
		}
		for k := range same.Requests {
			for l := range same.Requests[k].Failed {
				same.Requests[k].Failed[l].Evidence = nil
			}
		}
		key, err := json.Marshal(same)
		k, known := at[string(key)]
		if err != nil || !known {
			at[string(key)] = len(groups)
			groups = append(groups, uses[i])
			continue
		}
		groups[k].Names = append(groups[k].Names, uses[i].Names...)
	}
	slices.SortStableFunc(groups, func(a, b api.DeviceUse) int {
		return cmp.Compare(slices.Index(useStates(), a.State), slices.Index(useStates(), b.State))
	})
	return groups
}

// waitingMisfits returns the conditions that keep waiting pods away from the node, ordered by
// their number of pods.
func waitingMisfits(answers []*useAnswer) []api.WaitingMisfit {
	var list []api.WaitingMisfit
	at := map[string]int{}
	for _, a := range answers {
		if a.explanation.Node == nil || len(a.pods) == 0 {
			continue
		}
		for _, misfit := range a.explanation.Node.Misfits {
			i, known := at[misfit.Message]
			if !known {
				i, at[misfit.Message] = len(list), len(list)
				list = append(list, api.WaitingMisfit{NodeMisfit: misfit})
			}
			list[i].Pods = append(list[i].Pods, api.RefTo(api.KindPod, a.pods[0]))
			list[i].PodCount += len(a.pods)
		}
	}
	slices.SortStableFunc(list, func(a, b api.WaitingMisfit) int { return cmp.Compare(b.PodCount, a.PodCount) })
	return list
}

// summary describes in one clause the state of the device, or of a node's devices.
func (w *deviceUses) summary(uses []api.DeviceUse) string {
	if w.out.Node == nil {
		return uses[0].Summary
	}
	if len(uses) == 0 {
		return "no ResourceSlice has a device for the node"
	}
	parts := make([]string, 0, len(w.out.States))
	for _, s := range w.out.States {
		parts = append(parts, fmt.Sprintf("%d %s", s.Count, useStateText(s.State)))
	}
	return english.Count(len(uses), "device") + ": " + english.JoinAnd(parts)
}

func useStateText(s api.DeviceUseState) string {
	switch s {
	case api.DeviceInUse:
		return "in use"
	case api.DeviceNext:
		return "next for a pod"
	case api.DeviceBlocked:
		return "blocked"
	case api.DeviceRequested:
		return "idle while pods wait"
	case api.DeviceNotRequested:
		return "idle with nobody asking"
	default:
		return "not known"
	}
}
