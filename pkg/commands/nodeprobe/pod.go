// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

const (
	// probeHost is the mount point of the node's root in the pod, probeDir the directory of
	// the program.
	probeHost = "/host"
	probeDir  = "/kubectl-dra"

	probeContainer = "node-probe"
	// probeLabel is on all probe pods, so that a leftover pod can be found.
	probeLabel = "kubectl-dra-node-probe"

	// startLimit limits the start of a pod, including the pull of an image.
	startLimit = 2 * time.Minute
	// writeLimit limits creating and deleting the pod, which goes on after an interruption.
	writeLimit = 15 * time.Second
	startPoll  = 250 * time.Millisecond
)

// probePod returns the pod that runs this program on a node. It does not pass the
// scheduler, starts on a node whatever its taints and its network, and sees all of the
// node's files but can write none. Sockets work all the same: to connect to one is not to
// write to its file system.
func probePod(nodeName, namespace, image string, lifetime time.Duration) *corev1.Pod {
	seconds := int64(lifetime.Seconds())
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: probeLabel + "-",
			Namespace:    namespace,
			Labels: map[string]string{
				"app.kubernetes.io/name":       probeLabel,
				"app.kubernetes.io/managed-by": "kubectl-dra",
			},
		},
		Spec: corev1.PodSpec{
			NodeName:                      nodeName,
			HostNetwork:                   true,
			DNSPolicy:                     corev1.DNSDefault,
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         &seconds,
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name:            probeContainer,
				Image:           image,
				ImagePullPolicy: corev1.PullIfNotPresent,
				Command:         []string{"sh", "-c", fmt.Sprintf("trap 'exit 0' TERM; sleep %d & wait", seconds)},
				SecurityContext: &corev1.SecurityContext{
					Privileged: ptr.To(true),
					RunAsUser:  ptr.To[int64](0),
				},
				VolumeMounts: []corev1.VolumeMount{
					{Name: "host", MountPath: probeHost, ReadOnly: true, RecursiveReadOnly: ptr.To(corev1.RecursiveReadOnlyIfPossible)},
					{Name: "program", MountPath: probeDir},
				},
			}},
			Volumes: []corev1.Volume{
				{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/", Type: ptr.To(corev1.HostPathDirectory)}}},
				{Name: "program", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}
}

// probedPod is the probe pod in the cluster.
type probedPod struct {
	clients collect.Clients
	// object is the pod to create, and then the created one.
	object *corev1.Pod
}

func (p *probedPod) String() string { return p.object.Namespace + "/" + p.object.Name }

// create creates the pod. It does not stop halfway when ctx ends: nobody would know then
// whether there is a pod.
func (p *probedPod) create(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	created, err := p.clients.Pods(p.object.Namespace).Create(ctx, p.object, metav1.CreateOptions{FieldManager: cli.FieldManager})
	if err == nil {
		p.object = created
		return nil
	}
	advice := ""
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "PodSecurity") {
		advice = "\nThe namespace does not allow privileged pods; choose one that does with --pod-namespace."
	}
	return fmt.Errorf("create the pod in namespace %s: %w%s", p.object.Namespace, err, advice)
}

// delete deletes the pod, even if ctx has ended.
func (p *probedPod) delete(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	err := p.clients.Pods(p.object.Namespace).Delete(ctx, p.object.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](1),
		Preconditions:      metav1.NewUIDPreconditions(string(p.object.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the pod: %w\nDelete it by hand: kubectl delete pod -n %s %s", err, p.object.Namespace, p.object.Name)
	}
	return nil
}

// notStartedError means that a pod does not run on the node.
type notStartedError struct {
	pod, node, reason string
}

func (e *notStartedError) Error() string {
	return fmt.Sprintf("start pod %s on node %s: %s", e.pod, e.node, e.reason)
}

// waitRunning returns when the container runs, or certainly will not.
func (p *probedPod) waitRunning(ctx context.Context) error {
	reason := "nothing is known of it"
	err := wait.PollUntilContextTimeout(ctx, startPoll, startLimit, true, func(ctx context.Context) (bool, error) {
		pod, err := p.clients.Pods(p.object.Namespace).Get(ctx, p.object.Name, metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("read pod %s: %w", p, err)
		}
		var running, over bool
		running, over, reason = startOf(pod)
		if over {
			return false, &notStartedError{p.String(), p.object.Spec.NodeName, reason}
		}
		return running, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return &notStartedError{p.String(), p.object.Spec.NodeName, fmt.Sprintf("it does not run after %s: %s", startLimit, reason)}
	}
	return err
}

// startOf returns whether a pod runs, whether it never will, and why it does not.
func startOf(pod *corev1.Pod) (running, over bool, reason string) {
	if snapshot.Finished(pod) {
		return false, true, strings.TrimSuffix(fmt.Sprintf("it ended at once: %s: %s", pod.Status.Reason, pod.Status.Message), ": ")
	}
	if pod.DeletionTimestamp != nil {
		return false, true, "somebody deletes it"
	}
	if len(pod.Status.ContainerStatuses) == 0 {
		if pod.Status.StartTime == nil {
			return false, false, "the kubelet has not started it; the kubelet may be down or unable to reach the API server"
		}
		return false, false, "the kubelet has not begun with its container"
	}
	state := pod.Status.ContainerStatuses[0].State
	switch {
	case state.Running != nil:
		return true, false, ""
	case state.Waiting == nil:
		return false, false, "its container does not run"
	}
	reason = state.Waiting.Reason
	if state.Waiting.Message != "" {
		reason += ": " + state.Waiting.Message
	}
	switch state.Waiting.Reason {
	case "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName":
		return false, true, reason + "\nChoose an image that the node has or can pull with --image."
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return false, true, reason
	default:
		return false, false, reason
	}
}
