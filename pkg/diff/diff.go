// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Options say what to compare.
type Options struct {
	// Namespace is the only namespace whose pods count, if it is set.
	Namespace string
	// Target is the only target whose answers are compared, nil for all pods that wait.
	Target *explain.Options
	// Fields adds the fields in which objects differ.
	Fields bool
}

// Between returns the difference between two states of a cluster. It fails if ctx is done, a check
// fails, or neither state has the target.
func Between(ctx context.Context, old, later *snapshot.Snapshot, opts Options) (*api.Difference, error) {
	before, after := cluster.New(old), cluster.New(later)
	was, err := find(ctx, before, opts)
	if err != nil {
		return nil, err
	}
	is, err := find(ctx, after, opts)
	if err != nil {
		return nil, err
	}
	t := newTrials(compare(old, later), after)
	changedTargets, err := t.asked(ctx, before, was, is, opts)
	if err != nil {
		return nil, err
	}
	answers, err := t.explained(ctx, changedTargets)
	if err != nil {
		return nil, err
	}
	return &api.Difference{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Difference"},
		Old:      stateRead(old), New: stateRead(later), Namespace: opts.Namespace,
		Answers: answers, Began: without(is.Status.Causes, was.Status.Causes), Ended: without(was.Status.Causes, is.Status.Causes),
		Capacity: capacityChanges(was.Status.Capacity, is.Status.Capacity), Changes: described(t.changes, opts.Fields), NotCompared: t.notCompared,
	}, nil
}

// AnswerBetween returns the answers about a target in two states of a cluster, with a minimal set
// of changes that made the difference. Both states are asked as they are remembered, and nothing
// else is compared. It fails like [Between].
func AnswerBetween(ctx context.Context, before, after *cluster.Cluster, target explain.Options) (*api.ChangedAnswer, error) {
	t := newTrials(compare(before.Snapshot, after.Snapshot), after)
	changedTargets, err := t.answersAbout(ctx, before, target)
	if err != nil {
		return nil, err
	}
	answers, err := t.explained(ctx, changedTargets)
	if err != nil {
		return nil, err
	}
	return &answers[0], nil
}

// Objects returns the objects in which two states of a cluster differ, as far as they decide about
// devices. The reference is empty for the version and the feature gates.
func Objects(old, later *snapshot.Snapshot) []api.ObjectRef {
	var list []api.ObjectRef
	for _, ch := range compare(old, later).changes {
		for _, o := range ch.objects {
			list = append(list, o.ref)
		}
	}
	return list
}

// Any reports whether two states differ.
func Any(d *api.Difference) bool {
	differs := slices.ContainsFunc(d.Answers, func(a api.ChangedAnswer) bool { return outcome(a.Was.Verdict) != outcome(a.Is.Verdict) })
	return differs || len(d.Began)+len(d.Ended)+len(d.Capacity)+len(d.Changes) > 0
}

func stateRead(s *snapshot.Snapshot) api.ComparedState {
	state := api.ComparedState{Source: s.Source}
	if !s.TakenAt.IsZero() {
		at := metav1.NewTime(s.TakenAt)
		state.TakenAt = &at
	}
	return state
}

// find returns the causes, the capacity and the answers of a state.
func find(ctx context.Context, c *cluster.Cluster, opts Options) (*cause.Found, error) {
	found, err := cause.Find(ctx, c, cause.Options{Namespace: opts.Namespace})
	if err != nil {
		return nil, err
	}
	return found, forecast.AddPlaceableTo(ctx, c, found.Status.Capacity)
}

// asked returns the target, or the pods whose answers differ.
func (t *trials) asked(ctx context.Context, before *cluster.Cluster, was, is *cause.Found, opts Options) ([]*changedTarget, error) {
	if opts.Target == nil {
		return t.changedTargets(ctx,
			answersOf(before.Waiting(), was.Examination.Answers, opts.Namespace),
			answersOf(t.cluster.Waiting(), is.Examination.Answers, opts.Namespace))
	}
	return t.answersAbout(ctx, before, *opts.Target)
}

// answersAbout returns a target with its answers in both states.
func (t *trials) answersAbout(ctx context.Context, before *cluster.Cluster, target explain.Options) ([]*changedTarget, error) {
	targets := []explain.Options{target}
	one, err := explain.ReasonsOfEach(ctx, before, targets, nil)
	if err != nil {
		return nil, fmt.Errorf("compare answers: %w", err)
	}
	other, err := explain.ReasonsOfEach(ctx, t.cluster, targets, nil)
	if err != nil {
		return nil, fmt.Errorf("compare answers: %w", err)
	}
	if one[0].Err != nil && other[0].Err != nil {
		return nil, inNeither(other[0].Err, t.old.Source)
	}
	return t.target(ctx, &changedTarget{options: target, was: StateOf(one[0]), is: StateOf(other[0])}, one[0].Err != nil, other[0].Err != nil)
}

// inNeither returns the error about a target in the new state with the source of the old one.
func inNeither(err error, old string) error {
	var absent *explain.TargetError
	if !errors.As(err, &absent) {
		return err
	}
	both := *absent
	both.Message += "; nor is there an answer in " + old
	return &both
}

// target returns the target of a target that came, went, or is in both states.
func (t *trials) target(ctx context.Context, s *changedTarget, came, gone bool) ([]*changedTarget, error) {
	o := s.options.Object
	was, is := t.old.Pod(o.Namespace, o.Name), t.new.Pod(o.Namespace, o.Name)
	waits := func(pod *corev1.Pod) bool { return o.Kind == api.KindPod && pod != nil && snapshot.Waits(pod) }
	switch {
	case gone:
		s.is = api.AnswerState{Summary: "it is gone"}
		return []*changedTarget{s}, nil
	case waits(is) && !waits(was):
		s.own = t.ownOf(is)
		return []*changedTarget{s}, t.suppose(ctx, []*changedTarget{s})
	case came:
		s.was = api.AnswerState{Summary: "it did not exist"}
		return []*changedTarget{s}, nil
	case waits(was) && !waits(is):
		s.own, s.returned, s.is.Node = t.ownOf(was), true, is.Spec.NodeName
	}
	return []*changedTarget{s}, nil
}

// without returns the causes that another list does not have.
func without(causes, others []api.Cause) []api.Cause {
	return only(causes, func(c api.Cause) bool {
		return !slices.ContainsFunc(others, func(o api.Cause) bool { return o.ID == c.ID })
	})
}

// capacityChanges returns the classes whose numbers differ.
func capacityChanges(was, is []api.ClassCapacity) []api.ChangedCapacity {
	type id struct{ class, driver string }
	list := []api.ChangedCapacity{}
	later := map[id]*api.ClassCapacity{}
	for i := range is {
		later[id{is[i].Class, is[i].Driver}] = &is[i]
	}
	for i := range was {
		of := id{was[i].Class, was[i].Driver}
		if after := later[of]; after == nil || numbersOf(&was[i]) != numbersOf(after) {
			list = append(list, api.ChangedCapacity{Was: &was[i], Is: after})
		}
		delete(later, of)
	}
	for i := range is {
		if later[id{is[i].Class, is[i].Driver}] != nil {
			list = append(list, api.ChangedCapacity{Is: &is[i]})
		}
	}
	return list
}

// numbers are the numbers of a class that count as a difference.
type numbers struct{ total, used, free, available, placeable int }

func numbersOf(c *api.ClassCapacity) numbers {
	n := numbers{c.Devices.Total, c.Devices.Allocated + c.Devices.Shared, c.Devices.Free, c.Devices.Available, 0}
	if c.Placeable != nil {
		n.placeable = c.Placeable.AtLeast
	}
	return n
}
