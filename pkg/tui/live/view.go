// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// lateAnswer is the age from which on the last answer of the server is worth a color, and
// counting. A server where nothing happens is asked more often, and a screen that stays as
// it is costs nothing.
const lateAnswer = 5 * time.Second

// Taken returns the time of the picture, and how long ago the server was last heard of.
func (c *Cluster) Taken(l *widget.Look) string {
	switch {
	case c.picture == nil:
		return ""
	case c.opts.Fixed:
		return c.picture.Cluster.Snapshot.Now().Local().Format("2006-01-02 15:04:05")
	}
	age, t := "<"+ago(lateAnswer), widget.Faint
	if since := c.opts.Now().Sub(c.opts.Source.Answered()); since >= lateAnswer {
		age, t = ago(since), widget.Warning
	}
	return l.Say(t, "last answer "+age+" ago") + "  " + c.picture.Cluster.Snapshot.Now().Format("15:04:05")
}

// Status says what keeps the picture from being newer, and how much that matters; empty if
// nothing does. Proceed is the key that ends a freeze.
func (c *Cluster) Status(proceed string) (widget.Tone, string) {
	since, trouble := c.trouble()
	switch {
	case trouble != nil:
		return widget.Bad, fmt.Sprintf("! for %s: %v", ago(c.opts.Now().Sub(since)), trouble)
	case c.problem != nil:
		return widget.Bad, "! " + c.problem.Error()
	case c.frozen && c.picture != nil:
		text := "frozen, " + ago(c.opts.Now().Sub(c.picture.Cluster.Snapshot.Now())) + " old"
		if c.dirty {
			text += "; the cluster has changed"
		}
		return widget.Warning, text + "; " + proceed + " continues"
	default:
		return widget.Plain, ""
	}
}

// Brief lists the problems of a namespace in a few words.
func (c *Cluster) Brief(namespace string) []string {
	var parts []string
	if _, trouble := c.trouble(); trouble != nil {
		parts = append(parts, "no answer")
	}
	waiting := c.WaitingPods(namespace)
	if waiting == 1 {
		parts = append(parts, "1 waits")
	} else if waiting > 1 {
		parts = append(parts, english.Thousands(waiting)+" wait")
	}
	if broken := c.troubles.Broken; broken > 0 {
		parts = append(parts, english.Thousands(broken)+" broken")
	}
	return parts
}

func ago(d time.Duration) string { return duration.HumanDuration(max(d, 0)) }
