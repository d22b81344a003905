// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/nvidia"
)

// shownProcesses is how many processes of a GPU are shown without -o wide.
const shownProcesses = 8

// operation draws the current state of a GPU.
func (p *page) operation(g *nvidia.GPU) {
	line := func(label, value string, fields ...string) { p.valueOrReason(label, value, g.Missing, fields...) }
	o := &g.Operation
	line("compute mode", o.ComputeMode, "computeMode")
	line("temperature", celsiusText(o.TemperatureCelsius), "temperatureCelsius")
	line("slowdown", strings.Join(o.Slowdowns, ", "), "slowdowns")
	line("processes", "", "processes")
	for i := range o.Processes {
		if i == shownProcesses && !p.Opts.Wide && len(o.Processes) > shownProcesses+1 {
			line("process", fmt.Sprintf("and %d more (-o wide)", len(o.Processes)-i))
			break
		}
		line("process", processText(&o.Processes[i]))
	}
}

func celsiusText(degrees *int) string {
	if degrees == nil {
		return ""
	}
	return fmt.Sprintf("%d °C", *degrees)
}

// processText returns a process in one line: its name, its pod, and its use.
func processText(process *nvidia.Process) string {
	text := fmt.Sprintf("%d (%s), %s", process.PID, cmp.Or(process.Name, "name unknown"), process.Kind)
	if process.UsedMemoryBytes != nil {
		text += ", " + bytesText(process.UsedMemoryBytes)
	}
	if process.GPUInstanceID != nil {
		text += fmt.Sprintf(", GPU instance %d, compute instance %d", *process.GPUInstanceID, *process.ComputeInstanceID)
	}
	switch {
	case process.PodUID != "":
		text += ", pod with UID " + process.PodUID
	case process.Name != "":
		text += ", of no pod"
	}
	return text
}

// memoryUse returns the memory, and the used part of it.
func memoryUse(g *nvidia.GPU) string {
	text := bytesText(g.MemoryBytes)
	if used := g.Operation.UsedMemoryBytes; text != "" && used != nil {
		text += ", " + bytesText(used) + " in use"
	}
	return text
}

// imexText returns the node's support for ComputeDomains.
func imexText(imex *nvidia.IMEX) string {
	switch {
	case imex.ChannelMajor == nil && len(imex.Missing) > 0:
		return ""
	case imex.ChannelMajor == nil:
		return "none in the kernel"
	default:
		return fmt.Sprintf("major number %d, %d on the node", *imex.ChannelMajor, imex.Channels)
	}
}

func sramText(e *nvidia.ECC) string {
	if e == nil || e.SRAM == nil {
		return ""
	}
	s := e.SRAM
	text := fmt.Sprintf("%d corrected, %d uncorrected since the driver was loaded; %d and %d in all", s.Corrected, s.Uncorrected, s.AggregateCorrected, s.AggregateUncorrected)
	if s.ThresholdExceeded {
		return text + ", above the threshold"
	}
	return text + ", below the threshold"
}

// nvlinkErrorText sums up the counters of all links.
func nvlinkErrorText(links []nvidia.NVLink) string {
	var sums [4]uint64
	var known [4]bool
	for i := range links {
		e := links[i].Errors
		if e == nil {
			continue
		}
		for n, counter := range []*uint64{e.Replay, e.Recovery, e.CRCFlit, e.CRCData} {
			if counter != nil {
				sums[n], known[n] = sums[n]+*counter, true
			}
		}
	}
	var texts []string
	for n, name := range []string{"replays", "recoveries", "CRC errors of flits", "CRC errors of data"} {
		if known[n] {
			texts = append(texts, fmt.Sprintf("%d %s", sums[n], name))
		}
	}
	return strings.Join(texts, ", ")
}

// fabricHealthText returns the values that the fabric supports.
func fabricHealthText(f *nvidia.Fabric) string {
	if f == nil || f.Health == nil {
		return ""
	}
	h := f.Health
	texts := []string{cmp.Or(h.Summary, "no summary")}
	for _, each := range []struct {
		name  string
		value *bool
	}{
		{"degraded bandwidth", h.DegradedBandwidth},
		{"route recovery", h.RouteRecovery},
		{"route unhealthy", h.RouteUnhealthy},
		{"access timeout recovery", h.AccessTimeoutRecovery},
	} {
		if each.value != nil {
			texts = append(texts, each.name+" "+map[bool]string{true: "yes", false: "no"}[*each.value])
		}
	}
	if h.IncorrectConfiguration != "" {
		texts = append(texts, "incorrect configuration "+h.IncorrectConfiguration)
	}
	return fmt.Sprintf("%s (mask %#x)", strings.Join(texts, ", "), h.Mask)
}
