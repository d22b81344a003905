// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// ago returns a time before the snapshot of [cluster] was taken.
func ago(d time.Duration) metav1.Time {
	return metav1.NewTime(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC).Add(-d))
}

// warning adds an event about pod p.
func warning(name, reason, message string, when time.Duration, changes ...func(*corev1.Event)) any {
	return func(s *snapshot.Snapshot) {
		event := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: tc.Namespace, Name: name},
			InvolvedObject: corev1.ObjectReference{Kind: api.KindPod, Namespace: tc.Namespace, Name: "p", UID: "uid-p"},
			Type:           corev1.EventTypeWarning, Reason: reason, Message: message, LastTimestamp: ago(when),
		}
		for _, change := range changes {
			change(event)
		}
		s.Events = append(s.Events, event)
	}
}

// boundPod returns pod p on node n1, with claim have and its device gpu-0 of gpu-1.
func boundPod(changes ...func(*corev1.Pod)) []any {
	return []any{
		tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), tc.Serving("have", "n1", "gpu-0"), reserved("have", "p"),
		tc.Pod("p", tc.Using("have"), func(p *corev1.Pod) {
			p.Spec.NodeName = "n1"
			for _, change := range changes {
				change(p)
			}
		}),
	}
}

// changeHave changes claim have.
func changeHave(change func(*resourceapi.ResourceClaim)) any {
	return func(s *snapshot.Snapshot) {
		for _, claim := range s.Claims {
			if claim.Name == "have" {
				change(claim)
			}
		}
	}
}

func running(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }

func sandboxIs(status corev1.ConditionStatus, when time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodReadyToStartContainers, Status: status, LastTransitionTime: ago(when),
		})
	}
}

const prepareFailed = "Failed to prepare dynamic resources: prepare dynamic resources: "

// tainted taints gpu-0 of node n1.
func tainted(key string, since time.Duration) any {
	return func(s *snapshot.Snapshot) {
		taint := resourceapi.DeviceTaint{Key: key, Effect: resourceapi.DeviceTaintEffectNoExecute, TimeAdded: ptr.To(ago(since))}
		s.Slices[0].Spec.Devices[0].Taints = append(s.Slices[0].Spec.Devices[0].Taints, taint)
	}
}

func toleratedOnce(key string, seconds ...int64) any {
	return changeHave(func(c *resourceapi.ResourceClaim) {
		result := &c.Status.Allocation.Devices.Results[0]
		toleration := resourceapi.DeviceToleration{Key: key, Operator: resourceapi.DeviceTolerationOpExists, Effect: resourceapi.DeviceTaintEffectNoExecute}
		for _, s := range seconds {
			toleration.TolerationSeconds = &s
			result.Tolerations = append(result.Tolerations, toleration)
		}
		if len(seconds) == 0 {
			result.Tolerations = append(result.Tolerations, toleration)
		}
	})
}

func startedSince(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(d)}},
		})
	}
}

// aboutHave makes an event one of the driver about claim have.
func aboutHave(e *corev1.Event) {
	e.InvolvedObject = corev1.ObjectReference{Kind: api.KindClaim, Namespace: tc.Namespace, Name: "have", UID: "uid-have"}
	e.Source.Component = tc.Driver
}

// notReady gives a claim one share of its device and the driver's word that
// another or the same share is not ready.
func notReady(c *resourceapi.ResourceClaim, share, broken string) {
	result := &c.Status.Allocation.Devices.Results[0]
	result.ShareID = ptr.To(types.UID(share))
	c.Status.Devices = append(c.Status.Devices, resourceapi.AllocatedDeviceStatus{
		Driver: result.Driver, Pool: result.Pool, Device: result.Device, ShareID: &broken,
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Broken"}},
	})
}

func TestLifeOnNode(t *testing.T) {
	inUse := func(changes ...func(*corev1.Pod)) []any { return boundPod(append(changes, running)...) }
	tests := map[string]struct {
		cluster []any
		more    []any
		stage   api.Stage
		code    api.Code
		says    string
		not     string
	}{
		"the newest warning counts": {
			cluster: boundPod(),
			more:    []any{warning("a", "FailedPrepareDynamicResources", prepareFailed+"old", time.Hour), warning("b", "FailedPrepareDynamicResources", prepareFailed+"new", time.Minute)},
			stage:   api.StagePreparation, code: api.PreparationFailed, says: "cannot prepare the devices: new (last 60s ago)", not: "old",
		},
		"a series tells how often": {
			cluster: boundPod(),
			more: []any{warning("a", "FailedPrepareDynamicResources", prepareFailed+"busy", time.Hour, func(e *corev1.Event) {
				e.Series = &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(ago(time.Minute).Time)}
			})},
			stage: api.StagePreparation, code: api.PreparationFailed, says: "busy (7 times, last 60s ago)",
		},
		"a driver that refuses a claim of several pods": {
			cluster: append(boundPod(), func(s *snapshot.Snapshot) {
				s.Claims[0].Status.ReservedFor = append(s.Claims[0].Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: "other", UID: "uid-other"})
			}),
			more:  []any{warning("a", "FailedPrepareDynamicResources", prepareFailed+"NodePrepareResources failed for ResourceClaim ml/have: only one pod is supported", time.Minute)},
			stage: api.StagePreparation, code: api.PreparationFailed, says: "give pod p a claim of its own",
		},
		"a pod of the same name had the warning": {
			cluster: boundPod(),
			more:    []any{warning("a", "FailedPrepareDynamicResources", prepareFailed+"old", time.Hour, func(e *corev1.Event) { e.InvolvedObject.UID = "uid-other" })},
			stage:   api.StagePreparation, not: "old",
		},
		"a warning from before the sandbox was there": {
			cluster: boundPod(sandboxIs(corev1.ConditionTrue, time.Minute)),
			more:    []any{warning("a", "FailedPrepareDynamicResources", prepareFailed+"old", time.Hour)},
			stage:   api.StageInjection, not: "old",
		},
		"an older kubelet's words": {
			cluster: boundPod(),
			more:    []any{warning("a", "FailedPrepareDynamicResources", prepareFailed+"plugin name gpu.example.com not found in the list of registered DRA plugins", time.Minute)},
			stage:   api.StagePreparation, code: api.PreparationFailed, says: "DRA driver gpu.example.com is not registered",
		},
		"a sandbox that fails is after preparation": {
			cluster: boundPod(),
			more:    []any{warning("a", "FailedCreatePodSandBox", "Failed to create pod sandbox: no network", time.Minute)},
			stage:   api.StageInjection, code: api.PodNotStarted, says: "the devices are prepared, but the last warning about the pod is FailedCreatePodSandBox: Failed to create pod sandbox: no network",
		},
		"a directory that fails is before preparation": {
			cluster: boundPod(),
			more:    []any{warning("a", "Failed", "error making pod data directories: no space", time.Minute)},
			stage:   api.StagePreparation, says: "the last warning about the pod is Failed: error making pod data directories", not: "prepared, but",
		},
		"a volume that cannot be mounted": {
			cluster: boundPod(),
			more:    []any{warning("a", "FailedMount", "secret is missing", time.Minute)},
			stage:   api.StagePreparation, says: "FailedMount: secret is missing", not: "prepared, but",
		},
		"images are pulled when the devices are prepared": {
			cluster: boundPod(),
			more: []any{
				warning("a", "FailedPrepareDynamicResources", prepareFailed+"old", time.Hour),
				warning("b", "Pulling", "Pulling image", time.Minute, func(e *corev1.Event) { e.Type = corev1.EventTypeNormal }),
			},
			stage: api.StageInjection, says: "the last thing that the kubelet reports is Pulling: Pulling image (last 60s ago)", not: "old",
		},
		"preparation fails after an image was pulled": {
			cluster: boundPod(),
			more: []any{
				warning("a", "FailedPrepareDynamicResources", prepareFailed+"new", time.Minute),
				warning("b", "Pulled", "Image is there", time.Hour, func(e *corev1.Event) { e.Type = corev1.EventTypeNormal }),
			},
			stage: api.StagePreparation, code: api.PreparationFailed, says: "cannot prepare the devices: new",
		},
		"the sandbox is lost": {
			cluster: inUse(sandboxIs(corev1.ConditionFalse, 10*time.Minute)),
			more: []any{
				warning("a", "FailedPrepareDynamicResources", prepareFailed+"old", time.Hour),
				warning("b", "FailedPrepareDynamicResources", prepareFailed+"new", time.Minute),
			},
			stage: api.StagePreparation, code: api.PreparationFailed, says: "cannot prepare the devices: new", not: "old",
		},
		"a container still runs": {
			cluster: inUse(sandboxIs(corev1.ConditionFalse, 10*time.Minute), startedSince(time.Hour)),
			stage:   api.StageRunning, not: "preparation",
		},
		"the driver's warning is older than the container": {
			cluster: inUse(startedSince(10 * time.Minute)),
			more:    []any{warning("a", "Broken", "no power", 30*time.Minute, aboutHave)},
			stage:   api.StageRunning, not: "no power",
		},
		"the driver's warning is newer than the container": {
			cluster: inUse(startedSince(10 * time.Minute)),
			more:    []any{warning("a", "Broken", "no power", time.Minute, aboutHave)},
			stage:   api.StageRunning, says: `"driver gpu.example.com reports about claim have: Broken: no power`,
		},
		"another share is not ready": {
			cluster: inUse(),
			more:    []any{changeHave(func(c *resourceapi.ResourceClaim) { notReady(c, "a", "b") })},
			stage:   api.StageRunning, not: "is not ready",
		},
		"the claim's share is not ready": {
			cluster: inUse(),
			more:    []any{changeHave(func(c *resourceapi.ResourceClaim) { notReady(c, "a", "a") })},
			stage:   api.StageRunning, code: api.DeviceUnhealthy, says: "is not ready",
		},
		"of two taints the first one evicts": {
			cluster: inUse(),
			more:    []any{tainted("late", time.Minute), tainted("early", time.Minute), toleratedOnce("late", 600), toleratedOnce("early", 120)},
			stage:   api.StageRunning, code: api.EvictionDue, says: "the pod will be deleted in 60s, at 2026-07-01T12:01:00Z: device n1/gpu-0 of claim have has the taint early:NoExecute",
		},
		"of two tolerations the shorter counts": {
			cluster: inUse(),
			more:    []any{tainted("broken", time.Minute), toleratedOnce("broken", 600, 120, 900)},
			stage:   api.StageRunning, code: api.EvictionDue, says: "deleted in 60s",
		},
		"a toleration for ever beats one for a while": {
			cluster: inUse(),
			more:    []any{tainted("broken", time.Minute), toleratedOnce("broken", 10), toleratedOnce("broken")},
			stage:   api.StageRunning, not: "deleted",
		},
		"taints count for bound pods that do not run yet": {
			cluster: boundPod(), more: []any{tainted("broken", 10*time.Second)},
			stage: api.StagePreparation, code: api.EvictionDue, says: "the pod should have been deleted 10s ago", not: "kube-controller-manager",
		},
		"an eviction is never older than its pod": {
			cluster: inUse(func(p *corev1.Pod) { p.CreationTimestamp = ago(2 * time.Hour) }), more: []any{tainted("broken", 160*time.Hour)},
			stage: api.StageRunning, code: api.EvictionDue, says: "the pod should have been deleted 120m ago",
		},
		"a CDI device that the runtime cannot find": {
			cluster: boundPod(),
			more:    []any{warning("a", "Failed", "Error: CDI device injection failed: unresolvable CDI devices lab.example.com/gpu=uid-have-gpu", time.Minute)},
			stage:   api.StageInjection, code: api.InjectionFailed, says: "restart the runtime (systemctl restart containerd); containers that run stay",
		},
		"taints do not count without the feature": {
			cluster: inUse(), more: []any{tainted("broken", time.Hour), tc.Gate("DRADeviceTaints", false)},
			stage: api.StageRunning, not: "deleted",
		},
		"a taint that only keeps others away": {
			cluster: inUse(),
			more: []any{func(s *snapshot.Snapshot) {
				s.Slices[0].Spec.Devices[0].Taints = []resourceapi.DeviceTaint{{Key: "full", Effect: resourceapi.DeviceTaintEffectNoSchedule, TimeAdded: ptr.To(ago(time.Hour))}}
			}},
			stage: api.StageRunning, not: "deleted",
		},
		"shares are no double allocation": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Copies(1, tc.Device("", "memory:=80Gi").Shareable())...), tc.Sharing("have", "n1", "gpu-0", "memory", "10Gi"), tc.Sharing("other", "n1", "gpu-0", "memory", "10Gi"), reserved("have", "p"),
				tc.Pod("p", tc.Using("have"), func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning }),
			},
			stage: api.StageRunning, not: "twice",
		},
		"slices that could not be read are not missing": {
			cluster: []any{
				tc.Nodes("n1"), tc.Gap(snapshot.ResourceSlices, "you may not"), tc.Serving("have", "n1", "gpu-0"), reserved("have", "p"),
				tc.Pod("p", tc.Using("have"), func(p *corev1.Pod) { p.Spec.NodeName = "n1" }),
			},
			more:  []any{warning("a", "FailedPrepareDynamicResources", prepareFailed+"DRA driver gpu.example.com is not registered", time.Minute)},
			stage: api.StagePreparation, code: api.PreparationFailed, not: "any more",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append(test.cluster, test.more...)...)
			e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")})
			if err != nil {
				t.Fatal(err)
			}
			text := strings.ToLower(asJSON([]any{e.Summary, e.NextSteps, e.StageEvidence}))
			verdict := api.Allocated
			if test.code != "" {
				verdict = api.Blocked
			}
			if e.Verdict != verdict || e.Code != test.code || e.Stage != test.stage || !strings.Contains(text, strings.ToLower(test.says)) || test.not != "" && strings.Contains(text, test.not) {
				t.Errorf("%s, code %q, at stage %s, want code %q at stage %s with %q and without %q:\n%s", e.Verdict, e.Code, e.Stage, test.code, test.stage, test.says, test.not, text)
			}
		})
	}
}

// TestClaimTakesThePodWithAReason covers two pods on the node, and only one of which the
// kubelet says something.
func TestClaimTakesThePodWithAReason(t *testing.T) {
	onNode := func(p *corev1.Pod) { p.Spec.NodeName = "n1" }
	snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Serving("have", "n1", "gpu-0"), reserved("have", "p"),
		changeHave(func(c *resourceapi.ResourceClaim) {
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: "a", UID: "uid-a"})
		}),
		tc.Pod("a", tc.Using("have"), onNode), tc.Pod("p", tc.Using("have"), onNode),
		warning("e", "FailedPrepareDynamicResources", prepareFailed+"NodePrepareResources failed for ResourceClaim have: no power", time.Minute))
	e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, "have")})
	if err != nil {
		t.Fatal(err)
	}
	const want = "Pod p: driver gpu.example.com cannot prepare claim have on node n1: no power (last 60s ago)."
	if e.Stage != api.StagePreparation || e.Summary != want {
		t.Errorf("stage %s: %s\nwant %s", e.Stage, e.Summary, want)
	}
}

// TestControllerIsBlamedInTime covers a claim that is reserved for a pod which uses it no
// more, since some time or since nobody knows when.
func TestControllerIsBlamedInTime(t *testing.T) {
	ended := func(since time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodSucceeded
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ago(since)}}}}
		}
	}
	tests := map[string]struct {
		pod    any
		blamed bool
	}{
		"ended just now":      {pod: tc.Pod("p", tc.Using("have"), ended(time.Second))},
		"ended long ago":      {pod: tc.Pod("p", tc.Using("have"), ended(time.Hour)), blamed: true},
		"ended some time":     {pod: tc.Pod("p", tc.Using("have"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })},
		"is gone":             {pod: func(*snapshot.Snapshot) {}},
		"was replaced before": {pod: tc.Pod("p", tc.Using("have"), func(p *corev1.Pod) { p.UID = "uid-new" }), blamed: true},
	}
	for name, test := range tests {
		for _, deleting := range []bool{false, true} {
			snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Serving("have", "n1", "gpu-0"), reserved("have", "p"), test.pod,
				changeHave(func(c *resourceapi.ResourceClaim) {
					if deleting {
						c.DeletionTimestamp, c.Finalizers = ptr.To(ago(2*time.Hour)), []string{resourceapi.Finalizer}
					}
				}))
			e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, "have")})
			if err != nil {
				t.Fatal(err)
			}
			text := asJSON(e.NextSteps)
			if blamed := strings.Contains(text, "should have removed"); blamed != test.blamed || !strings.Contains(text, "removes the reservation") && !blamed {
				t.Errorf("%s, deleting %t: %s", name, deleting, text)
			}
		}
	}
}

func TestUnheard(t *testing.T) {
	tests := map[string]struct {
		age   time.Duration
		more  any
		stage api.Stage
		says  string
	}{
		"waits":             {age: 10 * time.Minute, more: tc.Gate("DRAAdminAccess", true), stage: api.StageQueueing, says: "has reported nothing about it in 10m"},
		"events have gone":  {age: 2 * time.Hour, more: tc.Gate("DRAAdminAccess", true), stage: api.StageQueueing, says: "no event or condition of it is known; events are kept for 60m"},
		"events are hidden": {age: 10 * time.Minute, more: tc.Gap(snapshot.ResourceEvents, "no"), stage: api.StageAllocation},
	}
	for name, test := range tests {
		snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim("want", tc.GPUs("gpu", 1)), test.more, tc.Pod("p", tc.Using("want"), func(p *corev1.Pod) {
			p.Spec.SchedulerName, p.CreationTimestamp = "batch", ago(test.age)
		}))
		e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")})
		if err != nil {
			t.Fatal(err)
		}
		if e.Stage != test.stage || !strings.Contains(e.Summary, test.says) {
			t.Errorf("%s: stage %s: %s", name, e.Stage, e.Summary)
		}
	}
}

func TestActor(t *testing.T) {
	for name, test := range map[string]struct {
		remedies, steps []string
		want            string
	}{
		"nothing helps":          {nil, nil, ""},
		"the user comes first":   {[]string{api.ActorAdmin, api.ActorUser, api.ActorNobody}, nil, api.ActorUser},
		"remedies come first":    {[]string{api.ActorAdmin}, []string{api.ActorUser}, api.ActorAdmin},
		"only steps":             {nil, []string{api.ActorNobody, api.ActorAdmin}, api.ActorAdmin},
		"something to wait for":  {[]string{api.ActorNobody}, nil, api.ActorNobody},
		"an actor without a say": {[]string{"Somebody"}, nil, ""},
	} {
		e := &api.Explanation{}
		for _, actor := range test.remedies {
			e.Remedies = append(e.Remedies, api.Remedy{Actor: actor})
		}
		for _, actor := range test.steps {
			e.NextSteps = append(e.NextSteps, api.NextStep{Actor: actor})
		}
		if got := Actor(e); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
