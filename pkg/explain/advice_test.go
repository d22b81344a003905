// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestAdvice covers advice that could trade a part of the request for something else.
func TestAdvice(t *testing.T) {
	theClaim := Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)}
	thePod := Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")}
	attribute := func(name string) string { return `device.attributes["gpu.example.com"].` + name }
	const memory = `device.capacity["gpu.example.com"].memory.compareTo(quantity("16Gi")) >= 0`
	taken := time.Date(2026, 6, 1, 10, 0, 0, 0, time.UTC)
	needs := func(cpu string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Requests: tc.ResourceList("cpu=" + cpu)}
	}
	asking := func(change func(*corev1.Pod)) []any {
		return []any{
			tc.NodeOffering("n1", "cpu=4", "memory=8Gi", "pods=10"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using(waiting), change),
		}
	}
	for name, test := range map[string]struct {
		cluster  []any
		target   Options
		says     []string
		remedies []string
		steps    []string
		hints    string
	}{
		"a class of other devices": {
			cluster: []any{
				tc.Nodes("n1"), tc.Slice("n1-cd", "compute-domain.nvidia.com", "n1", tc.Device("daemon-0")).OnNode("n1"),
				tc.Class("compute-domain-daemon.nvidia.com", "compute-domain.nvidia.com"), tc.Claim(waiting, tc.Request("gpu", "gpu.nvidia.com", 1)),
			},
			says:  []string{"DeviceClass gpu.nvidia.com does not exist, which the installation of driver gpu.nvidia.com creates"},
			steps: []string{"Admin: install driver gpu.nvidia.com, or enable it in its installation: that creates DeviceClass gpu.nvidia.com"},
		},
		"a part of the devices of a driver": {
			cluster: []any{
				tc.Nodes("n1"), tc.Slice("n1-gpu", "gpu.nvidia.com", "n1", tc.Device("gpu-0", "type=gpu")).OnNode("n1"),
				tc.Class("gpu.nvidia.com", "gpu.nvidia.com"), tc.Claim(waiting, tc.Request("gpu", "mig.nvidia.com", 1)),
			},
			says:  []string{"DeviceClass mig.nvidia.com does not exist"},
			steps: []string{"Admin: create DeviceClass mig.nvidia.com, as the installation of driver gpu.nvidia.com does, which has devices already"},
		},
		"a class that nobody knows": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim(waiting, tc.GPUs("cpu", 1).OfClass("cpu"))},
			says:    []string{"DeviceClass cpu does not exist; existing classes: gpu."},
			steps:   []string{"Admin: create DeviceClass cpu: its name does not tell which driver's installation does"},
		},
		"classes with a typo": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), tc.Class("gpu-large", tc.Driver),
				tc.Claim(waiting, tc.GPUs("a", 1).OfClass("gpus"), tc.GPUs("b", 1).OfClass("gpu-lage")),
			},
			says:     []string{"request a: DeviceClass gpus does not exist, request b: nor does gpu-lage; did you mean gpu?; did you mean gpu-large?"},
			remedies: []string{"User: request class gpu instead of gpus in request a; and request class gpu-large instead of gpu-lage in request b"},
		},
		"a typo of a class of another driver": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Slice("n1-x", "gpus.example.com", "n1", tc.Device("x")).OnNode("n1"),
				tc.Class("gpu.example.com", tc.Driver), tc.Claim(waiting, tc.Request("gpu", "gpus.example.com", 1)),
			},
			says:  []string{"DeviceClass gpus.example.com does not exist, which the installation of driver gpus.example.com creates"},
			steps: []string{`Admin: create DeviceClass gpus.example.com, as the installation of driver gpus.example.com does, with the selector device.driver == "gpus.example.com"`},
		},
		"a class of devices of another type": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("gpu-0", "type=gpu"), tc.Device("mig-0", "type=mig"), tc.Device("gpu-1", "type=gpu")), tc.Serving("a", "n1", "gpu-0"),
				tc.ClassWhere("whole", attribute("type")+` == "gpu"`, attribute("type")+` != "x"`), tc.ClassWhere("mig", attribute("type")+` == "mig"`),
				tc.ClassWhere("gpu-all", attribute("type")+` == "gpu"`), tc.Claim(waiting, tc.Request("gpu", "whole", 2)),
			},
			remedies: []string{"Nobody: wait until claim serving/a is released", "User: request 1 device instead of 2 in request gpu"},
		},
		"a capacity that is not measured": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "memory:=0"), tc.Device("b", "memory:=0")), tc.Claim(waiting, tc.GPUs("gpu", 1, memory))},
			says:     []string{"memory is 0, must be 16Gi or more; driver gpu.example.com publishes memory 0 on all its devices: it was not measured"},
			remedies: []string{"User: remove the selector memory 16Gi or more from request gpu"},
			steps:    []string{"Admin: find out why driver gpu.example.com does not measure the capacity memory (domain gpu.example.com) of its devices: see its log"},
		},
		"a capacity that is 0 on some devices": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "memory:=0"), tc.Device("b", "memory:=8Gi")), tc.Claim(waiting, tc.GPUs("gpu", 1, memory))},
			remedies: []string{"User: require memory 8Gi or more instead of 16Gi or more in request gpu"},
		},
		"a text that is not measured": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=")), tc.Claim(waiting, tc.GPUs("gpu", 1, attribute("model")+` == "A"`))},
			says:     []string{`driver gpu.example.com publishes model "" on all its devices: it was not measured`},
			remedies: []string{`User: remove the selector model "A" from request gpu`},
			steps:    []string{"Admin: find out why driver gpu.example.com does not measure the attribute model (domain gpu.example.com) of its devices: see its log"},
		},
		"a number that is a place": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a").WithInt("numaNode", 0)), tc.Claim(waiting, tc.GPUs("gpu", 1, attribute("numaNode")+" == 1"))},
			remedies: []string{"User: require numaNode 0 instead of 1 in request gpu"},
		},
		"a share of what is not measured": {
			cluster: []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "memory:=0").Shareable()), tc.Claim(waiting, tc.GPUs("gpu", 1).WithCapacity("memory", "1Gi"))},
			says:    []string{"driver gpu.example.com publishes memory 0 on all its devices: it was not measured"},
		},
		"a capacity without its domain": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "gpu.example.com/cores:=8").Shareable()), tc.Claim(waiting, tc.GPUs("gpu", 1).WithCapacity("cores", "2"))},
			remedies: []string{"User: correct the capacity in request gpu: gpu.example.com/cores instead of cores"},
		},
		"a capacity that no device has": {
			cluster:  []any{tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "cores:=8").Shareable()), tc.Claim(waiting, tc.GPUs("gpu", 1).WithCapacity("bandwidth", "2"))},
			remedies: []string{"User: remove the capacity bandwidth from request gpu: it then takes 8 cores of a"},
		},
		"a taint of the driver": {
			cluster: []any{
				tc.Nodes("n1"), tc.Claim(waiting, tc.GPUs("gpu", 1)),
				tc.Pool("n1", tc.Device("gpu-0").TaintedSince("xid=79", resourceapi.DeviceTaintEffectNoSchedule, taken), tc.Device("gpu-1").TaintedSince("xid=79", resourceapi.DeviceTaintEffectNoSchedule, taken.Add(time.Hour))),
			},
			says: []string{"0 available (2 tainted); the taint is xid=79:NoSchedule, set by driver gpu.example.com since 2026-06-01T10:00:00Z"},
			remedies: []string{
				"Admin: repair gpu-0, gpu-1, or find out why driver gpu.example.com has set the taint xid=79:NoSchedule since 2026-06-01T10:00:00Z: it removes it then",
				"User: tolerate the device taint xid=79:NoSchedule, and run on broken hardware if driver gpu.example.com has set it for a fault",
			},
		},
		"one of several requests that decides alone": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=A", "root=x"), tc.Device("b", "model=B", "root=x")),
				tc.Claim(waiting, tc.GPUs("any", 1), tc.GPUs("gpu", 1, attribute("root")+` == "x" && `+attribute("model")+` == "Zeta"`)),
			},
			says:     []string{`Request gpu requires model "Zeta". Node n1 has request gpu: 0 available, 1 needed (2 not matching the selector)`, `no device has model "Zeta"`},
			remedies: []string{`User: remove the selector model "Zeta" from request gpu`},
		},
		"two requests that cannot be met": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=A", "memory:=40Gi"), tc.Device("b", "model=A", "memory:=40Gi")),
				tc.Claim(waiting, tc.GPUs("a", 1, attribute("model")+` == "Zeta"`), tc.GPUs("b", 1, memory+` && device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0`)),
			},
			says: []string{
				`Request a requires model "Zeta", and request b requires memory 80Gi or more. Each rules out node n1 by itself: it has request a: 0 available (2 not matching the selector); request b: 0 available (2 not matching the selector)`,
				`no device has model "Zeta"`, "memory is 40Gi, must be 80Gi or more",
			},
			remedies: []string{`User: remove the selector model "Zeta" from request a; and require memory 40Gi or more instead of 80Gi or more in request b`},
		},
		"two parts of a selector that cannot be met": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=Alpha", "memory:=40Gi")),
				tc.Claim(waiting, tc.GPUs("gpu", 1, attribute("model")+` == "Alhpa" && device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0`)),
			},
			says:     []string{`Request gpu requires model "Alhpa", and request gpu requires memory 80Gi or more. Each rules out node n1 by itself`},
			remedies: []string{`User: require model "Alpha" instead of "Alhpa" in request gpu; and require memory 40Gi or more instead of 80Gi or more in request gpu`},
		},
		"an attribute that is misspelled, and a selector": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=A", "memory:=40Gi"), tc.Device("b", "model=A", "memory:=40Gi")),
				tc.Claim(waiting, tc.GPUs("a", 1, `device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0`), tc.GPUs("b", 1, attribute("modell")+` == "A"`)),
			},
			remedies: []string{`User: require memory 40Gi or more instead of 80Gi or more in request a; and correct the selector of request b: model instead of modell`},
		},
		"a selector and a count": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=A", "root=x"), tc.Device("b", "model=A", "root=x"), tc.Device("c", "model=A", "root=y")),
				tc.Claim(waiting, tc.GPUs("gpu", 3, attribute("model")+` == "B"`)).Matching(tc.Driver + "/root"),
			},
			says:     []string{`Request gpu requires model "B", and request gpu needs 3 devices and all devices must have the same gpu.example.com/root. Each rules out node n1 by itself: it has 0 available (3 not matching the selector); 3 available, at most 2 with the same gpu.example.com/root`},
			remedies: []string{`User: remove the selector model "B" from request gpu; and request 2 devices instead of 3 in request gpu`},
		},
		"three selectors of one request": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=A", "root=x", "zone=z")),
				tc.Claim(waiting, tc.GPUs("gpu", 1, attribute("model")+` == "Zeta"`, attribute("root")+` == "Eta"`, attribute("zone")+` == "Theta"`)),
			},
			remedies: []string{`User: remove the selector model "Zeta" from request gpu; and remove the selector root "Eta" from request gpu; and remove the selector zone "Theta" from request gpu`},
		},
		"a selector, and devices that are allocated": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=A"), tc.Device("b", "model=B")), tc.Serving("have", "n1", "b"),
				tc.Claim(waiting, tc.GPUs("a", 1, attribute("model")+` == "Zeta"`), tc.GPUs("b", 1, attribute("model")+` == "B"`)),
			},
			says:     []string{`Request a requires model "Zeta". Node n1 has request a: 0 available, 1 needed (2 not matching the selector); request b: 0 available, 1 needed (1 allocated, 1 not matching the selector)`},
			remedies: []string{`User: remove the selector model "Zeta" from request a; and wait until claim serving/have is released`},
		},
		"two requests that wait for others": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=A"), tc.Device("b", "model=B")), tc.Serving("has-a", "n1", "a"), tc.Serving("has-b", "n1", "b"),
				tc.Claim(waiting, tc.GPUs("a", 1, attribute("model")+` == "A"`), tc.GPUs("b", 1, attribute("model")+` == "B"`)),
			},
			remedies: []string{"Nobody: wait until 2 claims are released: serving/has-a, serving/has-b"},
		},
		"a constraint of several requests that decides alone": {
			cluster: []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Device("a", "model=A", "root=x"), tc.Device("b", "model=B", "root=y")), tc.Serving("have", "n1", "a"),
				tc.Claim(waiting, tc.GPUs("a", 1, attribute("model")+` == "A"`), tc.GPUs("b", 1, attribute("model")+` == "B"`)).Matching(tc.Driver + "/root"),
			},
			says:     []string{"All devices must have the same gpu.example.com/root. Node n1 has request a: 0 available, 1 needed (1 allocated, 1 not matching the selector); even after all other claims are released, it has enough devices available, but not with the same gpu.example.com/root"},
			remedies: []string{"User: remove the constraint: the same gpu.example.com/root; and wait until claim serving/have is released"},
		},
		"cpu of the whole pod": {
			cluster:  asking(func(p *corev1.Pod) { p.Spec.Resources = needs("6") }),
			target:   thePod,
			remedies: []string{"User: request cpu 4 instead of 6 in the pod (spec.resources)"},
		},
		"cpu of the whole pod and its containers": {
			cluster: asking(func(p *corev1.Pod) {
				p.Spec.Resources, p.Spec.Containers[0].Resources = needs("6"), *needs("5")
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "log", Image: "x", Resources: *needs("1")})
			}),
			target:   thePod,
			remedies: []string{"User: request cpu 4 instead of 6 in the pod (spec.resources) and 3 instead of 5 in container main"},
		},
		"cpu of a LimitRange": {
			cluster: asking(func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources = *needs("6")
				p.Annotations = map[string]string{"kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu request for container " + p.Spec.Containers[0].Name}
			}),
			target:   thePod,
			hints:    "container main has its request of 6 cpu from a LimitRange of namespace ml",
			remedies: []string{"User: request cpu 4 in container main, which has 6 from a LimitRange"},
		},
		"cpu of an init container": {
			cluster: asking(func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources = *needs("2")
				p.Spec.InitContainers = []corev1.Container{{Name: "fetch", Image: "x", Resources: *needs("6")}}
			}),
			target:   thePod,
			remedies: []string{"User: request cpu 4 instead of 6 in init container fetch"},
		},
		"cpu of an init container and of containers": {
			cluster: asking(func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources = *needs("6")
				p.Spec.InitContainers = []corev1.Container{
					{Name: "proxy", Image: "x", Resources: *needs("1"), RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
					{Name: "fetch", Image: "x", Resources: *needs("5")},
				}
			}),
			target:   thePod,
			remedies: []string{"User: request cpu 3 instead of 5 in init container fetch and 3 instead of 6 in container main"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.target == (Options{}) {
				test.target = theClaim
			}
			test.target.AllRemedies = true
			snap := tc.Cluster(test.cluster...)
			e, err := Explain(t.Context(), snap, test.target)
			if err != nil {
				t.Fatal(err)
			}
			var remedies, steps []string
			for _, r := range e.Remedies {
				remedies = append(remedies, r.Actor+": "+r.Change)
			}
			for _, step := range e.NextSteps {
				if step.Text != "no pod uses the claim: it is allocated when the first one does" {
					steps = append(steps, step.Actor+": "+step.Text)
				}
			}
			for _, said := range test.says {
				if !strings.Contains(strings.ToLower(e.Summary), strings.ToLower(said)) {
					t.Errorf("%s\ndoes not say %q", e.Summary, said)
				}
			}
			if diff := cmp.Diff(test.remedies, remedies); diff != "" {
				t.Errorf("remedies (-want +got):\n%s", diff)
			}
			if test.hints != "" && !slices.ContainsFunc(e.Hints, func(h api.Hint) bool { return h.Text == test.hints }) {
				t.Errorf("no hint says %q: %+v", test.hints, e.Hints)
			}
			if diff := cmp.Diff(test.steps, steps); diff != "" {
				t.Errorf("next steps (-want +got):\n%s", diff)
			}
			checkRemedies(t, snap, test.target, e)
		})
	}
}
