// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"regexp"
	"strings"
)

// behaviorMessage is a text that only kube-schedulers with one behavior write.
type behaviorMessage struct {
	behavior Behavior
	// word is a part of every such text, which is looked for first.
	word    string
	pattern *regexp.Regexp
}

// behaviorMessages returns the texts that prove a behavior. A scheduler writes them into the condition
// PodScheduled of a pod, and into events. Errors that end an attempt for all nodes begin with
// the point that failed (RunFilterPlugins and RunScorePlugins in pkg/scheduler/framework/runtime);
// what keeps a pod from one node stands behind "0/3 nodes are available".
//
//   - computeScore in pkg/scheduler/framework/plugins/dynamicresources: since the fix, the text
//     goes on with "needing allocation".
//   - validateDeviceRequest in structured/internal/*/allocator_*.go.
//   - Filter in pkg/scheduler/framework/plugins/dynamicresources: up to 1.35 it names no node.
func behaviorMessages() []behaviorMessage {
	return []behaviorMessage{
		{MixedClaimsFailScore, "number of allocations", regexp.MustCompile(`number of allocations \d+ is smaller than number of claims($|[^ ]| *$)`)},
		{AllPoolErrorEndsAttempt, "asks for all devices", regexp.MustCompile(`^running "DynamicResources" filter plugin: .*asks for all devices, but resource pool `)},
		{TimeoutEndsAttempt, "timed out trying", regexp.MustCompile(`^running "DynamicResources" filter plugin: .*node \S+: timed out trying to allocate devices`)},
	}
}

// behaviorProvedBy returns the behavior that a message of kube-scheduler proves, whatever is known of
// its release; false for all other messages.
func behaviorProvedBy(text string) (Behavior, bool) {
	for _, m := range behaviorMessages() {
		if strings.Contains(text, m.word) && m.pattern.MatchString(text) {
			return m.behavior, true
		}
	}
	return "", false
}
