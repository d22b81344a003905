// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// away is how long nobody presses a key before the next key is another look at the dashboard.
const away = time.Minute

// glance has the causes that somebody saw.
type glance struct {
	at     time.Time
	causes *Causes
}

// Changes are the causes that began and ended since somebody looked before.
type Changes struct {
	At time.Time
	// Back is true if that was at a later time of a recording.
	Back  bool
	Began map[string]bool
	Ended []api.Cause
	// Started counts the pods that waited then and have a node now.
	Started int
}

// Looked notes that somebody pressed a key.
func (c *Cluster) Looked() {
	if c.opts.Fixed {
		// What changes is what somebody goes to, see [Cluster.Turn].
		return
	}
	now := c.opts.Now()
	if now.Sub(c.last.at) >= away {
		c.before = c.last
	}
	c.last = glance{now, c.causes}
}

// Changes returns what changed since somebody looked before; nil if nothing did.
func (c *Cluster) Changes(namespace string) *Changes {
	before, now := c.before, c.causes
	if c.last.causes != nil && c.opts.Now().Sub(c.last.at) >= away {
		before = c.last
	}
	if before.causes == nil || now == nil || before.causes.Namespace != namespace || now.Namespace != namespace {
		return nil
	}
	out := &Changes{At: before.at, Back: now.At.Before(before.at), Began: map[string]bool{}}
	has := func(causes []api.Cause, id string) bool {
		return slices.ContainsFunc(causes, func(c api.Cause) bool { return c.ID == id })
	}
	for _, cause := range now.Status.Causes {
		if !has(before.causes.Status.Causes, cause.ID) {
			out.Began[cause.ID] = true
		}
	}
	for _, cause := range before.causes.Status.Causes {
		if !has(now.Status.Causes, cause.ID) {
			out.Ended = append(out.Ended, cause)
		}
	}
	for pod, waited := range before.causes.waits {
		if !waited || now.waits[pod] {
			continue
		}
		if now := c.picture.Cluster.Snapshot.Pod(pod.Namespace, pod.Name); now != nil && now.Spec.NodeName != "" {
			out.Started++
		}
	}
	if len(out.Began)+len(out.Ended)+out.Started == 0 {
		return nil
	}
	return out
}

// String says in a few words what changed; it is empty if nothing did.
func (c *Changes) String() string {
	if c == nil {
		return ""
	}
	var parts []string
	if n := len(c.Began); n > 0 {
		parts = append(parts, "+"+english.Count(n, "cause"))
	}
	if n := len(c.Ended); n > 0 && len(c.Began) > 0 {
		parts = append(parts, fmt.Sprint(-n))
	} else if n > 0 {
		parts = append(parts, "-"+english.Count(n, "cause"))
	}
	if c.Started > 0 {
		parts = append(parts, english.Count(c.Started, "pod")+" started")
	}
	if c.Back {
		return "back from " + c.At.Local().Format("15:04") + ": " + strings.Join(parts, ", ")
	}
	return "since " + c.At.Format("15:04") + ": " + strings.Join(parts, ", ")
}
