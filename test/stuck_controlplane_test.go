// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// stuckObjects are a node with a device for each pod of a test.
const stuckObjects = `
{apiVersion: v1, kind: Namespace, metadata: {name: stuck}}
---
apiVersion: v1
kind: Node
metadata: {name: stuck}
` + readyNode + `---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: stuck}
spec: {selectors: [{cel: {expression: device.driver == "stuck.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: stuck}
spec:
  driver: stuck.example.com
  nodeName: stuck
  pool: {name: stuck, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: binding, attributes: {for: {string: binding}}, bindingConditions: [stuck.example.com/attached], bindingFailureConditions: [stuck.example.com/failed]}
  - {name: overdue, attributes: {for: {string: overdue}}, bindingConditions: [stuck.example.com/attached], bindingFailureConditions: [stuck.example.com/failed]}
  - {name: preparing, attributes: {for: {string: preparing}}}
  - {name: starting, attributes: {for: {string: starting}}}
  - {name: tainted, attributes: {for: {string: tainted}}}
  - {name: running, attributes: {for: {string: running}}}
  - {name: gone, attributes: {for: {string: gone}}}
`

// stuckPod returns a pod with the device of its name.
func stuckPod(name, further string) string {
	return fmt.Sprintf(`
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: %[1]s}, spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: stuck,
  selectors: [{cel: {expression: "device.attributes['stuck.example.com'].for == '%[1]s'"}}], tolerations: [{key: worn, operator: Exists, effect: NoExecute, tolerationSeconds: 3600}]}}]}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: %[1]s, labels: {is: %[1]s}}, spec: {%[2]sresourceClaims: [{name: gpu, resourceClaimName: %[1]s}],
  containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpu}]}}]}}`, name, further)
}

// TestStuckPodsAreListed lets the scheduler and the controllers bring pods to where they
// are stuck: why without a target names each of them.
func TestStuckPodsAreListed(t *testing.T) {
	ctx := t.Context()
	c := startCluster(t, everything())
	c.createAll(t, "stuck", stuckObjects)
	for _, name := range []string{"binding", "preparing", "starting", "tainted", "running", "gone"} {
		c.createAll(t, "stuck", stuckPod(name, ""))
	}
	c.createAll(t, "stuck", stuckPod("overdue", "schedulerName: nobody, "))
	for name, reason := range map[string]decisionReason{"binding": allocated, "preparing": scheduled, "starting": scheduled, "tainted": scheduled, "running": scheduled, "gone": scheduled} {
		if got := c.decision(ctx, "stuck", name, func(d decision) bool { return d.reason == reason }); got.reason != reason {
			t.Fatalf("pod %s: %+v", name, got)
		}
	}
	c.getStuck(t)

	rows := map[string]string{
		"binding":   `Binding .* cause (\d+): allocated$`,
		"overdue":   `Binding .* cause (\d+): binding pending$`,
		"preparing": `Preparation .* cause (\d+): preparation failed$`,
		"tainted":   `Preparation .* cause (\d+): eviction due$`,
		"gone":      `Preparation .* cause (\d+): device missing$`,
	}
	c.wantListed(t, c.whyText(t, "-A"), rows)
	c.wantListed(t, c.whyText(t, "-n", "stuck"), rows)
	for name := range rows {
		t.Run(name, func(t *testing.T) {
			got := c.whyText(t, "-A", "-l", "is="+name)
			code := 1
			if name == "binding" {
				// The driver has time.
				code = 0
			}
			if got.code != code || !regexp.MustCompile(`(?m)^NAMESPACE .*\nstuck +`+name+` .*\n\z`).MatchString(got.out) {
				t.Errorf("code %d, want %d\n%s%s", got.code, code, got.out, got.errOut)
			}
		})
	}
	t.Run("without the right to list events", func(t *testing.T) {
		document := readRights(t)
		other := func(right string) bool { return right != "events" }
		rules := slices.Concat(document.rules(t, "ClusterRole kubectl-dra-devices", other), document.rules(t, "ClusterRole kubectl-dra-claims", other))
		c.grant(ctx, t, "blind", "", rules...)
		for _, rule := range rules {
			c.waitForRight(t, "blind", "", rule)
		}
		blind := *c
		blind.kubeconfig = c.kubeconfigOf(t, "blind")
		delete(rows, "preparing")
		got := blind.whyText(t, "-A")
		c.wantListed(t, got, rows)
		if want := "Note: this user may not list events at the cluster scope: "; !strings.HasPrefix(got.errOut, want) {
			t.Errorf("it says %q, want %q", got.errOut, want)
		}
	})
}

// stuckCauses returns the message of the cause of each pod.
func stuckCauses() map[string]string {
	return map[string]string{
		"binding":   `.* waits for driver stuck\.example\.com to set condition stuck\.example\.com/attached of device stuck/binding`,
		"overdue":   `.* waits for driver stuck\.example\.com to set condition stuck\.example\.com/attached of device stuck/overdue`,
		"preparing": `.*Driver stuck\.example\.com cannot prepare claim preparing on node stuck: no such device`,
		"tainted":   `.*worn:NoExecute`,
		"gone":      `.*gone`,
	}
}

// wantListed checks the rows of pods, and the causes that they name.
func (c *cluster) wantListed(t *testing.T, got asked, rows map[string]string) {
	t.Helper()
	if listed := len(regexp.MustCompile(`(?m)^stuck +`).FindAllString(got.out, -1)); got.code != 1 || listed != len(rows) {
		t.Errorf("code %d, want 1 and %d rows\n%s%s", got.code, len(rows), got.out, got.errOut)
	}
	for name, row := range rows {
		found := regexp.MustCompile(`(?m)^stuck +` + name + ` +` + row).FindStringSubmatch(got.out)
		if found == nil {
			t.Errorf("there is no row %s +%s in\n%s", name, row, got.out)
			continue
		}
		if cause := ` ` + found[1] + `  ` + stuckCauses()[name]; !regexp.MustCompile(`(?m)^ +` + cause).MatchString(got.out) {
			t.Errorf("there is no cause %q of %s in\n%s", cause, name, got.out)
		}
	}
}

// getStuck does what drivers, a kubelet and an administrator do.
func (c *cluster) getStuck(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	// The claim was allocated by a scheduler that does not go on.
	claim, err := c.kube.ResourceV1().ResourceClaims("stuck").Get(ctx, "overdue", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim.Status.Allocation = &resourceapi.AllocationResult{
		AllocationTimestamp: &metav1.Time{Time: time.Now().Add(-5 * time.Minute)},
		Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{{
			Request: "gpu", Driver: "stuck.example.com", Pool: "stuck", Device: "overdue", BindingConditions: []string{"stuck.example.com/attached"}, BindingFailureConditions: []string{"stuck.example.com/failed"},
		}}},
	}
	mustDo(t, func() error {
		_, err := c.kube.ResourceV1().ResourceClaims("stuck").UpdateStatus(ctx, claim, metav1.UpdateOptions{})
		return err
	})
	pod, err := c.pods.Pods("stuck").Get("preparing")
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	mustDo(t, func() error {
		_, err := c.kube.CoreV1().Events("stuck").Create(ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "preparing.1"}, Type: corev1.EventTypeWarning, Reason: "FailedPrepareDynamicResources",
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "stuck", Name: pod.Name, UID: pod.UID},
			Message:        "Failed to prepare dynamic resources: NodePrepareResources failed for ResourceClaim preparing: no such device",
			Source:         corev1.EventSource{Component: "kubelet", Host: "stuck"}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
		}, metav1.CreateOptions{})
		return err
	})
	mustDo(t, func() error {
		_, err := c.kube.CoreV1().Pods("stuck").Patch(ctx, "running", types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`), metav1.PatchOptions{}, "status")
		return err
	})
	c.createAll(t, "", `{apiVersion: resource.k8s.io/v1, kind: DeviceTaintRule, metadata: {name: worn}, spec: {deviceSelector: {pool: stuck, device: tainted}, taint: {key: worn, effect: NoExecute}}}`)
	mustDo(t, func() error {
		_, err := c.kube.ResourceV1().ResourceSlices().Patch(ctx, "stuck", types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/devices/6"}]`), metav1.PatchOptions{})
		return err
	})
	c.ruleCondition(ctx, t, "worn", func(condition *metav1.Condition) bool { return condition.Reason == "PodsPendingEviction" })
}
