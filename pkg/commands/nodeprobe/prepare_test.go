// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package nodeprobe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-dra/kubectl-dra/internal/testdriver"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
)

const testDriver = "gpu.example.com"

// probedNode is a directory of a kubelet with a real driver in it, and a snapshot
// of a cluster with one claim.
type probedNode struct {
	dir, cdi, cluster string
	driver            *testdriver.Driver
	claim             *resourceapi.ResourceClaim
}

// newProbedNode starts the driver; change amends the claim first.
func newProbedNode(t *testing.T, change func(*resourceapi.ResourceClaim)) *probedNode {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// Sockets need a short path.
	dir, err := os.MkdirTemp("/tmp", "dra")
	must(err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	n := &probedNode{dir: dir, cdi: filepath.Join(dir, "cdi"), cluster: filepath.Join(dir, "cluster.yaml")}
	must(os.Mkdir(n.cdi, 0o750))
	// What every kubelet makes when it starts, and the device file of the specs.
	must(os.MkdirAll(filepath.Join(dir, "var", "lib", "kubelet", "device-plugins"), 0o750))
	must(os.Mkdir(filepath.Join(dir, "dev"), 0o750))
	must(syscall.Mkfifo(filepath.Join(dir, "dev", "null"), 0o600))
	n.claim = &resourceapi.ResourceClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train", UID: "uid-1"},
	}
	n.claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "gpus", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: testDriver}}}
	n.claim.Status.Allocation = &resourceapi.AllocationResult{
		Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{{Request: "gpus", Driver: testDriver, Pool: "node-1", Device: "gpu-0"}}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-1"}}},
		}}},
	}
	if change != nil {
		change(n.claim)
	}
	var file bytes.Buffer
	for _, object := range []any{
		&corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
		&resourceapi.ResourceSlice{
			TypeMeta: metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceSlice"}, ObjectMeta: metav1.ObjectMeta{Name: "s"},
			Spec: resourceapi.ResourceSliceSpec{Driver: testDriver, NodeName: ptr.To("node-1"), Pool: resourceapi.ResourcePool{Name: "node-1", ResourceSliceCount: 1}},
		},
		n.claim,
	} {
		text, err := yaml.Marshal(object)
		must(err)
		file.WriteString("---\n")
		file.Write(text)
	}
	must(os.WriteFile(n.cluster, file.Bytes(), 0o600))
	n.driver, err = testdriver.Start(context.Background(), testdriver.Config{Name: testDriver, Root: dir, Kubelet: "/kubelet", CDI: "/cdi", Claims: []*resourceapi.ResourceClaim{n.claim}})
	must(err)
	t.Cleanup(n.driver.Stop)
	return n
}

// probe runs node-probe on the node, and returns standard output, standard error and the
// exit code.
func (n *probedNode) probe(args ...string) (out, said string, code int) {
	var stdout, stderr bytes.Buffer
	code = n.probeTo(context.Background(), &stdout, &stderr, args...)
	return stdout.String(), stderr.String(), code
}

func (n *probedNode) probeTo(ctx context.Context, stdout, stderr io.Writer, args ...string) int {
	args = append([]string{"node-probe", "--node-root", n.dir, "--kubelet-root", "/kubelet", "--cdi-dir", "/cdi", "--node-name", "node-1", "--snapshot", n.cluster}, args...)
	return commands.Run(ctx, args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: stdout, ErrOut: stderr}, commands.Build{})
}

func has(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

func TestNodeProbePlugins(t *testing.T) {
	n := newProbedNode(t, nil)
	out, said, code := n.probe("plugins", "--timeout", "20s")
	if code != 0 || said != "" {
		t.Errorf("exit code %d, %s", code, said)
	}
	has(t, "the output", out, testDriver, "DRAPlugin", "v1.DRAPlugin, v1beta1.DRAPlugin", "✓", "driver gpu.example.com has 1 slice for this node")

	out, _, _ = n.probe("plugins", "--timeout", "20s", "-o", "json")
	var findings driver.Findings
	if err := json.Unmarshal([]byte(out), &findings); err != nil {
		t.Fatal(err)
	}
	if findings.Kind != "NodePlugins" || findings.Node != "node-1" || len(findings.Plugins) != 1 {
		t.Errorf("findings are %+v", findings)
	}
}

func TestNodeProbePrepare(t *testing.T) {
	n := newProbedNode(t, nil)
	out, said, code := n.probe("prepare", "train", "-n", "ml", "--twice")
	if code != 0 || said != "" {
		t.Errorf("exit code %d, %s\n%s", code, said, out)
	}
	has(t, "the output", out,
		"NodePrepareResources of driver gpu.example.com",
		"-> v1.DRAPlugin: namespace ml, name train, uid uid-1",
		"node-1/gpu-0 for gpus",
		"CDI k8s.gpu.example.com/claim=uid-1-gpu-0",
		"device file  /dev/null as /dev/gpu-0",
		"TEST_DEVICE=gpu-0",
		"a second time brings the same",
	)
	if n.driver.Prepared("uid-1") != 2 {
		t.Errorf("prepared %d times", n.driver.Prepared("uid-1"))
	}
	if out, said, code = n.probe("unprepare", "train"); code != 0 {
		t.Errorf("exit code %d, %s\n%s", code, said, out)
	}
	if n.driver.Prepared("uid-1") != 0 {
		t.Error("it stays prepared")
	}
}

func TestNodeProbePrepareDryRun(t *testing.T) {
	n := newProbedNode(t, nil)
	out, said, code := n.probe("prepare", "train", "--dry-run", "client")
	if code != 0 || n.driver.Prepared("uid-1") != 0 {
		t.Errorf("exit code %d, prepared %d times, %s", code, n.driver.Prepared("uid-1"), said)
	}
	has(t, "the output", out, "-> v1.DRAPlugin: namespace ml, name train, uid uid-1", "not sent (dry run)")
}

// listener calls somebody with all that was written so far.
type listener struct {
	bytes.Buffer

	hear func(text string)
}

func (l *listener) Write(data []byte) (int, error) {
	n, err := l.Buffer.Write(data)
	l.hear(l.String())
	return n, err
}

func TestNodeProbePrepareCleansUp(t *testing.T) {
	n := newProbedNode(t, nil)
	out, said, code := n.probe("prepare", "train", "--cleanup")
	if code != 0 || n.driver.Prepared("uid-1") != 0 {
		t.Errorf("exit code %d, prepared %d times, %s", code, n.driver.Prepared("uid-1"), said)
	}
	has(t, "the output", out, "CDI k8s.gpu.example.com/claim=uid-1-gpu-0", "NodeUnprepareResources of driver")
	if left, err := os.ReadDir(n.cdi); err != nil || len(left) != 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestNodeProbePrepareRefuses(t *testing.T) {
	inUse := func(c *resourceapi.ResourceClaim) {
		c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "train-0", UID: "pod-1"}}
	}
	for name, test := range map[string]struct {
		change func(*resourceapi.ResourceClaim)
		args   []string
		say    []string
	}{
		"in use":             {inUse, []string{"prepare", "train"}, []string{"reserved for pods/train-0", "With --force it is done all the same", "not idempotent"}},
		"in use, to undo":    {inUse, []string{"unprepare", "train"}, []string{"takes the devices away while the pod uses them"}},
		"unallocated":        {func(c *resourceapi.ResourceClaim) { c.Status.Allocation = nil }, []string{"prepare", "train"}, []string{"is not allocated"}},
		"of another driver":  {nil, []string{"prepare", "train", "--driver", "x.com"}, []string{"no device of driver x.com"}},
		"no such claim":      {nil, []string{"prepare", "nothing"}, []string{"there is none in", "--claim-uid"}},
		"UID without driver": {nil, []string{"prepare", "nothing", "--claim-uid", "u"}, []string{"Name the driver with --driver"}},
		"UID and driver":     {nil, []string{"prepare", "nothing", "--claim-uid", "u", "--driver", testDriver}, []string{"could not be looked up", "--force"}},
		"wrong dry run":      {nil, []string{"prepare", "train", "--dry-run", "server"}, []string{"Allowed are none and client"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newProbedNode(t, test.change)
			out, said, code := n.probe(test.args...)
			if code != cli.ExitUsage || out != "" {
				t.Errorf("exit code %d: %s", code, out)
			}
			has(t, "the error", said, test.say...)
			if n.driver.Prepared("uid-1") != 0 {
				t.Error("it is prepared all the same")
			}
		})
	}
	n := newProbedNode(t, inUse)
	out, said, code := n.probe("prepare", "train", "--force")
	if code != 0 || n.driver.Prepared("uid-1") != 1 {
		t.Errorf("exit code %d, prepared %d times, %s", code, n.driver.Prepared("uid-1"), said)
	}
	has(t, "the output", out, "forced: the claim is reserved for pods/train-0")
}

// TestNodeProbePrepareOfAHiddenClaim does not say that there is none.
func TestNodeProbePrepareOfAHiddenClaim(t *testing.T) {
	n := newProbedNode(t, nil)
	const hidden = "apiVersion: dra.kubectl.dev/v1alpha1\nkind: Snapshot\ngaps:\n- {resource: resourceclaims.resource.k8s.io, reason: you may not list them}\n"
	if err := os.WriteFile(n.cluster, []byte(hidden), 0o600); err != nil {
		t.Fatal(err)
	}
	_, said, code := n.probe("prepare", "train", "-n", "ml")
	if code != cli.ExitUsage {
		t.Errorf("exit code %d", code)
	}
	has(t, "the error", said, "not all claims could be read: you may not list them", "--claim-uid")
}

// TestNodeProbeRefusesWhatLooksAtNothing: nothing is in order where there is no
// node.
func TestNodeProbeRefusesWhatLooksAtNothing(t *testing.T) {
	n := newProbedNode(t, nil)
	for _, test := range []struct {
		args []string
		say  string
	}{
		{[]string{"cdi", "--node-root", "/there/is/none"}, "--node-root: stat /there/is/none"},
		{[]string{"--node-root", n.cluster}, "is not a directory"},
		{[]string{"cdi", "--cdi-dir", ""}, "--cdi-dir: \"\" is not an absolute path"},
		{[]string{"cdi", "--cdi-dir", "etc/cdi"}, "\"etc/cdi\" is not an absolute path"},
		{[]string{"plugins", "--timeout", "0"}, "0s is not a valid timeout"},
		{[]string{"health", "--timeout", "-5s"}, "-5s is not a valid timeout"},
		{[]string{"prepare", "train", "--timeout", "0"}, "0s is not a valid timeout"},
	} {
		out, said, code := n.probe(test.args...)
		if code != cli.ExitUsage || out != "" || !strings.Contains(said, test.say) {
			t.Errorf("%v: exit code %d, %q, %s", test.args, code, out, said)
		}
	}
}

func TestNodeProbePrepareFails(t *testing.T) {
	n := newProbedNode(t, nil)
	n.driver.Stop()
	out, _, code := n.probe("prepare", "train")
	if code != cli.ExitDoesNotFit {
		t.Errorf("exit code %d", code)
	}
	has(t, "the output", out, "✗", "driver gpu.example.com does not register here")
}

func TestNodeProbeHealth(t *testing.T) {
	n := newProbedNode(t, nil)
	n.driver.SetHealth(kubeletplugin.DeviceHealth{PoolName: "node-1", DeviceName: "gpu-0", Health: kubeletplugin.HealthStatusUnhealthy, Message: "XID 79"})
	out, said, code := n.probe("health", "--timeout", "20s")
	if code != cli.ExitDoesNotFit || said != "" {
		t.Errorf("exit code %d, %s", code, said)
	}
	has(t, "the output", out, "Unhealthy", "XID 79", "✗  gpu.example.com/node-1/gpu-0 is unhealthy: XID 79")
}

// TestNodeProbeHealthWithoutService covers a driver as most are: there is nothing to
// report, to watch, or to be wrong.
func TestNodeProbeHealthWithoutService(t *testing.T) {
	n := newProbedNode(t, nil)
	n.driver.Stop()
	silent, err := testdriver.Start(context.Background(), testdriver.Config{Name: testDriver, Root: n.dir, Kubelet: "/kubelet", NoHealth: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(silent.Stop)
	for _, args := range [][]string{{"health"}, {"health", testDriver}, {"health", "--watch"}} {
		out, said, code := n.probe(append(args, "--timeout", "20s")...)
		// What the pods say is not in the file.
		if code != cli.ExitUndetermined || said != "" {
			t.Errorf("%v: exit code %d, %s", args, code, said)
		}
		has(t, "the output", out, "✓  /kubelet/plugins/gpu.example.com/dra.sock: driver gpu.example.com does not report the health of its devices, which is optional")
	}
}

func TestNodeProbeHealthWatch(t *testing.T) {
	n := newProbedNode(t, nil)
	report := func(health kubeletplugin.HealthStatus) {
		n.driver.SetHealth(kubeletplugin.DeviceHealth{PoolName: "node-1", DeviceName: "gpu-0", Health: health})
	}
	report(kubeletplugin.HealthStatusHealthy)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var said bytes.Buffer
	out := &listener{hear: func(text string) {
		switch {
		case strings.Contains(text, "is Unhealthy, was Healthy"):
			cancel()
		case strings.Contains(text, "gpu-0   Healthy"):
			report(kubeletplugin.HealthStatusUnhealthy)
		}
	}}
	if code := n.probeTo(ctx, out, &said, "health", "--watch", "--timeout", "20s"); code != 0 {
		t.Errorf("exit code %d: %s", code, said.String())
	}
	has(t, "the output", out.String(), "gpu-0   Healthy", "gpu-0 is Unhealthy, was Healthy")
}
