// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// ComputeDomains returns the ComputeDomains that a claim names, with the missing
// requirements of their nodes.
func ComputeDomains(snap *snapshot.Snapshot, claim *resourceapi.ResourceClaim) []api.ComputeDomain {
	domains := DescribeDomains(snap, claim)
	for i := range domains {
		domain := findDomain(snap, claim.Namespace, domains[i].ID)
		for j := range domains[i].Nodes {
			node := &domains[i].Nodes[j]
			known := domain.Node(node.Name)
			switch {
			case known == nil || !known.Ready():
				node.Lacks, _ = nodeLacks(snap, domain, node.Name)
			case known.Clique == "":
				node.Lacks = "its GPUs are in no clique: pods there get no IMEX channel and share no memory with other nodes"
			}
		}
	}
	return domains
}

// domainFindings reports problems with the ComputeDomains of a pod whose devices are not
// prepared: the driver prepares a claim for a domain once the node is ready in it.
func domainFindings(snap *snapshot.Snapshot, pod *corev1.Pod, claims []cluster.PodClaim) []Finding {
	var findings []Finding
	for i := range claims {
		claim := claims[i].Claim
		if claim == nil || claim.Status.Allocation == nil || claims[i].Generated {
			continue
		}
		for _, config := range kinds.DomainConfigs(claim) {
			if f := domainFinding(snap, pod, claim, &config); f != nil {
				findings = append(findings, *f)
			}
		}
	}
	return findings
}

// domainFailure completes the finding about a claim for a ComputeDomain that the driver
// failed to prepare. It reports whether the error is about the domain.
func domainFailure(snap *snapshot.Snapshot, f *Finding, pod *corev1.Pod, claims []cluster.PodClaim, name, words string, event *corev1.Event) bool {
	i := slices.IndexFunc(claims, func(pc cluster.PodClaim) bool {
		return pc.Claim != nil && pc.Claim.Name == name && pc.Claim.Status.Allocation != nil
	})
	if i < 0 || undecodable(words) {
		return false
	}
	claim := claims[i].Claim
	configs := slices.DeleteFunc(kinds.DomainConfigs(claim), func(c kinds.DomainConfig) bool { return c.Problem != "" })
	if len(configs) == 0 {
		return false
	}
	for j := range configs {
		if found := domainFinding(snap, pod, claim, &configs[j]); found != nil {
			f.Reason = found.Reason + often(snap, event)
			f.Evidence = append(found.Evidence, f.Evidence...)
			f.Steps = append(f.Steps, found.Steps...)
			return true
		}
	}
	node := pod.Spec.NodeName
	f.Reason = fmt.Sprintf("driver %s cannot prepare claim %s on node %s: %s%s", snapshot.ComputeDomainDriver, name, node, words, often(snap, event))
	if uid, taken := between(words, channelTaken, " "); taken {
		if other := claimOf(snap, uid); other != nil {
			f.Reason += fmt.Sprintf("; that is claim %s", english.QualifiedName(other))
			f.AddEvidence(api.RefTo(api.KindClaim, other), "metadata.uid", uid, "no other claim for a channel on node "+node)
			f.Step(api.ActorUser, "a node has one channel: the pod starts when claim %s is released", english.QualifiedName(other))
			return true
		}
	}
	domain := findDomain(snap, claim.Namespace, configs[0].DomainID)
	switch known := domain.Node(node); {
	case domain.Unknown != "":
		f.Reason += fmt.Sprintf("; what ComputeDomain %s lacks is not known: %s", domain.ID, domain.Unknown)
		f.Step(api.ActorAdmin, "see the domain and its nodes: kubectl get computedomains.resource.nvidia.com -A -o yaml")
	case known != nil && known.Ready():
		f.Reason += fmt.Sprintf("; node %s is ready in ComputeDomain %s now", node, english.QualifiedName(domain.Object))
		f.AddEvidence(known.Object, known.Path, known.Status, "")
		f.Step(api.ActorNobody, "the kubelet retries")
	default:
		f.Reason += domainCount(domain)
		f.Step(api.ActorAdmin, "check the log of the plugin of driver %s on node %s; the kubelet retries", snapshot.ComputeDomainDriver, node)
	}
	return true
}

// channelTaken is the driver's message before the UID of the claim that has the channel of
// a node (assertImexChannelNotAllocated of cmd/compute-domain-kubelet-plugin).
const channelTaken = "already allocated by claim "

func claimOf(snap *snapshot.Snapshot, uid string) *resourceapi.ResourceClaim {
	for _, claim := range snap.Claims {
		if string(claim.UID) == uid {
			return claim
		}
	}
	return nil
}

// domainFinding says why the driver does not prepare a claim on the node of a pod yet, nil
// if no reason is known.
func domainFinding(snap *snapshot.Snapshot, pod *corev1.Pod, claim *resourceapi.ResourceClaim, config *kinds.DomainConfig) *Finding {
	f := &Finding{Instead: true}
	if config.Problem != "" {
		f.Reason = fmt.Sprintf("driver %s does not accept the configuration of claim %s: %s", snapshot.ComputeDomainDriver, claim.Name, config.Problem)
		f.AddEvidence(api.RefTo(api.KindClaim, claim), config.Path, config.Parameters, "parameters that driver "+snapshot.ComputeDomainDriver+" accepts")
		f.Step(api.ActorUser, "correct the configuration where it comes from, and recreate the pod so that it gets a new claim")
		return f
	}
	domain := findDomain(snap, claim.Namespace, config.DomainID)
	if problem := domain.Problem(claim, config.Kind); problem != "" {
		f.Reason = fmt.Sprintf("driver %s does not prepare claim %s: %s", snapshot.ComputeDomainDriver, claim.Name, problem)
		if domain.Object != nil {
			f.Reason = fmt.Sprintf("driver %s does not prepare claim %s for ComputeDomain %s: %s", snapshot.ComputeDomainDriver, claim.Name, english.QualifiedName(domain.Object), problem)
		}
		f.AddEvidence(api.RefTo(api.KindClaim, claim), config.Path+".domainID", config.DomainID, "the UID of a ComputeDomain in namespace "+claim.Namespace)
		f.Step(api.ActorUser, "delete and recreate pod %s so that it gets a new claim from the ResourceClaimTemplate of a ComputeDomain that exists: kubectl get computedomains.resource.nvidia.com -n %s", pod.Name, shell.Quote(claim.Namespace))
		return f
	}
	if domain.Object == nil || config.Kind != kinds.KindChannel {
		return nil
	}
	node := pod.Spec.NodeName
	if known := domain.Node(node); known != nil && known.Ready() {
		return nil
	}
	lacks, because := nodeLacks(snap, domain, node)
	if lacks == "" {
		return nil
	}
	f.Reason = fmt.Sprintf("claim %s waits for node %s to be ready in ComputeDomain %s: %s%s", claim.Name, node, english.QualifiedName(domain.Object), lacks, domainCount(domain))
	f.Evidence, f.Steps = because.Evidence, because.Steps
	return f
}

// domainCount counts the ready nodes of a domain, where that may matter.
func domainCount(domain *computeDomain) string {
	if domain.Object == nil {
		return ""
	}
	text := ""
	if joined, ready, wanted := len(domain.Nodes), domain.ReadyNodes(), domain.Object.Spec.NumNodes; ready < max(joined, wanted) {
		text = "; " + DomainProgress(joined, ready, wanted)
	}
	if domain.Unread != "" {
		text += fmt.Sprintf(" (as far as is known: %s)", domain.Unread)
	}
	return text
}

// nodeLacks says why a node is not ready in a domain, with evidence and steps; empty if no
// reason is known. The plugin of the driver labels the node when a pod of the domain gets
// there, the DaemonSet of the domain then runs a daemon on it, which joins and is noted as
// ready once its pod is (cmd/compute-domain-daemon). A node that is not labeled may be one
// on which the driver does not manage daemons.
func nodeLacks(snap *snapshot.Snapshot, domain *computeDomain, name string) (text string, f Finding) {
	object := snap.Node(name)
	label := ""
	if object != nil {
		label = object.Labels[snapshot.ComputeDomainLabel]
	}
	joined := domain.Node(name)
	if joined != nil {
		f.AddEvidence(joined.Object, joined.Path, joined.Status, snapshot.ComputeDomainReady)
	}
	pod := domainDaemon(snap, domain.ID, name)
	switch {
	case pod != nil && !Ready(pod):
		state, fact := PodTrouble(pod)
		f.Evidence = append(f.Evidence, fact)
		f.Step(api.ActorAdmin, "see why daemon %s is not ready: kubectl dra why %s -n %s; %s", english.QualifiedName(pod),
			shell.Quote("pod/"+pod.Name), shell.Quote(pod.Namespace), logs(pod))
		return fmt.Sprintf("its daemon %s is not ready: %s", english.QualifiedName(pod), state), f
	case pod != nil && joined == nil:
		f.AddEvidence(api.Ref(snapshot.KindComputeDomain, domain.Object.Namespace, domain.Object.Name), "status.nodes", "no node "+name, name)
		f.Step(api.ActorAdmin, "check the log of the daemon: %s", logs(pod))
		return fmt.Sprintf("its daemon %s is ready, but the node has not joined the domain", english.QualifiedName(pod)), f
	case pod != nil:
		f.Step(api.ActorAdmin, "check the log of the daemon: %s", logs(pod))
		return fmt.Sprintf("its daemon %s is ready, but the driver has noted the node as %s", english.QualifiedName(pod), joined.Status), f
	case label != "" && label != domain.ID:
		other := "another ComputeDomain"
		if found := findDomain(snap, "", label); found.Object != nil {
			other = "ComputeDomain " + english.QualifiedName(found.Object)
		}
		f.AddEvidence(api.Ref(api.KindNode, "", name), "metadata.labels["+snapshot.ComputeDomainLabel+"]", label, domain.ID)
		f.Step(api.ActorUser, "a node is in one ComputeDomain at a time: wait until the pods of the other one have ended, or use another node")
		return "the node is in " + other, f
	case label == "" && joined == nil:
		return "", Finding{}
	case Hides(snap, snapshot.ResourcePods, ""):
		return "whether its daemon runs is not known: " + snap.Gap(snapshot.ResourcePods).Reason, f
	}
	if label != "" {
		f.AddEvidence(api.Ref(api.KindNode, "", name), "metadata.labels["+snapshot.ComputeDomainLabel+"]", label, "")
	}
	if set := domainDaemonSet(snap, domain.ID); set != nil {
		o := api.Ref(snapshot.KindDaemonSet, set.Namespace, set.Name)
		text := fmt.Sprintf("no daemon of the domain is on the node, although there is DaemonSet %s", english.QualifiedName(set))
		if set.Daemon != nil {
			text = fmt.Sprintf("no daemon of the domain is on the node: DaemonSet %s wants pods on %s, %d are ready", english.QualifiedName(set), english.Count(int(set.Daemon.Desired), "node"), set.Daemon.Ready)
			f.AddEvidence(o, "status.desiredNumberScheduled", fmt.Sprint(set.Daemon.Desired), "")
		}
		f.Step(api.ActorAdmin, "see which nodes the DaemonSet selects, and its events: kubectl describe daemonset %s -n %s", shell.Quote(set.Name), shell.Quote(set.Namespace))
		return text, f
	}
	f.Step(api.ActorAdmin, "check the DaemonSet of the domain, and the controller of driver %s, which creates it: kubectl get daemonsets -A -l %s", snapshot.ComputeDomainDriver, snapshot.ComputeDomainLabel+"="+shell.Quote(domain.ID))
	return "no daemon of the domain is on the node", f
}

func logs(pod *corev1.Pod) string {
	return fmt.Sprintf("kubectl logs %s -n %s", shell.Quote(pod.Name), shell.Quote(pod.Namespace))
}
