// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"fmt"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	nodeprobeverb "github.com/kubectl-dra/kubectl-dra/pkg/commands/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/cdi"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// looked has the observations while the containers of a trial ran.
type looked struct {
	// before is the cluster of the trial's plan, after the cluster with the pod.
	before, after *snapshot.Snapshot
	// edits are the edits of the node's CDI specs; nil if nobody looked at the node.
	edits         *NodeEdits
	with, without *Contents
	// err says why nobody could look into the containers.
	err error
}

// lookAt looks at the node, if that is wanted and was not done for this case, and into the
// containers.
func (t *test) lookAt(ctx context.Context, group *Group, p *Planned, record *Record) *looked {
	seen := &looked{before: group.Before.Snapshot, after: t.watcher.Snapshot()}
	if t.probe.look && t.firstLook(group, record.Node()) {
		edits := NodeEdits{}
		if report, err := t.probeNode(ctx, record.Node()); err != nil {
			edits.Problem = fmt.Sprintf("look at node %s: %v", record.Node(), err)
		} else {
			edits = EditsOf(record.ClaimUID(), handedOf(report), report.CDI)
		}
		seen.edits = &edits
	}
	var paths []string
	if seen.edits != nil {
		paths = DevicePaths(seen.edits.Edits)
	}
	if seen.with, seen.err = lookInto(ctx, t.clients, p.Pod.Namespace, p.Pod.Name, ClaimContainer, paths); seen.err == nil {
		seen.without, seen.err = lookInto(ctx, t.clients, p.Pod.Namespace, p.Pod.Name, OtherContainer, paths)
	}
	return seen
}

// firstLook reports whether no other trial of the case looks at the node: that takes
// seconds, and more trials would show the same.
func (t *test) firstLook(group *Group, node string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := group.Template.Name + "/" + node
	first := !t.probed[key]
	t.probed[key] = true
	return first
}

func (t *test) probeNode(ctx context.Context, name string) (*nodeprobe.Report, error) {
	return nodeprobeverb.Look(ctx, t.reader, &nodeprobeverb.LookOptions{
		Node: name, Namespace: t.plan.Namespace.Name, Image: t.image, Binary: t.probe.binary,
		KubeletRoot: t.probe.kubelet, CDIDirs: t.probe.cdi,
	})
}

func handedOf(report *nodeprobe.Report) cdi.Handed {
	if report.State == nil {
		return nil
	}
	return report.State.Handed()
}

// checkStarted returns the checks while the pod runs.
func (t *test) checkStarted(ctx context.Context, group *Group, p *Planned, record *Record, seen *looked) []api.TrialCheck {
	onNode, err := group.Predict(ctx, p, record.Node())
	if err != nil {
		onNode = nil
	}
	others := OthersChanged(seen.before, seen.after, p.Pod.Namespace)
	checks := []api.TrialCheck{
		Predicted(record, onNode, group.Parallel == 1, others),
		Exclusive(record, seen.after),
	}
	if seen.err != nil {
		reason := fmt.Sprintf("look into the containers: %v; --image needs sh, cat and ls", seen.err)
		return append(checks, NotChecked(api.CheckContainer, reason))
	}
	return append(checks, InContainer(record, seen.with, seen.without, seen.edits)...)
}

// checkEnded returns the checks after the pod is gone.
func (t *test) checkEnded(ctx context.Context, record *Record, seen *looked, cleaned bool) []api.TrialCheck {
	checks := []api.TrialCheck{Released(record, t.watcher.Snapshot())}
	switch {
	case !cleaned:
		return checks
	case seen.edits == nil:
		return append(checks, NotChecked(api.CheckNode, "not looked for what is left on the node: "+NeedsNode))
	}
	report, err := t.probeNode(ctx, record.Node())
	if err != nil {
		return append(checks, NotChecked(api.CheckNode, fmt.Sprintf("look at node %s: %v", record.Node(), err)))
	}
	return append(checks, LeftOnNode(record.ClaimUID(), record.Node(), handedOf(report), report.CDI))
}

// probeFailure returns node-probe's findings on the node of a failed trial.
func (t *test) probeFailure(ctx context.Context, record *Record) []api.TrialCheck {
	name := record.Node()
	if name == "" {
		return nil
	}
	if !t.probe.look {
		return []api.TrialCheck{NotChecked(api.CheckNode, fmt.Sprintf("what the node has to do with it, this may show: kubectl dra node-probe --node %s", name))}
	}
	report, err := t.probeNode(ctx, name)
	if err != nil {
		return []api.TrialCheck{NotChecked(api.CheckNode, fmt.Sprintf("look at node %s: %v", name, err))}
	}
	var problems []NodeProblem
	for _, check := range report.Checks() {
		if check.State == node.Problem {
			problems = append(problems, NodeProblem{Check: check.Name, Path: check.Path, Message: check.Message})
		}
	}
	return []api.TrialCheck{OnNode(name, problems)}
}
