// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

type generator struct {
	*rand.Rand
	snap *snapshot.Snapshot
	on   map[string]bool
	// published are the devices so far.
	published []published
	// slices counts the slices so far, to name them.
	slices int
}

type published struct {
	driver, pool, node string
	device             *resourceapi.Device
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// with reports whether to use a feature here, if it is on at all.
func (g *generator) with(feature string, percent int) bool { return g.on[feature] && g.chance(percent) }

func (g *generator) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g *generator) quantity(from ...string) resource.Quantity {
	return resource.MustParse(g.pick(from...))
}

func (g *generator) node() string { return g.snap.Nodes[g.IntN(len(g.snap.Nodes))].Name }

func celSelector(expression string) resourceapi.DeviceSelector {
	return resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}
}

// allocated returns a claim that holds a device, or a share of it.
func (g *generator) allocated(namespace, name string, p *published) *resourceapi.ResourceClaim {
	result := resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: p.driver, Pool: p.pool, Device: p.device.Name}
	switch {
	case p.device.AllowMultipleAllocations != nil && g.snap.Gates["DRAConsumableCapacity"].Enabled:
		result.ShareID = ptr.To(types.UID("share-" + name))
		result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"memory": g.quantity("1", "2", "4")}
	case g.with(AdminAccess, 40):
		result.AdminAccess = ptr.To(true)
	}
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)},
		Spec:       resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{exactly("r", Class, 1)}}},
		Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{
			Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{result}},
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{p.node}}},
			}}},
		}},
	}
}

// pod creates the waiting pod and its claims.
func (g *generator) pod() {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Waiting, UID: "uid-pod", CreationTimestamp: metav1.NewTime(g.snap.TakenAt.Add(-14 * time.Minute))},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	claims := 1
	if g.on[SeveralClaims] {
		claims += 1 + g.IntN(2)
	}
	for i := range claims {
		name := Waiting
		if i > 0 {
			name = fmt.Sprintf("%s-%d", Waiting, i+1)
		}
		g.snap.Claims = append(g.snap.Claims, g.claim(name))
		g.use(pod, name)
	}
	if g.on[AllocatedClaims] && len(g.published) > 0 {
		g.snap.Claims = append(g.snap.Claims, g.allocated(Namespace, "have", &g.published[g.IntN(len(g.published))]))
		g.use(pod, "have")
	}
	if g.on[ExtendedResources] {
		wants := corev1.ResourceList{extendedName: *resource.NewQuantity(int64(1+g.IntN(2)), resource.DecimalSI)}
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: wants, Limits: wants}
	}
	if g.on[NodeFit] {
		switch g.IntN(4) {
		case 0:
			pod.Spec.NodeSelector = map[string]string{"zone": g.pick("a", "b")}
		case 1:
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpNotIn, Values: []string{g.pick("a", "b")}}},
				}}},
			}}
		case 2:
			pod.Spec.Tolerations = []corev1.Toleration{{Key: g.pick("x", "y"), Operator: corev1.TolerationOpExists}}
		default:
			cpu := corev1.ResourceList{corev1.ResourceCPU: g.quantity("4", "16")}
			if pod.Spec.Containers[0].Resources.Requests == nil {
				pod.Spec.Containers[0].Resources.Requests = cpu
			}
		}
	}
	g.snap.Pods = append(g.snap.Pods, pod)
}

func (g *generator) use(pod *corev1.Pod, claim string) {
	pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: claim, ResourceClaimName: &claim})
}

func exactly(name, class string, count int64) resourceapi.DeviceRequest {
	return resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
	}}
}

func (g *generator) claim(name string) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("uid-" + name)}}
	for i := range 1 + g.IntN(2) {
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, g.request(fmt.Sprintf("r%d", i)))
	}
	g.constraints(c)
	return c
}

func (g *generator) request(name string) resourceapi.DeviceRequest {
	class := Class
	switch {
	case g.with(OtherClasses, 60):
		class = g.pick(fastClass, anyClass, Links)
	case g.chance(10):
		class = Links
	}
	driver := Driver
	if class == Links {
		driver = Links
	}
	count := int64(1 + g.IntN(2))
	if g.on[ManyDevices] || g.with(SeveralClaims, 60) {
		count = 1
	}
	request := exactly(name, class, count)
	exact := request.Exactly
	exact.Selectors = g.selectors(driver)
	if g.with(FailingSelectors, 60) {
		exact.Selectors = append(exact.Selectors, celSelector(fmt.Sprintf(g.pick(
			`device.attributes[%q].absent == 1`,
			`device.attributes[%[1]q].id >= 0 || device.attributes[%[1]q].absent == 1`,
			`device.attributes[%[1]q].id %% 3 == 0 || device.attributes[%[1]q].absent == 1`,
		), driver)))
	}
	if g.with(Tolerations, 80) {
		exact.Tolerations = []resourceapi.DeviceToleration{{Key: g.pick("x", "y"), Operator: resourceapi.DeviceTolerationOpExists}}
	}
	if g.with(CapacityRequests, 80) {
		exact.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{
			"memory": g.quantity("0", "1", "3", "5", "500m", "1500m", "9"),
		}}
		if g.chance(10) {
			exact.Capacity.Requests["lanes"] = g.quantity("1", "2")
		}
	}
	switch {
	case g.with(ManyDevices, 40):
		exact.Count = resourceapi.AllocationResultsMaxSize + 1
	case g.with(AllMode, 60):
		exact.AllocationMode, exact.Count = resourceapi.DeviceAllocationModeAll, 0
	case g.with(AdminAccess, 60):
		exact.AdminAccess = ptr.To(true)
	case g.with(PrioritizedLists, 70):
		return g.firstAvailable(request)
	}
	return request
}

// firstAvailable makes alternatives of a request: more, the same, less.
func (g *generator) firstAvailable(request resourceapi.DeviceRequest) resourceapi.DeviceRequest {
	exact := request.Exactly
	base := resourceapi.DeviceSubRequest{
		Name: "more", DeviceClassName: exact.DeviceClassName, AllocationMode: exact.AllocationMode, Count: exact.Count + 1,
		Selectors: exact.Selectors, Tolerations: exact.Tolerations, Capacity: exact.Capacity,
	}
	alternatives := []resourceapi.DeviceSubRequest{base}
	if g.chance(50) {
		same := *base.DeepCopy()
		same.Name, same.Count = "same", exact.Count
		alternatives = append(alternatives, same)
	}
	less := *base.DeepCopy()
	less.Name, less.Count, less.Selectors = "less", 1, nil
	alternatives = append(alternatives, less)
	return resourceapi.DeviceRequest{Name: request.Name, FirstAvailable: alternatives}
}

func (g *generator) selectors(driver string) []resourceapi.DeviceSelector {
	var list []resourceapi.DeviceSelector
	for _, expression := range []string{
		fmt.Sprintf(`device.attributes[%q].?model.orValue("") == %q`, driver, g.pick("A", "B")),
		fmt.Sprintf(`device.attributes[%q].id %% 3 != %d`, driver, g.IntN(3)),
		fmt.Sprintf(`device.driver == %q && device.attributes[%q].numa == 1`, driver, driver),
		fmt.Sprintf(`device.capacity[%q].memory.compareTo(quantity("5")) >= 0`, driver),
		`device.attributes["resource.kubernetes.io"].pcieRoot == "r0"`,
		`device.allowMultipleAllocations`,
	} {
		if g.with(Selectors, 25) {
			list = append(list, celSelector(expression))
		}
	}
	return list
}

func (g *generator) constraints(c *resourceapi.ResourceClaim) {
	attribute := func() *resourceapi.FullyQualifiedName {
		return ptr.To(resourceapi.FullyQualifiedName(g.pick(Driver+"/model", Driver+"/numa", "resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/pcieRoot")))
	}
	if g.with(MatchConstraints, 80) {
		c.Spec.Devices.Constraints = append(c.Spec.Devices.Constraints, resourceapi.DeviceConstraint{MatchAttribute: attribute()})
	}
	if g.with(DistinctConstraints, 80) {
		c.Spec.Devices.Constraints = append(c.Spec.Devices.Constraints, resourceapi.DeviceConstraint{DistinctAttribute: attribute()})
	}
	if g.with(DerivedAttributes, 90) {
		g.derive(c)
	}
	for i := range c.Spec.Devices.Constraints {
		if g.chance(25) {
			r := &c.Spec.Devices.Requests[g.IntN(len(c.Spec.Devices.Requests))]
			name := r.Name
			if len(r.FirstAvailable) > 0 && g.chance(30) {
				name += "/" + r.FirstAvailable[0].Name
			}
			c.Spec.Devices.Constraints[i].Requests = []string{name}
		}
	}
}

// derive adds a constraint about an attribute that each request computes.
func (g *generator) derive(c *resourceapi.ResourceClaim) {
	name := resourceapi.FullyQualifiedName(derivedName)
	if g.chance(20) {
		name = Driver + "/numa"
	}
	attribute := func(class string) []resourceapi.DeviceDerivedAttribute {
		driver := Driver
		if class == Links {
			driver = Links
		}
		expression := fmt.Sprintf(`device.attributes[%q].id / 2`, driver)
		if g.chance(15) {
			expression = fmt.Sprintf(`string(device.attributes[%q].numa)`, driver)
		}
		return []resourceapi.DeviceDerivedAttribute{{Name: name, Expression: expression}}
	}
	for i := range c.Spec.Devices.Requests {
		r := &c.Spec.Devices.Requests[i]
		if r.Exactly != nil {
			r.Exactly.DerivedAttributes = attribute(r.Exactly.DeviceClassName)
		}
		for j := range r.FirstAvailable {
			r.FirstAvailable[j].DerivedAttributes = attribute(r.FirstAvailable[j].DeviceClassName)
		}
	}
	constraint := resourceapi.DeviceConstraint{MatchAttribute: &name}
	if g.chance(50) {
		constraint = resourceapi.DeviceConstraint{DistinctAttribute: &name}
	}
	c.Spec.Devices.Constraints = append(c.Spec.Devices.Constraints, constraint)
}

// mistakes keeps the claims from being tried at all.
func (g *generator) mistakes() {
	if !g.on[Mistakes] {
		return
	}
	for _, c := range g.snap.Claims {
		if c.Namespace != Namespace || c.Status.Allocation != nil {
			continue
		}
		switch r := &c.Spec.Devices.Requests[0]; g.IntN(4) {
		case 0:
			c.DeletionTimestamp = ptr.To(metav1.NewTime(g.snap.TakenAt))
		case 1:
			if r.Exactly != nil {
				r.Exactly.DeviceClassName = missingClass
			}
		case 2:
			if r.Exactly != nil {
				r.Exactly.AdminAccess = ptr.To(true)
			}
			g.snap.Namespaces[0].Labels = nil
			c.UID = ""
		default:
			if r.Exactly != nil {
				r.Exactly.Selectors = append(r.Exactly.Selectors, celSelector(brokenSelector))
			}
		}
		return
	}
}
