// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// fitShape describes copies in a namespace with nodes, devices and a class of its own: $S
// is the name of all of them.
type fitShape struct {
	name string
	// devices are the devices of nodes $S-a, $S-b and so on, elements of a slice in YAML.
	// Shared are devices that all of them can use.
	devices []string
	shared  string
	// counters are the counters of each node that has devices.
	counters string
	// claim is a claim for copies, further what the pod has besides.
	claim, further string
	// objects are further ones.
	objects string
	// most limits how many copies fit; at least so many, where the number depends on the
	// nodes that the scheduler takes.
	least, most int
}

const (
	fitOne  = "{requests: [{name: gpu, exactly: {deviceClassName: $S}}]}"
	fitFour = "{requests: [{name: gpu, exactly: {deviceClassName: $S, count: 4}}], constraints: [{matchAttribute: resource.kubernetes.io/pcieRoot}]}"
	fitHalf = `{requests: [{name: gpu, exactly: {deviceClassName: $S, selectors: [{cel: {expression: "device.attributes['$S.example.com'].profile == 'half'"}}]}}]}`

	fitThree   = "[{name: gpu-0}, {name: gpu-1}, {name: gpu-2}]"
	fitPair    = "[{name: gpu-0}, {name: gpu-1}]"
	fitSingle  = "[{name: gpu-0}]"
	fitCounter = "[{name: card-0, counters: {memory: {value: 80Gi}}}, {name: card-1, counters: {memory: {value: 80Gi}}}]"
)

// fitRoots returns devices below several roots, so many below each.
func fitRoots(counts ...int) string {
	var list []string
	for root, n := range counts {
		for range n {
			list = append(list, fmt.Sprintf(`{name: gpu-%d, attributes: {resource.kubernetes.io/pcieRoot: {string: "pci0000:%02d"}}}`, len(list), root))
		}
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// fitCards returns two cards that can be cut into three halves each, of which two are
// enough to fill it.
func fitCards() string {
	var list []string
	for card := range 2 {
		for _, part := range []struct{ name, profile, memory string }{{"whole", "whole", "80Gi"}, {"half-0", "half", "40Gi"}, {"half-1", "half", "40Gi"}, {"half-2", "half", "40Gi"}} {
			list = append(list, fmt.Sprintf("{name: card-%[1]d-%[2]s, attributes: {profile: {string: %[3]s}}, consumesCounters: [{counterSet: card-%[1]d, counters: {memory: {value: %[4]s}}}]}", card, part.name, part.profile, part.memory))
		}
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func fitQuota(key string, hard int) string {
	return fmt.Sprintf("\n---\n{apiVersion: v1, kind: ResourceQuota, metadata: {name: few}, spec: {hard: {%[1]s: %[2]q}}, status: {hard: {%[1]s: %[2]q}, used: {%[1]s: \"0\"}}}", key, fmt.Sprint(hard))
}

func fitShapes() []fitShape {
	return []fitShape{
		{name: "one", devices: []string{fitThree, fitPair}, claim: fitOne, least: 5, most: 5},
		{name: "pairs", devices: []string{fitThree, fitThree}, claim: strings.Replace(fitOne, "$S}", "$S, count: 2}", 1), least: 2, most: 2},
		{name: "root", devices: []string{fitRoots(4, 4), fitRoots(5, 3)}, claim: fitFour, least: 3, most: 3},
		{name: "partitions", devices: []string{fitCards(), fitCards()}, counters: fitCounter, claim: fitHalf, least: 8, most: 8},
		{name: "cpu", devices: []string{fitThree, fitSingle}, claim: fitOne, further: "cpu: 3", least: 3, most: 3},
		{name: "quota", devices: []string{fitThree}, claim: fitOne, further: "cpu: 1", objects: fitQuota("requests.cpu", 2), least: 2, most: 2},
		{name: "device-quota", devices: []string{fitThree}, claim: fitOne, objects: fitQuota("device-quota.deviceclass.resource.k8s.io/devices", 2), least: 2, most: 2},
		{name: "anti-affinity", devices: []string{fitThree, fitThree}, claim: fitOne, further: "apart", least: 2, most: 2},
		{name: "reachable", devices: []string{"", ""}, shared: fitThree, claim: fitOne, least: 3, most: 3},
		{name: "shared-claim", devices: []string{fitThree, fitThree}, claim: "", further: "cpu: 3", least: 2, most: 2},
		{name: "spread", devices: []string{fitThree, fitSingle}, claim: fitOne, further: "spread", least: 3, most: 4},
	}
}

// podSpec returns the spec of a copy.
func (s *fitShape) podSpec() string {
	cpu, more := "", ""
	switch number, ofCPU := strings.CutPrefix(s.further, "cpu: "); {
	case ofCPU:
		cpu = fmt.Sprintf("requests: {cpu: %q}, limits: {cpu: %q}, ", number, number)
	case s.further == "apart":
		more = ", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: copies}}}]}}"
	case s.further == "spread":
		more = ", topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: copies}}}]"
	}
	source := "resourceClaimTemplateName: copies"
	if s.claim == "" {
		source = "resourceClaimName: copies"
	}
	return "nodeSelector: {shape: $S}, resourceClaims: [{name: gpu, " + source + "}], containers: [{name: main, image: example.com/none, resources: {" + cpu + "claims: [{name: gpu}]}}]" + more
}

// documents returns all objects of a shape but for the copies.
func (s *fitShape) documents() string {
	text := "{apiVersion: v1, kind: Namespace, metadata: {name: $S}}\n---\n" +
		`{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: $S}, spec: {selectors: [{cel: {expression: device.driver == "$S.example.com"}}]}}`
	slice := func(name, where string, count int, content string) {
		text += fmt.Sprintf("\n---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: %[1]s}, spec: {driver: $S.example.com, %[2]s, pool: {name: %[3]s, generation: 1, resourceSliceCount: %[4]d}, %[5]s}}",
			name, where, strings.TrimSuffix(name, "-counters"), count, content)
	}
	for i, devices := range s.devices {
		node := fmt.Sprintf("$S-%c", 'a'+i)
		text += "\n---\napiVersion: v1\nkind: Node\nmetadata: {name: " + node + ", labels: {shape: $S, kubernetes.io/hostname: " + node + "}}\n" + strings.TrimSuffix(readyNode, "\n")
		slices := 1
		if s.counters != "" {
			slices = 2
			slice(node+"-counters", "nodeName: "+node, slices, "sharedCounters: "+s.counters)
		}
		if devices != "" {
			slice(node, "nodeName: "+node, slices, "devices: "+devices)
		}
	}
	if s.shared != "" {
		slice("$S", "nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: shape, operator: In, values: [$S]}]}]}", 1, "devices: "+s.shared)
	}
	if s.claim == "" {
		text += "\n---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: copies}, spec: {devices: " + fitOne + "}}"
	} else {
		text += "\n---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: copies}, spec: {spec: {devices: " + s.claim + "}}}"
	}
	return strings.ReplaceAll(text+s.objects, "$S", s.name)
}

// TestFitAgreesWithScheduler asks how many copies of several shapes fit, creates as many
// and more, and lets the scheduler decide: it places what fit says, and no more.
func TestFitAgreesWithScheduler(t *testing.T) {
	c := startCluster(t, controlplane.Options{})
	for _, shape := range fitShapes() {
		t.Run(shape.name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
			defer stop()
			c.createAll(t, shape.name, shape.documents())
			count := c.fit(t, &shape)
			if count.AtMost == nil || count.AtLeast != shape.least || *count.AtMost != shape.most {
				t.Fatalf("fit says %s, want %d to %d", english.Between(count.AtLeast, count.AtMost), shape.least, shape.most)
			}
			placed := 0
			for i := range shape.most + 1 {
				if c.placeCopy(ctx, t, &shape, fmt.Sprintf("copy-%d", i), i < shape.least) {
					placed++
				}
			}
			if placed < shape.least || placed > shape.most {
				t.Errorf("the scheduler places %d copies, fit says %s", placed, english.Between(count.AtLeast, count.AtMost))
			}
		})
	}
}

// fit returns how many copies fit, as the program says.
func (c *cluster) fit(t *testing.T, shape *fitShape) api.CopyCount {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copies.yaml")
	deployment := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: copies}, spec: {replicas: 2, selector: {matchLabels: {app: copies}}, template: {metadata: {labels: {app: copies}}, spec: {" + shape.podSpec() + "}}}}"
	mustDo(t, func() error {
		return os.WriteFile(path, []byte(strings.ReplaceAll(deployment, "$S", shape.name)), 0o600)
	})
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	code := commands.Run(t.Context(), []string{"fit", "--kubeconfig", c.kubeconfig, "-n", shape.name, "-f", path, "-o", "json"}, streams, commands.Build{Version: "v0.0.0-test"})
	var found api.Fit
	if err := json.Unmarshal(out.Bytes(), &found); err != nil || code != 0 {
		t.Fatalf("code %d, %v\n%s%s", code, err, out, errOut)
	}
	return found.Now
}

// placeCopy creates a copy, and reports whether it gets a node. It does not if the API
// server refuses the pod or its claim, or if the scheduler finds no node for it. Where
// it has to get one, nothing but a node will do: the scheduler may not have seen all
// objects yet when it tries first.
func (c *cluster) placeCopy(ctx context.Context, t *testing.T, shape *fitShape, name string, has bool) bool {
	t.Helper()
	object, err := parseObject([]byte(strings.ReplaceAll("{apiVersion: v1, kind: Pod, metadata: {name: "+name+", labels: {app: copies}}, spec: {"+shape.podSpec()+"}}", "$S", shape.name)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.create(ctx, shape.name, object); err != nil {
		if !strings.Contains(err.Error(), "exceeded quota") {
			t.Fatal(err)
		}
		return false
	}
	var last decision
	refused := false
	_ = poll(ctx, func() bool {
		pod, err := c.pods.Pods(shape.name).Get(name)
		if err != nil {
			return false
		}
		if last = c.decided(pod); last.reason == scheduled || last.reason == unschedulable && !has {
			return true
		}
		events, err := c.kube.CoreV1().Events(shape.name).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name + ",reason=FailedResourceClaimCreation"})
		refused = err == nil && strings.Contains(fmt.Sprint(messages(events)), "exceeded quota")
		return refused && !has
	})
	if !refused && last.reason != scheduled && last.reason != unschedulable {
		t.Errorf("%s: neither placed nor refused: %+v", name, last)
	}
	return last.reason == scheduled
}

// TestMovesAgreeWithScheduler creates two pods that use half of a node each, so that no pod
// which needs a whole node fits. It makes the move that fit without a target names, as the
// documents say: then the scheduler places such a pod.
func TestMovesAgreeWithScheduler(t *testing.T) {
	c := startCluster(t, controlplane.Options{})
	const name = "moves"
	shape := fitShape{name: name, devices: []string{fitRoots(4), fitRoots(4)}, claim: strings.Replace(fitOne, "$S}", "$S, count: 2}", 1)}
	c.createAll(t, name, shape.documents())
	c.createAll(t, name, "{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: four}, spec: {spec: {devices: "+strings.ReplaceAll(fitFour, "$S", name)+"}}}")
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	pod := func(name, template, further string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: " + name + "}, spec: {" + further + "resourceClaims: [{name: gpu, resourceClaimTemplateName: " + template + "}], " +
			"containers: [{name: main, image: example.com/none, resources: {claims: [{name: gpu}]}}]}}"
	}
	placed := func(pod string) string {
		t.Helper()
		got := c.decision(ctx, name, pod, func(d decision) bool { return d.reason == scheduled })
		if got.reason != scheduled {
			t.Fatalf("pod %s: %+v", pod, got)
		}
		return got.node
	}
	cordon := func(node string, on bool) {
		patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%v}}`, on)
		_, err := c.kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
		mustDo(t, func() error { return err })
	}
	c.createAll(t, name, pod("first", "copies", ""))
	first := placed("first")
	cordon(first, true)
	c.createAll(t, name, pod("second", "copies", ""))
	second := placed("second")
	cordon(first, false)
	c.createAll(t, name, pod("large", "four", ""))
	if got := c.decision(ctx, name, "large", func(d decision) bool { return d.reason == unschedulable }); got.reason != unschedulable {
		t.Fatalf("there is room for a pod that needs all of a node: %+v", got)
	}

	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	code := commands.Run(ctx, []string{"fit", "--kubeconfig", c.kubeconfig, "-o", "json"}, streams, commands.Build{Version: "v0.0.0-test"})
	var found api.FitShapes
	if err := json.Unmarshal(out.Bytes(), &found); err != nil || code != 0 {
		t.Fatalf("code %d, %v\n%s%s", code, err, out, errOut)
	}
	at := slices.IndexFunc(found.Shapes, func(s api.ShapeFit) bool { return s.Shape.Devices == 4 && s.Shape.Match != nil })
	if at < 0 || found.Shapes[at].Now.AtLeast != 0 || found.Shapes[at].Packed == nil || found.Shapes[at].Packed.AtLeast != 1 || found.Shapes[at].Move == nil {
		t.Fatalf("got %s", out)
	}
	move := found.Shapes[at].Move
	if where := map[string]string{"first": first, "second": second}; where[move.Pod] != move.From || where[move.Pod] == move.To {
		t.Fatalf("%+v, but pods are on %v", move, where)
	}
	mustDo(t, func() error { return c.kube.CoreV1().Pods(name).Delete(ctx, move.Pod, *metav1.NewDeleteOptions(0)) })
	c.createAll(t, name, pod("moved", "copies", "nodeSelector: {kubernetes.io/hostname: "+move.To+"}, "))
	if node := placed("moved"); node != move.To {
		t.Errorf("the pod is on %s", node)
	}
	if node := placed("large"); node != move.From {
		t.Errorf("the pod that needs all of a node is on %s, want %s", node, move.From)
	}
}
