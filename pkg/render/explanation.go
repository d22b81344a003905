// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

// shownPods is how many pods are named when there are more and not all of them
// were asked for.
const shownPods = 3

// actorWidth is the most that the column of those who can do something takes.
const actorWidth = 12

// Explanation draws the answer to "why": the verdict first, then the funnel of
// each request, the nodes, what is or would be allocated, and what to do next.
// The only errors are those of w.
func Explanation(w io.Writer, e *explain.Explanation, opts Options) error {
	p := newPage(opts)
	p.oneNode = e.Node != nil
	if e.Device != nil {
		p.device(e)
		p.assumptions(e)
		p.provenance(e)
		return p.writeTo(w)
	}
	p.headline(e)
	p.misfits(e)
	p.claims(e)
	p.pools(e)
	p.nodes(e)
	p.proof(e)
	p.placement(e)
	p.hints(e)
	p.assumptions(e)
	p.nextSteps(e)
	p.provenance(e)
	return p.writeTo(w)
}

func (p *page) writeTo(w io.Writer) error {
	if _, err := w.Write(p.buf.Bytes()); err != nil {
		return fmt.Errorf("write the explanation: %w", err)
	}
	return nil
}

func (p *page) headline(e *explain.Explanation) {
	said, m := verdict(e)
	p.text(0, m, e.Target.Kind+" "+qualified(e.Target.Namespace, e.Target.Name)+" "+said)
	if e.Summary != "" {
		p.text(2, plain, e.Summary)
	}
	p.replicas(e)
	p.pods(e)
	p.stageEvidence(e)
	if message := e.SchedulerMessage; message != nil && !strings.Contains(e.Summary, message.Text) {
		p.text(2, plain, fmt.Sprintf("The scheduler says (%s%s): %s", message.Source, at(message.Time), message.Text))
	}
}

// verdict puts the verdict into the words of the headline.
func verdict(e *explain.Explanation) (string, mark) {
	if e.Node != nil {
		if said, m := nodeVerdict(e); said != "" {
			return said, m
		}
	}
	switch e.Verdict {
	case explain.Allocated:
		return "is allocated", good
	case explain.Fits:
		return fmt.Sprintf("fits on %d of %s", fitting(e.Nodes), count(e.NodeCount, "node")), good
	case explain.DoesNotFit:
		switch e.NodeCount {
		case 0:
			return "does not fit: there is no node", bad
		case 1:
			return "does not fit on the only node", bad
		default:
			return fmt.Sprintf("does not fit on any of %d nodes", e.NodeCount), bad
		}
	case explain.Blocked:
		return blocked(e), bad
	case explain.Error:
		return "cannot be allocated", bad
	case explain.Undetermined:
		return "cannot be decided", unsure
	default:
		return "has the verdict " + string(e.Verdict), unsure
	}
}

// blocked says which devices there are; what keeps the target from working is
// in the summary.
func blocked(e *explain.Explanation) string {
	switch n := fitting(e.Nodes); {
	case e.Placement == nil && n > 0:
		return "is blocked, although its claims are allocated"
	case n > 0 && e.Node != nil:
		return "is blocked, although devices are available on node " + e.Node.Name
	case n > 0:
		return fmt.Sprintf("is blocked, although devices are available on %d of %s", n, count(e.NodeCount, "node"))
	default:
		return "is blocked"
	}
}

func fitting(groups []explain.NodeGroup) int {
	n := 0
	for _, group := range groups {
		if group.Verdict == explain.Fits || group.Verdict == explain.Allocated {
			n += group.Count
		}
	}
	return n
}

func (p *page) pods(e *explain.Explanation) {
	shown := e.Pods
	if !p.opts.Wide && len(shown) > shownPods {
		shown = shown[:shownPods]
	}
	for i := range shown {
		pod := &shown[i]
		subject, object := "Pod "+qualified(pod.Namespace, pod.Name), " for it"
		if e.Target.Kind == "Pod" && e.Target.Namespace == pod.Namespace && e.Target.Name == pod.Name {
			subject, object = "It", ""
		}
		p.text(2, plain, subject+" "+standing(pod, object))
	}
	if rest := max(e.PodCount, len(e.Pods)) - len(shown); rest > 0 {
		p.text(2, plain, "… and "+count(rest, "more pod"))
	}
	if len(e.Pods) == 0 && e.Stage != "" {
		p.text(2, plain, "Stage: "+string(e.Stage))
	}
}

// shownProofs is how much of what proves the stage is shown when not all of it
// was asked for.
const shownProofs = 3

func (p *page) stageEvidence(e *explain.Explanation) {
	shown := e.StageEvidence
	if !p.opts.Wide && len(shown) > shownProofs {
		shown = shown[:shownProofs]
	}
	for i := range shown {
		p.text(2, plain, "Proof: "+proof(&shown[i], p.opts.Wide))
	}
	if rest := len(e.StageEvidence) - len(shown); rest > 0 {
		p.text(2, plain, "… and "+count(rest, "more proof"))
	}
}

// proof names the field and what it says. What an event says is in the summary.
func proof(fact *explain.Evidence, wide bool) string {
	text := strings.TrimSpace(fact.Object + " " + fact.Path)
	if fact.Path == "message" && !wide {
		return text
	}
	if fact.Found != "" {
		text += ": " + fact.Found
	}
	if fact.Wanted != "" {
		text += " (wanted: " + fact.Wanted + ")"
	}
	return text
}

// standing says what a pod does: wait (object says for what), or run somewhere.
func standing(pod *explain.PodStatus, object string) string {
	age := duration.HumanDuration(time.Duration(pod.AgeSeconds) * time.Second)
	var said string
	switch {
	case pod.Node == "" && pod.AgeSeconds > 0:
		said = "has waited " + age + object
	case pod.Node == "":
		said = "is not scheduled"
	case pod.Phase == "Running":
		said = "runs on " + pod.Node
	case pod.Phase != "":
		said = "is " + pod.Phase + " on " + pod.Node
	default:
		said = "is bound to " + pod.Node
	}
	if pod.Stage != "" {
		said += " (stage: " + string(pod.Stage) + ")"
	}
	return said
}

func (p *page) placement(e *explain.Explanation) {
	if e.Placement == nil {
		return
	}
	p.blank()
	p.text(0, strong, "It would get these devices, on "+e.Placement.Node)
	for i := range e.Placement.Claims {
		claim := &e.Placement.Claims[i]
		indent := 2
		if len(e.Placement.Claims) > 1 {
			p.text(indent, plain, "ResourceClaim "+qualified(claim.Namespace, claim.Name))
			indent += 2
		}
		p.devices(indent, claim.Devices)
	}
}

func (p *page) hints(e *explain.Explanation) {
	if len(e.Hints) == 0 {
		return
	}
	p.blank()
	p.text(0, strong, "Also seen in the cluster")
	for i := range e.Hints {
		p.row(2, cell{text: "-", width: 1}, cell{text: e.Hints[i].Text})
	}
}

func (p *page) assumptions(e *explain.Explanation) {
	if len(e.Assumptions) == 0 {
		return
	}
	p.blank()
	p.text(0, strong, "Taken for granted, because it could not be seen")
	for _, assumption := range e.Assumptions {
		p.row(2, cell{text: "-", width: 1}, cell{text: assumption})
	}
}

func (p *page) nextSteps(e *explain.Explanation) {
	if len(e.NextSteps) == 0 {
		return
	}
	p.blank()
	p.text(0, strong, "What can be done")
	var texts []string
	actors := map[string][]string{}
	for _, step := range e.NextSteps {
		if actors[step.Text] == nil {
			texts = append(texts, step.Text)
		}
		if who := actor(step.Actor); !slices.Contains(actors[step.Text], who) {
			actors[step.Text] = append(actors[step.Text], who)
		}
	}
	width := len("admin")
	for _, who := range actors {
		width = max(width, widest(actorWidth, strings.Join(who, ", ")))
	}
	for _, text := range texts {
		p.row(2, cell{text: strings.Join(actors[text], ", "), width: width, mark: strong}, cell{text: text})
	}
}

func actor(name string) string {
	switch name {
	case explain.ActorUser:
		return "you"
	case explain.ActorAdmin:
		return "admin"
	case explain.ActorNobody:
		return "wait"
	default:
		return name
	}
}

// provenance tells which allocator answered; only people who doubt the answer
// want to know.
func (p *page) provenance(e *explain.Explanation) {
	if !p.opts.Wide {
		return
	}
	cluster := e.Allocator.Cluster
	if cluster == "" {
		cluster = "of unknown version"
	}
	features := "none"
	if len(e.Allocator.Features) > 0 {
		features = strings.Join(e.Allocator.Features, ", ")
	}
	p.blank()
	p.text(0, strong, "Who answered")
	p.text(2, plain, fmt.Sprintf("the scheduler's allocator %s (%s) for a cluster %s", e.Allocator.Library, e.Allocator.Channel, cluster))
	p.text(2, plain, fmt.Sprintf("features (from %s): %s", e.Allocator.FeatureSource, features))
}

// qualified is "namespace/name", or just the name.
func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// at says when, for a sentence; nothing if that is unknown.
func at(t *metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", " + t.UTC().Format(time.RFC3339)
}
