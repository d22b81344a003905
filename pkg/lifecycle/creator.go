// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
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

// ReasonFailedCreate is the reason of the condition and of the event with which a
// controller reports that the API server refuses a pod.
const ReasonFailedCreate = "FailedCreate"

// Refusal is the API server's refusal of the pods of a workload.
type Refusal struct {
	Workload *snapshot.Workload
	Code     api.Code
	Finding
}

// Refusals lists the workloads of a snapshot whose pods the API server refuses. Workloads
// that another workload of the snapshot controls, as a Deployment its ReplicaSet, are left
// out.
func Refusals(snap *snapshot.Snapshot) []*Refusal {
	var found []*Refusal
	for _, w := range snap.Workloads {
		if r := refusalOf(snap, w); r != nil {
			found = append(found, r)
		}
	}
	return slices.DeleteFunc(found, func(r *Refusal) bool {
		owner := metav1.GetControllerOfNoCopy(r.Workload)
		return owner != nil && slices.ContainsFunc(found, func(other *Refusal) bool { return other.Workload.UID == owner.UID })
	})
}

// refusalBelow returns the refusal of the pods of an object, or of a workload that it
// controls; nil if there is none.
func refusalBelow(snap *snapshot.Snapshot, c *Creator) *Refusal {
	if c.Workload != nil {
		if r := refusalOf(snap, c.Workload); r != nil {
			return r
		}
	}
	uid := c.Object.GetUID()
	for _, w := range snap.Workloads {
		if uid != "" && slices.ContainsFunc(snap.Owners(w), func(o metav1.OwnerReference) bool { return o.UID == uid }) {
			if r := refusalOf(snap, w); r != nil {
				return r
			}
		}
	}
	return nil
}

// refusalOf returns why the API server refuses the pods of a workload, nil if that is not
// known or is over. Deployments and ReplicaSets have a condition, which is removed when it
// is over. Others only have an event: later pods, or that none is missing, show that it is
// over.
func refusalOf(snap *snapshot.Snapshot, w *snapshot.Workload) *Refusal {
	if w.UID == "" || w.End != nil || w.DeletionTimestamp != nil {
		return nil
	}
	r := &Refusal{Workload: w, Code: api.PodRefused}
	message := ""
	object := w.Ref()
	if c := meta.FindStatusCondition(w.Conditions, string(appsv1.DeploymentReplicaFailure)); c != nil {
		if c.Status != metav1.ConditionTrue || c.Reason != ReasonFailedCreate {
			return nil
		}
		message = c.Message
		r.AddEvidence(object, "status.conditions[type=ReplicaFailure].status", conditionFound(c), "no such condition")
		r.Reason = fmt.Sprintf("the API server refuses the pods of the %s: %s", w.Kind, apiMessage(message))
		if t := c.LastTransitionTime.Time; !t.IsZero() {
			r.Reason += fmt.Sprintf(" (%s)", snap.Lasting("for", t))
		}
	} else {
		event := newestEvent(eventsAbout(snap, w.Kind, w.Namespace, w.Name, w.UID), func(e *corev1.Event) bool { return e.Reason == ReasonFailedCreate })
		if event == nil || createdSince(snap, w, event) {
			return nil
		}
		message = event.Message
		r.Evidence = append(r.Evidence, eventEvidence(event))
		what := "pods"
		if w.Kind == "CronJob" {
			what = "Jobs"
		}
		r.Reason = fmt.Sprintf("the API server refuses the %s of the %s: %s%s", what, w.Kind, apiMessage(message), repeated(snap, event))
	}
	r.blame(snap, message)
	return r
}

// createdSince reports whether a workload has created a pod since an event, or lacks none.
func createdSince(snap *snapshot.Snapshot, w *snapshot.Workload, event *corev1.Event) bool {
	// The pods of a Job that have ended are not created again.
	if w.Kind != snapshot.KindJob && (w.Daemon != nil || w.Replicas != nil) && Missing(w, Pods(snap, w)) == 0 {
		return true
	}
	return slices.ContainsFunc(snap.Pods, func(pod *corev1.Pod) bool {
		owner := metav1.GetControllerOfNoCopy(pod)
		return owner != nil && owner.UID == w.UID && pod.CreationTimestamp.After(EventTime(event).Time)
	})
}

// apiMessage returns the API server's message, without the controller's prefix: "Error
// creating: " (pkg/controller/controller_utils.go) and "create Pod web-0 in StatefulSet web
// failed error: " (pkg/controller/statefulset/stateful_pod_control.go).
func apiMessage(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	for _, before := range []string{" failed error: ", "Error creating: ", "Error creating job: "} {
		if _, said, found := strings.Cut(message, before); found {
			return said
		}
	}
	return message
}

// Messages of an API server that refuses a pod: plugin/pkg/admission/serviceaccount,
// …/priority, k8s.io/apiserver/pkg/admission/plugin/resourcequota,
// plugin/pkg/admission/limitranger, k8s.io/pod-security-admission/admission,
// k8s.io/apiserver/pkg/admission/plugin/{webhook,policy}, plugin/pkg/admission/runtimeclass
// and …/namespace/lifecycle.
var (
	quotaExceeded = regexp.MustCompile(`exceeded quota: ([^,\s]+), requested: (\S+), used: (\S+), limited: (\S+)`) //nolint:gochecknoglobals // a constant
	limitRefuses  = regexp.MustCompile(` usage per (Container|Pod) is | limit to request ratio per `)              //nolint:gochecknoglobals // a constant
)

// blame adds the steps for the API server's message.
func (r *Refusal) blame(snap *snapshot.Snapshot, message string) {
	w := r.Workload
	spec, namespace, kind := &w.Template.Spec, w.Namespace, w.Kind
	c := CreatorOf(w)
	in := " -n " + shell.Quote(namespace)
	again := tryAgain(snap, c.words())
	outside := func(actor, text string, commands ...string) {
		r.Steps = append(r.Steps, api.NextStep{Actor: actor, Text: text, Commands: commands})
	}
	template := fmt.Sprintf("change the pod template of %s %s as the message says", kind, w.Name)
	describe := "kubectl describe " + c.words()
	says := func(part string) bool { return strings.Contains(message, part) }
	switch {
	case says("error looking up service account"):
		name := cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount, "default")
		outside(api.ActorUser, fmt.Sprintf("create ServiceAccount %s in namespace %s, or name one that exists in the pod template", name, namespace),
			"kubectl create serviceaccount "+shell.Quote(name)+in, again)
	case says("no PriorityClass with name"):
		outside(api.ActorUser, fmt.Sprintf("name a PriorityClass that exists in the pod template of %s %s, or none", kind, w.Name), "kubectl get priorityclasses")
		outside(api.ActorAdmin, fmt.Sprintf("create PriorityClass %s; 0 is the priority of pods without a class", spec.PriorityClassName),
			"kubectl create priorityclass "+shell.Quote(spec.PriorityClassName)+" --value=0", again)
	case says("exceeded quota: "):
		r.Code = api.QuotaExceeded
		raise := raising(snap, message, namespace, max(1, Missing(w, Pods(snap, w))))
		if raise == nil {
			outside(api.ActorUser, fmt.Sprintf("ask for less, or delete what is counted in namespace %s and not needed", namespace), "kubectl describe resourcequotas"+in)
			break
		}
		r.Steps = append(r.Steps, raise.Steps()...)
		last := &r.Steps[len(r.Steps)-1]
		last.Commands = append(last.Commands, again)
	case says("failed quota: "):
		r.Code = api.QuotaExceeded
		outside(api.ActorUser, "give each container the requests and limits that the message names", describe)
		outside(api.ActorAdmin, fmt.Sprintf("give namespace %s a LimitRange with defaults for them", namespace), "kubectl describe resourcequotas,limitranges"+in)
	case limitRefuses.MatchString(message):
		r.Code = api.LimitRangeViolated
		outside(api.ActorUser, "change the requests and limits of the pod template as the message says", "kubectl describe limitranges"+in)
		outside(api.ActorAdmin, fmt.Sprintf("change the LimitRange of namespace %s, if it should allow such pods", namespace), "kubectl get limitranges"+in+" -o yaml")
	case says("violates PodSecurity"):
		outside(api.ActorUser, template, describe)
		outside(api.ActorAdmin, fmt.Sprintf("allow such pods in namespace %s, if it should have them", namespace),
			"kubectl label namespace "+shell.Quote(namespace)+" --overwrite pod-security.kubernetes.io/enforce=privileged", again)
	case says("failed calling webhook"):
		outside(api.ActorAdmin, "repair the service of the webhook that the message names, which does not answer", "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations")
	case says("admission webhook"):
		outside(api.ActorUser, template, describe)
		outside(api.ActorAdmin, "see what the webhook checks", "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations")
	case says("ValidatingAdmissionPolicy"):
		outside(api.ActorUser, template, describe)
		outside(api.ActorAdmin, "see what the policy requires", "kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings")
	case spec.RuntimeClassName != nil && says("RuntimeClass"):
		outside(api.ActorUser, fmt.Sprintf("name a RuntimeClass that exists in the pod template of %s %s", kind, w.Name), "kubectl get runtimeclasses")
		outside(api.ActorAdmin, fmt.Sprintf("install the runtime that brings RuntimeClass %s", *spec.RuntimeClassName))
	case says("because it is being terminated"):
		outside(api.ActorUser, fmt.Sprintf("use another namespace: %s is being deleted", namespace), "kubectl get namespace "+shell.Quote(namespace)+" -o yaml")
	default:
		outside(api.ActorUser, template, describe)
	}
}

// raising returns the quota that refuses so many pods, with the limit that would be enough;
// nil if the message names none. Its present use is from the snapshot.
func raising(snap *snapshot.Snapshot, message, namespace string, count int) *QuotaRaise {
	match := quotaExceeded.FindStringSubmatch(message)
	if match == nil {
		return nil
	}
	raise := &QuotaRaise{Namespace: namespace, Name: match[1], Hard: corev1.ResourceList{}}
	requested, used, limited := quantities(match[2]), quantities(match[3]), quantities(match[4])
	at := slices.IndexFunc(snap.Quotas, func(q *corev1.ResourceQuota) bool { return q.Namespace == namespace && q.Name == raise.Name })
	for name := range limited {
		if at >= 0 {
			used[name], limited[name] = snap.Quotas[at].Status.Used[name], snap.Quotas[at].Status.Hard[name]
		}
		sum, more, most := used[name].DeepCopy(), requested[name], limited[name]
		more.Mul(int64(count))
		if sum.Add(more); more.IsZero() || sum.Cmp(most) <= 0 {
			continue
		}
		raise.Hard[name] = sum
		raise.note(used[name], most)
	}
	return raise
}

// quantities parses "pods=1,requests.cpu=500m".
func quantities(list string) corev1.ResourceList {
	found := corev1.ResourceList{}
	for _, item := range strings.Split(list, ",") {
		name, value, _ := strings.Cut(item, "=")
		if q, err := resource.ParseQuantity(value); err == nil {
			found[corev1.ResourceName(name)] = q
		}
	}
	return found
}

// QuotaRaise is a ResourceQuota that refuses an object, with the limit that would be
// enough.
type QuotaRaise struct {
	Namespace, Name string
	// Hard is the limit that would be enough; empty if the quota allows enough by now.
	Hard corev1.ResourceList
	// Some is set if it allows some, Used if some of that is used.
	Some, Used bool
}

// NewQuotaRaise returns how to raise a quota so that the needed amount of a resource fits.
func NewQuotaRaise(namespace, name string, of corev1.ResourceName, used, hard, need resource.Quantity) *QuotaRaise {
	sum := used.DeepCopy()
	sum.Add(need)
	q := &QuotaRaise{Namespace: namespace, Name: name, Hard: corev1.ResourceList{of: sum}}
	q.note(used, hard)
	return q
}

func (q *QuotaRaise) note(used, hard resource.Quantity) {
	q.Some, q.Used = q.Some || !hard.IsZero(), q.Used || !used.IsZero()
}

// Steps returns the next steps. Asking for less, or deleting something, does not help where
// the quota allows none, or where nothing is counted.
func (q *QuotaRaise) Steps() []api.NextStep {
	if len(q.Hard) == 0 {
		return []api.NextStep{{Actor: api.ActorUser, Text: fmt.Sprintf("ResourceQuota %s allows it by now: have the controller try again at once", q.Name)}}
	}
	var steps []api.NextStep
	user := api.NextStep{Actor: api.ActorUser, Commands: []string{"kubectl describe " + shell.KubectlObjects("resourcequota", q.Namespace, q.Name)}}
	switch {
	case q.Used:
		user.Text = fmt.Sprintf("ask for less, or delete what ResourceQuota %s counts in namespace %s and nobody needs", q.Name, q.Namespace)
		steps = append(steps, user)
	case q.Some:
		user.Text = fmt.Sprintf("ask for no more than ResourceQuota %s allows", q.Name)
		steps = append(steps, user)
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"hard": q.Hard}})
	if err != nil {
		return steps
	}
	return append(steps, api.NextStep{
		Actor: api.ActorAdmin, Text: fmt.Sprintf("raise ResourceQuota %s in namespace %s", q.Name, q.Namespace),
		Commands: []string{merge("resourcequota", q.Namespace, q.Name, string(patch))},
	})
}
