// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// RuleAge is the age at which a rule may have been forgotten, unless [Options] have
// another one.
const RuleAge = 30 * 24 * time.Hour

func taintChecks() []Check {
	needs := []string{snapshot.ResourceTaintRules, snapshot.ResourceSlices}
	return []Check{
		{
			Code: "DRA1501", Title: "taint rule that selects nothing", Severity: api.SeverityWarning, Needs: needs,
			About:  "A DeviceTaintRule selects no published device: the name of the driver, the pool or the device is wrong, or the device is gone.",
			Advice: "Correct the rule, or delete it.",
			find:   ruleCheck(idleRule),
		},
		{
			Code: "DRA1502", Title: "taint rule without an effect", Severity: api.SeverityInfo, Needs: needs,
			About:  "A DeviceTaintRule has the effect None. It says what would happen with NoExecute, and does nothing.",
			Advice: "Set the effect, or delete the rule.",
			find:   ruleCheck(effectless),
		},
		{
			Code: "DRA1503", Title: "old taint rule", Severity: api.SeverityInfo, Needs: needs,
			About:  "A DeviceTaintRule is older than 30 days, or than --older-than says, and still keeps devices from pods.",
			Advice: "Delete the rule if it is no longer needed.",
			find:   ruleCheck(forgotten),
		},
		{
			Code: "DRA1504", Title: "taint that evicts pods", Severity: api.SeverityWarning, Needs: needs,
			About:  "A taint with the effect NoExecute is about to evict pods.",
			Advice: "See 'kubectl dra taints -o wide' for the pods and the time that is left.",
			find:   findEvictions,
		},
		{
			Code: "DRA1505", Title: "taint rules that contradict each other", Severity: api.SeverityWarning, Needs: needs,
			About:  "Two DeviceTaintRules select the same device and give a taint of the same key another value or another effect. The device has both taints, and the stricter one decides.",
			Advice: "Keep one of the rules.",
			find:   findContradictions,
		},
	}
}

// ruleCheck is a check that looks at one DeviceTaintRule after the other.
func ruleCheck(find func(*cluster, *resourceapi.DeviceTaintRule) *api.Finding) func(context.Context, *cluster) ([]api.Finding, error) {
	return func(_ context.Context, in *cluster) ([]api.Finding, error) {
		var found []api.Finding
		for _, rule := range in.snap.TaintRules {
			if f := find(in, rule); f != nil {
				f.Objects = []string{object(kindRule, rule)}
				if f.Remedy == nil {
					f.Remedy = &api.NextStep{
						Actor: api.ActorAdmin, Text: "delete the rule if it is no longer needed",
						Commands: []string{"kubectl delete " + shell.KubectlObjects("devicetaintrule", "", rule.Name)},
					}
				}
				found = append(found, *f)
			}
		}
		return found, nil
	}
}

func idleRule(in *cluster, rule *resourceapi.DeviceTaintRule) *api.Finding {
	if len(in.facts.Taints.SelectedBy(rule)) > 0 {
		return nil
	}
	return &api.Finding{
		Message:  fmt.Sprintf("rule %s selects no device: %s", rule.Name, inventory.RuleSelector(rule)),
		Evidence: []api.Evidence{{Object: object(kindRule, rule), Path: "spec.deviceSelector", Found: inventory.RuleSelector(rule), Required: "a device that is published"}},
	}
}

func effectless(_ *cluster, rule *resourceapi.DeviceTaintRule) *api.Finding {
	if rule.Spec.Taint.Effect != resourceapi.DeviceTaintEffectNone {
		return nil
	}
	return &api.Finding{
		Message:  fmt.Sprintf("rule %s has the effect None: it does nothing", rule.Name),
		Evidence: []api.Evidence{{Object: object(kindRule, rule), Path: "spec.taint.effect", Found: string(rule.Spec.Taint.Effect)}},
	}
}

func forgotten(in *cluster, rule *resourceapi.DeviceTaintRule) *api.Finding {
	age := in.snap.Now().Sub(rule.CreationTimestamp.Time)
	if rule.CreationTimestamp.IsZero() || age < cmp.Or(in.opts.OlderThan, RuleAge) || rule.Spec.Taint.Effect == resourceapi.DeviceTaintEffectNone {
		return nil
	}
	selected := len(in.facts.Taints.SelectedBy(rule))
	if selected == 0 {
		return nil
	}
	return &api.Finding{
		Message:  fmt.Sprintf("rule %s keeps %s from pods for %s", rule.Name, english.Count(selected, "device"), ageText(age)),
		Evidence: []api.Evidence{{Object: object(kindRule, rule), Path: "metadata.creationTimestamp", Found: rule.CreationTimestamp.UTC().Format(time.RFC3339)}},
	}
}

// ageText is an age in days, or of less than one as kubectl writes it.
func ageText(age time.Duration) string {
	if days := int(age.Hours() / 24); days > 0 {
		return plural(days, "day", "days")
	}
	return duration.HumanDuration(age)
}

func findEvictions(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, taint := range in.inventory.Taints() {
		if taint.NextEviction == nil {
			continue
		}
		f := api.Finding{Message: fmt.Sprintf("taint %s evicts %s, the next one at %s",
			inventory.TaintText(&taint), english.Count(len(taint.Pods), "pod"), taint.NextEviction.UTC().Format(time.RFC3339))}
		for _, pod := range taint.Pods {
			f.Objects = append(f.Objects, api.KindPod+"/"+pod.Namespace+"/"+pod.Name)
		}
		source := "Driver/" + taint.Driver
		if taint.Rule != "" {
			source = kindRule + "/" + taint.Rule
		}
		f.Evidence = []api.Evidence{{Object: source, Path: "taint", Found: inventory.TaintText(&taint)}}
		f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "see which pods, and when", Commands: []string{"kubectl dra taints -o wide"}}
		found = append(found, f)
	}
	return found, nil
}

// findContradictions compares the rules that have one key.
func findContradictions(_ context.Context, in *cluster) ([]api.Finding, error) {
	rules := slices.Clone(in.snap.TaintRules)
	rules = slices.DeleteFunc(rules, func(r *resourceapi.DeviceTaintRule) bool {
		return r.Spec.Taint.Effect == resourceapi.DeviceTaintEffectNone
	})
	selected := map[string]map[facts.DeviceID]bool{}
	of := func(rule *resourceapi.DeviceTaintRule) map[facts.DeviceID]bool {
		if selected[rule.Name] == nil {
			selected[rule.Name] = map[facts.DeviceID]bool{}
			for _, id := range in.facts.Taints.SelectedBy(rule) {
				selected[rule.Name][id] = true
			}
		}
		return selected[rule.Name]
	}
	var found []api.Finding
	for i, a := range rules {
		for _, b := range rules[i+1:] {
			ours, theirs := a.Spec.Taint, b.Spec.Taint
			if ours.Key != theirs.Key || ours.Value == theirs.Value && ours.Effect == theirs.Effect {
				continue
			}
			both := 0
			for id := range of(a) {
				if of(b)[id] {
					both++
				}
			}
			if both == 0 {
				continue
			}
			found = append(found, api.Finding{
				Objects: []string{object(kindRule, a), object(kindRule, b)},
				Message: fmt.Sprintf("rules %s and %s give %s different taints with key %s", a.Name, b.Name, english.Count(both, "device"), ours.Key),
				Evidence: []api.Evidence{
					{Object: object(kindRule, a), Path: "spec.taint", Found: taintText(ours)},
					{Object: object(kindRule, b), Path: "spec.taint", Found: taintText(theirs)},
				},
				Remedy: &api.NextStep{Actor: api.ActorAdmin, Text: "delete the rule that is no longer needed"},
			})
		}
	}
	return found, nil
}

// taintText is a taint as kubectl writes one.
func taintText(t resourceapi.DeviceTaint) string {
	if t.Value == "" {
		return t.Key + ":" + string(t.Effect)
	}
	return t.Key + "=" + t.Value + ":" + string(t.Effect)
}
