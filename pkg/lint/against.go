// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

func clusterChecks() []Check {
	return []Check{
		{
			Code: "DRA2501", Title: "devices that cannot be allocated", Severity: api.SeverityWarning,
			About:        "Applied to the cluster that was read, the pods would wait: their devices are not available, or cannot be had together. It may fit later. Made only with --cluster or --snapshot.",
			Advice:       "Ask 'kubectl dra why -f FILE' for all reasons and for remedies.",
			needsCluster: true,
			find:         against(api.DoesNotFit),
		},
		{
			Code: "DRA2502", Title: "scheduling that fails", Severity: api.SeverityError,
			About:        "Applied to the cluster that was read, scheduling would fail on every node: a class is missing, a feature is off, or a selector fails on a device. Made only with --cluster or --snapshot.",
			Advice:       "Ask 'kubectl dra why -f FILE' for the reason.",
			needsCluster: true,
			find:         against(api.Error),
		},
		{
			Code: "DRA2503", Title: "pods that something else refuses", Severity: api.SeverityWarning,
			About:        "Devices would be available in the cluster that was read, and something else refuses the pods: a quota, a LimitRange, a gang, a volume. Made only with --cluster or --snapshot.",
			Advice:       "Ask 'kubectl dra why -f FILE' for the numbers.",
			needsCluster: true,
			find:         against(api.Blocked),
		},
		{
			Code: "DRA2504", Title: "answer that is not known", Severity: api.SeverityUnknown,
			About:        "What the cluster that was read shows is not enough to say whether the pods fit. Made only with --cluster or --snapshot.",
			Advice:       "Ask 'kubectl dra why -f FILE' what could not be read.",
			needsCluster: true,
			find:         against(api.Undetermined),
		},
	}
}

// against finds the targets with one verdict.
func against(verdict api.Verdict) func(*input) []finding {
	return func(in *input) []finding {
		answers, err := in.explain(in.ctx)
		if err != nil {
			in.err = err
			return nil
		}
		var found []finding
		for _, answer := range answers {
			called := in.called[answer.Object.Kind+"/"+answer.Object.Name]
			at := slices.IndexFunc(called, func(o *object) bool { return o.namespace == answer.Object.Namespace })
			if at < 0 || len(called[at].broken) > 0 {
				continue
			}
			o := called[at]
			switch {
			case answer.Err != nil && verdict == api.Undetermined:
				found = append(found, finding{object: o, path: "metadata.name", message: "not checked: " + answer.Err.Error()})
			case answer.Err != nil || answer.Verdict != verdict || answer.Code == api.ClassNotFound || answer.Code == api.ClaimNotReady && in.incomplete[o]:
			default:
				f := finding{object: o, path: "metadata.name", message: answer.Summary, found: string(answer.Code), advice: in.askWhy(o)}
				if verdict == api.Undetermined {
					f.message = "not checked: " + answer.Summary
				}
				found = append(found, f)
			}
		}
		return found
	}
}

// askWhy says how to get the whole answer about an object.
func (in *input) askWhy(o *object) string {
	if in.whyCommand != nil {
		if command := in.whyCommand(o.text.File); command != "" {
			return "for all reasons and remedies: " + command
		}
	}
	return "ask 'kubectl dra why -f FILE' for all reasons and remedies"
}
