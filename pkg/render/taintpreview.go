// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// TaintPreview says what a DeviceTaintRule does that is not there yet: which
// devices it taints, which pods it evicts when, and what becomes of these and of pods
// that wait.
func TaintPreview(w io.Writer, t *api.Taint, impact *api.Impact, now time.Time) error {
	say := func(format string, args ...any) error {
		if _, err := fmt.Fprintln(w, Escape(fmt.Sprintf(format, args...))); err != nil {
			return fmt.Errorf("print preview: %w", err)
		}
		return nil
	}
	if err := say("DeviceTaintRule %s puts %s on %s (%s)", t.Rule, inventory.TaintText(t), english.Count(len(t.Devices), "device"), t.Selector); err != nil {
		return err
	}
	for _, device := range t.Devices {
		if err := say("  %s", device); err != nil {
			return err
		}
	}
	evicted, anyway := 0, 0
	for _, pod := range t.Pods {
		if pod.Evicted {
			evicted++
		}
		if pod.Evicted && pod.Anyway != nil {
			anyway++
		}
	}
	of := ""
	if anyway > 0 {
		of = fmt.Sprintf(", %d of them anyway", anyway)
	}
	if err := say("%s would be evicted%s", english.Count(evicted, "pod"), of); err != nil {
		return err
	}
	for _, pod := range t.Pods {
		if err := say("  %s/%s %s", pod.Namespace, pod.Name, fate(&pod, now)); err != nil {
			return err
		}
		for i := range impact.Pods {
			if p := &impact.Pods[i]; p.Effect == api.EffectEvicted && p.Namespace == pod.Namespace && p.Name == pod.Name {
				text, _ := replacementText([]*api.ImpactPod{p})
				if p.Outcome == api.OutcomeUndetermined {
					text += english.PrecededBy(". ", p.Reason)
				}
				if err := say("    %s  %s", ownerText(p), text); err != nil {
					return err
				}
			}
		}
	}
	for _, change := range []struct {
		effect api.ImpactEffect
		does   string
	}{{api.EffectFitLost, "would not fit any more"}, {api.EffectFitGained, "would fit then"}} {
		var names []string
		for _, pod := range withEffect(impact.Pods, change.effect) {
			names = append(names, Qualified(pod.Namespace, pod.Name))
		}
		if len(names) == 0 {
			continue
		}
		if err := say("%s %s: %s", english.Count(len(names), "waiting pod"), change.does, english.Sample(names, maxPreviewed)); err != nil {
			return err
		}
	}
	return nil
}

// maxPreviewed limits how many waiting pods are named.
const maxPreviewed = 10

// fate says what becomes of a pod.
func fate(pod *api.TaintedPod, now time.Time) string {
	text := "would stay"
	if pod.Evicted {
		text = "would be evicted " + moment(pod.EvictionAt.Time, now)
		if pod.TolerationSeconds != nil && pod.EvictionAt.After(now) {
			text += ", when it does not tolerate the taint any longer"
		}
	}
	other := pod.Anyway
	if other == nil {
		return text
	}
	reason := fmt.Sprintf("%s because of %s (%s)", moment(other.At.Time, now), other.Taint, other.Source)
	switch {
	case !pod.Evicted:
		return "would stay, but is evicted anyway " + reason
	case other.At.After(pod.EvictionAt.Time):
		return text + "; it is evicted anyway " + reason
	default:
		return "is evicted anyway " + reason
	}
}
