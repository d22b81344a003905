// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
)

// queueObjects are a namespace, a node and a class of one name, and a template
// for one device of the class.
const queueObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: $N}
---
apiVersion: v1
kind: Node
metadata: {name: $N}
` + readyNode + `---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: $N}
spec: {selectors: [{cel: {expression: device.driver == "$N.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: $N}}]}}}
`

// queueSlice returns a slice with so many devices for the node of a name.
func queueSlice(name string, devices int) string {
	var list []string
	for i := range devices {
		list = append(list, fmt.Sprintf("{name: gpu-%d}", i))
	}
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %[1]s}
spec: {driver: %[1]s.example.com, nodeName: %[1]s, pool: {name: %[1]s, generation: 1, resourceSliceCount: 1}, devices: [%[2]s]}
`, name, strings.Join(list, ", "))
}

// queuePodSpec is the spec of a pod with one device.
const queuePodSpec = "resourceClaims: [{name: gpu, resourceClaimTemplateName: one}], containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpu}]}}]"

func queuePod(namespace, name, further string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s}, spec: {%s%s}}", name, namespace, further, queuePodSpec)
}

// asked is the answer of `kubectl dra why`.
type asked struct {
	code        int
	out, errOut string
}

// whyText runs why with some arguments.
func (c *cluster) whyText(t *testing.T, args ...string) asked {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	code := commands.Run(t.Context(), append([]string{"why", "--kubeconfig", c.kubeconfig}, args...), streams, commands.Build{Version: "v0.0.0-test"})
	return asked{code, out.String(), errOut.String()}
}

// whyAll runs why with some arguments, of which there is an answer for several
// targets, and returns the answers by name.
func (c *cluster) whyAll(t *testing.T, args ...string) map[string]*api.Explanation {
	t.Helper()
	got := c.whyText(t, append(args, "-o", "json")...)
	var list api.ExplanationList
	if err := json.Unmarshal([]byte(got.out), &list); err != nil {
		t.Fatalf("why %s: code %d, %v\n%s%s", strings.Join(args, " "), got.code, err, got.out, got.errOut)
	}
	found := map[string]*api.Explanation{}
	for i := range list.Items {
		found[list.Items[i].Target.Name] = &list.Items[i]
	}
	return found
}

// wantOrder checks that the first of two pods fits and the second comes after it.
func wantOrder(t *testing.T, how string, found map[string]*api.Explanation, first, second string) {
	t.Helper()
	if e := found[first]; e == nil || e.Verdict != api.Fits || e.Queue != nil {
		t.Errorf("%s: pod %s: %+v", how, first, e)
	}
	e := found[second]
	if e == nil || e.Verdict != api.DoesNotFit || e.Code != api.PodsCompete || e.Placement != nil {
		t.Errorf("%s: pod %s: %+v", how, second, e)
		return
	}
	if want := fmt.Sprintf("/%s, which is before it in the queue, gets gpu-0 on ", first); !strings.Contains(e.Summary, want) {
		t.Errorf("%s: pod %s: %q, want %q", how, second, e.Summary, want)
	}
}

// wantScheduled waits for one of two pods to be scheduled, and for the scheduler to
// refuse the other one.
func (c *cluster) wantScheduled(t *testing.T, namespace, first, second string) {
	t.Helper()
	if got := c.decision(t.Context(), namespace, first, func(d decision) bool { return d.reason == scheduled }); got.reason != scheduled {
		t.Errorf("the scheduler says about pod %s: %+v", first, got)
	}
	if got := c.decision(t.Context(), namespace, second, func(d decision) bool { return d.reason == unschedulable }); got.reason != unschedulable {
		t.Errorf("the scheduler says about pod %s: %+v", second, got)
	}
}

// TestQueueAgreesWithScheduler asks about pods that want the same devices while
// there is no scheduler, and lets one decide then.
func TestQueueAgreesWithScheduler(t *testing.T) {
	ctx := t.Context()
	c := startCluster(t, controlplane.Options{WithoutScheduler: true})
	pods := func(namespace string, pods ...string) {
		t.Helper()
		c.createAll(t, namespace, strings.ReplaceAll(queueObjects, "$N", namespace))
		for _, pod := range pods {
			object, err := parseObject([]byte(pod))
			if err != nil {
				t.Fatal(err)
			}
			mustDo(t, func() error { return c.create(ctx, namespace, object) })
			if object.GetKind() == "Pod" {
				mustDo(t, func() error { return c.waitForClaims(ctx, namespace, object.GetName()) })
			}
			c.nextSecond(t)
		}
	}
	c.createAll(t, "", "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: urgent}, value: 1000}")
	pods("age", queuePod("age", "a-older", ""), queuePod("age", "b-younger", ""))
	c.createAll(t, "age", queueSlice("age", 1))
	pods("rank", queuePod("rank", "a-older", ""), queuePod("rank", "b-younger", "priorityClassName: urgent, "))
	c.createAll(t, "rank", queueSlice("rank", 1))
	pods("rollout", queuePod("rollout", "holder", "priorityClassName: urgent, "),
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 5, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {"+queuePodSpec+"}}}}")
	c.createAll(t, "rollout", queueSlice("rollout", 3))
	mustDo(t, func() error { return poll(ctx, func() bool { return c.replicasWith(t, claimed) == 5 }) })

	// A scheduler that starts takes waiting pods of one priority in any order, so that
	// what it does with those of namespace age is not compared.
	orders := []struct{ namespace, first, second string }{{"age", "a-older", "b-younger"}, {"rank", "b-younger", "a-older"}}
	for _, order := range orders {
		t.Run(order.namespace, func(t *testing.T) {
			wantOrder(t, "why -n "+order.namespace, c.whyAll(t, "-n", order.namespace), order.first, order.second)
			wantOrder(t, "two targets", c.whyAll(t, "-n", order.namespace, "pod/"+order.first, "pod/"+order.second), order.first, order.second)
			all := c.whyText(t, "-A")
			if want := "1 pod waits for 1 device of " + order.namespace + "; 1 of 1 is free, but pods before it in the queue get it"; !strings.Contains(all.out, want) {
				t.Errorf("why -A: no %q in\n%s", want, all.out)
			}
			behind := "Pod " + order.namespace + "/" + order.first + ", which is before it in the queue, gets gpu-0 on " + order.namespace + "."
			if one := c.whyText(t, "pod/"+order.second, "-n", order.namespace, "-o", "jsonpath={.summary}"); !strings.Contains(one.out, behind) {
				t.Errorf("why pod/%s: no %q in\n%s", order.second, behind, one.out)
			}
			for _, row := range []string{
				order.namespace + ` +` + order.first + ` +Allocation .* fits on ` + order.namespace + `$`,
				order.namespace + ` +` + order.second + ` +Allocation .* cause \d+: (after others end|pods compete)$`,
			} {
				if all.code != 1 || !regexp.MustCompile(`(?m)^`+row+`$`).MatchString(all.out) {
					t.Errorf("why -A: code %d, no row %s in\n%s", all.code, row, all.out)
				}
			}
		})
	}
	t.Run("a Deployment before", func(t *testing.T) {
		c.wantReplicas(t, 5, 0, 2)
		// Equal pods are one line.
		if got := c.whyText(t, "-A"); !regexp.MustCompile(`(?m)^rollout +deployment/web \(2 pods\) .* fit, \S+ first`).MatchString(got.out) ||
			!regexp.MustCompile(`(?m)^rollout +deployment/web \(3 pods\) .*cause`).MatchString(got.out) {
			t.Errorf("why -A:\n%s", got.out)
		}
	})

	mustDo(t, func() error { return c.plane.StartScheduler(ctx) })
	c.wantScheduled(t, "rank", "b-younger", "a-older")
	t.Run("a Deployment", c.rollout)
	t.Run("in the order of creation", c.byCreation)
	t.Run("from a file", c.byFile)
}

// nextSecond returns in another second than it was called in, which is how exactly
// the API server writes down when something was created.
func (c *cluster) nextSecond(t *testing.T) {
	t.Helper()
	now := time.Now().Unix()
	mustDo(t, func() error { return poll(t.Context(), func() bool { return time.Now().Unix() > now }) })
}

// claimed reports whether the pod of the Deployment has its devices.
func claimed(c *cluster, pod *corev1.Pod) bool {
	claim, _ := c.claimOf(pod, pod.Spec.ResourceClaims[0])
	return claim != nil
}

func placed(c *cluster, pod *corev1.Pod) bool { return c.decided(pod).reason == scheduled }

func refused(c *cluster, pod *corev1.Pod) bool { return c.decided(pod).reason == unschedulable }

// replicasWith counts the pods of the Deployment in a state.
func (c *cluster) replicasWith(t *testing.T, state func(*cluster, *corev1.Pod) bool) int {
	t.Helper()
	pods, err := c.pods.Pods("rollout").List(labels.SelectorFromSet(labels.Set{"app": "web"}))
	if err != nil {
		t.Fatal(err)
	}
	return len(slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil || !state(c, pod) }))
}

// wantReplicas asks about the Deployment.
func (c *cluster) wantReplicas(t *testing.T, desired, have, fit int, args ...string) {
	t.Helper()
	got := c.whyText(t, append([]string{"deploy/web", "-n", "rollout", "-o", "json"}, args...)...)
	var e api.Explanation
	if err := json.Unmarshal([]byte(got.out), &e); err != nil {
		t.Fatalf("code %d, %v\n%s", got.code, err, got.errOut)
	}
	if got.code != 1 || e.Verdict != api.DoesNotFit || e.Members == nil || int(*e.Members.Desired) != desired || e.Members.WithDevices != have || e.Members.FitNow != fit || e.Members.Waiting != desired-have {
		t.Errorf("why deploy/web: code %d, %s, %s, %+v, want %d of %d with devices and %d more", got.code, e.Verdict, e.Summary, e.Members, have, desired, fit)
	}
	verb := "have"
	if have == 1 {
		verb = "has"
	}
	want := fmt.Sprintf("%d of %d replicas %s devices", have, desired, verb)
	switch {
	case have == 0 && fit == 1:
		want += ", 1 more fits now"
	case have == 0:
		want += fmt.Sprintf(", %d more fit now", fit)
	case fit == 0:
		want += ", no more fit"
	default:
		want += fmt.Sprintf(", only %d more %s", fit, map[bool]string{true: "fits", false: "fit"}[fit == 1])
	}
	if text := c.whyText(t, append([]string{"deploy/web", "-n", "rollout"}, args...)...); !strings.Contains(text.out, want) {
		t.Errorf("why deploy/web does not say %q:\n%s", want, text.out)
	}
}

// rollout follows the Deployment when its pods are scheduled, when a device is
// released and when one is added.
func (c *cluster) rollout(t *testing.T) {
	ctx := t.Context()
	settled := func(have int) {
		t.Helper()
		if err := poll(ctx, func() bool { return c.replicasWith(t, placed) == have && c.replicasWith(t, refused) == 5-have }); err != nil {
			t.Fatalf("%d replicas are scheduled, want %d", c.replicasWith(t, placed), have)
		}
	}
	settled(2)
	c.wantReplicas(t, 5, 2, 0)
	if got := c.whyText(t, "-A"); got.code != 1 || !regexp.MustCompile(`(?m)^rollout +deployment/web \(3 pods\) +Allocation .*cause`).MatchString(got.out) || strings.Contains(got.out, "web-") {
		t.Errorf("why -A: code %d\n%s", got.code, got.out)
	}

	// One more device than there is: the scheduler acts on what was said before.
	path := filepath.Join(t.TempDir(), "slice.yaml")
	mustDo(t, func() error { return os.WriteFile(path, []byte(queueSlice("rollout", 4)), 0o600) })
	c.wantReplicas(t, 5, 2, 1, "-f", path)
	mustDo(t, func() error {
		patch := []byte(`{"spec":{"devices":[{"name":"gpu-0"},{"name":"gpu-1"},{"name":"gpu-2"},{"name":"gpu-3"}]}}`)
		_, err := c.kube.ResourceV1().ResourceSlices().Patch(ctx, "rollout", types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	settled(3)
	c.wantReplicas(t, 5, 3, 0)

	mustDo(t, func() error {
		return c.kube.CoreV1().Pods("rollout").Delete(ctx, "holder", *metav1.NewDeleteOptions(0))
	})
	settled(4)
	c.wantReplicas(t, 5, 4, 0)
}

// byCreation lets two pods wait for a device that comes later. Their names sort in another
// order than their creation.
func (c *cluster) byCreation(t *testing.T) {
	ctx := t.Context()
	c.createAll(t, "created", strings.ReplaceAll(queueObjects, "$N", "created"))
	for _, name := range []string{"z-older", "a-younger"} {
		c.createAll(t, "created", queuePod("created", name, ""))
		if got := c.decision(ctx, "created", name, func(d decision) bool { return d.reason == unschedulable }); got.reason != unschedulable {
			t.Fatalf("%+v", got)
		}
		c.nextSecond(t)
	}
	path := filepath.Join(t.TempDir(), "slice.yaml")
	mustDo(t, func() error { return os.WriteFile(path, []byte(queueSlice("created", 1)), 0o600) })
	wantOrder(t, "why pod/a pod/z -f", c.whyAll(t, "-n", "created", "-f", path, "pod/a-younger", "pod/z-older"), "z-older", "a-younger")
	c.createAll(t, "created", queueSlice("created", 1))
	c.wantScheduled(t, "created", "z-older", "a-younger")
}

// byFile asks about pods in a file, one of which has a priority that another pod of
// the cluster has, and creates them in the order of the queue.
func (c *cluster) byFile(t *testing.T) {
	c.createAll(t, "file", strings.ReplaceAll(queueObjects, "$N", "file"))
	c.createAll(t, "file", queueSlice("file", 1))
	first, second := queuePod("file", "z-first", "priorityClassName: urgent, "), queuePod("file", "a-second", "")
	path := filepath.Join(t.TempDir(), "pods.yaml")
	mustDo(t, func() error { return os.WriteFile(path, []byte(second+"\n---\n"+first), 0o600) })
	wantOrder(t, "why -f", c.whyAll(t, "-f", path), "z-first", "a-second")
	c.createAll(t, "file", first)
	mustDo(t, func() error { return c.waitForClaims(t.Context(), "file", "z-first") })
	c.createAll(t, "file", second)
	c.wantScheduled(t, "file", "z-first", "a-second")
}
