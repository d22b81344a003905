// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func componentChecks() []Check {
	return []Check{{
		Code: "DRA1008", Title: "feature gate that differs between components", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourcePods, snapshot.ResourceMetrics},
		About:  "A feature gate of Dynamic Resource Allocation is on in the API server and off in kube-scheduler or kube-controller-manager, or the other way round. What it is for is stored and does nothing, or is never stored. The gates of the API server are in its metrics. Those of the others are in the arguments of their pods, where these run in the namespace kube-system with the label component, as kubeadm has it; what they do not set has the default of the release in the tag of the image. Elsewhere nothing is known, and nothing is found. Kubelets are not asked: that takes the right to get nodes/proxy, which lets one run commands in every pod.",
		Advice: "Give the gate the same value in the arguments of all components.",
		find:   findDifferingGates,
	}}
}

// readBy lists which gates that differ matter to a component, with what each is for:
// those that pkg/scheduler, and pkg/controller and pkg/quota, of Kubernetes v1.37.1
// read.
func readBy(component string) map[string]string {
	const groups, rules, taints, extended = "claims of PodGroups", "DeviceTaintRules", "taints of devices", "extended resources that DeviceClasses serve"
	if component == snapshot.ComponentControllerManager {
		return map[string]string{
			"DRAAdminAccess":            "admin access of generated claims",
			"DRADeviceTaintRules":       rules,
			"DRADeviceTaints":           taints + ": it evicts nobody",
			"DRAExtendedResource":       "quotas of " + extended,
			"DRAPrioritizedList":        "requests with alternatives (firstAvailable) of generated claims",
			"DRAResourcePoolStatus":     "ResourcePoolStatusRequests",
			"DRAWorkloadResourceClaims": groups,
			"DynamicResourceAllocation": "claims at all",
		}
	}
	return map[string]string{
		"DRAAdminAccess":               "admin access",
		"DRAConsumableCapacity":        "devices that several claims share by capacity",
		"DRADerivedAttributes":         "derived attributes of requests",
		"DRADeviceBindingConditions":   "binding conditions of devices",
		"DRADeviceCompatibilityGroups": "compatibility groups of devices",
		"DRADeviceTaintRules":          rules,
		"DRADeviceTaints":              taints,
		"DRAExtendedResource":          extended,
		"DRAListTypeAttributes":        "attributes with lists of values",
		"DRANodeAllocatableResources":  "node allocatable resources of devices",
		"DRAOptionalNodeOperations":    "devices without node operations",
		"DRAPartitionableDevices":      "devices that consume shared counters",
		"DRAPrioritizedList":           "requests with alternatives (firstAvailable)",
		"DRAWorkloadResourceClaims":    groups,
		"DynamicResourceAllocation":    "claims at all",
	}
}

// findDifferingGates compares the gates of each component with those of the API server.
func findDifferingGates(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	at := map[string]int{}
	for _, pod := range in.snap.Pods {
		component, ok := snapshot.ComponentOf(pod)
		if !ok || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		features := readBy(component.Name)
		for _, gate := range snapshot.KnownGates() {
			server := in.snap.Gates[gate]
			enabled, source, known := gateOf(&component, gate)
			if features[gate] == "" || server.Source != snapshot.GateFromMetrics || !known || enabled == server.Enabled {
				continue
			}
			key := component.Name + " " + gate
			if _, exists := at[key]; !exists {
				at[key] = len(found)
				found = append(found, differingGate(component.Name, gate, features[gate], enabled))
			}
			f := &found[at[key]]
			f.Objects = append(f.Objects, object(api.KindPod, pod))
			f.Evidence = append(f.Evidence, api.Evidence{Object: object(api.KindPod, pod), Path: "--feature-gates", Found: source, Required: gate + "=" + strconv.FormatBool(server.Enabled)})
		}
	}
	return found, nil
}

func differingGate(component, gate, feature string, enabled bool) api.Finding {
	message := fmt.Sprintf("feature gate %s is on in the API server and off in %s, which does not support %s", gate, component, feature)
	if enabled {
		message = fmt.Sprintf("feature gate %s is off in the API server and on in %s: the API server drops or refuses what it is for (%s)", gate, component, feature)
	}
	return api.Finding{Message: message, Remedy: &api.NextStep{Actor: api.ActorAdmin, Text: "give " + gate + " the same value in --feature-gates of all components"}}
}

// gateOf is the setting of a gate in a component, and where it comes from. It is not
// known where the release is not, or where all gates of a stage are set.
func gateOf(c *snapshot.Component, gate string) (enabled bool, source string, known bool) {
	if enabled, set := c.Gates[gate]; set {
		return enabled, gate + "=" + strconv.FormatBool(enabled), true
	}
	if _, all := c.Gates["AllAlpha"]; all || c.Version == "" {
		return false, "", false
	}
	if _, all := c.Gates["AllBeta"]; all {
		return false, "", false
	}
	of := &snapshot.Snapshot{ServerVersion: c.Version, Gates: map[string]snapshot.Gate{}}
	for name, enabled := range c.Gates {
		of.Gates[name] = snapshot.Gate{Enabled: enabled}
	}
	enabled = of.Gate(gate).Enabled
	return enabled, fmt.Sprintf("not set: %t by default in %s", enabled, c.Version), true
}
