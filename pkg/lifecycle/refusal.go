// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

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
