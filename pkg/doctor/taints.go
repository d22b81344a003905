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
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
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
			About:  "A DeviceTaintRule selects no published device: the name of the driver, the pool or the device is wrong, or the device is gone. One without deviceSelector selects nothing either, but kube-scheduler before 1.37.1 takes it for all devices (kubernetes/kubernetes#141620).",
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
			Code: codeEvicts, Title: "taint that evicts pods", Severity: api.SeverityError, Needs: needs, Repeats: RepeatsTaint,
			About:  "A taint with the effect NoExecute is about to evict pods.",
			Advice: "'kubectl dra taints -o wide' lists the pods and the time that is left. If the taint is of a DeviceTaintRule that is no longer needed, deleting the rule keeps the pods.",
			find:   findEvictions,
		},
		{
			Code: "DRA1505", Title: "taint rules that contradict each other", Severity: api.SeverityWarning, Needs: needs,
			About:  "Two DeviceTaintRules select the same device and give a taint of the same key another value or another effect. The device has both taints, and the stricter one decides.",
			Advice: "Keep one of the rules.",
			find:   findContradictions,
		},
		{
			Code: "DRA1506", Title: "devices that their driver taints", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourceSlices}, Repeats: RepeatsTaint,
			About:  "A driver publishes devices with a taint of effect NoSchedule or NoExecute, mostly because they are broken: an XID error of a GPU, uncorrectable memory errors, a link that is down. No pod without a toleration gets them.",
			Advice: "Find out on the node what is wrong, with the log of the driver's plugin and 'kubectl dra node-probe', and repair it. The driver takes the taint back; some do so only when their plugin restarts. A toleration only makes pods run on broken hardware.",
			find:   findTainted,
		},
		{
			Code: "DRA1507", Title: "taint rule for every device", Severity: api.SeverityWarning, Needs: needs, Repeats: RepeatsRule,
			About:  "A DeviceTaintRule selects every device of every driver. With effect NoExecute, it evicts every pod that has a device.",
			Advice: "Select a driver, a pool or a device. 'kubectl dra taints preview' shows whom a rule evicts.",
			find:   ruleCheck(everyDevice),
		},
	}
}

// ruleCheck returns a check of each DeviceTaintRule.
func ruleCheck(find func(*cluster, *resourceapi.DeviceTaintRule) *api.Finding) func(context.Context, *cluster) ([]api.Finding, error) {
	return func(_ context.Context, in *cluster) ([]api.Finding, error) {
		var found []api.Finding
		for _, rule := range in.cluster.Snapshot.TaintRules {
			if f := find(in, rule); f != nil {
				f.Objects = []api.ObjectRef{api.RefTo(kindRule, rule)}
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
	if text := in.cluster.Taints.OpenRuleText(rule); text != "" {
		return &api.Finding{
			Message:  text,
			Evidence: []api.Evidence{{Object: api.RefTo(kindRule, rule), Path: "spec.deviceSelector", Found: "missing", Required: "a driver, a pool or a device"}},
		}
	}
	if len(in.cluster.Taints.SelectedBy(rule)) > 0 {
		return nil
	}
	return &api.Finding{
		Message:  fmt.Sprintf("rule %s selects no device: %s", rule.Name, inventory.RuleSelector(rule)),
		Evidence: []api.Evidence{{Object: api.RefTo(kindRule, rule), Path: "spec.deviceSelector", Found: inventory.RuleSelector(rule), Required: "a device that is published"}},
	}
}

func effectless(_ *cluster, rule *resourceapi.DeviceTaintRule) *api.Finding {
	if rule.Spec.Taint.Effect != resourceapi.DeviceTaintEffectNone {
		return nil
	}
	return &api.Finding{
		Message:  fmt.Sprintf("rule %s has the effect None: it does nothing", rule.Name),
		Evidence: []api.Evidence{{Object: api.RefTo(kindRule, rule), Path: "spec.taint.effect", Found: string(rule.Spec.Taint.Effect)}},
	}
}

func everyDevice(in *cluster, rule *resourceapi.DeviceTaintRule) *api.Finding {
	if rule.Spec.Taint.Effect == resourceapi.DeviceTaintEffectNone || !in.cluster.Taints.SelectsAll(rule) {
		return nil
	}
	o := shell.KubectlObjects("devicetaintrule", "", rule.Name)
	return &api.Finding{
		Message:  facts.EveryDeviceText(rule) + ": " + rule.Spec.Taint.String(),
		Evidence: []api.Evidence{{Object: api.RefTo(kindRule, rule), Path: "spec.deviceSelector", Found: inventory.RuleSelector(rule), Required: "a driver, a pool or a device"}},
		Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: "select a driver, a pool or a device, or delete the rule", Commands: []string{"kubectl edit " + o}},
	}
}

// findTainted groups the devices of one driver by taint. Devices whose pods are about to be
// evicted have another finding.
func findTainted(_ context.Context, in *cluster) ([]api.Finding, error) {
	if !in.cluster.Gates.Enabled(facts.GateDeviceTaints) {
		return nil, nil
	}
	nodes := map[string]string{}
	for _, d := range in.cluster.Pools.Devices() {
		if len(d.Taints) > 0 {
			nodes[d.ID.String()], _ = inventory.DeviceScope(&d)
		}
	}
	var found []api.Finding
	for _, taint := range in.inventory.Taints() {
		if taint.Rule != "" || taint.Effect == string(resourceapi.DeviceTaintEffectNone) || taint.NextEviction != nil && in.opts.Makes(codeEvicts) {
			continue
		}
		f := api.Finding{}
		var where []string
		for _, device := range taint.Devices {
			f.Evidence = append(f.Evidence, api.Evidence{Object: api.Ref(api.KindDevice, "", device), Path: "taints", Found: inventory.TaintText(&taint), Required: "no taint"})
			if node := nodes[device]; node != "" && !slices.Contains(where, node) {
				where = append(where, node)
				f.Objects = append(f.Objects, api.Ref(api.KindNode, "", node))
			}
		}
		on, since := "", ""
		if len(where) > 0 {
			on = fmt.Sprintf(" on %s", english.Sample(where, maxNames))
		}
		if taint.Since != nil {
			since = fmt.Sprintf(" for %s (since %s)", ageText(in.cluster.Snapshot.Now().Sub(taint.Since.Time)), taint.Since.UTC().Format(time.RFC3339))
		}
		f.Message = fmt.Sprintf("driver %s has tainted %s%s with %s%s: %s", taint.Driver, english.Count(len(taint.Devices), "device"), on, inventory.TaintText(&taint), since, english.Sample(taint.Devices, maxNames))
		if len(taint.Claims) > 0 {
			f.Message += "; used by " + english.Count(len(taint.Claims), "claim")
		}
		step := lifecycle.PluginStep(in.cluster.Snapshot, taint.Driver, where...)
		step.Text = "find out what is wrong with the devices and repair it (kubectl dra node-probe on the node, the log of the plugin); the driver takes the taint back, some only when the plugin restarts"
		f.Remedy = &step
		found = append(found, f)
	}
	return found, nil
}

// maxNames limits how many names a message has.
const maxNames = 4

func forgotten(in *cluster, rule *resourceapi.DeviceTaintRule) *api.Finding {
	age := in.cluster.Snapshot.Now().Sub(rule.CreationTimestamp.Time)
	if rule.CreationTimestamp.IsZero() || age < cmp.Or(in.opts.OlderThan, RuleAge) || rule.Spec.Taint.Effect == resourceapi.DeviceTaintEffectNone {
		return nil
	}
	selected := len(in.cluster.Taints.SelectedBy(rule))
	if selected == 0 {
		return nil
	}
	return &api.Finding{
		Message:  fmt.Sprintf("rule %s keeps %s from pods for %s", rule.Name, english.Count(selected, "device"), ageText(age)),
		Evidence: []api.Evidence{{Object: api.RefTo(kindRule, rule), Path: "metadata.creationTimestamp", Found: rule.CreationTimestamp.UTC().Format(time.RFC3339)}},
	}
}

// ageText returns an age in days, or in kubectl's format if it is less than one.
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
		f := api.Finding{}
		for _, pod := range taint.Pods {
			if pod.Evicted {
				f.Objects = append(f.Objects, api.Ref(api.KindPod, pod.Namespace, pod.Name))
			}
		}
		source, by := api.Ref("Driver", "", taint.Driver), "driver "+taint.Driver
		if taint.Rule != "" {
			source, by = api.Ref(kindRule, "", taint.Rule), kindRule+" "+taint.Rule
		}
		next := "the next one in "
		left, _ := inventory.EvictionDue(&taint, in.cluster.Snapshot.Now())
		if left <= 0 {
			left, next = -left, "due for "
		}
		f.Message = fmt.Sprintf("taint %s of %s evicts %s, %s%s (%s)", inventory.TaintText(&taint), by, english.Count(len(f.Objects), "pod"),
			next, duration.HumanDuration(left), taint.NextEviction.UTC().Format(time.RFC3339))
		f.Evidence = []api.Evidence{{Object: source, Path: "taint", Found: inventory.TaintText(&taint)}}
		f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "this lists the pods, and when each is evicted", Commands: []string{"kubectl dra taints -o wide"}}
		found = append(found, f)
	}
	return found, nil
}

// findContradictions compares the rules with the same key.
func findContradictions(_ context.Context, in *cluster) ([]api.Finding, error) {
	rules := slices.Clone(in.cluster.Snapshot.TaintRules)
	rules = slices.DeleteFunc(rules, func(r *resourceapi.DeviceTaintRule) bool {
		return r.Spec.Taint.Effect == resourceapi.DeviceTaintEffectNone
	})
	selected := map[string]map[facts.DeviceID]bool{}
	of := func(rule *resourceapi.DeviceTaintRule) map[facts.DeviceID]bool {
		if selected[rule.Name] == nil {
			selected[rule.Name] = map[facts.DeviceID]bool{}
			for _, id := range in.cluster.Taints.SelectedBy(rule) {
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
				Objects: []api.ObjectRef{api.RefTo(kindRule, a), api.RefTo(kindRule, b)},
				Message: fmt.Sprintf("rules %s and %s give %s different taints with key %s", a.Name, b.Name, english.Count(both, "device"), ours.Key),
				Evidence: []api.Evidence{
					{Object: api.RefTo(kindRule, a), Path: "spec.taint", Found: ours.String()},
					{Object: api.RefTo(kindRule, b), Path: "spec.taint", Found: theirs.String()},
				},
				Remedy: &api.NextStep{Actor: api.ActorAdmin, Text: "delete the rule that is no longer needed"},
			})
		}
	}
	return found, nil
}
