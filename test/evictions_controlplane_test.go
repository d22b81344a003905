// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

const evictNamespace = "evict"

// evictObjects is a node with three pools. The driver itself has tainted the
// only device of the last one.
const evictObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: evict, labels: {resource.kubernetes.io/admin-access: "true"}}
---
apiVersion: v1
kind: Node
metadata: {name: evict-a, labels: {kubernetes.io/hostname: evict-a}}
status:
  capacity: {cpu: "64", memory: 64Gi, pods: "110"}
  allocatable: {cpu: "64", memory: 64Gi, pods: "110"}
  conditions: [{type: Ready, status: "True", reason: KubeletReady}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: evict}
spec:
  extendedResourceName: evict.example.com/gpu
  selectors: [{cel: {expression: "device.driver == 'evict.example.com'"}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: evict-worn}
spec:
  driver: evict.example.com
  nodeName: evict-a
  pool: {name: worn, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0, attributes: {pool: {string: worn}}, taints: [{key: maintenance, value: fan, effect: NoExecute}]}]
`

// evictionCases returns pods by name, each with the tolerations of the request of its
// claim, and what the controller has to do with it.
func evictionCases() map[string]evictionCase {
	const forever = `[{key: maintenance, operator: Exists, effect: NoExecute}]`
	return map[string]evictionCase{
		"none":             {evicted: true},
		"key":              {tolerations: forever},
		"value":            {tolerations: `[{key: maintenance, operator: Equal, value: fan, effect: NoExecute}]`},
		"other-value":      {tolerations: `[{key: maintenance, operator: Equal, value: disk, effect: NoExecute}]`, evicted: true},
		"other-key":        {tolerations: `[{key: xid, operator: Exists, effect: NoExecute}]`, evicted: true},
		"any-key":          {tolerations: `[{operator: Exists, effect: NoExecute}]`},
		"seconds":          {tolerations: `[{key: maintenance, operator: Exists, effect: NoExecute, tolerationSeconds: 6}]`, evicted: true, after: 6 * time.Second},
		"zero-seconds":     {tolerations: `[{key: maintenance, operator: Exists, effect: NoExecute, tolerationSeconds: 0}]`, evicted: true},
		"shortest":         {tolerations: `[{operator: Exists, effect: NoExecute, tolerationSeconds: 3600}, {key: maintenance, operator: Exists, effect: NoExecute, tolerationSeconds: 4}]`, evicted: true, after: 4 * time.Second},
		"forever-counts":   {tolerations: `[{key: maintenance, operator: Exists, effect: NoExecute, tolerationSeconds: 4}, {operator: Exists, effect: NoExecute}]`},
		"an-hour":          {tolerations: `[{key: maintenance, operator: Exists, effect: NoExecute, tolerationSeconds: 3600}]`, evicted: true, after: time.Hour},
		"wrong-effect":     {tolerations: `[{key: maintenance, operator: Exists, effect: NoSchedule}]`, evicted: true},
		"no-effect":        {tolerations: `[{key: maintenance, operator: Exists}]`, evicted: true},
		"everything":       {tolerations: `[{operator: Exists}]`, evicted: true},
		"several-devices":  {count: 2, evicted: true},
		"monitor":          {admin: true, evicted: true},
		"tolerant-monitor": {tolerations: forever, admin: true},
		"other-pool":       {pool: "well"},
		"finished":         {finished: true},
		// The driver's own taint is the same as the rule's, but older.
		"worn": {tolerations: `[{key: maintenance, operator: Exists, effect: NoExecute, tolerationSeconds: 7200}]`, pool: "worn"},
	}
}

type evictionCase struct {
	tolerations string
	count       int
	admin       bool
	// pool is the one of the device, "sick" if it is empty.
	pool     string
	finished bool
	// evicted reports whether a rule for pool sick evicts the pod, after how long.
	evicted bool
	after   time.Duration
}

func (e evictionCase) claim(name string) string {
	pool := e.pool
	if pool == "" {
		pool = "sick"
	}
	tolerations := ""
	if e.tolerations != "" {
		tolerations = "tolerations: " + e.tolerations + ", "
	}
	return fmt.Sprintf(`{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: %s}, spec: {devices: {requests: [{name: gpu, exactly: {
  deviceClassName: evict, count: %d, adminAccess: %t, %sselectors: [{cel: {expression: "device.attributes['evict.example.com'].pool == '%s'"}}]}}]}}}`, name, max(e.count, 1), e.admin, tolerations, pool)
}

// TestEvictionsAreThoseOfThePreview asks whom a rule would evict, makes it, and
// lets the device taint eviction controller act.
func TestEvictionsAreThoseOfThePreview(t *testing.T) {
	ctx := t.Context()
	c := startCluster(t, everything())
	p := programFor(t, c.kubeconfig)
	want := c.evictionPods(t)

	rule := filepath.Join(t.TempDir(), "rule.yaml")
	mustDo(t, func() error {
		return os.WriteFile(rule, []byte(`{apiVersion: resource.k8s.io/v1, kind: DeviceTaintRule, metadata: {name: sick-fan},
  spec: {deviceSelector: {pool: sick}, taint: {key: maintenance, value: fan, effect: NoExecute}}}`), 0o600)
	})
	preview := p.output(t, "taints", "preview", "-f", rule)
	if diff := cmp.Diff(want, fates(preview)); diff != "" {
		t.Errorf("pods of the preview: -want +got:\n%s\n%s", diff, preview)
	}
	add := []string{"taints", "add", "--name", "sick-fan", "--pool", "sick", "maintenance=fan:NoExecute"}
	if dry := p.output(t, append(add, "--dry-run=server")...); !strings.HasPrefix(dry, preview) {
		t.Errorf("a dry run says\n%s\nand the preview\n%s", dry, preview)
	}

	t.Run("the controller counts the same", func(t *testing.T) {
		p.output(t, "taints", "add", "--name", "simulated", "--pool", "sick", "maintenance=fan:None")
		devices := 0
		for _, device := range items[api.Device](t, p, "devices", "--pool", "sick") {
			devices++
			if device.State == api.DeviceStateTainted {
				t.Errorf("the effect None keeps device %s from being had", device.Name)
			}
		}
		evicted := 0
		for _, fate := range want {
			if strings.Contains(fate, "evicted") {
				evicted++
			}
		}
		c.ruleCondition(ctx, t, "simulated", func(condition *metav1.Condition) bool {
			return condition.Reason == "NoEffect" && strings.Contains(condition.Message, fmt.Sprintf("%d published devices", devices)) &&
				strings.Contains(condition.Message, fmt.Sprintf("%d pods would be evicted in 1 namespace", evicted))
		})
		p.output(t, "taints", "remove", "simulated")
	})
	t.Run("NoSchedule evicts nobody", func(t *testing.T) {
		if out := p.output(t, "taints", "add", "--name", "cordoned", "--pool", "sick", "maintenance=fan:NoSchedule"); !strings.Contains(out, "0 pods would be evicted\n") {
			t.Errorf("it says\n%s", out)
		}
		c.ruleCondition(ctx, t, "cordoned", func(condition *metav1.Condition) bool { return condition.Status == metav1.ConditionFalse })
		p.output(t, "taints", "remove", "maintenance", "--pool", "sick")
		if evicted := c.evicted(t); len(evicted) > 0 {
			t.Fatalf("evicted: %v", evicted)
		}
	})

	if out := p.output(t, append(add, "--yes")...); !strings.HasPrefix(out, preview) {
		t.Errorf("what is done says\n%s\nand the preview\n%s", out, preview)
	}
	// What the rule does is planned at once.
	planned := map[string]time.Time{}
	for _, taint := range items[api.Taint](t, p, "taints", "sick-fan") {
		for _, pod := range taint.Pods {
			if pod.Evicted {
				planned[pod.Name] = pod.EvictionAt.Time
			}
		}
	}
	// All are gone but for the ones that tolerate the taint for an hour.
	mustDo(t, func() error { return poll(ctx, func() bool { return len(c.evicted(t)) >= len(soon(want)) }) })
	c.ruleCondition(ctx, t, "sick-fan", func(condition *metav1.Condition) bool {
		return condition.Reason == "PodsPendingEviction" && strings.HasPrefix(condition.Message, "1 pod needs to be evicted in 1 namespace.") &&
			strings.Contains(condition.Message, fmt.Sprintf("%d pods evicted since", len(soon(want))))
	})
	evicted := c.evicted(t)
	if diff := cmp.Diff(soon(want), slices.Sorted(maps.Keys(evicted))); diff != "" {
		t.Errorf("evicted pods: -previewed +evicted:\n%s", diff)
	}
	created, err := c.kube.ResourceV1().DeviceTaintRules().Get(ctx, "sick-fan", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range evictionCases() {
		if !e.evicted || e.after == time.Hour {
			continue
		}
		due := created.Spec.Taint.TimeAdded.Add(e.after)
		if at, ok := planned[name]; ok && !at.Equal(due) {
			t.Errorf("taints says that pod %s is evicted at %s, want %s", name, at, due)
		}
		if at := evicted[name]; at.Before(due) {
			t.Errorf("pod %s was evicted at %s, before it was due at %s", name, at, due)
		}
	}

	t.Run("who is evicted anyway", func(t *testing.T) {
		asked := time.Now()
		out := p.output(t, "taints", "add", "--pool", "sick", "xid=79:NoExecute", "--dry-run=client")
		if fate := fates(out)["an-hour"]; !fateIn(fate, created.Spec.Taint.TimeAdded.Add(time.Hour), asked,
			"would be evicted at once; it is evicted anyway in %s because of maintenance=fan:NoExecute (DeviceTaintRule/sick-fan)") {
			t.Errorf("pod an-hour: %q in\n%s", fate, out)
		}
	})
	t.Run("a driver set the same taint before", func(t *testing.T) {
		slice, err := c.kube.ResourceV1().ResourceSlices().Get(ctx, "evict-worn", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		asked := time.Now()
		out := p.output(t, "taints", "add", "--pool", "worn", "maintenance=fan:NoExecute", "--dry-run=client")
		if fate := fates(out)["worn"]; !fateIn(fate, slice.Spec.Devices[0].Taints[0].TimeAdded.Add(2*time.Hour), asked,
			"is evicted anyway in %s because of maintenance=fan:NoExecute (ResourceSlice/evict-worn)") {
			t.Errorf("pod worn: %q in\n%s", fate, out)
		}
	})
	t.Run("removing the rule ends it", func(t *testing.T) {
		p.output(t, "taints", "remove", "sick-fan")
		mustDo(t, func() error {
			return poll(ctx, func() bool {
				events, err := c.kube.CoreV1().Events(evictNamespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=an-hour,reason=DeviceTaintManagerEviction"})
				return err == nil && slices.ContainsFunc(events.Items, func(event corev1.Event) bool { return event.Message == "Cancelling deletion" })
			})
		})
		for _, taint := range items[api.Taint](t, p, "taints") {
			if taint.Rule != "" {
				t.Errorf("there still is rule %s", taint.Rule)
			}
		}
	})
}

// evictionPods creates the pods of all cases, and others, lets the scheduler
// place them, and has them running. It returns what becomes of each pod that
// uses a device of pool sick.
func (c *cluster) evictionPods(t *testing.T) map[string]string {
	t.Helper()
	ctx := t.Context()
	for _, pool := range []string{"sick", "well"} {
		var devices []string
		for i := range 32 {
			devices = append(devices, fmt.Sprintf("{name: gpu-%02d, attributes: {pool: {string: %s}}}", i, pool))
		}
		c.createAll(t, evictNamespace, fmt.Sprintf(`{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: evict-%[1]s}, spec: {
  driver: evict.example.com, nodeName: evict-a, pool: {name: %[1]s, generation: 1, resourceSliceCount: 1}, devices: [%[2]s]}}`, pool, strings.Join(devices, ", ")))
	}
	c.createAll(t, evictNamespace, evictObjects)

	want := map[string]string{}
	var names, finished []string
	fate := func(name string, e evictionCase) {
		switch {
		case e.pool == "well" || e.pool == "worn":
		case !e.evicted:
			want[name] = "would stay"
		case e.after == 0:
			want[name] = "would be evicted at once"
		default:
			want[name] = "would be evicted in " + map[time.Duration]string{4 * time.Second: "4s", 6 * time.Second: "6s", time.Hour: "60m"}[e.after] +
				", when it does not tolerate the taint any longer"
		}
	}
	cases := evictionCases()
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		e := cases[name]
		c.createAll(t, evictNamespace, e.claim(name))
		c.createAll(t, evictNamespace, evictionPod(name, name))
		names = append(names, name)
		if e.finished {
			finished = append(finished, name)
		}
		fate(name, e)
	}
	// Two pods with one claim, one of which has another claim that tolerates
	// the taint. One that waits for a node does not use the device yet, and so is
	// not named.
	c.createAll(t, evictNamespace, evictionCase{}.claim("common"))
	c.createAll(t, evictNamespace, evictionCase{tolerations: "[{operator: Exists, effect: NoExecute}]"}.claim("tolerant"))
	c.createAll(t, evictNamespace, evictionPod("sharing-1", "common"))
	c.createAll(t, evictNamespace, evictionPod("sharing-2", "tolerant", "common"))
	c.createAll(t, evictNamespace, evictionPod("waiting", "common", "absent"))
	fate("sharing-1", evictionCase{evicted: true})
	fate("sharing-2", evictionCase{evicted: true})
	// The controller of 1.37.1 does not look at the claims of extended resources.
	c.createAll(t, evictNamespace, `
apiVersion: v1
kind: Pod
metadata: {name: extended}
spec:
  containers: [{name: main, image: example.com/none, resources: {limits: {evict.example.com/gpu: "1"}}}]`)
	names = append(names, "sharing-1", "sharing-2", "extended")
	want["extended"] = "would stay"

	for _, name := range names {
		mustDo(t, func() error {
			return poll(ctx, func() bool {
				pod, err := c.pods.Pods(evictNamespace).Get(name)
				return err == nil && pod.Spec.NodeName != "" && c.decided(pod).reason == scheduled
			})
		})
		phase := corev1.PodRunning
		if slices.Contains(finished, name) {
			phase = corev1.PodSucceeded
		}
		mustDo(t, func() error {
			patch := fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase)
			_, err := c.kube.CoreV1().Pods(evictNamespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
			return err
		})
	}
	// A pod that is finished gives its claim back, and with it the device.
	for _, name := range finished {
		delete(want, name)
		mustDo(t, func() error {
			return poll(ctx, func() bool {
				claim, err := c.claims.ResourceClaims(evictNamespace).Get(name)
				return err == nil && len(claim.Status.ReservedFor) == 0 && claim.Status.Allocation == nil
			})
		})
	}
	// The scheduler chose the device for the extended resource itself.
	pod, err := c.pods.Pods(evictNamespace).Get("extended")
	if err != nil {
		t.Fatal(err)
	}
	if result := c.decided(pod).claims[0].Status.Allocation.Devices.Results[0]; result.Pool != "sick" {
		t.Fatalf("pod extended got %s of pool %s, which is no test", result.Device, result.Pool)
	}
	return want
}

func evictionPod(name string, claims ...string) string {
	var entries, uses []string
	for _, claim := range claims {
		if claim == "absent" {
			continue
		}
		entries = append(entries, fmt.Sprintf("{name: %[1]s, resourceClaimName: %[1]s}", claim))
		uses = append(uses, fmt.Sprintf("{name: %s}", claim))
	}
	selector := "{kubernetes.io/hostname: evict-a}"
	if slices.Contains(claims, "absent") {
		selector = "{kubernetes.io/hostname: absent}"
	}
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {nodeSelector: %s, resourceClaims: [%s],
  containers: [{name: main, image: example.com/none, resources: {claims: [%s]}}]}}`, name, selector, strings.Join(entries, ", "), strings.Join(uses, ", "))
}

// createAll creates the objects of a YAML text.
func (c *cluster) createAll(t *testing.T, namespace, documents string) {
	t.Helper()
	for document := range strings.SplitSeq(documents, "\n---\n") {
		object, err := parseObject([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		mustDo(t, func() error { return c.create(t.Context(), namespace, object) })
	}
}

// fates returns what a preview says about pods, by name.
func fates(preview string) map[string]string {
	got := map[string]string{}
	for _, match := range regexp.MustCompile(`(?m)^  `+evictNamespace+`/(\S+) (.*)$`).FindAllStringSubmatch(preview, -1) {
		got[match[1]] = match[2]
	}
	return got
}

// fateIn reports whether a fate says, with %s in its place, how much time was left
// until it is due when it was asked for, some time since asked.
func fateIn(fate string, due, asked time.Time, format string) bool {
	for answered := time.Now(); ; asked = asked.Add(time.Second) {
		if asked.After(answered) {
			asked = answered
		}
		if strings.HasPrefix(fate, fmt.Sprintf(format, duration.HumanDuration(due.Sub(asked)))) {
			return true
		}
		if asked.Equal(answered) {
			return false
		}
	}
}

// soon returns the pods that get evicted within the test.
func soon(fates map[string]string) []string {
	var names []string
	for name, fate := range fates {
		if strings.HasPrefix(fate, "would be evicted") && !strings.Contains(fate, "60m") {
			names = append(names, name)
		}
	}
	return sorted(names)
}

// evicted returns the pods that the controller deleted, and when.
func (c *cluster) evicted(t *testing.T) map[string]time.Time {
	t.Helper()
	pods, err := c.pods.Pods(evictNamespace).List(labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	evicted := map[string]time.Time{}
	for _, pod := range pods {
		by := slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.DisruptionTarget && condition.Reason == "DeletionByDeviceTaintManager"
		})
		switch {
		case pod.DeletionTimestamp == nil:
		case !by:
			t.Errorf("somebody else deletes pod %s", pod.Name)
		default:
			// It is when the time is over that the pod gets.
			evicted[pod.Name] = pod.DeletionTimestamp.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
		}
	}
	return evicted
}

// ruleCondition waits until the controller says something about a rule.
func (c *cluster) ruleCondition(ctx context.Context, t *testing.T, name string, wanted func(*metav1.Condition) bool) *metav1.Condition {
	t.Helper()
	var last *metav1.Condition
	err := poll(ctx, func() bool {
		rule, err := c.kube.ResourceV1().DeviceTaintRules().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		last = meta.FindStatusCondition(rule.Status.Conditions, resourceapi.DeviceTaintConditionEvictionInProgress)
		return last != nil && last.ObservedGeneration == rule.Generation && wanted(last)
	})
	if err != nil {
		t.Fatalf("wait for the status of rule %s, which is %+v: %v", name, last, err)
	}
	return last
}
