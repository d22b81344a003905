// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// AbsentDriver reports a driver that has no slices left of pools with allocated devices.
// Running pods keep these devices, so it never advises to delete a pod.
func AbsentDriver(snap *snapshot.Snapshot, pools []cluster.LostPool) Finding {
	f := Finding{Instead: true}
	driver := pools[0].Driver
	var names, nodes, devices []string
	var claims []*resourceapi.ResourceClaim
	for i := range pools {
		pool := &pools[i]
		for _, id := range pool.Devices {
			devices = append(devices, id.Pool+"/"+id.Device)
		}
		for _, claim := range pool.Claims {
			if !slices.Contains(claims, claim) {
				claims = append(claims, claim)
			}
		}
		names = append(names, pool.Name)
		if pool.Node != "" && !slices.Contains(nodes, pool.Node) {
			nodes = append(nodes, pool.Node)
		}
		f.AddEvidence(api.Ref("Pool", "", driver+"/"+pool.Name), "spec.devices", fmt.Sprintf("no ResourceSlice, %s in use", english.Count(len(pool.Devices), "device")), "what the driver publishes where it runs")
	}
	where := "pool " + english.Sample(names, maxAbsent)
	if len(names) > 1 {
		where = fmt.Sprintf("%d pools (%s)", len(names), english.Sample(names, maxAbsent))
	}
	if len(nodes) > 0 {
		where = "node " + nodes[0]
		if len(nodes) > 1 {
			where = fmt.Sprintf("%d nodes (%s)", len(nodes), english.Sample(nodes, maxAbsent))
		}
	}
	what := fmt.Sprintf("%s of %s are", english.Count(len(devices), "device"), english.Count(len(claims), "claim"))
	if len(claims) == 1 {
		what = fmt.Sprintf("%s %s of claim %s %s", english.Plural(len(devices), "device", "devices"), english.Sample(devices, maxAbsent), english.QualifiedName(claims[0]), english.Plural(len(devices), "is", "are"))
	}
	f.Reason = fmt.Sprintf("driver %s publishes nothing for %s any more: %s no longer in any ResourceSlice", driver, where, what)
	for _, node := range nodes[:min(len(nodes), maxAbsent)] {
		plugin := Finding{}
		driverPods(snap, &plugin, []string{driver}, node)
		f.Reason += plugin.Reason
		f.Evidence = append(f.Evidence, plugin.Evidence...)
	}
	step := PluginStep(snap, driver, nodes...)
	step.Text += ": the kubelet deletes the slices of a driver 30s after it disconnects; leave the pods alone, because those that run keep their devices"
	f.Steps = append(f.Steps, step)
	return f
}

// PluginStep returns the step to look at the plugin of a driver on some nodes.
func PluginStep(snap *snapshot.Snapshot, driver string, nodes ...string) api.NextStep {
	step := api.NextStep{Actor: api.ActorAdmin, Text: "look at the plugin of driver " + driver + english.PrecededBy(" on ", english.Sample(nodes, maxAbsent))}
	for _, set := range DaemonSets(snap, driver) {
		if set.Selector != nil {
			step.Commands = append(step.Commands, fmt.Sprintf("kubectl get pods -n %s -l %s -o wide", shell.Quote(set.Namespace), shell.Quote(metav1.FormatLabelSelector(set.Selector))))
		}
	}
	if len(step.Commands) == 0 && len(nodes) > 0 {
		step.Commands = []string{"kubectl get pods -A -o wide --field-selector " + shell.Quote("spec.nodeName="+nodes[0])}
	}
	return step
}

// maxAbsent limits how many nodes or pools of a driver are named.
const maxAbsent = 4
