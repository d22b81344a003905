// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

// StateOf returns an answer as a difference has it.
func StateOf(answer explain.Answer) api.AnswerState {
	r := explain.Reason(answer.Explanation, answer.Err)
	return api.AnswerState{Verdict: r.Verdict, Code: r.Code, Summary: r.Summary}
}

// answered has the answers about the pods that wait in one of the states.
type answered map[api.ObjectRef]api.AnswerState

func answersOf(waiting []*corev1.Pod, answers []explain.Answer, namespace string) answered {
	known := answered{}
	for i, pod := range waiting {
		if namespace == "" || pod.Namespace == namespace {
			known[api.RefTo(api.KindPod, pod)] = StateOf(answers[i])
		}
	}
	return known
}

// changedTargets returns the pods whose answers differ, in the order of the new and then of the old state.
func (t *trials) changedTargets(ctx context.Context, was, is answered) ([]*changedTarget, error) {
	var list, arrived []*changedTarget
	for _, pod := range t.new.Pods {
		ref := api.RefTo(api.KindPod, pod)
		after, waits := is[ref]
		if !waits {
			continue
		}
		s := &changedTarget{options: explain.Options{Object: ref}, is: after}
		before, waited := was[ref]
		switch {
		case waited && outcome(before.Verdict) != outcome(after.Verdict):
			s.was, list = before, append(list, s)
		case !waited && after.Verdict != api.Fits:
			s.own, arrived = t.ownOf(pod), append(arrived, s)
		}
	}
	if err := t.suppose(ctx, arrived); err != nil {
		return nil, err
	}
	list = append(list, only(arrived, func(s *changedTarget) bool { return outcome(s.was.Verdict) == api.Fits })...)
	for _, pod := range t.old.Pods {
		ref := api.RefTo(api.KindPod, pod)
		now := t.new.Pod(pod.Namespace, pod.Name)
		if before, waited := was[ref]; waited && before.Verdict != api.Fits && now != nil && now.Spec.NodeName != "" {
			list = append(list, &changedTarget{
				options: explain.Options{Object: ref}, was: before, is: api.AnswerState{Verdict: api.Allocated, Node: now.Spec.NodeName},
				own: t.ownOf(pod), returned: true,
			})
		}
	}
	return list, nil
}

// suppose finds the answers in the old state about pods that wait in the new state alone: where they
// ran, or else what the answer would have been.
func (t *trials) suppose(ctx context.Context, arrived []*changedTarget) error {
	if len(arrived) == 0 {
		return nil
	}
	var undone []*change
	targets := make([]explain.Options, 0, len(arrived))
	for _, s := range arrived {
		targets = append(targets, s.options)
	}
	for _, ch := range t.changes {
		if !slices.ContainsFunc(arrived, func(s *changedTarget) bool { return slices.Contains(s.own, ch) }) {
			undone = append(undone, ch)
		}
	}
	verdicts, err := t.with(ctx, undone, targets)
	if err != nil {
		return err
	}
	for i, s := range arrived {
		o := s.options.Object
		s.was = api.AnswerState{Verdict: verdicts[i], Supposed: true}
		if before := t.old.Pod(o.Namespace, o.Name); before != nil && before.Spec.NodeName != "" {
			s.was = api.AnswerState{Verdict: api.Allocated, Node: before.Spec.NodeName}
		}
	}
	return nil
}

// ownOf returns the changes of a pod, and of the claims and new templates that it names: a
// pod that has just been created is nothing without them.
func (t *trials) ownOf(pod *corev1.Pod) []*change {
	var own []*change
	add := func(ch *change) {
		if ch != nil && !slices.Contains(own, ch) {
			own = append(own, ch)
		}
	}
	add(t.byPod[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}])
	for i := range pod.Spec.ResourceClaims {
		entry := &pod.Spec.ResourceClaims[i]
		if entry.ResourceClaimName != nil {
			add(t.byClaim[types.NamespacedName{Namespace: pod.Namespace, Name: *entry.ResourceClaimName}])
		}
		if entry.ResourceClaimTemplateName == nil {
			continue
		}
		ref := api.Ref(api.KindTemplate, pod.Namespace, *entry.ResourceClaimTemplateName)
		for _, ch := range t.changes {
			if o := ch.objects[0]; o.ref == ref && o.op() != api.Changed {
				add(ch)
			}
		}
	}
	return own
}

// similar has the common facts of targets whose answers differ in the same way.
type similar struct {
	was, is  api.Verdict
	code     api.Code
	summary  string
	returned bool
}

func (s *changedTarget) similar() similar {
	return similar{outcome(s.was.Verdict), s.is.Verdict, s.is.Code, s.is.Summary, s.returned}
}

// explained returns the answers that differ, with the changes that made the difference. Each set of
// changes that a search finds is tried for all other targets, too: those for which it is minimal
// need no search.
func (t *trials) explained(ctx context.Context, changedTargets []*changedTarget) ([]api.ChangedAnswer, error) {
	list := []api.ChangedAnswer{}
	for len(changedTargets) > 0 {
		first, rest := changedTargets[0], changedTargets[1:]
		out := api.ChangedAnswer{Object: first.options.Object, Was: first.was, Is: first.is}
		same := func(s *changedTarget) bool { return s.similar() == first.similar() && sameSet(s.set, first.set) }
		switch {
		case outcome(first.was.Verdict) == outcome(first.is.Verdict), first.was.Verdict == "", first.is.Verdict == "":
			same = func(*changedTarget) bool { return false }
		case first.was.Verdict == api.Undetermined || first.is.Verdict == api.Undetermined:
			out.Note = "one of the answers cannot be determined"
		case first.set == nil && t.left <= 0:
			out.Note = "not searched for: too many answers differ"
		case first.set == nil:
			var err error
			if first.set, out.Note, err = t.search(first).find(ctx); err != nil {
				return nil, err
			}
			if err := t.share(ctx, first.set, rest); err != nil {
				return nil, err
			}
		}
		for _, block := range first.set {
			out.Undo = append(out.Undo, joined(block))
		}
		if first.set == nil && out.Note != "" && t.left > 0 {
			// Others may have a set of their own.
			same = func(*changedTarget) bool { return false }
		}
		for _, s := range only(rest, same) {
			out.Others = append(out.Others, s.options.Object)
		}
		list = append(list, out)
		changedTargets = only(rest, func(s *changedTarget) bool { return !same(s) })
	}
	return list, nil
}

// sameSet reports whether two sets have the same changes.
func sameSet(a, b [][]*change) bool {
	return slices.EqualFunc(a, b, slices.Equal)
}

// share gives a set to the targets for which it is minimal and that have none.
func (t *trials) share(ctx context.Context, set [][]*change, changedTargets []*changedTarget) error {
	others := only(changedTargets, func(s *changedTarget) bool { return s.set == nil && outcome(s.was.Verdict) != outcome(s.is.Verdict) })
	if len(set) == 0 || len(others) == 0 {
		return nil
	}
	found, err := t.holdsFor(ctx, set, others)
	for _, s := range found {
		s.set = set
	}
	return err
}

func only[T any](list []T, match func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(o T) bool { return !match(o) })
}
