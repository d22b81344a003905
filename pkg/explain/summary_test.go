// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/explain/hints"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
)

// TestSummaryOfParts puts together what the steps of an explanation return.
func TestSummaryOfParts(t *testing.T) {
	short := reason{what: "request r needs 2 devices. Node n1 has none"}
	typo := reason{what: "no node has devices of class c", detail: detail{text: "no device is of driver gpu.exampel.com", noDriver: "gpu.exampel.com"}, node: ", and is not suitable: cordoned"}
	gated := lifecycle.Finding{Reason: "the scheduler waits until the scheduling gate g is removed"}
	for name, test := range map[string]struct {
		parts summary
		want  string
	}{
		"reason":  {summary{reason: short}, "Request r needs 2 devices. Node n1 has none."},
		"detail":  {summary{reason: typo}, "No node has devices of class c; no device is of driver gpu.exampel.com, and is not suitable: cordoned."},
		"finding": {summary{reason: short, findings: []lifecycle.Finding{gated}}, "The scheduler waits until the scheduling gate g is removed; then: request r needs 2 devices. Node n1 has none."},
		"finding alone": {
			summary{findings: []lifecycle.Finding{gated}}, "The scheduler waits until the scheduling gate g is removed.",
		},
		"finding instead": {
			summary{reason: short, findings: []lifecycle.Finding{{Reason: "claim c is being deleted", Instead: true}}}, "Claim c is being deleted.",
		},
		"silent driver": {
			summary{reason: typo, besides: hints.Found{Silent: []hints.SilentDriver{{Name: "gpu.exampel.com", Text: "driver gpu.exampel.com publishes nothing"}}}},
			"No node has devices of class c, and is not suitable: cordoned; driver gpu.exampel.com publishes nothing.",
		},
		"another silent driver": {
			summary{reason: typo, besides: hints.Found{Silent: []hints.SilentDriver{{Name: "nic.example.com", Text: "driver nic.example.com publishes nothing"}}}},
			"No node has devices of class c; no device is of driver gpu.exampel.com, and is not suitable: cordoned; driver nic.example.com publishes nothing.",
		},
		"what is not known": {
			summary{reason: reason{what: "the allocator picks n1"}, unknown: []string{"not evaluated: volumes", "the scheduler last said otherwise"}, besides: hints.Found{Warning: "warning: no container uses claim c"}},
			"The allocator picks n1; not evaluated: volumes; the scheduler last said otherwise; warning: no container uses claim c.",
		},
		"one node": {
			summary{onNode: "cordoned; there are enough devices", reason: short, findings: []lifecycle.Finding{gated}}, "Cordoned; there are enough devices.",
		},
		"another pod": {
			summary{instead: "b", reason: reason{what: "the allocator picks n1"}}, "It can be allocated for pod b, not for others that wait for it. The allocator picks n1.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.parts.sentence(); got != test.want {
				t.Errorf("\ngot  %s\nwant %s", got, test.want)
			}
		})
	}
}
