// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// Answer is the answer for one node; nodes with equal answers are grouped.
type Answer struct {
	Verdict api.Verdict
	Code    api.Code
	Message string
	Score   int64
	// has is the message without how many devices are needed, empty where it does not say
	// that.
	has string
	// brief is the message without the domain of an attribute, empty where it names none
	// or more than one of that name.
	brief string
	// shortage is set if one request has too few devices.
	shortage deviceShortage
	// missing is how many devices more the request would need that lacks most.
	Missing int
	// progress is how close the node comes to fitting, for the order of the
	// groups.
	Progress int
}

// deviceShortage means that a request has too few devices on a node. Nodes with the same
// request and others are short of devices for the same reasons.
type deviceShortage struct {
	// request is the prefix of the message that names the request.
	request string
	// needs is how many devices it needs, available how many of them the node has.
	needs, available int
	// mostAnswer limits how many would be available if none were in use or tainted, if that is
	// more than available and still too few.
	most int
	// others describes the shortcomings of the other devices.
	others string
}

// Has returns the message after a sentence that says how many devices are needed.
func (a Answer) Has() string { return cmp.Or(a.has, a.Message) }

// Brief returns the message with the shortest names, or said if the message has no shorter names.
func (a Answer) Brief(said string) string { return cmp.Or(a.brief, said) }

// SameRequest reports whether two answers have the same request.
func (a Answer) SameRequest(other Answer) bool { return a.shortage.request == other.shortage.request }

// SaysMost reports whether the message says how many devices would be available at most.
func (a Answer) SaysMost() bool { return a.shortage.most > 0 }

// cause returns the shortage without the count, zero if counts do not matter.
func (s deviceShortage) cause() deviceShortage {
	if s.needs == 0 {
		return deviceShortage{}
	}
	s.available = 0
	return s
}

// The progress of a node: what blocks it, from far to near, in steps of
// progressStep. What devices lack counts progressShort and the rank of the
// check that the best of them fails.
const (
	progressStep       = 100
	progressUnsuitable = 0
	progressNoDevice   = 1 * progressStep
	progressHasDevice  = 2 * progressStep
	progressShort      = 3 * progressStep
	progressUnproved   = 4 * progressStep
	progressCompeting  = 5 * progressStep
)

// SchedulerBug returns the answer for a node that has devices, and that a bug of the
// scheduler keeps the claims from.
func SchedulerBug(message string) Answer {
	return Answer{Verdict: api.DoesNotFit, Code: api.SchedulerBug, Message: message, Progress: progressCompeting}
}

// Nearer orders answers: the one where less is in the way comes first. Within
// a step it is the one where fewer devices are missing, and then the one whose
// best device gets further.
func (a Answer) Nearer(b Answer) int {
	return cmp.Or(
		cmp.Compare(verdictOrder(a.Verdict), verdictOrder(b.Verdict)),
		cmp.Compare(b.Score, a.Score),
		cmp.Compare(b.Progress/progressStep, a.Progress/progressStep),
		cmp.Compare(a.Missing, b.Missing),
		cmp.Compare(b.Progress, a.Progress),
	)
}

// Key returns what nodes that are grouped have in common. How near single nodes come is no
// reason to tell them apart.
func (a Answer) Key() Answer {
	a.Missing, a.Progress = 0, 0
	return a
}

// Group puts nodes with the same answer together, the best first.
func Group(answers map[Answer][]string) []api.NodeGroup {
	nearest, names := map[Answer]Answer{}, map[Answer][]string{}
	for answer, nodes := range answers {
		said := answer.Key()
		if best, known := nearest[said]; !known || answer.Nearer(best) < 0 {
			nearest[said] = answer
		}
		names[said] = append(names[said], nodes...)
	}
	sorted := slices.SortedFunc(maps.Keys(nearest), func(a, b Answer) int {
		return cmp.Or(
			nearest[a].Nearer(nearest[b]),
			cmp.Compare(len(names[b]), len(names[a])),
			cmp.Compare(a.Message, b.Message),
			cmp.Compare(a.Code, b.Code),
		)
	})
	groups := make([]api.NodeGroup, 0, len(sorted))
	byCause, at := map[deviceShortage][]Answer{}, map[deviceShortage]int{}
	for _, said := range sorted {
		slices.SortFunc(names[said], english.CompareNames)
		group := api.NodeGroup{
			Count: len(names[said]), Names: names[said], Verdict: said.Verdict,
			Code: said.Code, Message: said.Message, Missing: nearest[said].Missing, Score: said.Score,
		}
		cause := said.shortage.cause()
		first, known := at[cause]
		if cause == (deviceShortage{}) || !known {
			at[cause] = len(groups)
			groups = append(groups, group)
		} else {
			mergeGroup(&groups[first], group)
		}
		byCause[cause] = append(byCause[cause], said)
	}
	for cause, i := range at {
		if cause != (deviceShortage{}) && len(byCause[cause]) > 1 {
			groups[i].Message = rangeText(byCause[cause])
		}
	}
	return groups
}

// mergeGroup adds nodes with the same cause and another count.
func mergeGroup(g *api.NodeGroup, other api.NodeGroup) {
	if len(g.Parts) == 0 {
		g.Parts = []api.NodeGroup{*g}
	}
	g.Parts = append(g.Parts, other)
	g.Count += other.Count
	g.Names = slices.Concat(g.Names, other.Names)
	slices.SortFunc(g.Names, english.CompareNames)
	if g.Code != other.Code {
		g.Code = api.CountUnsatisfiable
	}
}

// rangeText returns the message of nodes with the same cause and different counts.
func rangeText(answers []Answer) string {
	least, most := answers[0].shortage.available, answers[0].shortage.available
	for _, a := range answers {
		least, most = min(least, a.shortage.available), max(most, a.shortage.available)
	}
	s := answers[0].shortage
	between := fmt.Sprint(least)
	if least < most {
		between = fmt.Sprintf("%d to %d", least, most)
	}
	text := fmt.Sprintf("%s%s available, %d needed", s.request, between, s.needs)
	if s.most > 0 {
		text += fmt.Sprintf(", at most %d match", s.most)
	}
	if s.others != "" {
		text += ", the others " + s.others
	}
	return text
}

func verdictOrder(v api.Verdict) int {
	return slices.Index([]api.Verdict{api.Fits, api.Allocated, api.Error, api.Undetermined, api.DoesNotFit}, v)
}
