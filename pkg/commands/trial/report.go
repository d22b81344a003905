// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// Kind is the kind of a report.
const Kind = "TestReport"

// Outcome has facts about a trial that its record does not have.
type Outcome struct {
	Checks []api.TrialCheck
	// Hopeless says why the container could not run; Unfit is set if devices are not the
	// reason.
	Hopeless string
	Unfit    bool
	// Interrupted is set if the test was ended meanwhile.
	Interrupted bool
	// Timeout limits the stages together, up to the start and after it.
	Timeout     time.Duration
	Explanation *api.Explanation
}

// Finish returns the result of a trial.
func Finish(p *Planned, r *Record, o *Outcome) api.Trial {
	t := api.Trial{
		Name: p.Name(), Class: p.Case.Class, File: p.Case.File, Round: p.Round, Pod: r.Name, Node: r.Node(), Devices: r.Devices(),
		Started: ptr.To(metav1.NewTime(r.created.UTC())), Stages: r.Stages(), Checks: o.Checks, Result: api.TestPassed, Explanation: o.Explanation,
	}
	if r.Claim != nil {
		t.Claim = r.Claim.Name
	}
	failed := slices.IndexFunc(t.Stages, func(s api.TrialStage) bool { return s.Result == api.TestFailed })
	switch {
	case o.Interrupted:
		t.Result, t.Message = api.TestUnknown, "interrupted"
		for i := range t.Stages {
			if t.Stages[i].Result == api.TestFailed {
				t.Stages[i].Result = api.TestUnknown
			}
		}
	case o.Unfit:
		t.Result, t.Message = api.TestUnknown, o.Hopeless
		if failed >= 0 {
			t.Stages[failed].Result = api.TestUnknown
		}
	case failed >= 0:
		t.Result, t.Message = api.TestFailed, fmt.Sprintf("stage %s was not reached within %s", t.Stages[failed].Stage, o.Timeout)
		if drivers := driversOf(t.Devices); t.Stages[failed].Stage == api.TrialUnprepared && len(drivers) > 0 {
			t.Message += fmt.Sprintf(": the kubelet of node %s removes the pod after %s has unprepared the devices; check its log", t.Node, english.JoinAnd(drivers))
		}
		if o.Hopeless != "" {
			t.Message = fmt.Sprintf("stage %s was not reached: %s", t.Stages[failed].Stage, o.Hopeless)
		}
	default:
		for i := range t.Checks {
			if t.Checks[i].Result == api.TestFailed {
				t.Result, t.Message = api.TestFailed, fmt.Sprintf("check %s: %s", t.Checks[i].Check, t.Checks[i].Message)
				break
			}
		}
	}
	return t
}

func driversOf(devices []api.AllocatedDevice) []string {
	var drivers []string
	for i := range devices {
		if !slices.Contains(drivers, devices[i].Driver) {
			drivers = append(drivers, devices[i].Driver)
		}
	}
	return drivers
}

// Dry returns a trial of a dry run.
func (p *Planned) Dry() api.Trial {
	t := api.Trial{Name: p.Name(), Class: p.Case.Class, File: p.Case.File, Round: p.Round, Pod: p.Pod.Name, Node: p.node, Result: api.TestPlanned}
	if p.Predicted != nil && p.Predicted.Placement != nil {
		t.Node, t.Devices = p.Predicted.Placement.Node, devicesOf(p.Predicted.Placement)
	}
	return t
}

// Summarize adds the result and summary of all trials. named is set if classes or files
// were asked for by name.
func Summarize(r *api.TestReport, named bool) {
	r.Times = times(r.Trials)
	counts := map[api.TestResult]int{}
	for i := range r.Trials {
		counts[r.Trials[i].Result]++
	}
	untested := slices.DeleteFunc(slices.Clone(r.Skipped), func(s api.SkippedTrial) bool {
		return s.Reason == api.SkipNodeUnfit || s.Reason == api.SkipNoDevices && !named
	})
	switch {
	case counts[api.TestFailed] > 0:
		r.Result = api.TestFailed
	case counts[api.TestPlanned] > 0:
		r.Result = api.TestPlanned
	case counts[api.TestUnknown] > 0, len(untested) > 0, len(r.Trials) == 0, r.Interrupted, len(r.Left) > 0:
		r.Result = api.TestUnknown
	default:
		r.Result = api.TestPassed
	}
	var parts []string
	for _, part := range []struct {
		result api.TestResult
		word   string
	}{{api.TestPassed, "passed"}, {api.TestFailed, "failed"}, {api.TestUnknown, "undetermined"}, {api.TestPlanned, "planned"}} {
		if n := counts[part.result]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, part.word))
		}
	}
	if n := len(untested); n > 0 {
		parts = append(parts, fmt.Sprintf("%d skipped", n))
	}
	if len(parts) == 0 {
		parts = append(parts, "nothing to try out")
	}
	r.Summary = english.Count(len(r.Trials), "trial") + ": " + strings.Join(parts, ", ")
}

// times returns the times of the stages, for each claim with more than one trial.
func times(trials []api.Trial) []api.StageTimes {
	type key struct{ class, file string }
	var keys []key
	of := map[key]map[api.TrialStageName][]int64{}
	rounds := map[key]int{}
	for i := range trials {
		t := &trials[i]
		k := key{t.Class, t.File}
		if of[k] == nil {
			keys = append(keys, k)
			of[k] = map[api.TrialStageName][]int64{}
		}
		rounds[k]++
		for _, stage := range t.Stages {
			if stage.Milliseconds != nil {
				of[k][stage.Stage] = append(of[k][stage.Stage], *stage.Milliseconds)
			}
		}
	}
	var list []api.StageTimes
	for _, k := range keys {
		if rounds[k] < 2 {
			continue
		}
		for _, stage := range slices.Concat(StartStages(), EndStages()) {
			took := of[k][stage]
			if len(took) == 0 {
				continue
			}
			slices.Sort(took)
			list = append(list, api.StageTimes{
				Class: k.class, File: k.file, Stage: stage, Count: len(took),
				P50: percentile(took, 50), P90: percentile(took, 90), P99: percentile(took, 99), Max: took[len(took)-1],
			})
		}
	}
	return list
}

// percentile returns the smallest value that so many percent of the values do not exceed.
func percentile(sorted []int64, percent int) int64 {
	rank := (len(sorted)*percent + 99) / 100
	return sorted[max(rank, 1)-1]
}
