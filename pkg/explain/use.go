// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"slices"

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
