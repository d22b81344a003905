// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"slices"

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
		force := slices.ContainsFunc(out.Pods, func(pod api.ImpactPod) bool { return pod.Outcome == api.OutcomeNotRecreated })
		if force {
			text += "; --force deletes pods that nothing creates again"
		}
		steps := []api.NextStep{
			admin("keep new pods from the node", "kubectl cordon "+shell.Node(node)),
			admin(text, shell.Drain(node, force)),
		}
		drivers := driversIn(snap, node)
		if len(drivers) == 0 {
			return steps
		}
		return append(steps,
			admin("wait until no claim has a device of the node", "kubectl dra devices --node "+shell.Quote(node)+" --allocated"),
			admin("only then stop the kubelet or the pods of "+driverText(snap, drivers)))
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
			text += " (DaemonSet " + english.QualifiedName(set) + ")"
		}
		texts = append(texts, text)
	}
	return english.JoinAnd(texts)
}
