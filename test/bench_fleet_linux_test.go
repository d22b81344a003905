// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// BenchmarkFleet asks the built program about something that fits on no node of
// a fleet, from the file to the printed text, in turns with the program
// test/plain, which does the least that anybody could do. The fleet is one of
// equal nodes, each with 8 devices and 4 allocated claims, or a mixed one with as
// many. It reports
//
//	why-cpu-s    processor time of why, explanation, outlook and remedies included
//	why-s        how long it takes
//	why-MiB      the most memory that it had
//	plain-cpu-s  the same of test/plain: load the file, and ask the allocator
//	plain-s      about each node, one after the other
//	plain-MiB
//	load-cpu-s   processor time for what both have in common: load the file
//	cpu-ratio    why-cpu-s divided by plain-cpu-s
//	ratio        why-s divided by plain-s
//	µs/node      microseconds of why-cpu-s for each node; they stay the same
//	             where time grows as the fleet does
//
// Ten rounds of 5,000 mixed nodes: -bench BenchmarkFleet/mixed/nodes=5000/json$ -benchtime 10x.
func BenchmarkFleet(b *testing.B) {
	peak, program, plain := goBuild(b, "./peak"), goBuild(b, "../cmd/kubectl-dra"), goBuild(b, "./plain")
	for _, shape := range []struct {
		name   string
		make   func(nodes int) *snapshot.Snapshot
		target string
	}{
		{"equal", func(nodes int) *snapshot.Snapshot { return fleetWithWaitingClaim(nodes, 4*nodes) }, "claim/waiting"},
		{"mixed", mixedWithWaitingPod, "pod/waiting"},
	} {
		for _, nodes := range []int{1000, 5000, 20000} {
			for _, extension := range []string{"json", "json.gz", "yaml"} {
				if extension != "json" && nodes != 5000 {
					continue
				}
				b.Run(fmt.Sprintf("%s/nodes=%d/%s", shape.name, nodes, extension), func(b *testing.B) {
					path := filepath.Join(b.TempDir(), "fleet."+extension)
					if err := files.Save(b.Context(), shape.make(nodes), path); err != nil {
						b.Fatal(err)
					}
					b.ResetTimer()
					var loads, asks, explains total
					for b.Loop() {
						loads.add(b, 0, peak, plain, path)
						asks.add(b, 0, peak, plain, path, "waiting", "waiting")
						explains.add(b, 1, peak, program, "why", shape.target, "-n", "waiting", "--snapshot", path)
					}
					rounds := float64(b.N)
					for unit, value := range map[string]float64{
						"why-cpu-s": explains.CPU / rounds, "why-s": explains.Seconds / rounds, "why-MiB": explains.PeakMiB,
						"plain-cpu-s": asks.CPU / rounds, "plain-s": asks.Seconds / rounds, "plain-MiB": asks.PeakMiB,
						"load-cpu-s": loads.CPU / rounds,
						"cpu-ratio":  explains.CPU / asks.CPU, "ratio": explains.Seconds / asks.Seconds,
						"µs/node": explains.CPU * 1e6 / rounds / float64(nodes), "ns/op": 0,
					} {
						b.ReportMetric(value, unit)
					}
				})
			}
		}
	}
}

// BenchmarkExpressions lists attributes and evaluates expressions from a file with
// 5,000 mixed nodes and their devices, in turns with listing the devices. It reports
// the processor time of each, and the ratio to that of devices.
func BenchmarkExpressions(b *testing.B) {
	peak, program := goBuild(b, "./peak"), goBuild(b, "../cmd/kubectl-dra")
	path := filepath.Join(b.TempDir(), "fleet.json")
	if err := files.Save(b.Context(), fleet.Mixed(5000), path); err != nil {
		b.Fatal(err)
	}
	expression := `device.driver == "` + fleet.Driver + `" && device.capacity["` + fleet.Driver + `"].memory.compareTo(quantity("40Gi")) >= 0`
	asked := map[string][]string{
		"attributes": {"attributes", "-o", "wide"}, "cel": {"cel", expression},
		"compare": {"cel", expression, "--compare", "true"},
	}
	b.ResetTimer()
	var listed total
	took := map[string]*total{}
	for b.Loop() {
		listed.add(b, 0, peak, program, "devices", "--snapshot", path)
		for name, args := range asked {
			if took[name] == nil {
				took[name] = &total{}
			}
			exit := 0.0
			if name == "compare" {
				exit = 1
			}
			took[name].add(b, exit, peak, program, append(args, "--snapshot", path)...)
		}
	}
	b.ReportMetric(listed.CPU/float64(b.N), "devices-cpu-s")
	for name, t := range took {
		b.ReportMetric(t.CPU/float64(b.N), name+"-cpu-s")
		b.ReportMetric(t.CPU/listed.CPU, name+"-ratio")
	}
}

// BenchmarkDoctor makes all checks of a file with 5,000 nodes, on each of which a driver
// runs, in turns with asking why something does not fit there. It reports the processor
// time of both, and the ratio.
func BenchmarkDoctor(b *testing.B) {
	peak, program := goBuild(b, "./peak"), goBuild(b, "../cmd/kubectl-dra")
	const nodes = 5000
	for _, shape := range []struct {
		name, target string
		// exit is doctor's exit code: a claim that no pod uses is no fault.
		exit float64
		snap *snapshot.Snapshot
	}{
		{"equal", "claim/waiting", 0, fleetWithWaitingClaim(nodes, 4*nodes)},
		{"mixed", "pod/waiting", 1, mixedWithWaitingPod(nodes)},
	} {
		b.Run(shape.name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "fleet.json")
			if err := files.Save(b.Context(), withDriver(shape.snap), path); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			var diagnoses, explains total
			for b.Loop() {
				diagnoses.add(b, shape.exit, peak, program, "doctor", "--fail-on", "Info", "--snapshot", path)
				explains.add(b, 1, peak, program, "why", shape.target, "-n", "waiting", "--snapshot", path)
			}
			rounds := float64(b.N)
			b.ReportMetric(diagnoses.CPU/rounds, "doctor-cpu-s")
			b.ReportMetric(diagnoses.PeakMiB, "doctor-MiB")
			b.ReportMetric(explains.CPU/rounds, "why-cpu-s")
			b.ReportMetric(diagnoses.CPU/explains.CPU, "cpu-ratio")
		})
	}
}

// withDriver adds a DaemonSet of a driver, and a pod of it that is ready on each node.
func withDriver(snap *snapshot.Snapshot) *snapshot.Snapshot {
	labels := map[string]string{"app": "driver"}
	ready := int32(len(snap.Nodes))
	snap.Workloads = append(snap.Workloads, &snapshot.Workload{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: snapshot.KindDaemonSet},
		ObjectMeta: metav1.ObjectMeta{Namespace: "driver", Name: "driver", UID: "driver", Annotations: map[string]string{snapshot.KubeletPluginAnnotation: fleet.Driver}},
		Selector:   &metav1.LabelSelector{MatchLabels: labels},
		Daemon:     &snapshot.DaemonStatus{Desired: ready, Ready: ready},
	})
	for _, node := range snap.Nodes {
		snap.Pods = append(snap.Pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "driver", Name: "driver-" + node.Name, UID: types.UID("driver-" + node.Name), Labels: labels,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: snapshot.KindDaemonSet, Name: "driver", UID: "driver", Controller: ptr.To(true)}},
			},
			Spec:   corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "driver", Image: "example.com/driver"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		})
	}
	snap.Sort()
	return snap
}

// total sums up several runs of a program, with the largest of their peaks.
type total struct{ usage }

func (t *total) add(b *testing.B, exit float64, peak, program string, args ...string) {
	b.Helper()
	u, out := measure(b, peak, program, args...)
	if u.Exit != exit {
		b.Fatalf("%s %v: exit code %v\n%s", program, args, u.Exit, out)
	}
	t.CPU, t.Seconds, t.PeakMiB = t.CPU+u.CPU, t.Seconds+u.Seconds, max(t.PeakMiB, u.PeakMiB)
}

// fleetWithWaitingClaim adds a claim that wants one device more than any node
// has.
func fleetWithWaitingClaim(nodes, claims int) *snapshot.Snapshot {
	snap := fleet.Fleet(nodes, 8, claims)
	snap.Claims = append(snap.Claims, waitingClaim())
	return snap
}

// mixedWithWaitingPod adds a pod that wants one large GPU more than any node has,
// and a network interface.
func mixedWithWaitingPod(nodes int) *snapshot.Snapshot {
	snap := fleet.Mixed(nodes)
	claim := waitingClaim()
	gpus := claim.Spec.Devices.Requests[0].Exactly
	gpus.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
		Expression: `device.capacity["` + fleet.Driver + `"].memory.compareTo(quantity("40Gi")) >= 0`,
	}}}
	claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourceapi.DeviceRequest{
		Name: "nic", Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: fleet.NIC, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
		},
	})
	snap.Claims = append(snap.Claims, claim)
	snap.Pods = append(snap.Pods, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "waiting", Name: "waiting", UID: "waiting-pod", CreationTimestamp: metav1.NewTime(snap.TakenAt)},
		Spec: corev1.PodSpec{
			Containers:     []corev1.Container{{Name: "main", Image: "registry.example.com/train:1", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "devices"}}}}},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "devices", ResourceClaimName: ptr.To("waiting")}},
			SchedulerName:  corev1.DefaultSchedulerName,
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	})
	return snap
}

func waitingClaim() *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "waiting", Name: "waiting", UID: "waiting"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: fleet.Class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 9,
			}}},
		}},
	}
}
