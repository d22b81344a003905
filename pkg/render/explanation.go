// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// actorWidth is the most that the column of those who can do something takes.
const actorWidth = 12

// Explanation draws the answer to "why": the verdict and what is said about the
// target as a whole, then the funnel of each request, the nodes, the conflict
// and the remedies, or what is or would be allocated. The only errors are those
// of w.
func Explanation(w io.Writer, e *api.Explanation, opts Options) error {
	p := NewPage(opts)
	p.oneNode = e.Node != nil
	if e.Device != nil {
		p.device(e)
		p.assumptions(e)
		p.allocator(e)
		return p.writeTo(w)
	}
	p.head(e)
	p.misfits(e)
	p.claims(e)
	p.pools(e)
	p.nodes(e)
	p.conflict(e.Conflict)
	p.remedies(e)
	p.placement(e)
	p.hints(e)
	p.assumptions(e)
	p.nextSteps(e)
	p.allocator(e)
	return p.writeTo(w)
}

func (p *Page) writeTo(w io.Writer) error {
	if _, err := w.Write(p.Buf.Bytes()); err != nil {
		return fmt.Errorf("write the explanation: %w", err)
	}
	return nil
}

// heading starts a part of the page under a title.
func (p *Page) heading(title string) {
	p.Blank()
	p.Text(0, Strong, title)
}

// items lists texts, each behind a dash.
func (p *Page) items(texts ...string) {
	for _, text := range texts {
		p.Row(2, Cell{Text: "-", Width: 1}, Cell{Text: text})
	}
}

func (p *Page) placement(e *api.Explanation) {
	if e.Placement == nil {
		return
	}
	p.heading("Devices that the allocator picks on " + e.Placement.Node)
	for i := range e.Placement.Claims {
		claim := &e.Placement.Claims[i]
		indent := 2
		if len(e.Placement.Claims) > 1 {
			p.Text(indent, Plain, "ResourceClaim "+qualified(claim.Namespace, claim.Name))
			indent += 2
		}
		p.devices(indent, claim.Devices)
	}
}

func (p *Page) hints(e *api.Explanation) {
	if len(e.Hints) == 0 {
		return
	}
	p.heading("Hints")
	for i := range e.Hints {
		p.items(e.Hints[i].Text)
	}
}

func (p *Page) assumptions(e *api.Explanation) {
	if len(e.Assumptions) == 0 {
		return
	}
	p.heading("Assumptions (not verified)")
	p.items(e.Assumptions...)
}

func (p *Page) nextSteps(e *api.Explanation) {
	if len(e.NextSteps) == 0 {
		return
	}
	p.heading("Next steps")
	var texts []string
	actors, commands := map[string][]string{}, map[string][]string{}
	for _, step := range e.NextSteps {
		commands[step.Text] = step.Commands
		if actors[step.Text] == nil {
			texts = append(texts, step.Text)
		}
		if who := actor(step.Actor); !slices.Contains(actors[step.Text], who) {
			actors[step.Text] = append(actors[step.Text], who)
		}
	}
	width := len("admin")
	for _, who := range actors {
		width = max(width, Widest(actorWidth, strings.Join(who, ", ")))
	}
	for _, text := range texts {
		p.Row(2, Cell{Text: strings.Join(actors[text], ", "), Width: width, Mark: Strong}, Cell{Text: text})
		p.verbatim(2+width+ColumnGap, strings.Join(commands[text], "\n"))
	}
}

func actor(name string) string {
	switch name {
	case api.ActorUser:
		return "you"
	case api.ActorAdmin:
		return "admin"
	case api.ActorNobody:
		return "wait"
	default:
		return name
	}
}

// allocator names the allocator that answered; only people who doubt the answer
// want to know.
func (p *Page) allocator(e *api.Explanation) {
	if !p.Opts.Wide {
		return
	}
	cluster := e.Allocator.Cluster
	if cluster == "" {
		cluster = "unknown"
	}
	features := "none"
	if len(e.Allocator.Features) > 0 {
		features = strings.Join(e.Allocator.Features, ", ")
	}
	p.heading("Allocator")
	p.Text(2, Plain, fmt.Sprintf("k8s.io/dynamic-resource-allocation %s, implementation %s, cluster version %s",
		e.Allocator.Library, e.Allocator.Channel, cluster))
	p.Text(2, Plain, fmt.Sprintf("Enabled features (source: %s): %s", e.Allocator.FeatureSource, features))
}

// qualified is "namespace/name", or just the name.
func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
