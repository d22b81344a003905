// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// benchInventory returns an inventory of 5,000 nodes with 40,000 devices, half of them
// allocated, and with a class for each of some expressions.
func benchInventory(b *testing.B) *Inventory {
	b.Helper()
	snap := fleet.Fleet(5000, 8, 20000)
	for i, expression := range benchExpressions() {
		snap.Classes = append(snap.Classes, &resourceapi.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("class-%d", i)},
			Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{
				{CEL: &resourceapi.CELDeviceSelector{Expression: `device.driver == "gpu.example.com"`}},
				{CEL: &resourceapi.CELDeviceSelector{Expression: expression}},
			}},
		})
	}
	c := cluster.New(snap)
	return New(c)
}

// benchExpressions returns expressions with a value of many devices, of several, of each
// device alone, and of no device.
func benchExpressions() []string {
	return []string{
		`device.attributes["gpu.example.com"].productName.startsWith("NVIDIA A100")`,
		`device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0 && device.attributes["gpu.example.com"].numa == 0`,
		`device.attributes["gpu.example.com"].uuid.endsWith("7")`,
		`device.attributes["gpu.example.com"].missing == "x"`,
	}
}

func BenchmarkClasses(b *testing.B) {
	v := benchInventory(b)
	for b.Loop() {
		classes, err := v.Classes(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if len(classes) != len(v.cluster.Snapshot.Classes) || classes[0].Devices != 40000 {
			b.Fatalf("got %+v", classes)
		}
	}
}

// BenchmarkChoose does the work of devices --where.
func BenchmarkChoose(b *testing.B) {
	v := benchInventory(b)
	for i, expression := range benchExpressions() {
		b.Run([]string{"shared", "several", "own", "missing"}[i], func(b *testing.B) {
			for b.Loop() {
				chosen, err := choose(b.Context(), v.cluster, v.cluster.Gates.Selectors(), []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}})
				if err != nil {
					b.Fatal(err)
				}
				failing := 0
				for i := range chosen.failures {
					failing += chosen.failures[i].Count
				}
				b.ReportMetric(float64(len(chosen.devices)), "matching")
				b.ReportMetric(float64(failing), "failing")
			}
		})
	}
}
