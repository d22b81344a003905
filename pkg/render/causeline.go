// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
)

// CauseLine has causes that read the same, in a few words for a line of a screen.
type CauseLine struct {
	Causes []*api.Cause
	// Number is the number that they have in a status, Pods how many pods suffer from them.
	Number, Pods int
	// Age says for how long the oldest pod has suffered or, without pods, since when the cause is
	// recorded; it is empty if that is not known. Seconds is the same as a number, 0 if not known.
	Age     string
	Seconds int64
	// Affected names the pods and counts the devices.
	Affected string
	// Who can act, Step says what they can do, and Then what changes when they have done it.
	Who, Step, Then string
}

// CauseLines puts the causes of a status into lines, in their order.
func CauseLines(causes []api.Cause) []CauseLine {
	groups, _ := cause.Same(causes)
	lines := make([]CauseLine, 0, len(groups))
	for i, group := range groups {
		c := group[0]
		line := CauseLine{Causes: group, Number: i + 1, Affected: strings.Join(causeGroup(group).blast(), "; "), Who: Actor(c.Actor), Step: stepOf(c)}
		if c.Mended != nil {
			line.Then = c.Mended.Message
		}
		longest, age := int64(0), int64(0)
		for _, c := range group {
			line.Pods, longest, age = line.Pods+c.Pods, max(longest, c.LongestSeconds), max(age, c.AgeSeconds)
		}
		if line.Seconds = cmp.Or(longest, age); line.Seconds > 0 {
			line.Age = Age(line.Seconds)
		}
		lines = append(lines, line)
	}
	return lines
}

// Title returns the number of the causes.
func (l *CauseLine) Title() string { return fmt.Sprint("cause ", l.Number) }

// Write draws all that is known of the causes, as a status with all of its causes does.
func (l *CauseLine) Write(w io.Writer, opts Options) error {
	p := NewPage(opts)
	p.Opts.Wide = true
	causeGroup(l.Causes).write(p, l.Number, true)
	return p.Print(w)
}
