// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Conditions are changes of a cluster before its queue is decided.
type Conditions struct {
	// Without are pods, as namespace and name, that are deleted for good.
	Without [][2]string
	// Drain are nodes that are cordoned and from which pods are evicted.
	Drain []string
	// Add are new nodes.
	Add []NewNodes
	// Gates and KubernetesVersion describe the cluster after the change.
	Gates             map[string]bool
	KubernetesVersion string
	// Preempt has pods take the place of others of lower priority.
	Preempt bool
}

// NewNodes are empty nodes like one of the cluster.
type NewNodes struct {
	Like  string
	Count int
}

// Any reports whether anything is to be changed.
func (c *Conditions) Any() bool {
	return len(c.Without)+len(c.Drain)+len(c.Add)+len(c.Gates) > 0 || c.KubernetesVersion != "" || c.Preempt
}

// MissingError means that a condition names what the cluster does not have.
type MissingError struct {
	// Kind is Pod or Node.
	Kind, Name string
	// Near is the name that was probably meant, empty if none is near.
	Near string
}

// Error names the object, and a similar one.
func (e *MissingError) Error() string {
	text := fmt.Sprintf("%s %s not found", e.Kind, e.Name)
	if e.Near != "" {
		text += ": did you mean " + e.Near + "?"
	}
	return text
}

// Apply makes the changes, and says in words what they are. It fails with a
// [*MissingError] for what does not exist.
func (c *Conditions) Apply(state *cluster.Cluster) (after *cluster.Cluster, words []string, err error) {
	after = state
	if len(c.Gates) > 0 || c.KubernetesVersion != "" {
		after = c.otherRelease(after)
		words = append(words, c.releaseWords()...)
	}
	for _, name := range c.Without {
		pod := after.Snapshot.Pod(name[0], name[1])
		if pod == nil {
			return nil, nil, &MissingError{Kind: "pod", Name: name[0] + "/" + name[1], Near: english.Typo(name[1], podNames(after.Snapshot, name[0]))}
		}
		after = after.Amended(whatif.Delete(after.Snapshot, []*corev1.Pod{pod}))
		words = append(words, "without pod "+name[0]+"/"+name[1])
	}
	for _, name := range c.Drain {
		text := ""
		if after, text, err = drain(after, name); err != nil {
			return nil, nil, err
		}
		words = append(words, text)
	}
	for _, add := range c.Add {
		if after.Snapshot.Node(add.Like) == nil {
			return nil, nil, missingNode(after.Snapshot, add.Like)
		}
		after = after.Amended(whatif.AddNodes(after.Snapshot, add.Like, add.Count))
		words = append(words, fmt.Sprintf("%s more like %s, empty", english.Count(add.Count, "node"), add.Like))
	}
	if c.Preempt {
		words = append(words, "pods of higher priority preempt others for devices, as KEP-5690 proposes (hypothetical: no release up to 1.37 does)")
	}
	return after, words, nil
}

func podNames(snap *snapshot.Snapshot, namespace string) []string {
	var names []string
	for _, pod := range snap.Pods {
		if pod.Namespace == namespace {
			names = append(names, pod.Name)
		}
	}
	return names
}

func missingNode(snap *snapshot.Snapshot, name string) *MissingError {
	var names []string
	for _, node := range snap.Nodes {
		names = append(names, node.Name)
	}
	return &MissingError{Kind: "node", Name: name, Near: english.Typo(name, names)}
}

// otherRelease returns the cluster with other gates or of another release.
func (c *Conditions) otherRelease(state *cluster.Cluster) *cluster.Cluster {
	snap := *state.Snapshot
	snap.Gates, snap.Gaps = maps.Clone(snap.Gates), slices.Clone(snap.Gaps)
	if c.KubernetesVersion != "" {
		snap.AssumeVersion(c.KubernetesVersion)
		snap.OtherRelease = true
	}
	if snap.Gates == nil {
		snap.Gates = map[string]snapshot.Gate{}
	}
	for name, enabled := range c.Gates {
		snap.Gates[name] = snapshot.Gate{Enabled: enabled, Source: snapshot.GateFromFlag}
	}
	return state.Amended(&snap)
}

func (c *Conditions) releaseWords() []string {
	var words []string
	if c.KubernetesVersion != "" {
		words = append(words, "Kubernetes "+c.KubernetesVersion)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Gates)) {
		words = append(words, fmt.Sprintf("%s=%v", name, c.Gates[name]))
	}
	return words
}

// drain cordons a node and evicts its pods, as kubectl drain does: pods of DaemonSets and
// static pods stay. Pods with a controller are created again, and wait; others are gone.
func drain(state *cluster.Cluster, name string) (*cluster.Cluster, string, error) {
	node := state.Snapshot.Node(name)
	if node == nil {
		return nil, "", missingNode(state.Snapshot, name)
	}
	var again, gone []*corev1.Pod
	for _, pod := range state.Snapshot.Pods {
		if pod.Spec.NodeName != name || snapshot.Finished(pod) {
			continue
		}
		switch owner := metav1.GetControllerOfNoCopy(pod); {
		case snapshot.StaysOnDrain(pod):
		case owner == nil:
			gone = append(gone, pod)
		default:
			again = append(again, pod)
		}
	}
	if !node.Spec.Unschedulable {
		cordon := whatif.NewEdit(api.Ref(api.KindNode, "", name), "add", "/spec/unschedulable", true)
		cordoned, err := whatif.Amend(state.Snapshot, []api.Edit{cordon})
		if err != nil {
			return nil, "", err
		}
		state = state.Amended(cordoned)
	}
	state = state.Amended(whatif.Delete(state.Snapshot, gone))
	state = state.Amended(whatif.Evict(state.Snapshot, again))
	text := fmt.Sprintf("node %s drained: %s evicted and created again", name, english.Count(len(again), "pod"))
	if len(gone) > 0 {
		text += fmt.Sprintf(", %d without a controller deleted for good", len(gone))
	}
	return state, text, nil
}

// PlanWithin leaves in a plan the pods of one namespace, which all others were decided with.
func PlanWithin(out *api.Plan, namespace string) {
	out.Namespace = namespace
	out.Pods = slices.DeleteFunc(out.Pods, func(p api.PlannedPod) bool { return p.Namespace != namespace })
	out.Counts = counts(out.Pods)
}

// ComparePlan says in a plan what becomes of each pod today, where that is something else.
// Pods that have a node today have that node in the cluster before.
func ComparePlan(out, today *api.Plan, before *cluster.Cluster) {
	known := make(map[podName]*api.PlannedPod, len(today.Pods))
	for i := range today.Pods {
		known[podName{today.Pods[i].Namespace, today.Pods[i].Name}] = &today.Pods[i]
	}
	out.Today = &today.Counts
	for i := range out.Pods {
		p := &out.Pods[i]
		was := known[podName{p.Namespace, p.Name}]
		switch {
		case was == nil:
			p.Today = &api.PlannedToday{}
			if pod := before.Snapshot.Pod(p.Namespace, p.Name); pod != nil {
				p.Today.Node = pod.Spec.NodeName
			}
		case was.Outcome != p.Outcome:
			p.Today = &api.PlannedToday{Outcome: was.Outcome, Node: was.Node}
		}
	}
}
