// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/kubelet"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// writePods draws the kubelet's report about the devices of its pods. With -o wide it shows
// CPUs, memory and allocatable devices.
func writePods(w io.Writer, f *kubelet.Findings, opts render.Options) error {
	p := newPage(opts)
	p.Text(0, render.Strong, "Pods with devices on "+onNode(f.Node)+", by the kubelet's word ("+f.Socket+")")
	lines := [][]string{{"POD", "CONTAINER", "FROM", "DEVICES", "NUMA", "CDI"}}
	for i := range f.Pods {
		pod := &f.Pods[i]
		for j := range pod.Containers {
			lines = append(lines, containerLines(pod, &pod.Containers[j], opts.Wide)...)
		}
	}
	if len(lines) > 1 {
		p.Blank()
		p.grid(0, lines)
	}
	if opts.Wide && len(f.Allocatable) > 0 {
		p.Blank()
		p.Text(0, render.Strong, "What device plugins have")
		lines := [][]string{{"RESOURCE", "NUMA", "DEVICES"}}
		for _, r := range f.Allocatable {
			lines = append(lines, []string{r.Name, integers(r.NUMANodes), strings.Join(r.IDs, ", ")})
		}
		p.grid(2, lines)
	}
	p.nodeChecks(f.Checks)
	return p.write(w)
}

func containerLines(pod *kubelet.Pod, c *kubelet.Container, wide bool) [][]string {
	name := pod.Namespace + "/" + pod.Name
	var lines [][]string
	for _, claim := range c.Claims {
		var devices, ids []string
		for _, d := range claim.Devices {
			devices = append(devices, d.Driver+"/"+d.Pool+"/"+d.Device)
			for _, id := range d.CDIDevices {
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
		lines = append(lines, []string{name, c.Name, "claim " + claim.Name, strings.Join(devices, ", "), "", strings.Join(ids, ", ")})
	}
	for _, r := range c.Devices {
		lines = append(lines, []string{name, c.Name, r.Name, strings.Join(r.IDs, ", "), integers(r.NUMANodes), ""})
	}
	if !wide {
		return lines
	}
	if len(c.CPUs) > 0 {
		lines = append(lines, []string{name, c.Name, "CPUs", integers(c.CPUs), "", ""})
	}
	for _, m := range c.Memory {
		lines = append(lines, []string{name, c.Name, m.Type, fmt.Sprintf("%d bytes", m.Bytes), integers(m.NUMANodes), ""})
	}
	return lines
}

func integers(list []int64) string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = fmt.Sprint(n)
	}
	return strings.Join(texts, ", ")
}
