// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// TaintPreview says what a DeviceTaintRule does that is not there yet: which
// devices it taints, and which pods it evicts when.
func TaintPreview(w io.Writer, t *inventory.Taint, now time.Time) error {
	say := func(format string, args ...any) error {
		if _, err := fmt.Fprintln(w, Escape(fmt.Sprintf(format, args...))); err != nil {
			return fmt.Errorf("print preview: %w", err)
		}
		return nil
	}
	if err := say("DeviceTaintRule %s puts %s on %s (%s)", t.Rule, t.Names()[0], count(len(t.Devices), "device"), t.Selector); err != nil {
		return err
	}
	for _, device := range t.Devices {
		if err := say("  %s", device); err != nil {
			return err
		}
	}
	evicted := 0
	for _, pod := range t.Pods {
		if pod.Evicted {
			evicted++
		}
	}
	if err := say("%s would be evicted", count(evicted, "pod")); err != nil {
		return err
	}
	for _, pod := range t.Pods {
		if err := say("  %s/%s %s", pod.Namespace, pod.Name, fate(&pod, now)); err != nil {
			return err
		}
	}
	return nil
}

// fate says what becomes of a pod.
func fate(pod *inventory.TaintedPod, now time.Time) string {
	switch {
	case !pod.Evicted:
		return "would stay"
	case pod.EvictionAt != nil && pod.EvictionAt.After(now):
		return "would be evicted in " + duration.HumanDuration(pod.EvictionAt.Sub(now)) + ", when it does not tolerate the taint any longer"
	default:
		return "would be evicted at once"
	}
}
