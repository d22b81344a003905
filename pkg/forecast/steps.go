// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// The order of all of these: pods first, then their devices are unprepared, and the pods
// of the drivers last. The kubelet asks the driver of each claim to unprepare it before
// the pod is gone; without the driver, the pod stays in Terminating.

func admin(text string, commands ...string) api.NextStep {
	return api.NextStep{Actor: api.ActorAdmin, Text: text, Commands: commands}
}

func drainSteps(node string) func(*snapshot.Snapshot, *api.Impact) []api.NextStep {
	return func(snap *snapshot.Snapshot, out *api.Impact) []api.NextStep {
		text := "evict the pods; those of DaemonSets stay, so that the drivers can unprepare the devices"
		if len(out.Drivers) > 0 {
			text = "evict the others"
		}
		force := slices.ContainsFunc(out.Pods, func(pod api.ImpactPod) bool { return pod.Outcome == api.OutcomeNotRecreated })
		if force {
			text += "; --force deletes pods that nothing creates again"
		}
		drain := shell.Drain(node, force)
		cordon := admin("keep new pods from the node", "kubectl cordon "+shell.Node(node))
		wait := admin("wait until no claim of these pods has a device of the node", "kubectl dra devices --node "+shell.Quote(node)+" --allocated")
		drivers := driversIn(snap, node)
		var steps []api.NextStep
		switch {
		case len(out.Drivers) > 0:
			leaves := &out.Drivers[0]
			drivers = slices.DeleteFunc(drivers, func(driver string) bool { return slices.Contains(leaves.Drivers, driver) })
			// kubectl drain cordons the node itself.
			steps = []api.NextStep{
				admin("mark the pods of driver "+english.JoinAnd(leaves.Drivers)+", which have to leave last", labelPods(leaves.Pods)...),
				admin(text, drain+" --pod-selector="+shell.Quote(lastLabel+"!="+lastValue)),
				admin("once no claim of these pods has a device of the node, evict the driver", append(wait.Commands, drain)...),
			}
		case len(drivers) > 0:
			steps = []api.NextStep{cordon, admin(text, drain), wait}
		default:
			steps = []api.NextStep{cordon, admin(text, drain)}
		}
		if len(drivers) > 0 {
			steps = append(steps, admin("only then stop the kubelet or the pods of "+driverText(snap, drivers)+requiredLabels(snap, drivers)))
		}
		return steps
	}
}

// The label of pods that leave a node last.
const (
	lastLabel = "drain"
	lastValue = "last"
)

// labelPods returns the commands that label pods as the last ones.
func labelPods(pods []api.ObjectRef) []string {
	var commands []string
	for _, pod := range pods {
		commands = append(commands, "kubectl label "+shell.KubectlObjects("pod", pod.Namespace, pod.Name)+" "+lastLabel+"="+lastValue)
	}
	return commands
}

// requiredLabels names the labels by which the DaemonSets of drivers choose nodes: the
// controller deletes their pods where a node no longer has these.
func requiredLabels(snap *snapshot.Snapshot, drivers []string) string {
	var keys []string
	for _, driver := range drivers {
		for _, set := range lifecycle.DaemonSets(snap, driver) {
			spec := &set.Template.Spec
			keys = slices.AppendSeq(keys, maps.Keys(spec.NodeSelector))
			if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
				continue
			}
			for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
				for i := range term.MatchExpressions {
					keys = append(keys, term.MatchExpressions[i].Key)
				}
			}
		}
	}
	if len(keys) == 0 {
		return ""
	}
	slices.Sort(keys)
	return ", or change labels by which their DaemonSets choose nodes: " + english.JoinAnd(slices.Compact(keys))
}

// upgradeDriverSteps returns the steps after which a DaemonSet has replaced its pods.
func upgradeDriverSteps(set *snapshot.Workload) func(*snapshot.Snapshot, *api.Impact) []api.NextStep {
	return func(_ *snapshot.Snapshot, out *api.Impact) []api.NextStep {
		object := shell.KubectlObjects("daemonset", set.Namespace, set.Name)
		const template = "change the template"
		edit, undo := admin(template, "kubectl edit "+object), admin("", "kubectl rollout undo "+object)
		strategy := admin("let the old pod end before the new one starts", "kubectl patch "+object+` -p '{"spec":{"updateStrategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}'`)
		back := "go back"
		if manager := lifecycle.Manager(set); manager != "" {
			edit = admin(template + " in " + manager + ", from where changes of the DaemonSet itself are undone")
			if command := lifecycle.EditManager(set); command != "" {
				edit.Commands = []string{command}
			}
			strategy, undo = admin(strategy.Text+" (maxSurge 0, maxUnavailable 1), in "+manager), admin("")
			back += " there"
		}
		if out.Update.Type == string(appsv1.OnDeleteDaemonSetStrategyType) {
			edit.Text += "; no pod is replaced yet"
			undo.Text = "if the loop ended early, " + back + ", and delete the pod that is not ready: until then, pods on its node neither end nor start"
			return []api.NextStep{
				edit,
				admin("delete the driver's pods, those with the fewest pods that need them first; the loop ends at the first one that does not become ready", replaceEach(set, out.Drivers)),
				undo,
			}
		}
		steps := []api.NextStep{edit}
		if slices.ContainsFunc(out.Drivers, func(d api.ImpactDriver) bool { return d.Effect == api.DriverUnregistered }) {
			steps = []api.NextStep{strategy, edit}
		}
		undo.Text = "if one does not become ready, " + back + ": until then, pods on its node neither end nor start"
		if slices.ContainsFunc(out.Drivers, func(d api.ImpactDriver) bool { return d.Effect == api.DriverOverlaps }) {
			undo.Text = "if one does not become ready, " + back + ": the old one stays until then"
		}
		return append(steps, admin("wait until all pods of the driver are replaced and ready", "kubectl rollout status "+object), undo)
	}
}

// replaceEach returns a command that replaces the pods of a DaemonSet on one node after the
// other, those with the fewest pods that need the driver first.
func replaceEach(set *snapshot.Workload, drivers []api.ImpactDriver) string {
	var nodes []string
	for i := range drivers {
		nodes = append(nodes, shell.Quote(drivers[len(drivers)-1-i].Node))
	}
	if set.Selector == nil || len(nodes) == 0 {
		return ""
	}
	pods := "pod -n " + shell.Quote(set.Namespace) + " -l " + shell.Quote(metav1.FormatLabelSelector(set.Selector)) + ` --field-selector spec.nodeName="$node"`
	return "for node in " + strings.Join(nodes, " ") + "; do kubectl delete " + pods + " && kubectl wait " + pods + " --for=create --timeout=5m && kubectl wait " + pods + " --for=condition=Ready --timeout=5m || break; done"
}

// upgradeDriverNotes returns what else matters while the pods of drivers are replaced.
func upgradeDriverNotes(set *snapshot.Workload, drivers []string) func(before, after *cluster.Cluster) []string {
	return func(before, _ *cluster.Cluster) []string {
		var notes []string
		pods := lifecycle.Pods(before.Snapshot, set)
		var without []string
		for node, uses := range usesOn(before) {
			has := slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return lifecycle.DaemonNode(pod) == node })
			if uses := impactDriver(before.Snapshot, node, drivers, nil, uses); !has && needed(&uses) > 0 {
				without = append(without, node)
			}
		}
		if slices.SortFunc(without, english.CompareNames); len(without) > 0 {
			notes = append(notes, fmt.Sprintf("pods use devices of the driver on %s, where the DaemonSet has no pod: %s", english.Count(len(without), "node"), english.Sample(without, 5)))
		}
		var unready []string
		for _, pod := range pods {
			if !lifecycle.Ready(pod) {
				unready = append(unready, english.QualifiedName(pod))
			}
		}
		if len(unready) > 0 {
			notes = append(notes, fmt.Sprintf("not ready before the change: %s", english.Sample(unready, 5)))
		}
		return notes
	}
}

func removeNodeSteps(node string) func(*snapshot.Snapshot, *api.Impact) []api.NextStep {
	drain := drainSteps(node)
	return func(snap *snapshot.Snapshot, out *api.Impact) []api.NextStep {
		return append(drain(snap, out), admin("remove the node", "kubectl delete node "+shell.Quote(node)))
	}
}

func removeDriverSteps(driver string) func(*snapshot.Snapshot, *api.Impact) []api.NextStep {
	return func(snap *snapshot.Snapshot, out *api.Impact) []api.NextStep {
		steps := deleteUsers(out)
		steps = append(steps,
			admin("wait until no claim has a device of the driver", "kubectl dra devices --driver "+shell.Quote(driver)+" --allocated"))
		remove := admin("only then remove " + driverText(snap, []string{driver}))
		for _, set := range lifecycle.DaemonSets(snap, driver) {
			if lifecycle.Manager(set.Workload) != "" {
				continue
			}
			remove.Commands = append(remove.Commands, "kubectl delete "+shell.KubectlObjects("daemonset", set.Namespace, set.Name))
		}
		return append(steps, remove)
	}
}

func removeDeviceSteps(id cluster.DeviceID) func(*snapshot.Snapshot, *api.Impact) []api.NextStep {
	return func(_ *snapshot.Snapshot, out *api.Impact) []api.NextStep {
		steps := []api.NextStep{admin("keep new pods from the device", fmt.Sprintf("kubectl dra taints add --driver %s --pool %s --device %s maintenance:NoSchedule",
			shell.Quote(id.Driver), shell.Quote(id.Pool), shell.Quote(id.Device)))}
		steps = append(steps, deleteUsers(out)...)
		return append(steps, admin("only then take the device out of the node"))
	}
}

// deleteUsers ends the pods that use the devices.
func deleteUsers(out *api.Impact) []api.NextStep {
	byNamespace := map[string][]string{}
	var order []string
	for _, pod := range out.Pods {
		if pod.Effect != api.EffectDevicesLost {
			continue
		}
		if byNamespace[pod.Namespace] == nil {
			order = append(order, pod.Namespace)
		}
		byNamespace[pod.Namespace] = append(byNamespace[pod.Namespace], pod.Name)
	}
	if len(order) == 0 {
		return nil
	}
	step := admin("delete the pods that have the devices, so that the driver unprepares them")
	for _, namespace := range order {
		step.Commands = append(step.Commands, "kubectl delete "+shell.KubectlObjects("pod", namespace, byNamespace[namespace]...))
	}
	return []api.NextStep{step}
}

// driverText names drivers, with their DaemonSets as far as they are known.
func driverText(snap *snapshot.Snapshot, drivers []string) string {
	var texts []string
	for _, driver := range drivers {
		text := "driver " + driver
		for _, set := range lifecycle.DaemonSets(snap, driver) {
			text += " (DaemonSet " + english.QualifiedName(set)
			if manager := lifecycle.Manager(set.Workload); manager != "" {
				text += ", to be changed in " + manager
			}
			text += ")"
		}
		texts = append(texts, text)
	}
	return english.JoinAnd(texts)
}
