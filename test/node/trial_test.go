// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	"github.com/kubectl-dra/kubectl-dra/internal/testdriver"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/trial"
)

const (
	// secondDriver and its class are beside the first ones on the node.
	secondDriver = "nic.test.example.com"
	// silentDriver publishes devices and does not register with the kubelet.
	silentDriver = "mute.example.com"
)

// TestTrials makes tests on a kubelet, containerd and two drivers, and with each way in
// which a driver can fail.
func TestTrials(t *testing.T) {
	r := start(t)
	second := r.startDriver(t, testdriver.Config{Name: secondDriver, Kubelet: r.node.Kubelet, CDI: r.node.CDI, Client: r.client, Node: nodeName, Devices: 2})

	t.Run("two drivers, with a look at the node", func(t *testing.T) {
		code, report, errOut := r.test(t, r.lookAtNode()...)
		if code != 0 || report.Result != api.TestPassed || len(report.Trials) != 2 || errOut != "" {
			t.Fatalf("exit code %d, %s: %s", code, report.Summary, errOut)
		}
		for i := range report.Trials {
			one := &report.Trials[i]
			for _, stage := range one.Stages {
				if stage.Result != api.TestPassed || stage.Milliseconds == nil {
					t.Errorf("%s: stage %+v", one.Name, stage)
				}
			}
			for _, name := range []api.TrialCheckName{api.CheckPredicted, api.CheckExclusive, api.CheckContainer, api.CheckIsolation, api.CheckReleased, api.CheckNode} {
				if check := checkOf(one, name); check == nil || check.Result != api.TestPassed {
					t.Errorf("%s: check %s is %+v", one.Name, name, check)
				}
			}
			if one.Node != nodeName || len(one.Devices) != 1 || one.Devices[0].Driver != one.Class {
				t.Errorf("%s: node %s, devices %+v", one.Name, one.Node, one.Devices)
			}
		}
		r.noTrials(t)
	})
	t.Run("without a look at the node", func(t *testing.T) {
		code, report, _ := r.test(t, "--class="+driverName)
		check := checkOf(&report.Trials[0], api.CheckContainer)
		if code != 0 || check == nil || check.Result != api.TestUnknown || !strings.Contains(check.Message, "--node-probe") ||
			!strings.Contains(check.Message, "env TEST_DEVICE=gpu-0") || !strings.Contains(check.Message, "device /dev/gpu-0") {
			t.Errorf("exit code %d, check %+v", code, check)
		}
	})
	t.Run("many at the same time", func(t *testing.T) {
		code, report, _ := r.test(t, "--class="+driverName, "--repeat=5", "--parallel=3")
		if code != 0 || len(report.Trials) != 5 {
			t.Fatalf("exit code %d, %s", code, report.Summary)
		}
		for _, stage := range slices.Concat(trial.StartStages(), trial.EndStages()) {
			i := slices.IndexFunc(report.Times, func(s api.StageTimes) bool { return s.Stage == stage })
			if i < 0 || report.Times[i].Count != 5 || report.Times[i].P50 > report.Times[i].P99 || report.Times[i].P99 > report.Times[i].Max {
				t.Errorf("stage %s: %+v", stage, report.Times)
			}
		}
		r.noTrials(t)
	})
	t.Run("on all nodes", func(t *testing.T) {
		code, report, _ := r.test(t, "--driver="+secondDriver, "--all-nodes")
		if code != 0 || len(report.Trials) != 1 || report.Trials[0].Class != secondDriver || report.Trials[0].Node != nodeName {
			t.Errorf("exit code %d, %+v", code, report.Trials)
		}
	})
	t.Run("no such image", func(t *testing.T) {
		code, report, _ := r.test(t, "--class="+driverName, "--image=127.0.0.1:1/none:1", "--image-pull-policy=IfNotPresent")
		if code != 2 || report.Trials[0].Result != api.TestUnknown || !strings.Contains(report.Trials[0].Message, "--image") {
			t.Errorf("exit code %d, %+v", code, report.Trials)
		}
		r.noTrials(t)
	})
	t.Run("the driver rejects the claim", func(t *testing.T) {
		r.driver.SetFaults(testdriver.Faults{Prepare: "the GPU has fallen off the bus"})
		defer r.driver.SetFaults(testdriver.Faults{})
		r.fails(t, failure{stage: api.TrialPrepared, stands: api.StagePreparation, says: "the GPU has fallen off the bus", driver: driverName})
	})
	t.Run("the driver does not answer in time", func(t *testing.T) {
		answer := make(chan struct{})
		r.driver.OnCall(func(method string, done bool) {
			if method == "NodePrepareResources" && !done {
				<-answer
			}
		})
		defer r.driver.OnCall(nil)
		r.whenDeleted(t, func() { close(answer) })
		r.fails(t, failure{stage: api.TrialPrepared, stands: api.StagePreparation, driver: driverName, timeout: 8 * time.Second})
	})
	t.Run("the driver is slow, but in time", func(t *testing.T) {
		const delay = 1500 * time.Millisecond
		r.driver.OnCall(func(method string, done bool) {
			if method == "NodePrepareResources" && !done {
				<-time.After(delay)
			}
		})
		defer r.driver.OnCall(nil)
		code, report, _ := r.test(t, "--class="+driverName)
		i := slices.IndexFunc(report.Trials[0].Stages, func(s api.TrialStage) bool { return s.Stage == api.TrialPrepared })
		if took := report.Trials[0].Stages[i].Milliseconds; code != 0 || took == nil || *took < delay.Milliseconds() {
			t.Errorf("exit code %d, stage Prepared took %v", code, report.Trials[0].Stages[i])
		}
	})
	t.Run("the driver names CDI devices that do not exist", func(t *testing.T) {
		r.driver.SetFaults(testdriver.Faults{WrongIDs: true})
		defer r.driver.SetFaults(testdriver.Faults{})
		r.fails(t, failure{stage: api.TrialInjected, stands: api.StageInjection, says: "CDI", driver: driverName, look: true})
	})
	t.Run("the driver leaves CDI specs behind", func(t *testing.T) {
		second.SetFaults(testdriver.Faults{KeepSpecs: true})
		defer second.SetFaults(testdriver.Faults{})
		code, report, _ := r.test(t, append(r.lookAtNode(), "--class="+secondDriver)...)
		check := checkOf(&report.Trials[0], api.CheckNode)
		if code != 1 || report.Trials[0].Result != api.TestFailed || check == nil || check.Result != api.TestFailed || len(check.Evidence) == 0 || !strings.HasPrefix(check.Evidence[0].Path, r.node.CDI) {
			t.Errorf("exit code %d, check %+v", code, check)
		}
		r.noTrials(t)
	})
	t.Run("the driver never unprepares", func(t *testing.T) {
		r.driver.SetFaults(testdriver.Faults{Unprepare: "the GPU is busy"})
		restore := func() { r.driver.SetFaults(testdriver.Faults{}) }
		defer restore()
		r.failsWith(t, failure{stage: api.TrialUnprepared, stands: api.StageCleanup, says: driverName, driver: driverName}, func(report *api.TestReport) {
			if len(report.Left) != 1 || report.Left[0].Kind != api.KindPod || report.Left[0].Namespace != report.Namespace {
				t.Errorf("left is %v", report.Left)
			}
			restore()
		})
	})
	t.Run("the driver is not registered", func(t *testing.T) {
		silent := r.startDriver(t, testdriver.Config{Name: silentDriver, Kubelet: r.node.Kubelet, CDI: r.node.CDI, Client: r.client, Node: nodeName, Devices: 2, Unregistered: true})
		defer silent.Stop()
		r.fails(t, failure{stage: api.TrialPrepared, stands: api.StagePreparation, says: silentDriver + " is not registered", driver: silentDriver})
	})
	t.Run("Ctrl-C", r.testInterruptedTrial)
}

// startDriver starts one more driver, with a class for its devices.
func (r *realNode) startDriver(t *testing.T, config testdriver.Config) *testdriver.Driver {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	driver, err := testdriver.Start(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	if !config.Unregistered {
		t.Cleanup(driver.Stop)
	}
	_, err = r.client.ResourceV1().DeviceClasses().Create(ctx, &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: config.Name},
		Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{
			CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", config.Name)},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The scheduler, and the program, have to see the devices.
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		slices, err := r.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: "spec.driver=" + config.Name})
		return err == nil && len(slices.Items) > 0, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return driver
}

// lookAtNode returns the flags for a look at this node.
func (r *realNode) lookAtNode() []string {
	return []string{"--node-probe", "--kubelet-root=" + r.node.Kubelet, "--cdi-dir=" + r.node.CDI}
}

// test runs the verb test with pods that can run on this node.
func (r *realNode) test(t *testing.T, args ...string) (code int, report *api.TestReport, errOut string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.program, r.testArgs(args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	report = &api.TestReport{}
	if err := json.Unmarshal(stdout.Bytes(), report); err != nil {
		t.Fatalf("kubectl dra test %v: exit code %d: %v\n%s%s", args, cmd.ProcessState.ExitCode(), err, stdout.String(), stderr.String())
	}
	t.Logf("kubectl dra test %v: exit code %d: %s\n%s", args, cmd.ProcessState.ExitCode(), report.Summary, stderr.String())
	for i := range report.Trials {
		one := report.Trials[i]
		one.Explanation = nil
		text, _ := json.Marshal(one) //nolint:errchkjson // it was read from JSON
		t.Logf("%s", text)
	}
	return cmd.ProcessState.ExitCode(), report, stderr.String()
}

func (r *realNode) testArgs(args ...string) []string {
	return append([]string{
		"test", "--kubeconfig=" + r.kubeconfig, "--host-network", "--image=" + controlplane.NodeImage, "--image-pull-policy=Never", "-o", "json",
	}, args...)
}

func checkOf(t *api.Trial, name api.TrialCheckName) *api.TrialCheck {
	i := slices.IndexFunc(t.Checks, func(c api.TrialCheck) bool { return c.Check == name })
	if i < 0 {
		return nil
	}
	return &t.Checks[i]
}

// whenDeleted calls a function once the pod of a trial is being deleted.
func (r *realNode) whenDeleted(t *testing.T, do func()) {
	t.Helper()
	pods, err := r.client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{LabelSelector: trial.Selector})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pods.Stop)
	go func() {
		defer do()
		for event := range pods.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.DeletionTimestamp != nil && event.Type != watch.Deleted {
				return
			}
		}
	}()
}

// failure is how a trial has to fail.
type failure struct {
	driver string
	// stage is the first stage that is not reached, stands the stage of the pod in "why",
	// and says a part of its summary.
	stage  api.TrialStageName
	stands api.Stage
	says   string
	// timeout is the timeout of the stages; 0 for some seconds. look looks at the node,
	// too.
	timeout time.Duration
	look    bool
}

func (r *realNode) fails(t *testing.T, want failure) {
	t.Helper()
	r.failsWith(t, want, func(*api.TestReport) {})
}

// failsWith makes a trial that has to fail, and looks whether nothing is left of it.
func (r *realNode) failsWith(t *testing.T, want failure, then func(*api.TestReport)) {
	t.Helper()
	if want.timeout == 0 {
		want.timeout = 20 * time.Second
	}
	args := []string{"--class=" + want.driver, "--timeout=" + want.timeout.String()}
	if want.look {
		args = append(args, r.lookAtNode()...)
	}
	code, report, _ := r.test(t, args...)
	then(report)
	if code != 1 || len(report.Trials) != 1 || report.Trials[0].Result != api.TestFailed {
		t.Fatalf("exit code %d, %s", code, report.Summary)
	}
	one := &report.Trials[0]
	failed := slices.IndexFunc(one.Stages, func(s api.TrialStage) bool { return s.Result == api.TestFailed })
	if failed < 0 || one.Stages[failed].Stage != want.stage {
		t.Errorf("stages %+v, want %s to fail", one.Stages, want.stage)
	}
	if e := one.Explanation; e == nil {
		t.Error("there is no explanation")
	} else if text, err := json.Marshal([]any{one.Message, e.Summary, e.StageEvidence, e.NextSteps}); err != nil || e.Stage != want.stands || !strings.Contains(string(text), want.says) {
		t.Errorf("%v: explanation of stage %s: %s, want stage %s and %q", err, e.Stage, text, want.stands, want.says)
	}
	if check := checkOf(one, api.CheckNode); check == nil || want.look == (check.Result == api.TestUnknown) {
		t.Errorf("of the node it says %+v", check)
	}
	r.noTrials(t)
}

// testInterruptedTrial ends a test while its containers run.
func (r *realNode) testInterruptedTrial(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), r.program, r.testArgs("--class="+driverName, "--repeat=50")...)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	pods, err := r.client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{LabelSelector: trial.Selector})
	if err != nil {
		t.Fatal(err)
	}
	defer pods.Stop()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for event := range pods.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok && podRuns(pod) {
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	report := &api.TestReport{}
	if err := json.Unmarshal([]byte(out.String()), report); err != nil || !report.Interrupted || report.Result != api.TestUnknown {
		t.Errorf("%v: report %s", err, out.String())
	}
	if code := cmd.ProcessState.ExitCode(); code != 4 || !strings.Contains(errOut.String(), "interrupted") {
		t.Errorf("exit code %d, %q", code, errOut.String())
	}
	r.noTrials(t)
}

// noTrials waits until nothing of tests is left, in the cluster and on the node but for
// the CDI specs that a driver kept on purpose.
func (r *realNode) noTrials(t *testing.T) {
	t.Helper()
	var left []string
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		left = nil
		namespaces, err := r.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: trial.Selector})
		if err != nil {
			return false, err
		}
		for i := range namespaces.Items {
			left = append(left, "namespace "+namespaces.Items[i].Name)
		}
		claims, err := r.client.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range claims.Items {
			left = append(left, "claim "+claims.Items[i].Name)
		}
		specs, err := filepath.Glob(filepath.Join(r.node.CDI, driverName+"*"))
		left = append(left, specs...)
		return len(left) == 0, err
	})
	if err != nil {
		t.Errorf("it leaves %v: %v", left, err)
	}
}
