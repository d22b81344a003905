// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// shownPods and shownEvidence are how many pods, and how much of what proves the
// stage, the head has when not all of it was asked for.
const (
	shownPods     = 3
	shownEvidence = 3
)

// writeHead draws the verdict, and below it a labeled line for each fact about the target
// as a whole.
func writeHead(p *page, e *api.Explanation) {
	said, m := Title(e)
	p.Text(0, m, said)
	p.Blank()
	reason := "Reason"
	if e.Verdict == api.Fits || e.Verdict == api.Allocated {
		reason = "Result"
	}
	p.Field(reason, e.Summary)
	if fixes := fixesOf(e); p.Opts.Screen && len(fixes) > 0 {
		first := &fixes[0]
		text := first.actor + ": " + first.text
		if first.where != "" {
			text += " (fits on " + first.where + ")"
		}
		p.Field("Fix", text)
	}
	if e.OtherScheduler != nil {
		p.Field("Decides", english.Capitalized(e.OtherScheduler.Message)+".")
	}
	if e.Outlook != nil {
		p.Field("Outlook", e.Outlook.Message)
	}
	p.Field("Status", statusTexts(p, e)...)
	writeMemberCounts(p, e)
	p.Field("Different", differentText(e.DifferentPods))
	p.Field("Claim", claimField(e))
	p.Field("Domain", domainTexts(p, e)...)
	p.Field("Evidence", stageTexts(p, e)...)
	if message := e.SchedulerMessage; message != nil {
		p.Field("Scheduler", fmt.Sprintf("%s (%s%s)", message.Text, message.Source, at(message.Time)))
	}
}

// Title says in a sentence what the outcome for the target is, and who decides it.
func Title(e *api.Explanation) (string, render.Mark) {
	said, m := verdict(e)
	return said + decider(e), m
}

// verdict says in a sentence what the outcome for the target is.
func verdict(e *api.Explanation) (string, render.Mark) {
	target := e.Target.Kind + " " + render.Qualified(e.Target.Namespace, e.Target.Name)
	where := where(e)
	if said := membersVerdict(e); said != "" {
		return target + said, render.Bad
	}
	switch e.Verdict {
	case api.Allocated:
		if e.Finished {
			return target + " is finished", render.Good
		}
		said := " is allocated"
		switch {
		case e.Target.Kind == api.KindClaim:
		case e.Stage == api.StageBinding:
			said = " waits until its devices are bound"
		case e.Stage == api.StagePreparation, e.Stage == api.StageInjection:
			said = " has its devices and has not started"
		default:
			said = ": all devices are allocated"
		}
		if e.Node != nil {
			said += " and can be used on " + where
		}
		return target + said, render.Good
	case api.Fits:
		return target + " fits on " + where, render.Good
	case api.DoesNotFit:
		if e.Node == nil && e.NodeCount == 0 {
			return target + " does not fit: the cluster has no nodes", render.Bad
		}
		return target + " does not fit on " + where, render.Bad
	case api.Blocked:
		return target + " is blocked" + refused(e) + although(e), render.Bad
	case api.Error:
		if e.Target.Kind == api.KindPod {
			return target + " cannot be scheduled on any node", render.Bad
		}
		return target + " cannot be allocated on any node", render.Bad
	case api.Undetermined:
		if e.Node != nil {
			return target + ": not known whether it fits on " + where, render.Unsure
		}
		return target + ": not known whether it fits", render.Unsure
	default:
		return target + ": " + string(e.Verdict), render.Unsure
	}
}

// decider ends the sentence if something else decides first: scheduling gates, or another
// scheduler. What blocks a pod does so for every scheduler.
func decider(e *api.Explanation) string {
	said := ""
	switch {
	case e.Verdict == api.Blocked || e.Verdict == api.Allocated:
		return ""
	case len(e.SchedulingGates) > 0 && e.Verdict == api.Fits:
		said = " once " + gatesText(e) + english.Plural(len(e.SchedulingGates), " is", " are") + " removed"
	case len(e.SchedulingGates) > 0:
		said = ", and has " + gatesText(e)
	}
	if e.OtherScheduler != nil {
		said = " for kube-scheduler" + said + ", but scheduler " + e.OtherScheduler.Name + " decides"
	}
	return said
}

func gatesText(e *api.Explanation) string {
	return english.Plural(len(e.SchedulingGates), "scheduling gate ", "scheduling gates ") + english.JoinAnd(e.SchedulingGates)
}

// refused says what the API server refuses of a target that is blocked; empty if that is
// nothing.
func refused(e *api.Explanation) string {
	switch {
	case e.Code == api.PodRefused:
		return ": its pods are refused"
	case e.Stage == api.StageClaimGeneration && fitting(e.Nodes) > 0 && (e.Code == api.ClaimNotReady || e.Code == api.QuotaExceeded):
		return ": its claim is refused"
	default:
		return ""
	}
}

// although says which devices there are for a target that is blocked. What
// blocks it is in the summary.
func although(e *api.Explanation) string {
	switch n := fitting(e.Nodes); {
	case e.Placement == nil && n > 0:
		return ", although its claims are allocated"
	case n > 0 && e.Node != nil:
		return ", although devices are available on node " + e.Node.Name
	case n > 0:
		return fmt.Sprintf(", although devices are available on %d of %s", n, english.Count(e.NodeCount, "node"))
	default:
		return ""
	}
}

// where names the nodes that a verdict is about.
func where(e *api.Explanation) string {
	switch {
	case e.Node != nil:
		return "node " + e.Node.Name
	case e.Verdict == api.Fits && e.SameAs.Kind != "" && e.Placement != nil:
		// The other answer has the nodes.
		return "node " + e.Placement.Node
	case e.Verdict == api.Fits:
		return fmt.Sprintf("%d of %s", fitting(e.Nodes), english.Count(e.NodeCount, "node"))
	case e.NodeCount == 1:
		return "the only node"
	default:
		return fmt.Sprintf("any of %d nodes", e.NodeCount)
	}
}

func fitting(groups []api.NodeGroup) int {
	n := 0
	for _, group := range groups {
		if group.Verdict == api.Fits || group.Verdict == api.Allocated {
			n += group.Count
		}
	}
	return n
}

// statusTexts says for each pod what it waits for or where it is.
func statusTexts(p *page, e *api.Explanation) []string {
	if len(e.Pods) == 0 {
		if e.Stage == "" {
			return nil
		}
		return []string{"Stage " + string(e.Stage)}
	}
	shown := e.Pods
	if !p.Opts.Wide && len(shown) > shownPods {
		shown = shown[:shownPods]
	}
	var said []string
	for i := range shown {
		pod := &shown[i]
		text := podStatus(pod)
		if e.Target.Kind == api.KindPod && e.Target.Namespace == pod.Namespace && e.Target.Name == pod.Name {
			text = english.Capitalized(text)
		} else {
			text = "Pod " + render.Qualified(pod.Namespace, pod.Name) + ": " + text
		}
		said = append(said, text)
	}
	if rest := max(e.PodCount, len(e.Pods)) - len(shown); rest > 0 {
		said = append(said, "and "+english.Count(rest, "more pod"))
	}
	return said
}

func podStatus(pod *api.PodStatus) string {
	said := podPlace(pod)
	if pod.Stage != "" {
		said += ", stage " + string(pod.Stage)
	}
	return said
}

// podPlace says where a pod is, or how long it waits.
func podPlace(pod *api.PodStatus) string {
	switch {
	case pod.Node == "" && pod.AgeSeconds > 0:
		return "pending for " + render.Age(pod.AgeSeconds)
	case pod.Node == "":
		return "not scheduled"
	case pod.Phase != "":
		return fmt.Sprintf("bound to %s, phase %s", pod.Node, pod.Phase)
	default:
		return "bound to " + pod.Node
	}
}

// stageTexts returns what proves the stage.
func stageTexts(p *page, e *api.Explanation) []string {
	shown := e.StageEvidence
	if !p.Opts.Wide && len(shown) > shownEvidence {
		shown = shown[:shownEvidence]
	}
	var said []string
	for i := range shown {
		said = append(said, stageFact(&shown[i], p.Opts.Wide))
	}
	if rest := len(e.StageEvidence) - len(shown); rest > 0 {
		said = append(said, fmt.Sprintf("and %d more: -o wide lists them", rest))
	}
	return said
}

// stageFact names the field and what it says. The message of an event is in the
// reason.
func stageFact(fact *api.Evidence, wide bool) string {
	if fact.Path == "message" && !wide {
		return fact.Object.String()
	}
	said := strings.TrimSpace(fact.Object.String()+" "+fact.Path) + ": " + cmp.Or(fact.Found, "missing")
	if fact.Required != "" {
		said += " (expected " + fact.Required + ")"
	}
	return said
}

// at says when, for a list in parentheses; nothing if that is unknown.
func at(t *metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", " + t.UTC().Format(time.RFC3339)
}

// writeMemberCounts says how many pods of a workload have their devices, and for whose
// pod the answer is.
func writeMemberCounts(p *page, e *api.Explanation) {
	if membersVerdict(e) == "" {
		p.Field(memberTitle(e), memberCounts(e))
	}
	if same := e.SameAs; same.Kind != "" {
		p.Field("Same as", "Pod "+render.Qualified(same.Namespace, same.Name)+", which is equal for the scheduler: see there for nodes and remedies")
	}
}

// differentText says which pods of the target the answer is not about.
func differentText(d *api.DifferentPods) string {
	if d == nil {
		return ""
	}
	return fmt.Sprintf("%s, %d waiting, with other needs: not part of this answer; ask about pod/NAME (%s)", english.Count(d.Count, "more pod"), d.Waiting, english.Sample(d.Names, shownPods))
}

// shownNodes is how many unready nodes of a ComputeDomain the head names without -o wide.
const shownNodes = 4

// domainTexts describes the ComputeDomains that the claims of a target name, and which of
// their nodes lack what.
func domainTexts(p *page, e *api.Explanation) []string {
	var said []string
	for i := range e.Claims {
		for j := range e.Claims[i].ComputeDomains {
			domain := &e.Claims[i].ComputeDomains[j]
			said = append(said, english.Capitalized(domainText(domain))+".")
			said = append(said, nodesThatLack(p, domain)...)
		}
	}
	return said
}

// domainText describes a ComputeDomain in a clause.
func domainText(d *api.ComputeDomain) string {
	var parts []string
	switch {
	case d.Name != "":
		parts = append(parts, fmt.Sprintf("ComputeDomain %s is %s: %s", render.Qualified(d.Namespace, d.Name), cmp.Or(d.Status, "without a status"),
			lifecycle.DomainProgress(d.JoinedNodes, d.ReadyNodes, d.NumNodes)))
		if n := cliques(d); n > 1 {
			parts = append(parts, fmt.Sprintf("its nodes are in %d cliques, and only those of the same clique share memory", n))
		}
	case d.Problem == "":
		parts = append(parts, "ComputeDomain "+d.ID+" is not known")
	}
	for _, text := range []string{d.Problem, d.Unknown} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "; ")
}

// cliques counts the cliques of the nodes that have joined.
func cliques(d *api.ComputeDomain) int {
	var all []string
	for i := range d.Nodes {
		if node := &d.Nodes[i]; node.Status != "" && node.Clique != "" && !slices.Contains(all, node.Clique) {
			all = append(all, node.Clique)
		}
	}
	return len(all)
}

func nodesThatLack(p *page, d *api.ComputeDomain) []string {
	var said []string
	for i := range d.Nodes {
		if node := &d.Nodes[i]; node.Lacks != "" {
			said = append(said, fmt.Sprintf("Node %s: %s", node.Name, node.Lacks))
		}
	}
	if rest := len(said) - shownNodes; rest > 0 && !p.Opts.Wide {
		said = append(said[:shownNodes], fmt.Sprintf("and %s more: -o wide lists them", english.Count(rest, "node")))
	}
	return said
}
