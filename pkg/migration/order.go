// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

const (
	// stepsMost limits in how many steps nodes are switched.
	stepsMost = 10
	// placeMost limits how many pods the allocator places for the order of steps.
	placeMost = 10000
	// waitingMost limits how many pods a step names.
	waitingMost = 10
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

// sequence is a cluster on its way from device plugins to drivers.
type sequence struct {
	*finder
	state *cluster.Cluster
	// waiting are pods that left their node and have no other one.
	waiting []*corev1.Pod
	// moves are the workloads that still have to move.
	moves []*moving
	// placed counts the pods that were tried to be placed.
	placed int
}

// moving is a workload that asks by claims in the future.
type moving struct {
	object api.ObjectRef
	editor *editor
	group  *group
}

// errEnough ends a sequence that takes too long.
var errEnough = errors.New("too many pods")

// order says in which order nodes and workloads change, and which nodes stay as they are. Nodes with
// few users come first. The allocator places all pods that leave a node, and a workload moves as soon
// as all of its pods fit.
func (f *finder) order(ctx context.Context, m *api.Migration) error {
	if gap := f.Snapshot.PlacementGap(); gap != nil {
		m.Undecided = "the order is not decided: " + gap.Reason
		return nil
	}
	list := f.switches(m)
	s := &sequence{finder: f, state: f.Cluster}
	for _, w := range f.moving {
		// The pods of a DaemonSet belong to their nodes.
		if w.object.Kind == snapshot.KindDaemonSet {
			m.NotMoved = append(m.NotMoved, w.object)
		} else {
			s.moves = append(s.moves, w)
		}
	}
	for _, batch := range batches(list) {
		step, err := s.step(ctx, batch)
		var undecided *allocator.UndecidedError
		switch {
		case errors.As(err, &undecided):
			m.Undecided = fmt.Sprintf("the steps from the %s on are not decided: %s", ordinal(len(m.Steps)+1), english.OneLine(err))
			return nil
		case errors.Is(err, errEnough):
			m.Undecided = fmt.Sprintf("the steps from the %s on are not decided: more than %d pods would have to be placed", ordinal(len(m.Steps)+1), placeMost)
			return nil
		case err != nil:
			return err
		}
		m.Steps = append(m.Steps, step)
		if step.Devices == 0 {
			m.Undecided = fmt.Sprintf("what %s will publish is not known, as it has no devices yet: take this step on one node, and ask again", step.Driver)
			return nil
		}
	}
	for _, w := range s.moves {
		m.NotMoved = append(m.NotMoved, w.object)
	}
	if len(m.Steps) == 0 {
		m.NotMoved = nil
	}
	return nil
}

func ordinal(n int) string {
	return strconv.Itoa(n) + map[int]string{1: "st", 2: "nd", 3: "rd"}[n] + map[bool]string{true: "th"}[n > 3]
}

// switches finds the nodes to switch, those with few users first, and says of others why they stay.
func (f *finder) switches(m *api.Migration) []switching {
	stuck := map[string]string{}
	for _, pod := range f.Snapshot.Pods {
		if snapshot.StaysOnDrain(pod) && pod.Spec.NodeName != "" && !snapshot.Finished(pod) && len(cluster.ExtendedResources(pod)) > 0 {
			stuck[pod.Spec.NodeName] = fmt.Sprintf("pods of %s %s have devices of the plugin, and a drain leaves them there: switch by hand", pod.Namespace, whatif.Owner(pod).Argument())
		}
	}
	for _, g := range f.stuck {
		for _, pod := range g.pods {
			if pod.Spec.NodeName != "" && stuck[pod.Spec.NodeName] == "" {
				stuck[pod.Spec.NodeName] = fmt.Sprintf("%s %s cannot move yet", g.object.Namespace, g.object.Argument())
			}
		}
	}
	var list []switching
	for _, node := range f.Snapshot.Nodes {
		if len(f.offers(node)) == 0 {
			continue
		}
		s, reason := f.switchOf(node)
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
func (f *finder) switchOf(node *corev1.Node) (s switching, reason string) {
	s.node = node
	var unknown []string
	for _, offer := range f.offers(node) {
		driver, why := f.driverFor(offer.Resource)
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
	for _, pod := range f.Snapshot.Pods {
		if f.leaves(pod, node.Name) {
			s.users = append(s.users, pod)
			s.bare = s.bare || metav1.GetControllerOfNoCopy(pod) == nil
		}
	}
	if s.devices = f.publishedOn(node.Name, s.driver); s.devices > 0 {
		return s, ""
	}
	s.devices = s.offered
	if count, err := strconv.Atoi(node.Labels[labelCount]); err == nil && s.driver == driverGPU {
		s.devices = count
	}
	if s.like = f.nodeLike(node, s.driver); s.like == "" {
		s.devices = 0
		return s, ""
	}
	s.devices = min(s.devices, f.publishedOn(s.like, s.driver))
	return s, ""
}

// leaves reports whether a pod with devices leaves its node when that is drained: pods of DaemonSets
// and of the node itself stay.
func (f *finder) leaves(pod *corev1.Pod, node string) bool {
	return pod.Spec.NodeName == node && !snapshot.Finished(pod) && !snapshot.StaysOnDrain(pod) && (len(f.Claims.OfPod(pod)) > 0 || len(cluster.ExtendedResources(pod)) > 0)
}

// publishedOn counts the devices of a driver that only one node can use.
func (f *finder) publishedOn(node, driver string) int {
	count := 0
	for _, slice := range f.Snapshot.Slices {
		if slice.Spec.Driver == driver && ptr.Deref(slice.Spec.NodeName, "") == node {
			count += len(slice.Spec.Devices)
		}
	}
	return count
}

// nodeLike returns a node with devices of a driver whose hardware is most like another node's: with
// the same product, as labels tell, or of the same type of instance; empty if there is none. A node
// with most devices is taken.
func (f *finder) nodeLike(node *corev1.Node, driver string) string {
	best, most := "", 0
	for _, other := range f.Snapshot.Nodes {
		count := f.publishedOn(other.Name, driver)
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

// batches divides nodes into steps: of nodes that are switched in the same way.
func batches(list []switching) [][]switching {
	size := (len(list) + stepsMost - 1) / stepsMost
	var steps [][]switching
	for _, s := range list {
		last := len(steps) - 1
		if last < 0 || len(steps[last]) >= size || !sameSwitch(&steps[last][0], &s) {
			steps = append(steps, nil)
			last++
		}
		steps[last] = append(steps[last], s)
	}
	return steps
}

func sameSwitch(a, b *switching) bool {
	return a.driver == b.driver && a.like == b.like && a.devices == b.devices && slices.Equal(a.resources, b.resources)
}

// step switches nodes, and moves the workloads that fit then.
func (s *sequence) step(ctx context.Context, batch []switching) (api.MigrationStep, error) {
	first := &batch[0]
	step := api.MigrationStep{Driver: first.driver, Devices: first.devices, Like: first.like, Offered: first.offered}
	for _, resource := range first.resources {
		step.Resources = append(step.Resources, string(resource))
	}
	for i := range batch {
		b := &batch[i]
		step.Nodes = append(step.Nodes, b.node.Name)
		step.Commands = append(step.Commands, switchCommands(b)...)
		step.Back = append(step.Back, backCommands(b)...)
	}
	leaving := s.clear(batch, &step)
	if err := s.place(ctx, leaving); err != nil {
		return step, err
	}
	if err := s.move(ctx, &step); err != nil {
		return step, err
	}
	step.Back = slices.Concat(undoCommands(step.Moves), step.Back)
	step.Waiting = len(s.waiting)
	for _, pod := range s.waiting[:min(len(s.waiting), waitingMost)] {
		step.WaitingPods = append(step.WaitingPods, api.RefTo(api.KindPod, pod))
	}
	return step, nil
}

// clear takes the users from nodes and switches these. It returns the pods that are created again.
func (s *sequence) clear(batch []switching, step *api.MigrationStep) []*corev1.Pod {
	var gone, again []*corev1.Pod
	nodes := map[string]*switching{}
	for i := range batch {
		nodes[batch[i].node.Name] = &batch[i]
	}
	for _, pod := range s.state.Snapshot.Pods {
		if nodes[pod.Spec.NodeName] == nil || !s.leaves(pod, pod.Spec.NodeName) {
			continue
		}
		if metav1.GetControllerOfNoCopy(pod) == nil {
			gone = append(gone, pod)
		} else {
			again = append(again, pod)
		}
	}
	step.Evicted, step.Deleted = len(again), len(gone)
	after := whatif.Evict(whatif.Delete(s.state.Snapshot, gone), again)
	after.Nodes = slices.Clone(after.Nodes)
	for i, node := range after.Nodes {
		b := nodes[node.Name]
		if b == nil {
			continue
		}
		switched := node.DeepCopy()
		for _, resource := range b.resources {
			delete(switched.Status.Allocatable, resource)
			delete(switched.Status.Capacity, resource)
		}
		after.Nodes[i] = switched
		if b.like != "" {
			after = whatif.PublishLike(after, b.driver, b.like, node.Name, b.devices)
		}
	}
	s.state = s.state.Amended(after)
	pods := make([]*corev1.Pod, 0, len(again))
	for _, pod := range again {
		pods = append(pods, s.state.Snapshot.Pod(pod.Namespace, pod.Name))
	}
	return pods
}

// place looks for nodes for pods that left theirs, after those that wait already.
func (s *sequence) place(ctx context.Context, pods []*corev1.Pod) error {
	queue := slices.Concat(s.waiting, pods)
	slices.SortStableFunc(queue, func(a, b *corev1.Pod) int {
		return cmp.Compare(ptr.Deref(b.Spec.Priority, 0), ptr.Deref(a.Spec.Priority, 0))
	})
	s.waiting = nil
	// Where one pod of a workload finds no node, the others find none either.
	nowhere := map[api.ObjectRef]bool{}
	for _, pod := range queue {
		owner := whatif.Owner(pod)
		owner.Namespace = pod.Namespace
		if owner.Name != "" && nowhere[owner] {
			s.waiting = append(s.waiting, pod)
			continue
		}
		after, err := s.on(ctx, s.state, pod)
		if err != nil {
			return err
		}
		if after == nil {
			// A pod with a volume of its own may find a node where another one finds none.
			s.waiting, nowhere[owner] = append(s.waiting, pod), !hasVolume(pod)
			continue
		}
		s.state = after
	}
	return nil
}

// hasVolume reports whether a pod uses a PersistentVolumeClaim.
func hasVolume(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

// on returns the cluster in which a pod has a node; nil if it finds none.
func (s *sequence) on(ctx context.Context, state *cluster.Cluster, pod *corev1.Pod) (*cluster.Cluster, error) {
	if s.placed++; s.placed > placeMost {
		return nil, errEnough
	}
	r, err := allocator.Place(ctx, state, pod, nil)
	switch {
	case err == nil && r == nil:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("place pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return state.Amended(whatif.Reserve(state.Snapshot, *r)), nil
}

// move moves the workloads whose pods all fit, beginning with few pods.
func (s *sequence) move(ctx context.Context, step *api.MigrationStep) error {
	slices.SortStableFunc(s.moves, func(a, b *moving) int { return cmp.Compare(len(a.group.pods), len(b.group.pods)) })
	left := s.moves[:0:0]
	// While workloads move, there is room for less and less: no more pods of a kind fit than before.
	fit := map[string]int{}
	for _, w := range s.moves {
		kind, err := w.editor.kind()
		if err != nil {
			return err
		}
		if most, known := fit[kind]; known && most < len(w.group.pods) {
			left = append(left, w)
			continue
		}
		after, placed, err := s.moved(ctx, w)
		if err != nil {
			return err
		}
		if after == nil {
			fit[kind] = placed
			left = append(left, w)
			continue
		}
		s.state = after
		s.waiting = slices.DeleteFunc(s.waiting, func(pod *corev1.Pod) bool {
			return slices.ContainsFunc(w.group.pods, func(was *corev1.Pod) bool { return was.Namespace == pod.Namespace && was.Name == pod.Name })
		})
		step.Moves = append(step.Moves, w.object)
	}
	s.moves = left
	if len(step.Moves) == 0 {
		return nil
	}
	// What their pods had is free.
	return s.place(ctx, nil)
}

// kind returns a text that is the same for pods that ask for the same.
func (e *editor) kind() (string, error) {
	spec, err := whatif.Edited(e.spec, e.edits, e.path)
	if err != nil {
		return "", fmt.Errorf("edit %s: %w", e.object, err)
	}
	key := fmt.Sprint(spec.NodeSelector, spec.Affinity, spec.Tolerations, spec.TopologySpreadConstraints)
	for i := range spec.Containers {
		key += fmt.Sprint(spec.Containers[i].Resources.Requests, len(spec.Containers[i].Resources.Claims))
	}
	for _, template := range e.templates {
		// The types of the API can be encoded.
		text, _ := json.Marshal(template.Spec)
		key += string(text)
	}
	return key, nil
}

// moved returns the cluster in which all pods of a workload have claims and nodes; nil if one finds
// none, with how many did.
func (s *sequence) moved(ctx context.Context, w *moving) (after *cluster.Cluster, placed int, err error) {
	var before []*corev1.Pod
	for _, pod := range w.group.pods {
		if now := s.state.Snapshot.Pod(pod.Namespace, pod.Name); now != nil {
			before = append(before, now)
		}
	}
	snap := *whatif.Delete(s.state.Snapshot, before)
	snap.Templates = slices.Concat(snap.Templates, w.editor.templates)
	snapshot.SortByName(snap.Templates)
	spec, err := whatif.Edited(w.editor.spec, w.editor.edits, w.editor.path)
	if err != nil {
		return nil, 0, fmt.Errorf("edit %s: %w", w.object, err)
	}
	after = s.state.Amended(&snap)
	for i, pod := range w.group.pods {
		if after, err = s.on(ctx, after, asEdited(pod, spec, pod.Name)); after == nil || err != nil {
			return nil, i, err
		}
	}
	return after, len(w.group.pods), nil
}

// asEdited returns a new pod of a workload, as its edits make it.
func asEdited(pod *corev1.Pod, spec *corev1.PodSpec, name string) *corev1.Pod {
	edited := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: name, UID: pod.UID + "-…", Labels: pod.Labels, CreationTimestamp: pod.CreationTimestamp, OwnerReferences: pod.OwnerReferences,
	}, Spec: *spec, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	edited.Spec.NodeName = ""
	return edited
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
