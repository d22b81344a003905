// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// NodeImage is the only image on such a node: busybox. Pods have to use the
// network of the host.
const NodeImage = "registry.kubectl-dra.test/busybox:1"

// pollInterval is how often it is looked whether something has come about.
const pollInterval = 100 * time.Millisecond

// Node is a kubelet with a containerd of its own, on this machine.
type Node struct {
	Name string
	// Kubelet is the kubelet's root directory, CDI the directory from which the
	// runtime reads CDI specs.
	Kubelet, CDI string

	plane   *ControlPlane
	client  kubernetes.Interface
	dir     string
	bin     string
	sysctls map[string][]byte
	// processes in the order in which they were started.
	processes []*process
}

// StartNode runs a node until Stop is called, which must be before the control
// plane is stopped. It returns when the node is ready. It needs root, runc and
// busybox. binaries is what [NodeBinaries] returns.
func (c *ControlPlane) StartNode(ctx context.Context, binaries, name string) (n *Node, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return nil, fmt.Errorf("start node %s: %w", name, err)
	}
	n = &Node{Name: name, plane: c, client: client, bin: binaries}
	// The paths of sockets must be short: no place below another test's directory.
	if n.dir, err = os.MkdirTemp("", "kubectl-dra-node-"); err != nil {
		return nil, fmt.Errorf("start node %s: %w", name, err)
	}
	n.Kubelet, n.CDI = filepath.Join(n.dir, "kubelet"), filepath.Join(n.dir, "cdi")
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start node %s: %w\n%s", name, err, n.Logs()), n.Stop())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context) error {
	for _, dir := range []string{n.Kubelet, n.CDI, n.path("cni")} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return err
		}
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	if err := n.writeFiles(port); err != nil {
		return err
	}
	n.saveSysctls()
	containerd, err := n.plane.launcher.start(n.dir, "containerd", filepath.Join(n.bin, "containerd"), "--config", n.path("containerd.toml"))
	if err != nil {
		return err
	}
	n.processes = append(n.processes, containerd)
	if err := n.until(ctx, containerd, func(ctx context.Context) error { return n.ctr(ctx, "version") }); err != nil {
		return err
	}
	if err := writeNodeImage(n.path("image.tar"), NodeImage); err != nil {
		return err
	}
	if err := n.ctr(ctx, "images", "import", n.path("image.tar")); err != nil {
		return err
	}
	if err := n.createObject(ctx); err != nil {
		return err
	}
	kubelet, err := n.plane.launcher.start(n.dir, "kubelet", filepath.Join(n.bin, "kubelet"),
		"--config="+n.path("kubelet.yaml"),
		"--kubeconfig="+n.path("kubelet.kubeconfig"),
		"--hostname-override="+n.Name,
		// It refuses a loopback address of its own, but not one of a cloud.
		"--cloud-provider=external",
		"--root-dir="+n.Kubelet,
		"--cert-dir="+n.path("kubelet-certs"),
	)
	if err != nil {
		return err
	}
	n.processes = append(n.processes, kubelet)
	return n.until(ctx, kubelet, n.ready)
}

// until waits until something succeeds, or the process that it needs ends.
func (n *Node) until(ctx context.Context, p *process, succeeds func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.done:
			return false, fmt.Errorf("%s ended: %w", p.name, p.err)
		default:
		}
		last = succeeds(ctx)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// createObject creates the Node before the kubelet does, so that it has a loopback address
// and no taint.
func (n *Node) createObject(ctx context.Context) error {
	nodes := n.client.CoreV1().Nodes()
	object, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: n.Name, Labels: map[string]string{corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	object.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
		{Type: corev1.NodeHostName, Address: n.Name},
	}
	_, err = nodes.UpdateStatus(ctx, object, metav1.UpdateOptions{})
	return err
}

func (n *Node) ready(ctx context.Context) error {
	object, err := n.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for i := range object.Status.Conditions {
		if condition := &object.Status.Conditions[i]; condition.Type == corev1.NodeReady {
			if condition.Status == corev1.ConditionTrue {
				return nil
			}
			return fmt.Errorf("the node is not ready: %s: %s", condition.Reason, condition.Message)
		}
	}
	return errors.New("the kubelet has not reported")
}

// Logs returns the end of the logs, for a test that failed.
func (n *Node) Logs() string {
	var b strings.Builder
	for _, p := range n.processes {
		b.WriteString(p.tail())
	}
	return b.String()
}

// stopTimeout bounds how long the pods of a node have to end.
const stopTimeout = 30 * time.Second

// Stop ends all pods and the node, and removes its files. It leaves files where
// something is still mounted among them.
func (n *Node) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var errs []error
	if len(n.processes) > 1 {
		errs = append(errs, n.deletePods(ctx), n.client.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{}))
		n.processes[1].stop()
	}
	if len(n.processes) > 0 {
		n.endTasks(context.WithoutCancel(ctx))
		n.processes[0].stop()
	}
	n.processes = nil
	n.restoreSysctls()
	if err := unmountBelow(n.dir); err != nil {
		return errors.Join(append(errs, err)...)
	}
	return errors.Join(append(errs, os.RemoveAll(n.dir))...)
}

func (n *Node) deletePods(ctx context.Context) error {
	here := metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.Name}
	pods, err := n.client.CoreV1().Pods("").List(ctx, here)
	if err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if err := n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](1)}); err != nil {
			return err
		}
	}
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		pods, err := n.client.CoreV1().Pods("").List(ctx, here)
		return err == nil && len(pods.Items) == 0, err
	})
}

// endTasks kills what still runs in containers, which would outlive containerd.
func (n *Node) endTasks(ctx context.Context) {
	var list bytes.Buffer
	cmd := n.ctrCommand(ctx, "tasks", "ls", "-q")
	cmd.Stdout = &list
	// Without an answer there is nothing that could be ended; what is mounted
	// then is noticed afterwards.
	_ = cmd.Run()
	for _, task := range strings.Fields(list.String()) {
		_ = n.ctr(ctx, "tasks", "kill", "-s", "9", task)
		_ = n.ctr(ctx, "tasks", "rm", "-f", task)
	}
}

func (n *Node) ctr(ctx context.Context, args ...string) error {
	out, err := n.ctrCommand(ctx, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

func (n *Node) ctrCommand(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join(n.bin, "ctr"), append([]string{"--address", n.path("containerd.sock"), "--namespace", "k8s.io"}, args...)...)
}

func (n *Node) path(name string) string { return filepath.Join(n.dir, name) }

// sysctlsOfKubelet returns the sysctls that a kubelet sets.
func sysctlsOfKubelet() []string {
	return []string{
		"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	}
}

func (n *Node) saveSysctls() {
	n.sysctls = map[string][]byte{}
	for _, name := range sysctlsOfKubelet() {
		if value, err := os.ReadFile("/proc/sys/" + name); err == nil {
			n.sysctls[name] = value
		}
	}
}

func (n *Node) restoreSysctls() {
	for name, value := range n.sysctls {
		// What the kubelet could not set need not be set back.
		_ = os.WriteFile("/proc/sys/"+name, value, 0)
	}
}

// unmountBelow unmounts everything in a directory, and fails if something stays.
func unmountBelow(dir string) error {
	for range 3 {
		mounts, err := mountsBelow(dir)
		if err != nil {
			return err
		}
		if len(mounts) == 0 {
			return nil
		}
		for i := len(mounts) - 1; i >= 0; i-- {
			// What cannot be unmounted is still there in the next turn.
			_ = syscall.Unmount(mounts[i], syscall.MNT_DETACH)
		}
	}
	mounts, err := mountsBelow(dir)
	if err != nil || len(mounts) == 0 {
		return err
	}
	return fmt.Errorf("these are still mounted, and %s is left as it is: %s", dir, strings.Join(mounts, " "))
}

func mountsBelow(dir string) ([]string, error) {
	content, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	var mounts []string
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], dir+"/") {
			mounts = append(mounts, fields[1])
		}
	}
	return mounts, nil
}
