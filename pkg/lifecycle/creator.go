// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Creator is an object that creates pods: a workload, or any other kind.
type Creator struct {
	Object metav1.Object
	Kind   schema.GroupKind
	// Suspended is set if its spec.suspend is true.
	Suspended bool
	// Workload is the object if it has a pod template, else nil.
	Workload *snapshot.Workload
}

// CreatorOf returns a workload as the creator of its pods.
func CreatorOf(w *snapshot.Workload) *Creator {
	return &Creator{Object: w, Kind: w.GroupVersionKind().GroupKind(), Suspended: w.Suspended, Workload: w}
}

// OfCreator returns the stage of an object with fewer pods than it should have, and why it
// does not create them, as far as that is known.
func OfCreator(snap *snapshot.Snapshot, c *Creator) Life {
	object := c.Object
	self := metav1.OwnerReference{Kind: c.Kind.Kind, Name: object.GetName(), UID: object.GetUID()}
	queued := snap.QueuedBy(object.GetNamespace(), "", append(snap.Owners(object), self))
	suspended := func(f *Finding) {
		if c.Suspended {
			f.AddEvidence(c.name(), "spec.suspend", "true", "false")
		}
	}
	switch queue := object.GetLabels()[snapshot.KueueQueueLabel]; {
	case queued != nil && !queued.Ended() && (c.Suspended || !queued.Admitted()):
		f := queuedFinding(snap, queued)
		suspended(&f)
		return Life{Stage: api.StageAdmission, Findings: []Finding{f}, Blocked: &Blockage{Code: api.NotAdmitted}}
	case c.Suspended && queue != "":
		f := Finding{Reason: fmt.Sprintf("the %s is suspended until Kueue admits it from queue %s", c.Kind.Kind, queue)}
		suspended(&f)
		withoutWorkload(snap, &f, object.GetNamespace(), queue)
		return Life{Stage: api.StageAdmission, Findings: []Finding{f}, Blocked: &Blockage{Code: api.NotAdmitted}}
	case c.Suspended:
		f := Finding{Reason: fmt.Sprintf("the %s is suspended (spec.suspend is true) and creates no pods", c.Kind.Kind)}
		suspended(&f)
		f.command(api.ActorUser, fmt.Sprintf("resume the %s, if nobody else does", c.Kind.Kind), merge(c.resource(), object.GetNamespace(), object.GetName(), `{"spec":{"suspend":false}}`))
		return blockedLife(f, api.NoPods)
	}
	if r := refusalBelow(snap, c); r != nil {
		return blockedLife(r.Finding, r.Code)
	}
	if c.Workload != nil {
		if f := idle(snap, c); f != nil {
			return blockedLife(*f, api.NoPods)
		}
	}
	return Life{}
}

func blockedLife(f Finding, code api.Code) Life {
	return Life{Findings: []Finding{f}, Blocked: &Blockage{Code: code}}
}

// name returns the object's name in evidence.
func (c *Creator) name() api.ObjectRef {
	return api.RefTo(c.Kind.Kind, c.Object).In(c.Kind.Group)
}

// resource returns the object's type for kubectl.
func (c *Creator) resource() string {
	if slices.Contains([]string{"", appsv1.GroupName, "batch"}, c.Kind.Group) {
		return strings.ToLower(c.Kind.Kind)
	}
	return strings.ToLower(c.Kind.Kind) + "." + c.Kind.Group
}

// words returns the object for kubectl: "-n ml deployment/train".
func (c *Creator) words() string {
	return shell.KubectlObjects(c.resource(), c.Object.GetNamespace(), c.Object.GetName())
}

// idle says why the controller of a workload does not even try to create missing pods, nil
// if no reason is known.
func idle(snap *snapshot.Snapshot, c *Creator) *Finding {
	w := c.Workload
	pods := Pods(snap, w)
	switch {
	case w.Replicas != nil && *w.Replicas == 0 && len(pods) == 0:
		return scaledToZero(snap, c)
	case w.UID == "" || Missing(w, pods) == 0:
		return nil
	case w.ObservedGeneration != nil && *w.ObservedGeneration < w.Generation:
		f := &Finding{Reason: fmt.Sprintf("its controller in kube-controller-manager has not acted on the %s as it is", w.Kind)}
		f.AddEvidence(c.name(), "status.observedGeneration", fmt.Sprint(*w.ObservedGeneration), fmt.Sprint(w.Generation))
		f.command(api.ActorAdmin, "check that kube-controller-manager runs", "kubectl get pods -n kube-system -l component=kube-controller-manager")
		return f
	case w.Paused && len(pods) == 0:
		f := &Finding{Reason: "the Deployment is paused (spec.paused is true) and creates no pods of its template"}
		f.AddEvidence(c.name(), "spec.paused", "true", "false")
		f.command(api.ActorUser, "resume the Deployment", "kubectl rollout resume "+c.words())
		return f
	case w.Daemon != nil && w.Daemon.Desired == 0:
		return noNodes(c)
	case w.Ordered:
		return behindPod(w, pods)
	}
	if p := meta.FindStatusCondition(w.Conditions, string(appsv1.DeploymentProgressing)); p != nil && p.Status == metav1.ConditionFalse {
		f := &Finding{Reason: fmt.Sprintf("the %s lacks pods, and makes no progress: %s", w.Kind, cmp.Or(strings.TrimRight(p.Message, "."), p.Reason))}
		f.AddEvidence(c.name(), "status.conditions[type=Progressing].reason", p.Reason, "")
		f.command(api.ActorUser, "see its status and events", "kubectl describe "+c.words())
		return f
	}
	return nil
}

// Missing counts the missing pods of a workload, 0 if that is not known.
func Missing(w *snapshot.Workload, pods []*corev1.Pod) int {
	switch {
	case w.Daemon != nil && w.Daemon.Desired == 0 && len(pods) == 0:
		// It wants no pods, and so creates none.
		return 1
	case w.Daemon != nil:
		return max(0, int(w.Daemon.Desired)-len(pods))
	case w.Replicas != nil:
		return max(0, int(*w.Replicas)-len(pods))
	default:
		return 0
	}
}

func scaledToZero(snap *snapshot.Snapshot, c *Creator) *Finding {
	path, command := "spec.replicas", "kubectl scale "+c.words()+" --replicas=1"
	if c.Workload.Kind == snapshot.KindJob {
		path, command = "spec.parallelism", merge(c.resource(), c.Object.GetNamespace(), c.Object.GetName(), `{"spec":{"parallelism":1}}`)
	}
	f := &Finding{Reason: fmt.Sprintf("the %s is scaled to 0 (%s is 0) and creates no pods", c.Kind.Kind, path)}
	f.AddEvidence(c.name(), path, "0", "1 or more")
	if c.Workload.UID == "" {
		command = ""
	}
	text := "scale it up, if nothing else does"
	if scaler := snap.Autoscaler(c.Workload); scaler != nil {
		// pkg/controller/podautoscaler/horizontal.go: without minReplicas 0, autoscaling is
		// disabled as long as there are 0 replicas.
		text = fmt.Sprintf("scale it up: HorizontalPodAutoscaler %s does nothing for a workload with 0 replicas, unless its minReplicas is 0", scaler.Name)
	}
	f.Steps = append(f.Steps, api.NextStep{Actor: api.ActorUser, Text: text})
	if command != "" {
		f.Steps[0].Commands = []string{command}
	}
	return f
}

// noNodes reports a DaemonSet that wants pods on no node.
func noNodes(c *Creator) *Finding {
	spec := &c.Workload.Template.Spec
	f := &Finding{Reason: "the DaemonSet creates no pods: no node is suitable for them"}
	f.AddEvidence(c.name(), "status.desiredNumberScheduled", "0", "1 or more")
	if len(spec.NodeSelector) > 0 {
		selector := labels.FormatLabels(spec.NodeSelector)
		f.Reason += fmt.Sprintf(" (its nodeSelector is %s)", selector)
		f.AddEvidence(c.name(), "spec.template.spec.nodeSelector", selector, "labels of a node")
		f.command(api.ActorAdmin, "label the nodes on which it should run, or change its nodeSelector", "kubectl get nodes --show-labels")
		return f
	}
	f.command(api.ActorUser, "compare its affinity and tolerations with the nodes", "kubectl describe nodes")
	return f
}

// behindPod reports the pod that a StatefulSet waits for: with podManagementPolicy
// OrderedReady, it creates each pod when the pods before it are ready.
func behindPod(w *snapshot.Workload, pods []*corev1.Pod) *Finding {
	for _, pod := range pods {
		state := "is not ready"
		switch {
		case pod.DeletionTimestamp != nil:
			state = "is terminating"
		case Ready(pod):
			continue
		case snapshot.Waits(pod):
			// The answer is why it has no node.
			return nil
		}
		f := &Finding{Instead: true, Reason: fmt.Sprintf("pod %s %s, and the StatefulSet creates its next pod only when it is ready", pod.Name, state)}
		f.AddEvidence(api.RefTo(api.KindPod, pod), "status.conditions[type=Ready].status", string(readiness(pod)), "True")
		f.AddEvidence(w.Ref(), "spec.podManagementPolicy", string(appsv1.OrderedReadyPodManagement), "")
		f.command(api.ActorUser, fmt.Sprintf("see why pod %s is not ready", pod.Name), "kubectl describe "+shell.KubectlObjects("pod", pod.Namespace, pod.Name))
		return f
	}
	return nil
}

func readiness(pod *corev1.Pod) corev1.ConditionStatus {
	if c := PodCondition(pod, corev1.PodReady); c != nil {
		return c.Status
	}
	return corev1.ConditionUnknown
}
