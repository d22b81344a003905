// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
)

// blockedPods has the pods that got their devices and cannot work with them. Pods
// of one owner with the same code are one line.
func blockedPods(m *Model, pods []lifecycle.BlockedPod) block {
	b := block{}
	type group struct {
		first *lifecycle.BlockedPod
		count int
	}
	var groups []*group
	known := map[[3]string]*group{}
	total := 0
	for i := range pods {
		pod := &pods[i]
		if m.namespace != "" && pod.Namespace != m.namespace {
			continue
		}
		total++
		key := [3]string{pod.Namespace, cmp.Or(pod.Owner, "pod/"+pod.Name), string(pod.Code)}
		if known[key] == nil {
			known[key] = &group{first: pod}
			groups = append(groups, known[key])
		}
		known[key].count++
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(b.count, a.count) })
	b.title = fmt.Sprintf("Blocked pods: %d", total)
	for _, g := range groups {
		pod := g.first
		name := pod.Namespace + "/" + pod.Name
		if g.count > 1 {
			name = pod.Namespace + " " + pod.Owner + ", such as " + pod.Name
		}
		b.lines = append(b.lines, blockLine{
			text: fmt.Sprintf("%4d  %s  %s", g.count, m.look.Say(look.Bad, string(pod.Code)), m.look.Say(look.Faint, render.Escape(name+": "+pod.Summary))),
			open: func() screen {
				return whyPage(&inventory.Pod{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}})
			},
		})
	}
	return b
}
