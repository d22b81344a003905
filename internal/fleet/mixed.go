// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Names in a mixed fleet besides Driver and Class.
const (
	// NIC and FPGA are drivers, and classes of all their devices.
	NIC  = "nic.example.com"
	FPGA = "fpga.example.com"
	// Partition is the class of partitions of GPUs. Class has whole GPUs only.
	Partition = "partition.gpu.example.com"
	// DedicatedTaint keeps pods from some nodes.
	DedicatedTaint = "example.com/dedicated"
)

// machine is a kind of nodes.
type machine struct {
	instance, product, architecture, memory string
	// gpus and nics are whole devices; partitioned GPUs can be cut into parts.
	gpus, nics, fpgas, partitioned int
	// roots is how many PCIe roots the devices are behind.
	roots int
	// dedicated nodes have a taint.
	dedicated bool
}

// machines returns the twelve kinds. Together they have 96 devices.
func machines() []machine {
	return []machine{
		{instance: "h100.8x", product: "NVIDIA H100 80GB HBM3", architecture: "Hopper", memory: "80Gi", gpus: 8, nics: 2, roots: 2},
		{instance: "h200.8x", product: "NVIDIA H200", architecture: "Hopper", memory: "141Gi", gpus: 8, nics: 2, roots: 2},
		{instance: "a100.8x", product: "NVIDIA A100-SXM4-80GB", architecture: "Ampere", memory: "80Gi", gpus: 8, roots: 4},
		{instance: "a100-40.8x", product: "NVIDIA A100-SXM4-40GB", architecture: "Ampere", memory: "40Gi", gpus: 8, roots: 4},
		{instance: "l40s.8x", product: "NVIDIA L40S", architecture: "Ada Lovelace", memory: "48Gi", gpus: 8, roots: 2, dedicated: true},
		{instance: "l4.4x", product: "NVIDIA L4", architecture: "Ada Lovelace", memory: "24Gi", gpus: 4, roots: 1},
		{instance: "t4.4x", product: "Tesla T4", architecture: "Turing", memory: "16Gi", gpus: 4, roots: 1},
		{instance: "h100.mig", product: "NVIDIA H100 80GB HBM3", architecture: "Hopper", memory: "80Gi", partitioned: 2, roots: 2},
		{instance: "a100.mig", product: "NVIDIA A100-SXM4-40GB", architecture: "Ampere", memory: "40Gi", partitioned: 1, roots: 1},
		{instance: "fpga.6x", product: "Alveo U55C", fpgas: 6, roots: 2},
		{instance: "network", nics: 10, roots: 2},
		{instance: "cpu"},
	}
}

// Mixed makes a cluster of twelve kinds of nodes, in turns: seven with whole
// GPUs, two with GPUs that are cut into partitions, one each with FPGAs, with
// network interfaces that are shared, and without devices. It has 8 devices for
// each node on average. Half of the devices have claims that are reserved for
// running pods; how many differs from node to node. Some nodes are cordoned or
// dedicated, some devices tainted, some pools incomplete.
func Mixed(nodes int) *snapshot.Snapshot {
	s := Fleet(0, 0, 0)
	for _, name := range []string{"DRAPartitionableDevices", "DRADeviceTaints", "DRAConsumableCapacity", "DRAAdminAccess"} {
		s.Gates[name] = snapshot.Gate{Enabled: true, Source: snapshot.GateFromMetrics}
	}
	s.Classes = []*resourceapi.DeviceClass{
		classOf(FPGA, `device.driver == "`+FPGA+`"`),
		classOf(Class, `device.driver == "`+Driver+`" && device.attributes["`+Driver+`"].type == "gpu"`),
		classOf(NIC, `device.driver == "`+NIC+`"`),
		classOf(Partition, `device.driver == "`+Driver+`" && device.attributes["`+Driver+`"].type == "mig"`),
	}
	kinds := machines()
	var used []use
	for i := range nodes {
		m := &kinds[i%len(kinds)]
		s.Nodes = append(s.Nodes, m.node(i))
		slices := m.slices(i)
		s.Slices = append(s.Slices, slices...)
		used = append(used, usesOf(i, slices)...)
	}
	sortByName(s.Slices)
	for i, u := range used {
		s.Claims = append(s.Claims, u.claim(i))
		s.Pods = append(s.Pods, u.pod(i))
	}
	s.Templates = templates(s.Pods, s.Claims)
	sortByName(s.Claims)
	sortByName(s.Pods)
	return s
}

func classOf(name, expression string) *resourceapi.DeviceClass {
	c := class()
	c.Name, c.Spec.Selectors[0].CEL.Expression = name, expression
	return c
}

// scattered returns a number below n that looks as if it had nothing to do with i.
func scattered(i, n int) int { return (i * 2654435761 % (1 << 32) >> 7) % n }

func (m *machine) node(i int) *corev1.Node {
	n := node(i)
	n.Labels[corev1.LabelInstanceTypeStable] = m.instance
	n.Spec.Unschedulable = i%97 == 50
	if m.dedicated && i/12%3 == 0 {
		n.Spec.Taints = []corev1.Taint{{Key: DedicatedTaint, Value: "vision", Effect: corev1.TaintEffectNoSchedule}}
	}
	return n
}

// slices returns what the drivers of a node publish.
func (m *machine) slices(i int) []*resourceapi.ResourceSlice {
	var out []*resourceapi.ResourceSlice
	publish := func(driver string, devices []resourceapi.Device) *resourceapi.ResourceSlice {
		s := slice(i, 0)
		s.Name = nodeName(i) + "-" + driver + "-x7k2p"
		s.UID = uid(8+len(out), i)
		s.Spec.Driver, s.Spec.Devices = driver, devices
		out = append(out, s)
		return s
	}
	var gpus, nics, fpgas []resourceapi.Device
	for d := range m.gpus {
		gpus = append(gpus, m.gpu(i, d))
	}
	for d := range m.nics {
		nics = append(nics, m.nic(i, d))
	}
	for d := range m.fpgas {
		fpgas = append(fpgas, m.fpga(i, d))
	}
	if gpus != nil {
		s := publish(Driver, gpus)
		if i%211 == 12 {
			s.Spec.Pool.ResourceSliceCount = 2
		}
		if i%53 == 8 {
			gpus[i%len(gpus)].Taints = []resourceapi.DeviceTaint{{Key: Driver + "/ecc", Value: "uncorrectable", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
		}
	}
	if m.partitioned > 0 {
		var parts []resourceapi.Device
		counters := publish(Driver, nil)
		counters.Name += "-counters"
		for d := range m.partitioned {
			parts = append(parts, m.partitions(i, d)...)
			counters.Spec.SharedCounters = append(counters.Spec.SharedCounters, resourceapi.CounterSet{
				Name: fmt.Sprintf("gpu-%d", d),
				Counters: map[string]resourceapi.Counter{
					"multiprocessors": {Value: resource.MustParse("112")}, "memory": {Value: resource.MustParse(m.memory)},
				},
			})
		}
		counters.Spec.Pool.ResourceSliceCount = 2
		publish(Driver, parts).Spec.Pool.ResourceSliceCount = 2
	}
	if nics != nil {
		publish(NIC, nics)
	}
	if fpgas != nil {
		publish(FPGA, fpgas)
	}
	return out
}

func (m *machine) root(d, of int) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: ptr.To(fmt.Sprintf("pci0000:%02x", 0x17+0x10*(d*m.roots/max(of, 1))))}
}

func (m *machine) gpu(i, d int) resourceapi.Device {
	gpu := device(i, d)
	gpu.Attributes["productName"] = resourceapi.DeviceAttribute{StringValue: &m.product}
	gpu.Attributes["architecture"] = resourceapi.DeviceAttribute{StringValue: &m.architecture}
	gpu.Attributes["resource.kubernetes.io/pcieRoot"] = m.root(d, max(m.gpus, m.partitioned))
	if scattered(i, 5) == 0 {
		gpu.Attributes["driverVersion"] = resourceapi.DeviceAttribute{VersionValue: ptr.To("570.148.8")}
	}
	gpu.Capacity["memory"] = resourceapi.DeviceCapacity{Value: resource.MustParse(m.memory)}
	return gpu
}

// partitions returns a GPU as a whole, its halves and seven small ones; an A100 has four
// small ones.
func (m *machine) partitions(i, d int) []resourceapi.Device {
	small := 7
	if m.partitioned == 1 {
		small = 4
	}
	var out []resourceapi.Device
	add := func(profile string, count, parts int, kind string) {
		total := resource.MustParse(m.memory)
		memory := *resource.NewQuantity(total.Value()/int64(parts), resource.BinarySI)
		for n := range count {
			p := m.gpu(i, d)
			p.Name = fmt.Sprintf("gpu-%d-%s-%d", d, profile, n)
			p.Attributes["type"] = resourceapi.DeviceAttribute{StringValue: &kind}
			p.Attributes["profile"] = resourceapi.DeviceAttribute{StringValue: &profile}
			p.Attributes["parentUUID"] = p.Attributes["uuid"]
			p.Attributes["uuid"] = resourceapi.DeviceAttribute{StringValue: ptr.To("MIG-" + string(uid(9, i*64+d*16+len(out))))}
			p.Capacity["memory"] = resourceapi.DeviceCapacity{Value: memory}
			p.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{
				CounterSet: fmt.Sprintf("gpu-%d", d),
				Counters: map[string]resourceapi.Counter{
					"multiprocessors": {Value: *resource.NewQuantity(int64(112/parts), resource.DecimalSI)}, "memory": {Value: memory},
				},
			}}
			out = append(out, p)
		}
	}
	add("whole", 1, 1, "gpu")
	add("half", 2, 2, "mig")
	add("small", small, 8, "mig")
	return out
}

func (m *machine) nic(i, d int) resourceapi.Device {
	nic := resourceapi.Device{
		Name: fmt.Sprintf("mlx5-%d", d),
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"type":                            {StringValue: ptr.To("rdma")},
			"model":                           {StringValue: ptr.To("ConnectX-7")},
			"firmware":                        {VersionValue: ptr.To("28.39.1002")},
			"mac":                             {StringValue: ptr.To(fmt.Sprintf("02:00:%02x:%02x:%02x:%02x", i>>16&255, i>>8&255, i&255, d))},
			"linkLayer":                       {StringValue: ptr.To([]string{"InfiniBand", "Ethernet"}[m.gpus%2])},
			"resource.kubernetes.io/pcieRoot": m.root(d, m.nics),
		},
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"bandwidth": {Value: resource.MustParse("400G")}},
	}
	if m.gpus == 0 {
		nic.AllowMultipleAllocations = ptr.To(true)
		nic.Attributes["linkLayer"] = resourceapi.DeviceAttribute{StringValue: ptr.To("Ethernet")}
	}
	return nic
}

func (m *machine) fpga(i, d int) resourceapi.Device {
	return resourceapi.Device{
		Name: fmt.Sprintf("fpga-%d", d),
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"productName":                     {StringValue: &m.product},
			"serial":                          {StringValue: ptr.To("XFL" + string(uid(10, i*64+d)))},
			"shell":                           {VersionValue: ptr.To("3.1.0")},
			"networked":                       {BoolValue: ptr.To(d%2 == 0)},
			"resource.kubernetes.io/pcieRoot": m.root(d, m.fpgas),
		},
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("16Gi")}},
	}
}

// use is a device that a claim has.
type use struct {
	node                        int
	class, driver, pool, device string
	shared                      bool
}

// usesOf returns the devices of a node that have claims.
func usesOf(node int, slices []*resourceapi.ResourceSlice) []use {
	var out []use
	for k, s := range slices {
		var can []resourceapi.Device
		for _, d := range s.Spec.Devices {
			// A partition that is in use leaves out the larger ones.
			if profile := d.Attributes["profile"].StringValue; profile == nil || *profile == "small" {
				can = append(can, d)
			}
		}
		for i, first := 0, scattered(node*7+k, len(can)+1); i < scattered(node*3+k, len(can)+1); i++ {
			d := &can[(first+i)%len(can)]
			u := use{node: node, class: s.Spec.Driver, driver: s.Spec.Driver, pool: s.Spec.Pool.Name, device: d.Name, shared: d.AllowMultipleAllocations != nil}
			if d.ConsumesCounters != nil {
				u.class = Partition
			}
			out = append(out, u)
		}
	}
	return out
}

// claim returns a claim like one of Fleet, for this device.
func (u use) claim(i int) *resourceapi.ResourceClaim {
	c := claim(i, i+1, 1)
	c.Spec.Devices.Requests[0].Exactly.DeviceClassName = u.class
	result := &c.Status.Allocation.Devices.Results[0]
	result.Driver, result.Pool, result.Device = u.driver, u.pool, u.device
	if u.shared {
		result.ShareID = ptr.To(uid(11, i))
		result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"bandwidth": resource.MustParse("400G")}
	}
	c.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values = []string{nodeName(u.node)}
	c.Status.Allocation.AllocationTimestamp = &metav1.Time{Time: moment(1800 + i)}
	return c
}

// pod returns the pod that uses the claim. Its template has the name of the class.
func (u use) pod(i int) *corev1.Pod {
	p := pod(i, i+1, 1)
	p.Spec.NodeName = nodeName(u.node)
	p.Spec.ResourceClaims[0].ResourceClaimTemplateName = &u.class
	return p
}

// AddWaiting adds pods to a mixed fleet that wait, each with a claim of its own, in all
// namespaces. They are of 20 shapes, in turns: whole GPUs, with and without selectors
// and constraints, partitions, network interfaces, FPGAs, and more devices than a node
// has; pods of a shape have the same priority.
func AddWaiting(s *snapshot.Snapshot, pods int) {
	for i := range pods {
		shape := i % 20
		c := claim(i, 0, 1)
		c.Name, c.UID = fmt.Sprintf("wants-%06d", i), uid(20, i)
		c.OwnerReferences, c.Annotations = nil, nil
		c.Spec.Devices, c.Status = waitingShape(shape), resourceapi.ResourceClaimStatus{}
		p := pod(i, 1, 1)
		p.Name, p.UID = fmt.Sprintf("waits-%06d", i), uid(21, i)
		p.CreationTimestamp = metav1.Time{Time: moment(3*pods - i)}
		p.Spec.NodeName, p.Spec.Priority = "", ptr.To(int32(shape%4*100))
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &c.Name}}
		p.Status = corev1.PodStatus{Phase: corev1.PodPending}
		s.Claims, s.Pods = append(s.Claims, c), append(s.Pods, p)
	}
	sortByName(s.Claims)
	sortByName(s.Pods)
}

// waitingShape returns one of 20 things that pods wait for.
func waitingShape(n int) resourceapi.DeviceClaim {
	counts := []int64{1, 2, 4, 8, 16}
	request := exactly("devices", Class, counts[n%5])
	constraints := []resourceapi.DeviceConstraint(nil)
	switch n / 5 {
	case 1:
		request.Exactly.Selectors = []resourceapi.DeviceSelector{celSelector(`device.attributes["` + Driver + `"].architecture == "Hopper"`)}
	case 2:
		constraints = []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("resource.kubernetes.io/pcieRoot"))}}
	case 3:
		request.Exactly.DeviceClassName = []string{Partition, NIC, FPGA, Partition, FPGA}[n%5]
	}
	return resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{request}, Constraints: constraints}
}
