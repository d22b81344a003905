// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// Answer says why a pod does not run.
type Answer struct {
	Pod *corev1.Pod
	// Reason is a reason code, Note the decisive fact and the first change that mends it.
	Reason, Note string
}

const (
	// leastAge is the age of a pod before which nothing is said about it: most are scheduled by
	// then.
	leastAge = 30 * time.Second
	// maxNote is the largest note of an event in bytes
	// (k8s.io/kubernetes/pkg/apis/core/validation, NoteLengthLimit).
	maxNote = 1024
)

// answersOf returns the answers about the pods that do not run at a time. There is none for a pod that is
// young, that fits, or about which the allocator is not sure.
func answersOf(c *cluster.Cluster, found *cause.Found, now time.Time) []Answer {
	var list []Answer
	add := func(pod *corev1.Pod, reason, fact, fix string) {
		if reason != "" && now.Sub(pod.CreationTimestamp.Time) >= leastAge {
			list = append(list, Answer{Pod: pod, Reason: reason, Note: note(fact, fix)})
		}
	}
	full := map[api.ObjectRef]*api.Explanation{}
	for _, answer := range found.Examination.Answers {
		if e := answer.Explanation; e != nil {
			full[e.Target] = e
		}
	}
	for i, pod := range c.Waiting() {
		e := found.Examination.Answers[i].Explanation
		if e == nil || e.OtherScheduler != nil || len(e.SchedulingGates) > 0 {
			continue
		}
		switch e.Verdict {
		case api.DoesNotFit, api.Error, api.Blocked:
			advice := e
			if first := full[e.SameAs]; first != nil {
				advice = first
			}
			add(pod, string(e.Code), fact(e), fix(advice))
		default:
		}
	}
	for i := range found.Examination.Blocked {
		b := &found.Examination.Blocked[i]
		if pod := c.Snapshot.Pod(b.Namespace, b.Name); pod != nil && pod.Spec.NodeName != "" {
			step := ""
			if len(b.Steps) > 0 {
				step = by(b.Steps[0].Actor, b.Steps[0].Text)
			}
			fact := b.Summary
			if b.Code == api.DeviceAllocatedTwice {
				fact = "Another claim has a device of this pod, too."
			}
			add(pod, string(b.Code), fact, step)
		}
	}
	return list
}

// fact returns the decisive fact of an answer. Who may read the events of a pod may not be
// permitted to read the pods before it in the queue.
func fact(e *api.Explanation) string {
	if e.Code == api.PodsCompete {
		return "Pods before it in the queue get the devices."
	}
	return cmp.Or(e.Headline, e.Summary)
}

// fix returns the first change that lets a pod fit, in the order of `kubectl dra why`. Claims of
// others are not named.
func fix(e *api.Explanation) string {
	const wait = "It fits when claims of other pods are released."
	switch {
	case len(e.Remedies) > 0 && e.Remedies[0].Actor == api.ActorNobody:
		return wait
	case len(e.Remedies) > 0:
		return by(e.Remedies[0].Actor, e.Remedies[0].Change)
	case explain.When(e) == api.LowerPrioritiesGone || explain.When(e) == api.ClaimsReleased:
		return wait
	case len(e.NextSteps) > 0 && e.NextSteps[0].Actor != api.ActorNobody:
		return by(e.NextSteps[0].Actor, e.NextSteps[0].Text)
	default:
		return ""
	}
}

// by returns a change as a sentence that names who can make it.
func by(actor, change string) string {
	who := map[string]string{api.ActorUser: "Fix: ", api.ActorAdmin: "Fix (cluster admin): "}[actor]
	return who + strings.TrimSuffix(change, ".") + "."
}

// note joins a fact and a fix into the note of an event. What is too long is cut between words.
func note(fact, fix string) string {
	text := strings.TrimSpace(render.Escape(strings.TrimSpace(fact) + " " + fix))
	if len(text) <= maxNote {
		return text
	}
	cut := maxNote - len(" …")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	if space := strings.LastIndexByte(text[:cut], ' '); space > 0 {
		cut = space
	}
	return text[:cut] + " …"
}
