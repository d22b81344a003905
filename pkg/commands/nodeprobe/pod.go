// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
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

// notStartedError means that a pod does not run on the node.
type notStartedError struct {
	pod, node, reason string
}

func (e *notStartedError) Error() string {
	return fmt.Sprintf("start pod %s on node %s: %s", e.pod, e.node, e.reason)
}

// lastWords is the grace period of a program on a node, which may have to undo its changes.
const lastWords = 10 * time.Second

// exec runs a program in the pod until it ends, and returns its exit code. When ctx ends,
// the program's input ends, which tells it to stop; its further output is printed, and its
// exit code counts if it ends in time.
func (p *probedPod) exec(ctx context.Context, command []string, out, errOut io.Writer) (code int, err error) {
	streaming, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	input, open := io.Pipe()
	defer func() { _ = open.Close() }()
	stop := context.AfterFunc(ctx, func() {
		_ = open.Close()
		timer := time.AfterFunc(lastWords, cancel)
		context.AfterFunc(streaming, func() { timer.Stop() })
	})
	defer stop()
	code, err = p.stream(streaming, command, input, out, errOut)
	switch {
	case err == nil:
		return code, nil
	case ctx.Err() != nil:
		return 0, ctx.Err()
	default:
		return 0, fmt.Errorf("run kubectl-dra in pod %s: %w", p, err)
	}
}

// stream runs a command in the pod. An exit code is no error.
func (p *probedPod) stream(ctx context.Context, command []string, in io.Reader, out, errOut io.Writer) (code int, err error) {
	executor, err := p.clients.Executor(p.object.Namespace, p.object.Name, &corev1.PodExecOptions{
		Container: probeContainer, Command: command, Stdin: true, Stdout: true, Stderr: true,
	})
	if err != nil {
		return 0, err
	}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: errOut})
	var exit utilexec.CodeExitError
	if errors.As(err, &exit) {
		return exit.Code, nil
	}
	return 0, err
}

// put copies a file into the pod, which can be run there.
func (p *probedPod) put(ctx context.Context, path string, content io.Reader) error {
	counted := &countingReader{Reader: content}
	const script = `umask 077; cat >"$1" && chmod 700 "$1" && wc -c <"$1"`
	var out, errOut limitedBuffer
	code, err := p.stream(ctx, []string{"sh", "-c", script, "sh", path}, counted, &out, &errOut)
	switch {
	case err != nil:
		return fmt.Errorf("copy to %s in pod %s: %w", path, p, err)
	case code != 0:
		return fmt.Errorf("copy to %s in pod %s: exit code %d: %s", path, p, code, strings.TrimSpace(errOut.String()))
	case strings.TrimSpace(out.String()) != fmt.Sprint(counted.n):
		return fmt.Errorf("copy to %s in pod %s: %d bytes were sent and %q arrived", path, p, counted.n, strings.TrimSpace(out.String()))
	}
	return nil
}

// countingReader counts the bytes that are read.
type countingReader struct {
	io.Reader
	n int64
}

func (r *countingReader) Read(data []byte) (int, error) {
	n, err := r.Reader.Read(data)
	r.n += int64(n)
	return n, err
}

// limitedBuffer keeps the beginning of the text written to it: an answering server may be
// anybody.
type limitedBuffer struct{ strings.Builder }

func (b *limitedBuffer) Write(data []byte) (int, error) {
	const most = 4096
	b.Builder.Write(data[:min(len(data), max(most-b.Len(), 0))])
	return len(data), nil
}

// probeRights returns the rights to run on a node. docs/rbac.md has them as a Role.
func probeRights(namespace string) []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{
		{Verb: "get", Resource: "nodes"},
		{Verb: "create", Resource: "pods", Namespace: namespace},
		{Verb: "get", Resource: "pods", Namespace: namespace},
		{Verb: "delete", Resource: "pods", Namespace: namespace},
		{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: namespace},
	}
}

// missingRightsError names all missing rights to run on a node.
type missingRightsError struct{ missing []string }

func (e *missingRightsError) Error() string {
	return "run on a node: not permitted to " + strings.Join(e.missing, ", ") + "\nAsk an admin for these rights; 'kubectl dra node-probe' also runs on the node itself."
}

// checkProbeRights asks the server about all rights before anything is made.
func checkProbeRights(ctx context.Context, clients collect.Clients, namespace string) error {
	missing, err := cli.MissingRights(ctx, clients, probeRights(namespace), "run pods on a node")
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return &missingRightsError{missing}
	}
	return nil
}

// binaryFor returns the file to run on a node: the given one, or this program if it can run
// there.
func binaryFor(target *corev1.Node, given string) (string, error) {
	system, arch := target.Status.NodeInfo.OperatingSystem, target.Status.NodeInfo.Architecture
	if system != "linux" {
		return "", cli.Usagef("DRA drivers are for Linux.", "run on node %s: its kubelet reports the operating system %q", target.Name, system)
	}
	if given == "" {
		if runtime.GOOS != system || runtime.GOARCH != arch {
			return "", cli.Usagef("Give a kubectl-dra for "+system+"/"+arch+" with --binary.",
				"run on node %s: this program is for %s/%s, and the node is %s/%s", target.Name, runtime.GOOS, runtime.GOARCH, system, arch)
		}
		own, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("find the file of this program: %w", err)
		}
		return own, nil
	}
	file, err := elf.Open(given)
	if err != nil {
		return "", cli.Usagef("Give a kubectl-dra for "+system+"/"+arch+".", "read --binary: %w", err)
	}
	defer func() { _ = file.Close() }()
	if machine := machineOf(arch); machine != elf.EM_NONE && file.Machine != machine {
		return "", cli.Usagef("Give a kubectl-dra for "+system+"/"+arch+".",
			"read --binary: %s is for %s, and node %s is %s", given, file.Machine, target.Name, arch)
	}
	return given, nil
}

// machineOf returns an architecture in the words of ELF, none if it is unknown: then the
// file is tried.
func machineOf(arch string) elf.Machine {
	switch arch {
	case "amd64":
		return elf.EM_X86_64
	case "arm64":
		return elf.EM_AARCH64
	case "arm":
		return elf.EM_ARM
	case "ppc64le":
		return elf.EM_PPC64
	case "s390x":
		return elf.EM_S390
	case "riscv64":
		return elf.EM_RISCV
	default:
		return elf.EM_NONE
	}
}
