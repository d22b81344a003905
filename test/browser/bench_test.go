// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var fleet = flag.String("fleet", "", "benchmark the report of this snapshot, not of 5,000 nodes with 1,000 waiting pods")

// BenchmarkPage opens the report of a large cluster. It reports
//
//	ms   until the page is drawn and reacts
//	MiB  the size of the file
func BenchmarkPage(b *testing.B) {
	browser, program := started(b), built(b)
	if *fleet == "" {
		*fleet = filepath.Join(b.TempDir(), "fleet.json")
		if err := os.WriteFile(*fleet, []byte(fleetOf(5000, 1000)), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	file := written(b, program, *fleet)
	info, err := os.Stat(file)
	if err != nil {
		b.Fatal(err)
	}
	total := 0.0
	for b.Loop() {
		page := opened(b, browser, file)
		total += valueOf[float64](page, `new Promise(drawn => requestAnimationFrame(() => setTimeout(() => drawn(performance.now()))))`)
		page.quiet()
	}
	b.ReportMetric(total/float64(b.N), "ms")
	b.ReportMetric(float64(info.Size())/(1<<20), "MiB")
	b.ReportMetric(0, "ns/op")
}

// fleetOf returns a cluster whose nodes have 8 devices each, and whose pods ask for 16 on a node.
func fleetOf(nodes, pods int) string {
	devices := make([]string, 8)
	for i := range devices {
		devices[i] = fmt.Sprintf(`{"name":"gpu-%d","attributes":{"model":{"string":"Atlas-80"}}}`, i)
	}
	items := []string{`{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"gpu.example.com"},"spec":{"selectors":[{"cel":{"expression":"device.driver == \"gpu.example.com\""}}]}}`}
	add := func(format string, args ...any) { items = append(items, fmt.Sprintf(format, args...)) }
	for i := range nodes {
		name := fmt.Sprintf("gpu-%04d", i)
		add(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"labels":{"example.com/rack":"r%03d","topology.kubernetes.io/zone":"zone-%d"}},"status":{"allocatable":{"pods":"110"},"conditions":[{"type":"Ready","status":"True"}]}}`, name, i/32, i%3)
		add(`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":%q},"spec":{"driver":"gpu.example.com","nodeName":%q,"pool":{"name":%q,"generation":1,"resourceSliceCount":1},"devices":[%s]}}`, name, name, name, strings.Join(devices, ","))
	}
	for i := range pods {
		name := fmt.Sprintf("train-%d", i)
		add(`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":%q,"namespace":"research","uid":"claim-%d"},"spec":{"devices":{"requests":[{"name":"gpus","exactly":{"deviceClassName":"gpu.example.com","allocationMode":"ExactCount","count":16}}]}}}`, name, i)
		add(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"research","uid":"pod-%d"},"spec":{"schedulerName":"default-scheduler","containers":[{"name":"main","image":"example.com/train"}],"resourceClaims":[{"name":"gpus","resourceClaimName":%q}]},"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}`, name, i, name)
	}
	return `{"apiVersion":"v1","kind":"List","items":[` + strings.Join(items, ",\n") + "]}\n"
}
