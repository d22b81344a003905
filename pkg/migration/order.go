// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
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

// sequence is a cluster on its way from device plugins to drivers.
type sequence struct {
	// before is the cluster as it is, state as it becomes.
	before, state *cluster.Cluster
	// waiting are pods that left their node and have no other one.
	waiting []*corev1.Pod
	// moves are the workloads that still have to move.
	moves []*moving
	// placed counts the pods that were tried to be placed.
	placed int
}

// errEnough ends a sequence that takes too long.
var errEnough = errors.New("too many pods")

// order says in which order nodes and workloads change, and which nodes stay as they are. Nodes with
// few users come first. The allocator places all pods that leave a node, and a workload moves as soon
// as all of its pods fit.
func order(ctx context.Context, ws *workloads, m *api.Migration) error {
	if gap := ws.Snapshot.PlacementGap(); gap != nil {
		m.Undecided = "the order is not decided: " + gap.Reason
		return nil
	}
	list := (&switches{ws.Cluster, ws.classes, ws.plugins}).find(m, ws.stuck)
	s := &sequence{before: ws.Cluster, state: ws.Cluster}
	for _, w := range ws.moving {
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
		if nodes[pod.Spec.NodeName] == nil || !leaves(s.before, pod, pod.Spec.NodeName) {
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

// verify compares the steps of an earlier plan with the cluster. A step that was not begun has
// no findings.
func verify(snap *snapshot.Snapshot, plan *api.Migration) []api.MigrationCheck {
	checks := make([]api.MigrationCheck, 0, len(plan.Steps))
	for i := range plan.Steps {
		check, begun := verifyStep(snap, &plan.Steps[i])
		check.Step = i + 1
		switch {
		case !begun:
			check.State, check.Findings = api.MigrationNotTaken, nil
		case len(check.Findings) > 0:
			check.State = api.MigrationDiffers
		default:
			check.State = api.MigrationTaken
		}
		checks = append(checks, check)
	}
	return checks
}

// verifyStep returns what differs from a step, and whether some of it is done: a node without its
// device plugin, or a workload with claims.
func verifyStep(snap *snapshot.Snapshot, s *api.MigrationStep) (check api.MigrationCheck, begun bool) {
	find := func(format string, args ...any) {
		check.Findings = append(check.Findings, fmt.Sprintf(format, args...))
	}
	for _, name := range s.Nodes {
		node := snap.Node(name)
		if node == nil {
			find("node %s does not exist", name)
			continue
		}
		gone := true
		for _, resource := range s.Resources {
			if quantity := node.Status.Allocatable[corev1.ResourceName(resource)]; !quantity.IsZero() {
				gone = false
				find("node %s still offers %s %s", name, quantity.String(), resource)
			}
		}
		begun = begun || gone
		if got := publishedOn(snap, name, s.Driver); s.Devices > 0 && got != s.Devices {
			find("%s publishes %s for node %s, and %d were expected", s.Driver, english.Count(got, "device"), name, s.Devices)
		}
		if node.Spec.Unschedulable {
			find("node %s is cordoned", name)
		}
	}
	for _, object := range s.Moves {
		pods := podsOf(snap, object)
		asks, waits := 0, 0
		for _, pod := range pods {
			if len(cluster.ExtendedResources(pod)) > 0 {
				asks++
			} else if snapshot.Waits(pod) {
				waits++
			}
		}
		begun = begun || asks < len(pods)
		name := object.Namespace + " " + object.Argument()
		switch {
		case len(pods) == 0:
			find("%s has no pods", name)
		case asks > 0:
			find("%s of %s still %s for extended resources", english.Count(asks, "pod"), name, english.Plural(asks, "asks", "ask"))
		case waits > 0:
			find("%s of %s %s for a node", english.Count(waits, "pod"), name, english.Plural(waits, "waits", "wait"))
		}
	}
	return check, begun
}

// podsOf returns the pods of a workload that are not finished, or a bare pod.
func podsOf(snap *snapshot.Snapshot, object api.ObjectRef) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range snap.Pods {
		of := api.RefTo(api.KindPod, pod)
		if w, owned := whatif.WorkloadOf(snap, pod); owned {
			of = w.ObjectRef
		}
		if of == object && !snapshot.Finished(pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}
