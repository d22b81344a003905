// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// labelDeploy is the label with which the GPU Operator chooses the nodes of its device plugin. It
// leaves a value as it is that somebody set (controllers/state_manager.go of NVIDIA/gpu-operator).
const labelDeploy = "nvidia.com/gpu.deploy.device-plugin"

// labelDriver is the label with which the GPU Operator chooses the nodes of the DRA driver, where a GPUCluster
// has it. It leaves values as they are (controllers/nodelabeling_controller.go there).
const labelDriver = "nvidia.com/gpu.deploy.dra-driver"

// labelCount is the label of feature discovery with the number of GPUs of a node.
const labelCount = "nvidia.com/gpu.count"

// switching is a node whose hardware goes from device plugins to a driver.
type switching struct {
	node      *corev1.Node
	resources []corev1.ResourceName
	driver    string
	// like is the node whose devices the driver is expected to publish for this one, too, and devices
	// counts them; like is empty if the driver publishes them already, or if none is known.
	like    string
	devices int
	// offered counts what the device plugin offers, in devices.
	offered int
	// users are the pods with devices, and bare is true if nothing creates one of them again.
	users []*corev1.Pod
	bare  bool
}

// switches finds the nodes to switch.
type switches struct {
	*cluster.Cluster
	classes *classes
	plugins *plugins
}

// find returns the nodes to switch, those with few users first, and says of others why they stay, such
// as the nodes of workloads that cannot move.
func (ss *switches) find(m *api.Migration, cannotMove []*group) []switching {
	stuck := map[string]string{}
	for _, pod := range ss.Snapshot.Pods {
		if snapshot.StaysOnDrain(pod) && pod.Spec.NodeName != "" && !snapshot.Finished(pod) && len(cluster.ExtendedResources(pod)) > 0 {
			stuck[pod.Spec.NodeName] = fmt.Sprintf("pods of %s %s have devices of the plugin, and a drain leaves them there: switch by hand", pod.Namespace, whatif.Owner(pod).Argument())
		}
	}
	for _, g := range cannotMove {
		for _, pod := range g.pods {
			if pod.Spec.NodeName != "" && stuck[pod.Spec.NodeName] == "" {
				stuck[pod.Spec.NodeName] = fmt.Sprintf("%s %s cannot move yet", g.object.Namespace, g.object.Argument())
			}
		}
	}
	var list []switching
	for _, node := range ss.Snapshot.Nodes {
		if len(ss.plugins.offers(node)) == 0 {
			continue
		}
		s, reason := ss.switchOf(node)
		reason = cmp.Or(reason, stuck[node.Name])
		switch {
		case len(s.resources) == 0 && reason == "":
		case reason != "":
			m.Kept = append(m.Kept, api.MigrationKept{Node: node.Name, Reason: reason})
		default:
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b switching) int {
		// Hardware that is offered twice comes first.
		return cmp.Or(cmp.Compare(twice(b), twice(a)), cmp.Compare(len(a.users), len(b.users)))
	})
	return list
}

// twice returns 1 for a node on which plugin and driver offer the same.
func twice(s switching) int {
	if s.like == "" && s.devices > 0 {
		return 1
	}
	return 0
}

// switchOf returns how a node is switched, or why it cannot be. It has no resources if there is
// nothing to switch.
func (ss *switches) switchOf(node *corev1.Node) (s switching, reason string) {
	s.node = node
	var unknown []string
	for _, offer := range ss.plugins.offers(node) {
		driver, why := ss.classes.driverFor(offer.Resource)
		switch {
		case offer.Sharing != "":
			return s, fmt.Sprintf("it divides %s (%s)", offer.Resource, offer.Sharing)
		case isMIG(offer.Resource):
			return s, "its MIG devices have to be configured for the driver"
		case driver == "":
			unknown = append(unknown, why)
			continue
		case s.driver != "" && s.driver != driver:
			return s, fmt.Sprintf("drivers %s and %s have its hardware: switch it by hand", s.driver, driver)
		}
		s.driver = driver
		s.resources = append(s.resources, corev1.ResourceName(offer.Resource))
		s.offered += int(offer.Allocatable)
	}
	if len(s.resources) == 0 {
		return s, strings.Join(unknown, "; ")
	}
	for _, pod := range ss.Snapshot.Pods {
		if leaves(ss.Cluster, pod, node.Name) {
			s.users = append(s.users, pod)
			s.bare = s.bare || metav1.GetControllerOfNoCopy(pod) == nil
		}
	}
	if s.devices = publishedOn(ss.Snapshot, node.Name, s.driver); s.devices > 0 {
		return s, ""
	}
	s.devices = s.offered
	if count, err := strconv.Atoi(node.Labels[labelCount]); err == nil && s.driver == driverGPU {
		s.devices = count
	}
	if s.like = nodeLike(ss.Snapshot, node, s.driver); s.like == "" {
		s.devices = 0
		return s, ""
	}
	s.devices = min(s.devices, publishedOn(ss.Snapshot, s.like, s.driver))
	return s, ""
}

// leaves reports whether a pod with devices leaves its node when that is drained: pods of DaemonSets
// and of the node itself stay.
func leaves(c *cluster.Cluster, pod *corev1.Pod, node string) bool {
	return pod.Spec.NodeName == node && !snapshot.Finished(pod) && !snapshot.StaysOnDrain(pod) && (len(c.Claims.OfPod(pod)) > 0 || len(cluster.ExtendedResources(pod)) > 0)
}

// publishedOn counts the devices of a driver that only one node can use.
func publishedOn(snap *snapshot.Snapshot, node, driver string) int {
	count := 0
	for _, slice := range snap.Slices {
		if slice.Spec.Driver == driver && ptr.Deref(slice.Spec.NodeName, "") == node {
			count += len(slice.Spec.Devices)
		}
	}
	return count
}

// nodeLike returns a node with devices of a driver whose hardware is most like another node's: with
// the same product, as labels tell, or of the same type of instance; empty if there is none. A node
// with most devices is taken.
func nodeLike(snap *snapshot.Snapshot, node *corev1.Node, driver string) string {
	best, most := "", 0
	for _, other := range snap.Nodes {
		count := publishedOn(snap, other.Name, driver)
		if count == 0 {
			continue
		}
		same := true
		for _, label := range []string{labelProduct, corev1.LabelInstanceTypeStable} {
			if value := node.Labels[label]; value != "" && other.Labels[label] != "" {
				same = same && other.Labels[label] == value
			}
		}
		if same && count > most {
			best, most = other.Name, count
		}
	}
	return best
}

// switchCommands returns the commands that take the device plugin from a node. Before the plugin has
// gone, the node must not be uncordoned: the pods would come back.
func switchCommands(s *switching) []string {
	commands := []string{shell.Drain(s.node.Name, s.bare), pluginCommand(s, "false", "no longer")}
	if s.like != "" || s.devices == 0 {
		commands = append(commands, driverCommand(s, "true", ""))
	}
	uncordon := ""
	for _, resource := range s.resources {
		path := "jsonpath={.status.allocatable." + strings.ReplaceAll(string(resource), ".", `\.`) + "}=0"
		uncordon += "kubectl wait " + shell.Quote("--for="+path) + " " + shell.Quote("node/"+s.node.Name) + " --timeout=15m && "
	}
	return append(commands, uncordon+"kubectl uncordon "+shell.Node(s.node.Name))
}

// backCommands returns the commands that give the device plugin its node back.
func backCommands(s *switching) []string {
	commands := []string{shell.Drain(s.node.Name, false)}
	if s.like != "" || s.devices == 0 {
		commands = append(commands, driverCommand(s, s.node.Labels[labelDriver], " no longer"))
	}
	return append(commands, pluginCommand(s, cmp.Or(s.node.Labels[labelDeploy], "true"), "again"), "kubectl uncordon "+shell.Node(s.node.Name))
}

// undoCommands returns the commands that take moved workloads back.
func undoCommands(moves []api.ObjectRef) []string {
	var commands []string
	for _, o := range moves {
		if o.Kind == snapshot.KindDeployment || o.Kind == snapshot.KindStatefulSet {
			commands = append(commands, "kubectl rollout undo "+shell.KubectlObjects(strings.ToLower(o.Kind), o.Namespace, o.Name))
		} else {
			commands = append(commands, fmt.Sprintf("# let %s %s ask for extended resources again", o.Namespace, o.Argument()))
		}
	}
	return commands
}

// pluginCommand returns the command that sets the label of the GPU Operator for its device plugin.
// Other device plugins have no such label.
func pluginCommand(s *switching, value, change string) string {
	if s.node.Labels[labelDeploy] != "" {
		return labelCommand(s.node.Name, labelDeploy, value)
	}
	return fmt.Sprintf("# let the DaemonSet of the device plugin for %s select node %s %s", english.JoinAnd(texts(s.resources)), s.node.Name, change)
}

// driverCommand returns the command that sets the label of the GPU Operator for NVIDIA's driver. Others, and
// one that is installed without the operator, have no such label.
func driverCommand(s *switching, value, change string) string {
	if s.driver == driverGPU && s.node.Labels[labelDriver] != "" {
		return labelCommand(s.node.Name, labelDriver, value)
	}
	return fmt.Sprintf("# let the DaemonSet of driver %s select node %s%s", s.driver, s.node.Name, change)
}

func labelCommand(node, label, value string) string {
	return "kubectl label node " + shell.Node(node) + " " + shell.Quote(label+"="+value) + " --overwrite"
}

func texts(resources []corev1.ResourceName) []string {
	list := make([]string, 0, len(resources))
	for _, resource := range resources {
		list = append(list, string(resource))
	}
	return list
}
