// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestInitContainers covers pods with init containers, which are in phase Pending as long
// as these run.
func TestInitContainers(t *testing.T) {
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(time.Minute)}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: ago(time.Minute), FinishedAt: ago(time.Second)}}
	unstarted := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.Unix(0, 0), Reason: "StartError"}}
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	noImage := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
	with := func(name string, state corev1.ContainerState, change ...func(*corev1.Container)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			c := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "have"}}}}
			for _, each := range change {
				each(&c)
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: name, State: state})
		}
	}
	plain := func(c *corev1.Container) { c.Resources.Claims = nil }
	sidecar := func(c *corev1.Container) { c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways) }
	extended := func(p *corev1.Pod) {
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{RequestMappings: []corev1.ContainerExtendedResourceRequest{{ContainerName: "a"}}}
	}
	for name, test := range map[string]struct {
		changes []func(*corev1.Pod)
		stage   api.Stage
		says    string
	}{
		"runs with the devices":                   {[]func(*corev1.Pod){with("a", runs)}, api.StageRunning, "running since 2026-07-01T11:59:00Z"},
		"has run with them, and another one runs": {[]func(*corev1.Pod){with("a", ended), with("b", runs, plain)}, api.StageRunning, "terminated at"},
		"has run with them, and the pod starts":   {[]func(*corev1.Pod){with("a", ended)}, api.StageInjection, "is Started: "},
		"runs without devices":                    {[]func(*corev1.Pod){with("a", runs, plain)}, api.StageInjection, "is Started: "},
		"runs with an extended resource":          {[]func(*corev1.Pod){with("a", runs, plain), extended}, api.StageRunning, "running since"},
		"could not be started":                    {[]func(*corev1.Pod){with("a", unstarted), with("b", runs, plain)}, api.StageInjection, "is Started: "},
		"waits for its turn":                      {[]func(*corev1.Pod){with("a", waits)}, api.StageInjection, "is Started: "},
		"a sidecar runs, and the pod starts":      {[]func(*corev1.Pod){with("a", runs, sidecar)}, api.StageInjection, "is Started: "},
		"the next one has no image":               {[]func(*corev1.Pod){with("a", ended), with("b", noImage)}, api.StageInjection, "container b waits: ImagePullBackOff"},
	} {
		t.Run(name, func(t *testing.T) {
			normal := func(e *corev1.Event) { e.Type = corev1.EventTypeNormal }
			// The API server lists events by name, not in the order in which they came.
			e := explainEach(t, tc.Cluster(append(boundPod(test.changes...),
				warning("a", "Pulled", "Image is there", time.Minute, normal),
				warning("b", "Started", "Container started", time.Minute, normal),
				warning("c", "Created", "Container created", time.Minute, normal))...), "Pod/p")["Pod/p"]
			if text := asJSON([]any{e.Summary, e.StageEvidence}); e.Verdict != api.Allocated || e.Stage != test.stage || !strings.Contains(text, test.says) {
				t.Errorf("%s at stage %s, want stage %s with %q: %s", e.Verdict, e.Stage, test.stage, test.says, text)
			}
		})
	}
}
