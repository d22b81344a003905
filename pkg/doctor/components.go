// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// CodeGates is the code of the check that compares feature gates.
const CodeGates = "DRA1008"

func componentChecks() []Check {
	return []Check{{
		Code: CodeGates, Title: "feature gate that differs between components", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourcePods, snapshot.ResourceMetrics},
		About:  "A feature gate of Dynamic Resource Allocation is on in the API server and off in kube-scheduler, kube-controller-manager or a kubelet, or the other way round. What it is for is stored and does nothing, or is never stored. The gates of the API server are in its metrics. Those of the others are in the arguments of their pods, where these run in the namespace kube-system with the label component, as kubeadm has it; what they do not set has the default of the release in the tag of the image. Elsewhere nothing is known, and nothing is found. Kubelets are asked with --kubelets alone: that takes the right to get nodes/proxy, which lets one run commands in every pod.",
		Advice: "Give the gate the same value in the arguments of all components.",
		find:   findDifferingGates,
	}, {
		Code: "DRA1009", Title: "component outside of the version skew policy", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourcePods},
		About:  "kube-scheduler or kube-controller-manager is newer than the API server, or more than one minor release older. Kubernetes supports neither: the component may use fields that the API server drops, or not know those that are stored. Their releases are in the tags of their images, where they run in pods as with kubeadm. In the hours of an update this is normal.",
		Advice: "Update the API servers first, then the other components.",
		find:   findComponentSkew,
	}}
}

// readBy lists the gates that matter to a component if they differ, with their purpose: the
// gates that pkg/scheduler, pkg/controller and pkg/quota, and pkg/kubelet of Kubernetes
// v1.37.1 read.
func readBy(component string) map[string]string {
	const groups, rules, taints, extended = "claims of PodGroups", "DeviceTaintRules", "taints of devices", "extended resources that DeviceClasses serve"
	if component == componentKubelet {
		return map[string]string{
			"DRAExtendedResource":         extended,
			"DRANodeAllocatableResources": "node allocatable resources of devices",
			"DRAOptionalNodeOperations":   "devices without node operations",
			"DRAWorkloadResourceClaims":   groups,
			"DynamicResourceAllocation":   "claims at all",
			"ResourceHealthStatus":        "the health of devices in the status of pods",
		}
	}
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

// components calls a function for each running pod of a component.
func (in *cluster) components(each func(pod *corev1.Pod, component snapshot.Component)) {
	for _, pod := range in.cluster.Snapshot.Pods {
		if component, ok := snapshot.ComponentOf(pod); ok && !snapshot.Finished(pod) {
			each(pod, component)
		}
	}
}

// findComponentSkew compares the releases of components with the API server's.
func findComponentSkew(_ context.Context, in *cluster) ([]api.Finding, error) {
	server, known := snapshot.MinorVersion(in.cluster.Snapshot.BinaryVersion())
	if !known {
		return nil, nil
	}
	var found []api.Finding
	in.components(func(pod *corev1.Pod, component snapshot.Component) {
		minor, known := snapshot.MinorVersion(component.Version)
		if !known || minor == server || minor == server-1 {
			return
		}
		how := "newer than"
		if minor < server {
			how = "more than one minor release older than"
		}
		found = append(found, api.Finding{
			Objects:  []api.ObjectRef{api.RefTo(api.KindPod, pod)},
			Message:  fmt.Sprintf("%s %s is %s the API server (%s)", component.Name, component.Version, how, in.cluster.Snapshot.BinaryVersion()),
			Evidence: []api.Evidence{{Object: api.RefTo(api.KindPod, pod), Path: "spec.containers[*].image", Found: component.Version, Required: fmt.Sprintf("1.%d or 1.%d", server-1, server)}},
			Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: fmt.Sprintf("run %s of 1.%d or 1.%d", component.Name, server-1, server)},
		})
	})
	return found, nil
}

// maxKubelets limits how many kubelets are asked.
const maxKubelets = 100

// KubeletNodes lists the nodes with devices whose kubelets to ask, evenly spread if there
// are many.
func KubeletNodes(snap *snapshot.Snapshot) []string {
	named := map[string]bool{}
	for _, slice := range snap.Slices {
		if name := ptr.Deref(slice.Spec.NodeName, ""); snap.Node(name) != nil {
			named[name] = true
		}
	}
	names := slices.SortedFunc(maps.Keys(named), english.CompareNames)
	if len(names) <= maxKubelets {
		return names
	}
	var chosen []string
	for i := range maxKubelets {
		chosen = append(chosen, names[i*len(names)/maxKubelets])
	}
	return chosen
}

// componentKubelet stands for all kubelets.
const componentKubelet = "kubelet"

// findDifferingGates compares the gates of each component with the API server's.
func findDifferingGates(_ context.Context, in *cluster) ([]api.Finding, error) {
	d := differences{in: in, at: map[string]int{}}
	in.components(func(pod *corev1.Pod, component snapshot.Component) {
		for gate, feature := range readBy(component.Name) {
			if enabled, source, known := gateOf(&component, gate); known {
				d.compare(component.Name, gate, feature, enabled, api.Evidence{Object: api.RefTo(api.KindPod, pod), Path: "--feature-gates", Found: source})
			}
		}
	})
	unknown := map[string]int{}
	for _, kubelet := range in.opts.Kubelets {
		if kubelet.Unknown != "" {
			unknown[kubelet.Unknown]++
			continue
		}
		for gate, feature := range readBy(componentKubelet) {
			enabled, known := kubelet.Gates[gate]
			source := gate + "=" + strconv.FormatBool(enabled)
			if !known {
				source = "not known to its release"
			}
			d.compare(componentKubelet, gate, feature, enabled, api.Evidence{Object: api.Ref(api.KindNode, "", kubelet.Node), Path: "metrics of the kubelet", Found: source})
		}
	}
	found := d.findings()
	for _, reason := range slices.Sorted(maps.Keys(unknown)) {
		found = append(found, api.Finding{Severity: api.SeverityUnknown, Message: fmt.Sprintf("not checked for the kubelet of %s: %s", english.Count(unknown[reason], "node"), reason)})
	}
	return found, nil
}

// differences collects the settings that differ from the API server's, by component and
// gate.
type differences struct {
	in   *cluster
	list []difference
	at   map[string]int
}

type difference struct {
	component, gate, feature string
	enabled                  bool
	evidence                 []api.Evidence
}

// compare records the setting of a gate in a component if it differs from the API server's.
func (d *differences) compare(component, gate, feature string, enabled bool, source api.Evidence) {
	server := d.in.cluster.Snapshot.Gates[gate]
	if server.Source != snapshot.GateFromMetrics || enabled == server.Enabled {
		return
	}
	key := component + " " + gate
	if _, exists := d.at[key]; !exists {
		d.at[key] = len(d.list)
		d.list = append(d.list, difference{component: component, gate: gate, feature: feature, enabled: enabled})
	}
	source.Required = gate + "=" + strconv.FormatBool(server.Enabled)
	at := &d.list[d.at[key]]
	at.evidence = append(at.evidence, source)
}

func (d *differences) findings() []api.Finding {
	slices.SortFunc(d.list, func(a, b difference) int {
		return cmp.Or(cmp.Compare(a.component, b.component), cmp.Compare(a.gate, b.gate))
	})
	var found []api.Finding
	for _, at := range d.list {
		f := api.Finding{Evidence: at.evidence, Remedy: &api.NextStep{Actor: api.ActorAdmin, Text: "give " + at.gate + " the same value in the feature gates of all components"}}
		for _, e := range at.evidence {
			f.Objects = append(f.Objects, e.Object)
		}
		component := at.component
		if component == componentKubelet {
			component = "the kubelet of " + english.Count(len(f.Objects), "node")
		}
		f.Message = fmt.Sprintf("feature gate %s is on in the API server and off in %s, which does not support %s", at.gate, component, at.feature)
		if at.enabled {
			f.Message = fmt.Sprintf("feature gate %s is off in the API server and on in %s: the API server drops or refuses what it is for (%s)", at.gate, component, at.feature)
		}
		found = append(found, f)
	}
	return found
}

// gateOf returns the setting of a gate in a component, and its source. It is not known if
// the release is not, or if all gates of a stage are set.
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
	of := snapshot.Release{ServerVersion: c.Version, Gates: map[string]snapshot.Gate{}}
	for name, enabled := range c.Gates {
		of.Gates[name] = snapshot.Gate{Enabled: enabled}
	}
	enabled = of.Gate(gate).Enabled
	return enabled, fmt.Sprintf("not set: %t by default in %s", enabled, c.Version), true
}

func controllerCheck() Check {
	return Check{
		Code: "DRA1010", Title: "dra-controller without a ready pod", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourcePods},
		About:  "dra-controller, which exports metrics about devices, has pods in the cluster, and none of them is ready: there are no metrics, no alerts and no events, so that nothing tells of what goes wrong from now on. It is known by the labels app.kubernetes.io/name=dra-controller and app.kubernetes.io/part-of=kubectl-dra, as in config. Nothing is found in a cluster that does not run it.",
		Advice: "Read the log of the pods, and what the events about them say.",
		find:   findStoppedController,
	}
}

// findStoppedController finds pods of dra-controller if none of them is ready.
func findStoppedController(_ context.Context, in *cluster) ([]api.Finding, error) {
	f := api.Finding{}
	var first, namespace string
	for _, pod := range in.cluster.Snapshot.Pods {
		if pod.Labels["app.kubernetes.io/name"] != "dra-controller" || pod.Labels["app.kubernetes.io/part-of"] != "kubectl-dra" ||
			snapshot.Finished(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		if lifecycle.Ready(pod) {
			return nil, nil
		}
		trouble, evidence := lifecycle.PodTrouble(pod)
		if len(f.Objects) == 0 {
			first, namespace = trouble, pod.Namespace
		}
		f.Objects, f.Evidence = append(f.Objects, api.RefTo(api.KindPod, pod)), append(f.Evidence, evidence)
	}
	if len(f.Objects) == 0 {
		return nil, nil
	}
	f.Message = fmt.Sprintf("dra-controller has %s in namespace %s, and none is ready: %s; there are no metrics and no alerts", english.Count(len(f.Objects), "pod"), namespace, first)
	f.Remedy = &api.NextStep{
		Actor: api.ActorAdmin, Text: "read the log of the pods and the events about them",
		Commands: []string{
			fmt.Sprintf("kubectl describe pods -n %s -l app.kubernetes.io/name=dra-controller", namespace),
			fmt.Sprintf("kubectl logs -n %s -l app.kubernetes.io/name=dra-controller", namespace),
		},
	}
	return []api.Finding{f}, nil
}
