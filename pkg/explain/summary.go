// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/hints"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// summary has the parts of the sentence that an explanation begins with. Each is
// returned by the step that finds it. They are joined here and nowhere else.
type summary struct {
	// instead is the pod of the summary, if the first one does not fit.
	instead string
	// onNode describes the one node of the question; then there is nothing else to say.
	onNode string
	// findings keep the target at its stage. They come first.
	findings []lifecycle.Finding
	// reason is the allocator's reason, or an earlier one; empty if the findings say it
	// all.
	reason reason
	// unknown lists the gaps that matter to a pod that fits.
	unknown []string
	// besides has the hints.
	besides hints.Found
}

// reason is why claims can be allocated or not, in parts.
type reason struct {
	// what names the request, and how much of it there is.
	what string
	// detail is from the funnel.
	detail detail
	// node describes another problem of the node, after a comma.
	node string
	// brief begins with the number of available devices, needs has the number of required
	// devices. Both are empty if the reason is short enough.
	brief, needs string
}

// detail is the funnel's detail where a number alone says too little.
type detail struct {
	text string
	// noDriver is set if it says that no device is of that driver.
	noDriver string
}

// sentence returns the summary as it is printed.
func (s *summary) sentence() string {
	said := english.Sentence(s.text())
	if s.instead != "" {
		said = fmt.Sprintf("It can be allocated for pod %s, not for others that wait for it. %s", s.instead, said)
	}
	return said
}

// headline returns the summary in fewer words, empty if it has few.
func (s *summary) headline() string {
	if s.reason.brief == "" || s.onNode != "" {
		return ""
	}
	short := *s
	short.reason = s.reason.briefly()
	return short.sentence()
}

// text returns the summary as a clause.
func (s *summary) text() string {
	if s.onNode != "" {
		return s.onNode
	}
	said := strings.Join(append([]string{s.reason.text(s.besides.Silent)}, s.unknown...), "; ")
	clauses := []string{lifecycle.Summarize(s.findings, said)}
	if s.besides.Warning != "" {
		clauses = append(clauses, s.besides.Warning)
	}
	for _, driver := range s.besides.Silent {
		clauses = append(clauses, driver.Text)
	}
	return strings.Join(clauses, "; ")
}

// text returns the reason as a clause. What it says of a silent driver is left out: more is
// said of that elsewhere.
func (r reason) text(silent []hints.SilentDriver) string {
	said := r.what
	if r.detail.text != "" && !slices.ContainsFunc(silent, func(driver hints.SilentDriver) bool { return driver.Name == r.detail.noDriver }) {
		said += "; " + r.detail.text
	}
	return said + r.node
}

// briefly returns the reason with the available devices in front of the required ones.
func (r reason) briefly() reason {
	short := reason{what: r.brief + r.node, detail: r.detail}
	short.node = english.PrecededBy("; ", r.needs)
	return short
}

// compileSummary returns one sentence about a selector that does not compile.
func compileSummary(q *eligibility.Question) string {
	named, problem, stored := eligibility.CompileProblem(q)
	if problem == nil {
		return "a selector does not compile"
	}
	consequence, release := "the API server rejects it", q.Cluster.Snapshot.BinaryVersion()
	switch {
	case q.Cluster.Snapshot.Newer():
		consequence = fmt.Sprintf("Kubernetes %s may compile it: this program knows 1.%d and older", release, snapshot.NewestMinor)
	case stored:
		consequence = "the API server rejects it in new objects; this one was stored by an older version, or kept because an update did not change it"
	}
	return fmt.Sprintf("%s does not compile: %s; %s", named, eligibility.ProblemText(problem), consequence)
}

// tooOld reports whether the verdict is not known because only a newer program may know what
// a selector means.
func tooOld(v *verdict.Verdict, outcome api.Verdict) bool {
	return outcome == api.Undetermined && v.Cluster.Snapshot.Newer() && v.Ended >= 0 && verdict.IsCompileError(v.Checked[v.Ended].Err)
}
