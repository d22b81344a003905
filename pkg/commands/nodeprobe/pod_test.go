// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
)

func TestStartOf(t *testing.T) {
	now := metav1.Now()
	waiting := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{StartTime: &now, ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "because"}},
		}}}
	}
	for name, test := range map[string]struct {
		status        corev1.PodStatus
		running, over bool
		want          string
	}{
		"no kubelet":      {want: "kubelet has not started it"},
		"just taken":      {status: corev1.PodStatus{StartTime: &now}, want: "has not begun"},
		"creating":        {status: waiting("ContainerCreating"), want: "ContainerCreating"},
		"pulling again":   {status: waiting("ErrImagePull"), want: "ErrImagePull: because"},
		"no image":        {status: waiting("ImagePullBackOff"), over: true, want: "--image"},
		"no such runtime": {status: waiting("CreateContainerError"), over: true, want: "because"},
		"refused":         {status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfpods", Message: "too many"}, over: true, want: "OutOfpods: too many"},
		"runs":            {status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}, running: true},
	} {
		t.Run(name, func(t *testing.T) {
			running, over, reason := startOf(&corev1.Pod{Status: test.status})
			if running != test.running || over != test.over || !strings.Contains(reason, test.want) {
				t.Errorf("running %t, over %t, %q", running, over, reason)
			}
		})
	}
}

// TestRemoteLine pins what the program is started with on the node: all that was
// asked for, and nothing that only means something here.
func TestRemoteLine(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	config := genericclioptions.NewConfigFlags(true)
	root := &cobra.Command{Use: "kubectl-dra"}
	cli.AddFlags(root.PersistentFlags(), cli.GroupCluster, config.AddFlags)
	root.AddCommand(New(streams, config, ""))
	cmd, rest, err := root.Find([]string{"node-probe", "prepare"})
	if err != nil || len(rest) > 0 {
		t.Fatal(err, rest)
	}
	err = cmd.ParseFlags([]string{
		"--node=n", "--image=i", "--kubelet-root=/k", "--cdi-dir=/a,b", "--cdi-dir=/c", "--twice", "--timeout=3s",
		"-o", "json", "--snapshot=here.json", "--context=here", "--kubernetes-version=1.36", "--dry-run=client",
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &remoteRun{command: commandNames(cmd), flags: forwarded(cmd), args: []string{"--odd"}}
	line := r.line("/p", "/s")
	got := strings.Join(line[slices.Index(line, "/p"):], " ")
	want := "/p node-probe prepare --cdi-dir=/a,b --cdi-dir=/c --dry-run=client --kubelet-root=/k --kubernetes-version=1.36 --output=json --timeout=3s --twice=true --snapshot=/s -- --odd"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestProbePodEnds pins the fate of the pod if this program is killed: the kubelet ends it
// for good.
func TestProbePodEnds(t *testing.T) {
	pod := probePod("node-1", "default", "busybox", 15*time.Minute)
	if deadline := pod.Spec.ActiveDeadlineSeconds; deadline == nil || *deadline != 900 {
		t.Errorf("activeDeadlineSeconds is %v, want 900", deadline)
	}
	if pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("it is restarted: %s", pod.Spec.RestartPolicy)
	}
}
