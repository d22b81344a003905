// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/trial"
)

var begin = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

func after(milliseconds int) time.Time {
	return begin.Add(time.Duration(milliseconds) * time.Millisecond)
}

// trialPod returns the pod of a trial that has come so far.
func trialPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "case-1-1", UID: "uid-pod"}}
	pod.Spec.Containers = []corev1.Container{{Name: trial.ClaimContainer}, {Name: trial.OtherContainer}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func bound(pod *corev1.Pod) { pod.Spec.NodeName = "node-1" }

func withSandbox(pod *corev1.Pod) {
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue})
}

func running(pod *corev1.Pod) {
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	}
}

func waiting(reason string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: trial.ClaimContainer, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "no"}}}}
	}
}

func trialClaim(device string, reserved bool) *resourceapi.ResourceClaim {
	claim := tc.Claim("case-1-1-devices", tc.GPUs("device", 1)).OwnedBy("Pod", "case-1-1")
	if device != "" {
		claim = claim.Holding(device)
	}
	if reserved {
		claim = claim.ReservedFor("case-1-1", "uid-pod")
	}
	return claim.ResourceClaim
}

func kubeletEvent(reason, container string) *corev1.Event {
	return &corev1.Event{Reason: reason, InvolvedObject: corev1.ObjectReference{
		Kind: "Pod", Name: "case-1-1", UID: "uid-pod", FieldPath: "spec.containers{" + container + "}",
	}}
}

// stagesText returns each stage that was reached with its time, and the others with their
// result.
func stagesText(stages []api.TrialStage) string {
	var texts []string
	for _, s := range stages {
		if s.Milliseconds != nil {
			texts = append(texts, fmt.Sprintf("%s %d", s.Stage, *s.Milliseconds))
		} else {
			texts = append(texts, fmt.Sprintf("%s %s", s.Stage, s.Result))
		}
	}
	return strings.Join(texts, ", ")
}

func TestRecord(t *testing.T) {
	for name, test := range map[string]struct {
		see  func(r *trial.Record)
		want string
	}{
		"nothing heard": {
			func(*trial.Record) {},
			"Generated Failed, Allocated Unknown, Reserved Unknown, Scheduled Unknown, Prepared Unknown, Injected Unknown, Started Unknown, Unprepared Unknown, Deallocated Unknown, Cleaned Unknown",
		},
		"from the beginning to the end": {
			func(r *trial.Record) {
				r.SeePod(trialPod(), false, after(1))
				r.SeeClaim(trialClaim("", false), false, after(10))
				r.SeeClaim(trialClaim("gpu-0", true), false, after(30))
				r.SeePod(trialPod(bound), false, after(35))
				r.SeePod(trialPod(bound, withSandbox), false, after(135))
				r.SeeEvent(kubeletEvent("Created", trial.ClaimContainer), after(155))
				r.SeePod(trialPod(bound, withSandbox, running), false, after(162))
				r.DeletePod(after(1000))
				r.SeePod(trialPod(bound), true, after(1100))
				r.SeeClaim(trialClaim("", false), false, after(1130))
				r.SeeClaim(trialClaim("", false), true, after(1140))
			},
			"Generated 10, Allocated 20, Reserved 0, Scheduled 5, Prepared 100, Injected 20, Started 7, Unprepared 100, Deallocated 30, Cleaned 10",
		},
		"the claim is heard of after the pod": {
			func(r *trial.Record) {
				r.SeePod(trialPod(bound, withSandbox, running), false, after(50))
				r.SeeClaim(trialClaim("gpu-0", true), false, after(60))
			},
			"Generated 50, Allocated 0, Reserved 0, Scheduled 0, Prepared 0, Injected 0, Started 0, Unprepared Unknown, Deallocated Unknown, Cleaned Unknown",
		},
		"of another pod": {
			func(r *trial.Record) {
				other := trialPod(bound, running)
				other.Name = "case-1-2"
				r.SeePod(other, false, after(1))
				claim := trialClaim("gpu-0", true)
				claim.OwnerReferences[0].Name = "case-1-2"
				r.SeeClaim(claim, false, after(2))
				r.SeePod(trialPod(), false, after(3))
				event := kubeletEvent("Started", trial.ClaimContainer)
				event.InvolvedObject.UID = "uid-before"
				r.SeeEvent(event, after(4))
			},
			"Generated Failed, Allocated Unknown, Reserved Unknown, Scheduled Unknown, Prepared Unknown, Injected Unknown, Started Unknown, Unprepared Unknown, Deallocated Unknown, Cleaned Unknown",
		},
		"the other container starts first": {
			func(r *trial.Record) {
				r.SeeClaim(trialClaim("gpu-0", true), false, after(1))
				r.SeePod(trialPod(bound), false, after(1))
				r.SeeEvent(kubeletEvent("Created", trial.OtherContainer), after(5))
				r.SeeEvent(kubeletEvent("Started", trial.OtherContainer), after(6))
			},
			"Generated 1, Allocated 0, Reserved 0, Scheduled 0, Prepared Failed, Injected Unknown, Started Unknown, Unprepared Unknown, Deallocated Unknown, Cleaned Unknown",
		},
		"it starts after it was given up": {
			func(r *trial.Record) {
				r.SeeClaim(trialClaim("gpu-0", true), false, after(1))
				r.SeePod(trialPod(bound), false, after(1))
				r.GiveUp()
				r.DeletePod(after(100))
				r.SeePod(trialPod(bound, withSandbox, running), false, after(110))
				r.SeePod(trialPod(bound), true, after(120))
				r.SeeClaim(trialClaim("", false), true, after(130))
			},
			"Generated 1, Allocated 0, Reserved 0, Scheduled 0, Prepared Failed, Injected Unknown, Started Unknown, Unprepared 20, Deallocated 10, Cleaned 0",
		},
		"the driver does not unprepare": {
			func(r *trial.Record) {
				r.SeeClaim(trialClaim("gpu-0", true), false, after(1))
				r.SeePod(trialPod(bound, running), false, after(2))
				r.DeletePod(after(3))
			},
			"Generated 1, Allocated 0, Reserved 0, Scheduled 1, Prepared 0, Injected 0, Started 0, Unprepared Failed, Deallocated Unknown, Cleaned Unknown",
		},
		"the claim keeps its devices": {
			func(r *trial.Record) {
				r.SeeClaim(trialClaim("gpu-0", true), false, after(1))
				r.SeePod(trialPod(bound, running), false, after(2))
				r.DeletePod(after(3))
				r.SeePod(trialPod(bound), true, after(5))
			},
			"Generated 1, Allocated 0, Reserved 0, Scheduled 1, Prepared 0, Injected 0, Started 0, Unprepared 2, Deallocated Failed, Cleaned Unknown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := trial.NewRecord("case-1-1", begin)
			test.see(r)
			if got := stagesText(r.Stages()); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestHopeless(t *testing.T) {
	failed := func(pod *corev1.Pod) {
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "UnexpectedAdmissionError", "no room"
	}
	deleted := func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: begin} }
	for name, test := range map[string]struct {
		pod    *corev1.Pod
		reason string
		unfit  bool
	}{
		"it starts":                        {trialPod(bound), "", false},
		"the image cannot be pulled":       {trialPod(bound, waiting("ImagePullBackOff")), "--image", true},
		"CDI devices that do not resolve":  {trialPod(bound, waiting("CreateContainerError")), "", false},
		"the kubelet refuses it":           {trialPod(bound, failed), "UnexpectedAdmissionError: no room", false},
		"somebody else deletes it":         {trialPod(bound, deleted), "somebody else", true},
		"a container that ends is no test": {trialPod(bound, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), "ended at once", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := trial.NewRecord("case-1-1", begin)
			r.SeePod(test.pod, false, after(1))
			reason, unfit := r.Hopeless()
			if unfit != test.unfit || (reason == "") != (test.reason == "") || !strings.Contains(reason, test.reason) {
				t.Errorf("got %q, %t; want %q, %t", reason, unfit, test.reason, test.unfit)
			}
		})
	}
}

// TestLeft finds the object that keeps a deleted pod from its end, also if the pod was never
// reported.
func TestLeft(t *testing.T) {
	pod, claim := api.Ref("Pod", "test", "case-1-1"), api.RefTo("ResourceClaim", trialClaim("", false))
	for _, test := range []struct {
		name                  string
		seen, podGone, claims bool
		want                  api.ObjectRef
	}{
		{"nothing was reported", false, false, false, pod},
		{"the pod", true, false, true, pod},
		{"the claim of a pod that is gone", true, true, true, claim},
		{"the claim of a pod that was never reported", false, false, true, claim},
	} {
		r := trial.NewRecord("case-1-1", begin)
		if test.seen {
			r.SeePod(trialPod(), test.podGone, after(1))
		}
		if test.claims {
			r.SeeClaim(trialClaim("", false), false, after(2))
		}
		if got := r.Left("test"); got != test.want {
			t.Errorf("%s: %s is left, want %s", test.name, got, test.want)
		}
	}
}
