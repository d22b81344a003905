// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// AnswerGroup is a set of pods with one owner and one answer.
type AnswerGroup struct {
	// First is the answer for one of them.
	First *api.Explanation
	// Owner is the workload of the pods, empty for bare pods.
	Owner api.ObjectRef
	// Names are the names of the pods. Oldest is the age in seconds of the oldest pod, or of a
	// workload without pods; it is 0 if no age is known.
	Names  []string
	Oldest int64
}

// Name returns how a line about the pods begins: the pod, or what they belong to and their
// number.
func (g *AnswerGroup) Name() string {
	switch n := len(g.Names); {
	case g.First.Target.Kind != api.KindPod:
		return g.First.Target.Argument()
	case n == 1:
		return g.Names[0]
	case g.Owner.Kind != "":
		return fmt.Sprintf("%s (%d pods)", g.Owner.Argument(), n)
	default:
		return fmt.Sprintf("%s and %s", g.Names[0], english.Count(n-1, "equal pod"))
	}
}

// Summary returns the summary of the answer. Where each pod has devices of its own, it says
// how many pods it covers.
func (g *AnswerGroup) Summary() string {
	n := len(g.Names)
	if n > 1 && g.First.Verdict == api.Fits && g.First.Placement != nil {
		if other := g.First.OtherScheduler; other != nil {
			return fmt.Sprintf("%s fit now for kube-scheduler, the first one on %s, but scheduler %s decides.", english.Count(n, "pod"), g.First.Placement.Node, other.Name)
		}
		return fmt.Sprintf("%s fit now, the first one on %s.", english.Count(n, "pod"), g.First.Placement.Node)
	}
	if other := g.First.OtherScheduler; other != nil && g.First.Verdict == api.Fits {
		return fmt.Sprintf("For kube-scheduler, but scheduler %s decides: %s", other.Name, g.First.Summary)
	}
	if n > 1 && g.First.Verdict == api.Blocked && g.First.Code != api.GangIncomplete {
		return fmt.Sprintf("Pod %s: %s", g.Names[0], g.First.Summary)
	}
	return g.First.Summary
}

// GroupAnswers puts the answers for pods together that have the same owner, verdict,
// code and stage; bare pods are together if they share an answer. Groups are
// in the order of their first answers.
func GroupAnswers(answers []*api.Explanation) []*AnswerGroup {
	var groups []*AnswerGroup
	known := map[string]*AnswerGroup{}
	for _, e := range answers {
		owner, age := api.ObjectRef{}, e.AgeSeconds
		if len(e.Pods) > 0 {
			owner, age = e.Pods[0].Owner, e.Pods[0].AgeSeconds
		}
		key := []string{e.Target.Namespace, owner.String(), string(e.Verdict), string(e.Code), string(e.Stage), string(When(e))}
		switch {
		case e.Target.Kind != api.KindPod:
			// A workload has a line of its own.
			owner = api.ObjectRef{}
			key = append(key, e.Target.Kind, e.Target.Name)
		case owner.Kind == "" && e.SameAs.Kind != "":
			key = append(key, e.SameAs.Name)
		case owner.Kind == "":
			key = append(key, e.Target.Name)
		case e.Verdict != api.Fits && e.Verdict != api.Blocked:
			key = append(key, e.Summary)
		}
		text := strings.Join(key, "\x00")
		group := known[text]
		if group == nil {
			group = &AnswerGroup{First: e, Owner: owner}
			known[text] = group
			groups = append(groups, group)
		}
		group.Names = append(group.Names, e.Target.Name)
		group.Oldest = max(group.Oldest, age)
	}
	return groups
}
