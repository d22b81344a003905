// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// NodeList lists all nodes by name, also nodes that do not exist and have devices.
func (v *Inventory) NodeList(ctx context.Context) ([]api.ListedNode, error) {
	l := nodeList{Inventory: v, byName: map[string]*api.ListedNode{}}
	for _, node := range v.Nodes() {
		if node.Name != "" {
			l.byName[node.Name] = &api.ListedNode{Name: node.Name, State: node.State, Cordoned: node.Cordoned, Taints: node.Taints, Devices: node.Devices}
		}
	}
	for _, node := range v.cluster.Snapshot.Nodes {
		if l.byName[node.Name] == nil {
			l.byName[node.Name] = &api.ListedNode{
				Name: node.Name, State: nodeState(v.cluster, node.Name), Cordoned: node.Spec.Unschedulable, Taints: nodeTaints(node),
			}
		}
		l.byName[node.Name].Labels = node.Labels
	}
	if err := l.addClasses(ctx); err != nil {
		return nil, err
	}
	for _, pod := range v.Pods() {
		if node := l.byName[pod.Spec.NodeName]; node != nil && !snapshot.Finished(pod.Pod) && len(pod.Claims) > 0 {
			node.Pods++
		}
	}
	l.addDrivers()
	l.addProblems()
	list := make([]api.ListedNode, 0, len(l.byName))
	for _, name := range slices.Sorted(maps.Keys(l.byName)) {
		node := l.byName[name]
		node.TypeMeta = typeMeta(api.KindNode)
		slices.SortStableFunc(node.Drivers, func(a, b api.NodeDriver) int { return cmp.Compare(a.Driver, b.Driver) })
		list = append(list, *node)
	}
	return list, nil
}

// Elsewhere counts the devices that are not for one node alone.
func (v *Inventory) Elsewhere() int {
	count := 0
	all := v.cluster.Pools.Devices()
	for i := range all {
		if name, _ := deviceScope(&all[i]); name == "" {
			count++
		}
	}
	return count
}

// nodeList is a list of nodes that is being made.
type nodeList struct {
	*Inventory
	byName map[string]*api.ListedNode
}

// addClasses counts the devices of each class.
func (l *nodeList) addClasses(ctx context.Context) error {
	evaluator := l.cluster.Gates.Selectors()
	for _, class := range l.cluster.Snapshot.Classes {
		chosen, err := choose(ctx, l.cluster, evaluator, class.Spec.Selectors)
		if err != nil {
			return err
		}
		for _, d := range chosen.devices {
			name, _ := deviceScope(d)
			node := l.byName[name]
			if node == nil {
				continue
			}
			if n := len(node.Classes); n == 0 || node.Classes[n-1].Class != class.Name {
				node.Classes = append(node.Classes, api.NodeClass{Class: class.Name})
			}
			counts := &node.Classes[len(node.Classes)-1].Devices
			if state := l.counter.countDevice(counts, d); state == api.DeviceStateFree {
				counts.FreeIsUpperBound = l.notRead.uncertain(state)
			}
		}
	}
	return nil
}

// driverOf returns a driver of a node, which may be a new one.
func driverOf(node *api.ListedNode, name string) *api.NodeDriver {
	at := slices.IndexFunc(node.Drivers, func(d api.NodeDriver) bool { return d.Driver == name })
	if at < 0 {
		at = len(node.Drivers)
		node.Drivers = append(node.Drivers, api.NodeDriver{Driver: name})
	}
	return &node.Drivers[at]
}

// addDrivers adds the drivers with slices, and drivers whose slices are missing.
func (l *nodeList) addDrivers() {
	all := l.cluster.Pools.Devices()
	for i := range all {
		d := &all[i]
		if name, _ := deviceScope(d); l.byName[name] != nil {
			driver := driverOf(l.byName[name], d.ID.Driver)
			driver.Devices++
			driver.Version = cmp.Or(driver.Version, driverVersion(d))
		}
	}
	published := map[string]map[string]bool{}
	for _, slice := range l.cluster.Snapshot.Slices {
		if published[slice.Spec.Driver] == nil {
			published[slice.Spec.Driver] = map[string]bool{}
		}
		if name := ptr.Deref(slice.Spec.NodeName, ""); name != "" {
			published[slice.Spec.Driver][name] = true
		}
	}
	for _, driver := range slices.Sorted(maps.Keys(published)) {
		l.addMissing(driver, published[driver])
	}
}

// addMissing adds a driver to nodes where its pod runs, and the problem of nodes for which it
// publishes nothing although its pod is ready there, or although it publishes for most nodes
// with the same labels.
func (l *nodeList) addMissing(driver string, published map[string]bool) {
	if len(published) == 0 {
		return
	}
	for _, set := range lifecycle.DaemonSets(l.cluster.Snapshot, driver) {
		for _, pod := range lifecycle.Pods(l.cluster.Snapshot, set.Workload) {
			node := l.byName[pod.Spec.NodeName]
			switch {
			case node == nil:
			case published[node.Name]:
				found := driverOf(node, driver)
				found.Image = cmp.Or(found.Image, imageVersion(pod))
			case lifecycle.Ready(pod):
				driverOf(node, driver).Image = imageVersion(pod)
				addSlicesMissing(node, driver, api.RefTo(api.KindPod, pod), fmt.Sprintf("%s publishes nothing, and its pod %s/%s runs here", driver, pod.Namespace, pod.Name))
			}
		}
	}
	type group struct{ with, all int }
	groups := map[string]*group{}
	for _, node := range l.cluster.Snapshot.Nodes {
		key := kindOfNode(node)
		if groups[key] == nil {
			groups[key] = &group{}
		}
		groups[key].all++
		if published[node.Name] {
			groups[key].with++
		}
	}
	for _, node := range l.cluster.Snapshot.Nodes {
		key := kindOfNode(node)
		if g := groups[key]; key != "" && !published[node.Name] && g.with > 1 && 2*g.with > g.all {
			driverOf(l.byName[node.Name], driver)
			addSlicesMissing(l.byName[node.Name], driver, api.ObjectRef{}, fmt.Sprintf("%s publishes nothing, and does for %d of %d nodes with the same labels", driver, g.with, g.all))
		}
	}
}

// addSlicesMissing adds the problem that slices of a driver are missing, once.
func addSlicesMissing(node *api.ListedNode, driver string, pod api.ObjectRef, text string) {
	if !slices.ContainsFunc(node.Problems, func(p api.NodeProblem) bool { return p.Code == api.NodeSlicesMissing && p.Driver == driver }) {
		node.Problems = append(node.Problems, api.NodeProblem{Code: api.NodeSlicesMissing, Driver: driver, Pod: pod, Message: text})
	}
}

// kindOfNode returns the labels of a node that tell its kind: labels that are on all nodes, or
// that say where a node is, do not.
func kindOfNode(node *corev1.Node) string {
	var labels []string
	for key, value := range node.Labels {
		if value == node.Name || slices.ContainsFunc([]string{
			corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelHostname, "beta.kubernetes.io/", "node-role.kubernetes.io/", "topology.", "failure-domain.",
		}, func(start string) bool { return strings.HasPrefix(key, start) }) {
			continue
		}
		labels = append(labels, key+"="+value)
	}
	slices.Sort(labels)
	return strings.Join(labels, ",")
}

// driverVersion returns the attribute that drivers set to their version.
func driverVersion(d *cluster.Device) string {
	for _, name := range []resourceapi.QualifiedName{"driverVersion", resourceapi.QualifiedName(d.ID.Driver + "/driverVersion")} {
		if value, ok := d.Attributes[name]; ok {
			return selector.Plain(value)
		}
	}
	return ""
}

// imageVersion returns the tag of the image of the first container of a pod.
func imageVersion(pod *corev1.Pod) string {
	if len(pod.Spec.Containers) == 0 {
		return ""
	}
	image, _, _ := strings.Cut(pod.Spec.Containers[0].Image, "@")
	name := image[strings.LastIndexByte(image, '/')+1:]
	_, tag, _ := strings.Cut(name, ":")
	return tag
}

// addProblems adds the problems of the devices of nodes.
func (l *nodeList) addProblems() {
	pools := l.Usage()
	for _, pool := range broken(pools) {
		if node := l.byName[pool.Node]; node != nil {
			node.Problems = append(node.Problems, api.NodeProblem{
				Code: api.NodePoolBroken, Driver: pool.Driver, Pool: pool.Name, Count: pool.Devices.Total + pool.Devices.Gone,
				Message: fmt.Sprintf("pool of %s is %s: %s", pool.Driver, pool.State, pool.Reason),
			})
		}
	}
	for _, node := range l.byName {
		l.addClosed(node)
		c := &node.Devices
		if n := c.Tainted + c.TaintedInUse; n > 0 {
			node.Problems = append(node.Problems, api.NodeProblem{Code: api.NodeDevicesTainted, Count: n, Message: devices(n) + " tainted"})
		}
		if c.Unhealthy > 0 {
			node.Problems = append(node.Problems, api.NodeProblem{Code: api.NodeDevicesUnhealthy, Count: c.Unhealthy, Message: devices(c.Unhealthy) + " unhealthy"})
		}
	}
}

// addClosed adds the problems of a node with devices that takes no pods: it is cordoned, or not ready.
func (l *nodeList) addClosed(node *api.ListedNode) {
	stored := l.cluster.Snapshot.Node(node.Name)
	if stored == nil || node.Devices.Total == 0 {
		return
	}
	add := func(code api.NodeProblemCode, condition *cluster.NodeCondition) {
		if condition == nil {
			return
		}
		p := api.NodeProblem{Code: code, Count: node.Devices.Free, Message: condition.Reason}
		if !condition.Since.IsZero() {
			p.Since = &metav1.Time{Time: condition.Since}
			p.Message += " for " + duration.HumanDuration(l.cluster.Snapshot.Now().Sub(condition.Since))
		}
		if n := node.Devices.Free; n > 0 {
			p.Message += ", " + devices(n) + " idle"
		}
		node.Problems = append(node.Problems, p)
	}
	add(api.NodeIsCordoned, cluster.Cordoned(stored))
	add(api.NodeIsNotReady, cluster.NotReady(stored))
}
