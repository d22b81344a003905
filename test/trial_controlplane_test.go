// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package test

import (
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/trial"
)

// trialCluster has a node with three GPUs, of which one is in use, and one NIC.
const trialCluster = `apiVersion: v1
kind: Node
metadata: {name: node-1}
` + readyNode + `---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: nic}
spec: {selectors: [{cel: {expression: device.driver == "nic.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: fpga}
spec: {selectors: [{cel: {expression: device.driver == "fpga.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-1-gpus}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}, {name: gpu-2}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-1-nics}
spec:
  driver: nic.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices: [{name: nic-0}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: used}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
status:
  allocation:
    devices: {results: [{request: gpu, driver: gpu.example.com, pool: node-1, device: gpu-0}]}
`

// TestTrials makes tests on a control plane without a kubelet: pods are scheduled there
// and never start.
func TestTrials(t *testing.T) {
	c := startCluster(t, controlplane.Options{WithControllers: []string{"namespace-controller", "garbage-collector-controller"}})
	c.createAll(t, "default", trialCluster)
	c.endPods(t)
	admin := programFor(t, c.kubeconfig)

	t.Run("dry run", func(t *testing.T) {
		for _, mode := range []string{"client", "server"} {
			code, out, errOut := runTrials(t, admin, "--dry-run="+mode)
			for _, want := range []string{"- class gpu on node-1: node-1/gpu-1", "class nic: it would take what is left", "class fpga: the class selects no device"} {
				if code != 0 || !strings.Contains(out, want) {
					t.Errorf("--dry-run=%s: exit code %d, want 0 and %q:\n%s%s", mode, code, want, out, errOut)
				}
			}
		}
		code, out, _ := runTrials(t, admin, "--class=gpu", "--repeat=2", "--dry-run=client", "-o", "yaml")
		if code != 0 || strings.Count(out, "\nkind: Pod\n") != 2 || strings.Count(out, "\nkind: ResourceClaimTemplate\n") != 1 || strings.Count(out, "kind: Namespace\n") != 1 {
			t.Errorf("exit code %d, want a namespace, a template and two pods:\n%s", code, out)
		}
		c.noTrials(t)
	})
	t.Run("the last device", func(t *testing.T) {
		code, out, _ := runTrials(t, admin, "--class=nic", "-o", "json")
		report := readReport(t, out)
		if code != 2 || len(report.Trials) != 0 || len(report.Skipped) != 1 || report.Skipped[0].Reason != api.SkipLastDevice || !strings.Contains(report.Skipped[0].Message, "--yes") {
			t.Errorf("exit code %d, report %+v", code, report)
		}
		c.noTrials(t)
	})
	t.Run("a pod that does not start", func(t *testing.T) {
		code, out, errOut := runTrials(t, admin, "--class=nic", "--yes", "--timeout=4s", "-o", "json")
		report := readReport(t, out)
		if code != 1 || errOut != "" || report.Result != api.TestFailed || len(report.Trials) != 1 || len(report.Left) != 0 {
			t.Fatalf("exit code %d, report %+v, %s", code, report, errOut)
		}
		one := report.Trials[0]
		stages := map[api.TrialStageName]api.TestResult{}
		for _, s := range one.Stages {
			stages[s.Stage] = s.Result
		}
		if stages[api.TrialScheduled] != api.TestPassed || stages[api.TrialPrepared] != api.TestFailed || stages[api.TrialInjected] != api.TestUnknown || stages[api.TrialCleaned] != api.TestPassed {
			t.Errorf("stages %+v", one.Stages)
		}
		if one.Explanation == nil || one.Explanation.Stage != api.StagePreparation || len(one.Devices) != 1 || one.Devices[0].Device != "nic-0" {
			t.Errorf("explanation %+v, devices %+v", one.Explanation, one.Devices)
		}
		c.noTrials(t)
	})
	t.Run("as text and as JUnit", func(t *testing.T) {
		code, out, _ := runTrials(t, admin, "--class=gpu", "--node=node-1", "--timeout=3s")
		for _, want := range []string{"✗ class gpu on node-1: node-1/gpu-1", "stage Prepared was not reached", "Stage: Preparation", "1 trial: 1 failed"} {
			if code != 1 || !strings.Contains(out, want) {
				t.Errorf("exit code %d, want 1 and %q:\n%s", code, want, out)
			}
		}
		code, out, _ = runTrials(t, admin, "--class=gpu", "--timeout=3s", "-o", "junit")
		if code != 1 || strings.Count(out, "<failure") != 1 || !strings.Contains(out, `name="gpu, round 1: Prepared"`) {
			t.Errorf("exit code %d:\n%s", code, out)
		}
	})
	t.Run("what does not fit", func(t *testing.T) {
		claim := "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: many}\nspec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu, count: 3}}]}}\n"
		code, out, _ := runTrialsWith(t, admin, claim, "--claim=-", "-o", "json")
		report := readReport(t, out)
		if code != 2 || len(report.Skipped) != 1 || report.Skipped[0].Reason != api.SkipNothingFree || report.Skipped[0].File != "- (many)" {
			t.Errorf("exit code %d, report %+v", code, report)
		}
		c.noTrials(t)
	})
	t.Run("admin access", func(t *testing.T) {
		claim := "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: all}\nspec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu, adminAccess: true}}]}}\n"
		if code, _, errOut := runTrialsWith(t, admin, claim, "--claim=-"); code != 3 || !strings.Contains(errOut, "adminAccess") {
			t.Errorf("exit code %d, %s", code, errOut)
		}
	})
	t.Run("Ctrl-C", func(t *testing.T) {
		cmd := c.startTrial(t, admin, "--class=gpu", "--repeat=3")
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		out := cmd.Stdout.(*strings.Builder).String() //nolint:errcheck // it is one
		if code := cmd.ProcessState.ExitCode(); code != 4 || !strings.Contains(out, "interrupted") {
			t.Errorf("exit code %d:\n%s", code, out)
		}
		c.noTrials(t)
	})
	t.Run("killed", func(t *testing.T) {
		cmd := c.startTrial(t, admin, "--class=gpu")
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if names := c.trialNamespaces(t); len(names) != 1 {
			t.Fatalf("it is killed, and namespaces %v are there", names)
		}
		code, _, errOut := runTrials(t, admin, "--class=nic")
		if code != 2 || !strings.Contains(errOut, "Note: deleted namespace "+trial.NamespacePrefix) {
			t.Errorf("exit code %d, want 2 and that the namespace is deleted: %s", code, errOut)
		}
		c.noTrials(t)
	})
	t.Run("of others", func(t *testing.T) {
		namespaces := c.kube.CoreV1().Namespaces()
		running := trial.Namespace(trial.NamespacePrefix+"other", "elsewhere/1", time.Now().Add(time.Hour), false)
		expired := trial.Namespace(trial.NamespacePrefix+"old", "elsewhere/1", time.Now().Add(-time.Hour), false)
		foreign := trial.Namespace("research", "elsewhere/1", time.Now().Add(-time.Hour), false)
		for _, namespace := range []*corev1.Namespace{running, expired, foreign} {
			if _, err := namespaces.Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		_, _, errOut := runTrials(t, admin, "--class=nic")
		if !strings.Contains(errOut, "deleted namespace "+expired.Name) || !strings.Contains(errOut, "process 1 on host elsewhere may still be making") || strings.Contains(errOut, "research") {
			t.Errorf("it says %s", errOut)
		}
		if code, _, errOut := runTrials(t, admin, "--cleanup"); code != 0 || !strings.Contains(errOut, "deleted namespace "+running.Name) || strings.Contains(errOut, "research") {
			t.Errorf("exit code %d: %s", code, errOut)
		}
		if kept, err := namespaces.Get(t.Context(), "research", metav1.GetOptions{}); err != nil || kept.DeletionTimestamp != nil {
			t.Errorf("namespace research is of nobody's test: %v", err)
		}
		if err := namespaces.Delete(t.Context(), "research", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.noTrials(t)
	})
	t.Run("without rights", func(t *testing.T) {
		nobody, err := c.plane.Kubeconfig("nobody")
		if err != nil {
			t.Fatal(err)
		}
		code, _, errOut := runTrials(t, programFor(t, nobody))
		for _, want := range []string{"create namespaces", "delete pods", "create pods/exec", "create resourceclaimtemplates.resource.k8s.io", "docs/rbac.md"} {
			if code != 4 || !strings.Contains(errOut, want) {
				t.Errorf("exit code %d, want 4 and %q: %s", code, want, errOut)
			}
		}
	})
	t.Run("with the roles of the document, and without each right", func(t *testing.T) {
		document := readRights(t)
		reading := slices.Concat(document.roles["ClusterRole kubectl-dra-devices"], document.roles["ClusterRole kubectl-dra-claims"])
		all := document.roles["ClusterRole kubectl-dra-test"]
		as := func(user string, rules []rbacv1.PolicyRule) *program {
			c.grant(t.Context(), t, user, "", rules...)
			for _, rule := range rules {
				c.waitForRight(t, user, "", rule)
			}
			return programFor(t, c.kubeconfigOf(t, user))
		}
		code, out, errOut := runTrials(t, as("tester", slices.Concat(reading, all)), "--class=gpu", "--timeout=3s")
		if code != 1 || errOut != "" || !strings.Contains(out, "stage Prepared was not reached") {
			t.Errorf("exit code %d: %s%s", code, out, errOut)
		}
		for i, rule := range all {
			if rule.Resources[0] == "pods/exec" && rule.Verbs[0] == "get" || rule.Resources[0] == "namespaces" && rule.Verbs[0] == "list" || rule.Resources[0] == "events" && rule.Verbs[0] == "list" {
				// There is another way, or another role has it.
				continue
			}
			right := rule.Verbs[0] + " " + rule.Resources[0]
			user := "tester-without-" + strings.NewReplacer(" ", "-", "/", "-").Replace(right)
			code, _, errOut := runTrials(t, as(user, slices.Concat(reading, slices.Delete(slices.Clone(all), i, i+1))), "--class=gpu")
			if code != 4 || !strings.Contains(errOut, "not permitted to "+right) {
				t.Errorf("without %s: exit code %d: %s", right, code, errOut)
			}
		}
		blind := as("blind-tester", slices.Concat(document.roles["ClusterRole kubectl-dra-devices"], all, []rbacv1.PolicyRule{{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims"}, Verbs: []string{"watch"}}, {APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"watch"}}}))
		if code, _, errOut := runTrials(t, blind, "--class=gpu"); code != 4 || !strings.Contains(errOut, "may not list resourceclaims") {
			t.Errorf("without claims: exit code %d: %s", code, errOut)
		}
		c.noTrials(t)
	})
	t.Run("the claim of others", func(t *testing.T) {
		claim, err := c.kube.ResourceV1().ResourceClaims("default").Get(t.Context(), "used", metav1.GetOptions{})
		if err != nil || claim.Status.Allocation == nil || claim.Status.Allocation.Devices.Results[0].Device != "gpu-0" {
			t.Errorf("it was touched: %+v, %v", claim, err)
		}
	})
}

// TestTrialWithoutV1 asks a server that has DRA, but not in the version in which a test
// creates claims, as before 1.34.
func TestTrialWithoutV1(t *testing.T) {
	c := startCluster(t, controlplane.Options{
		RuntimeConfig: map[string]bool{"resource.k8s.io/v1": false, "resource.k8s.io/v1beta2": true}, WithoutScheduler: true, WithoutControllerManager: true,
	})
	code, out, errOut := programFor(t, c.kubeconfig).tried(t, "test")
	for _, want := range []string{"does not serve resource.k8s.io/v1", "upgrade the cluster", "--dry-run=client shows"} {
		if code != 4 || !strings.Contains(errOut, want) {
			t.Errorf("code %d, want 4 and %q: %s%s", code, want, out, errOut)
		}
	}
	if left := c.trialNamespaces(t); len(left) > 0 {
		t.Errorf("namespaces %q are left", left)
	}
}

// endPods acts as the part of a kubelet that removes deleted pods.
func (c *cluster) endPods(t *testing.T) {
	t.Helper()
	pods, err := c.kube.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{LabelSelector: trial.Selector})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	go func() {
		for event := range pods.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.DeletionTimestamp != nil {
				// It may be gone meanwhile.
				_ = c.kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
			}
		}
	}()
	t.Cleanup(pods.Stop)
}

func runTrials(t *testing.T, p *program, args ...string) (code int, out, errOut string) {
	t.Helper()
	return runTrialsWith(t, p, "", args...)
}

func runTrialsWith(t *testing.T, p *program, in string, args ...string) (code int, out, errOut string) {
	t.Helper()
	cmd := trialCommand(t, p, args...)
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(in), &stderr
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), cmd.Stdout.(*strings.Builder).String(), stderr.String() //nolint:errcheck // it is one
}

func trialCommand(t *testing.T, p *program, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.path, slices.Concat([]string{"test"}, args, p.flags)...)
	cmd.Env = append(cmd.Environ(), p.env...)
	cmd.Stdout = &strings.Builder{}
	return cmd
}

// startTrial returns once the first pod is scheduled.
func (c *cluster) startTrial(t *testing.T, p *program, args ...string) *exec.Cmd {
	t.Helper()
	pods, err := c.kube.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{LabelSelector: trial.Selector})
	if err != nil {
		t.Fatal(err)
	}
	defer pods.Stop()
	cmd := trialCommand(t, p, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for event := range pods.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
			return cmd
		}
	}
	t.Fatal("no pod is scheduled")
	return nil
}

func readReport(t *testing.T, text string) *api.TestReport {
	t.Helper()
	report := &api.TestReport{}
	if err := json.Unmarshal([]byte(text), report); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return report
}

// trialNamespaces returns the namespaces of tests that nobody deletes.
func (c *cluster) trialNamespaces(t *testing.T) []string {
	t.Helper()
	list, err := c.kube.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: trial.Selector})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// noTrials waits until nothing of a test is left, and its devices are free.
func (c *cluster) noTrials(t *testing.T) {
	t.Helper()
	var names []string
	var claims *resourceapi.ResourceClaimList
	err := poll(t.Context(), func() bool {
		names = c.trialNamespaces(t)
		var err error
		claims, err = c.kube.ResourceV1().ResourceClaims("").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(names) == 0 && len(claims.Items) == 1
	})
	if err != nil {
		t.Errorf("namespaces %v and %d claims are left: %v", names, len(claims.Items), err)
	}
}
