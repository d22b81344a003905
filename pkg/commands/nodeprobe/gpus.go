// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/nvidia"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// gpuFlags choose real or simulated GPUs.
type gpuFlags struct {
	library  string
	simulate string
}

func (f *gpuFlags) addLibrary(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.library, "nvml-library", "", "`PATH` of libnvidia-ml.so.1, as the node names it. (default: where the NVIDIA DRA driver looks)")
}

func (f *gpuFlags) addTo(cmd *cobra.Command) {
	f.addLibrary(cmd)
	cmd.Flags().StringVar(&f.simulate, "simulate", "",
		"Look at a simulated `MACHINE` instead: "+strings.Join(nvidia.SimulatedMachines(), ", ")+". The values are those of NVIDIA's mocks.")
	// RegisterFlagCompletionFunc only fails for duplicates.
	_ = cmd.RegisterFlagCompletionFunc("simulate", cobra.FixedCompletions(nvidia.SimulatedMachines(), cobra.ShellCompDirectiveNoFileComp))
}

// look reads the GPUs.
func (f *gpuFlags) look(ctx context.Context, host *node.Host) (*nvidia.Findings, error) {
	found, err := nvidia.Look(ctx, host, nvidia.Options{Library: f.library, Simulate: f.simulate})
	if err != nil {
		return nil, cli.Usagef("There are "+strings.Join(nvidia.SimulatedMachines(), ", ")+".", "%w", err)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return found, nil
}

func newGPUs(streams genericiooptions.IOStreams, _ *genericclioptions.ConfigFlags, flags *probeFlags) *cobra.Command {
	gpus := &gpuFlags{}
	cmd := &cobra.Command{
		Use:   "gpus",
		Short: "Show the NVIDIA GPUs of a node as NVML and sysfs report them",
		Long: `Show the NVIDIA GPUs of the node on which this runs: what NVML reports,
where it is on the PCI bus (from sysfs), its errors in the kernel log, whether
it is divided (MIG) and how it could be. What NVML lacks or refuses is shown as
such. GPUs on the bus that NVML does not know are found too.

NVML takes a build for it (make build-nvml). Other builds show what is on the
PCI bus. Nothing is changed, and no cluster is asked.

With -o wide there are all MIG profiles with their placements.

The exit code is 0 if all is in order, 1 for a problem, 2 if something is not
known.`,
		Example: `  # On a node
  kubectl dra node-probe gpus

  # In a container that has the root of the node at /host
  kubectl dra node-probe gpus --node-root /host

  # What a DGX H100 looks like
  kubectl dra node-probe gpus --simulate dgx-h100 -o wide`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := flags.output.ToPrinter(streams); err != nil {
				return err
			}
			found, err := gpus.look(cmd.Context(), flags.host())
			if err != nil {
				return err
			}
			return flags.print(streams, found, found.Checks, func(options render.Options) error {
				return writeGPUs(streams.Out, found, options)
			})
		},
	}
	gpus.addTo(cmd)
	return cmd
}

// gpuLabel is the width of the names of values.
const gpuLabel = 18

// writeGPUs describes the GPUs of a node. If they are simulated, each line says so.
func writeGPUs(w io.Writer, f *nvidia.Findings, opts render.Options) error {
	p, done := simulatedPage(w, f.Simulated, opts)
	p.Row(0, render.Cell{Text: "NVIDIA GPUs", Mark: render.Strong})
	p.valueOrReason("driver", f.DriverVersion, f.Missing, "driverVersion")
	p.valueOrReason("CUDA", f.CUDAVersion, f.Missing, "cudaVersion")
	p.valueOrReason("NVML", f.NVMLVersion, f.Missing, "nvmlVersion")
	p.valueOrReason("library", f.Library, nil)
	p.valueOrReason("clique", strings.Join(f.Cliques, ", "), nil)
	if f.IMEX != nil {
		p.valueOrReason("IMEX channels", imexText(f.IMEX), f.IMEX.Missing, "channelMajor")
	}
	for i := range f.GPUs {
		p.Blank()
		p.gpu(&f.GPUs[i])
	}
	if len(f.GPUs) == 0 && len(f.PCI) > 0 {
		p.Blank()
		p.Text(0, render.Strong, "On the PCI bus")
		for _, d := range f.PCI {
			p.Text(2, render.Plain, fmt.Sprintf("%s: device %s, kernel driver %s, root %s, NUMA node %s", d.BusID, d.Device, cmp.Or(d.Driver, "none"),
				cmp.Or(d.Root, "not known"), numberOr(d.NUMANode, "none known")))
		}
	}
	p.Blank()
	p.nodeChecks(f.Checks)
	return done()
}

// simulatedPage returns a page of which each line names the simulated machine; an ordinary
// one if it is empty. done writes it.
func simulatedPage(w io.Writer, machine string, opts render.Options) (p *page, done func() error) {
	prefix := ""
	if machine != "" {
		prefix = "simulated " + render.Escape(machine) + ": "
		if opts.Width > 0 {
			opts.Width -= len(prefix)
		}
	}
	p = newPage(opts)
	return p, func() error {
		for line := range bytes.Lines(p.Buf.Bytes()) {
			if _, err := w.Write(append([]byte(prefix), line...)); err != nil {
				return fmt.Errorf("print: %w", err)
			}
		}
		return nil
	}
}

// valueOrReason draws a line with a value, or with the reason why it is missing. The line
// is left out if there is neither.
func (p *page) valueOrReason(label, value string, gone []nvidia.Missing, fields ...string) {
	m := render.Plain
	var reasons []string
	for _, g := range gone {
		if slices.Contains(fields, g.Value) && !slices.Contains(reasons, g.Reason) {
			reasons = append(reasons, g.Reason)
		}
	}
	switch {
	case len(reasons) > 0 && value == "":
		value, m = "not reported: "+strings.Join(reasons, "; "), render.Faint
	case len(reasons) > 0:
		value += "; others not reported: " + strings.Join(reasons, "; ")
	case value == "":
		return
	}
	p.Row(2, render.Cell{Text: label, Width: gpuLabel, Mark: render.Faint}, render.Cell{Text: value, Mark: m})
}

func (p *page) gpu(g *nvidia.GPU) {
	line := func(label, value string, fields ...string) { p.valueOrReason(label, value, g.Missing, fields...) }
	p.Text(0, render.Strong, fmt.Sprintf("GPU %d: %s", g.Index, cmp.Or(g.Product, "unknown product")))
	line("UUID", g.UUID, "uuid")
	line("device node", prefixed("/dev/nvidia", numberOr(g.Minor, "")), "minor")
	line("brand", g.Brand, "brand")
	line("architecture", g.Architecture, "architecture")
	line("compute capability", g.ComputeCapability, "computeCapability")
	line("memory", memoryUse(g), "memoryBytes")
	line("PCI bus ID", g.PCIBusID, "pciBusID")
	line("PCIe root", g.PCIeRoot, "pcieRoot")
	line("NUMA node", numberOr(g.NUMANode, ""), "numaNode")
	line("virtualization", g.Virtualization, "virtualization")
	line("addressing mode", g.AddressingMode, "addressingMode")
	line("ECC", eccText(g.ECC), "ecc", "ecc.corrected", "ecc.uncorrected")
	line("SRAM errors", sramText(g.ECC), "ecc.sram")
	line("memory rows", rowsText(g.Rows), "remappedRows")
	line("XIDs", xidText(g), "xids")
	line("NVLink", nvlinkText(g.NVLinks), "nvlinks")
	line("NVLink errors", nvlinkErrorText(g.NVLinks), "nvlinks.errors")
	line("fabric", fabricText(g.Fabric), "fabric")
	line("fabric health", fabricHealthText(g.Fabric), "fabric.health")
	p.operation(g)
	line("MIG", migText(g.MIG), "mig")
	for _, d := range g.MIGDevices {
		p.valueOrReason("MIG device", fmt.Sprintf("%s at %s, GPU instance %d, compute instance %d: %s", cmp.Or(d.Profile, "no profile"),
			memorySlices(d.Placement), d.GPUInstanceID, d.ComputeInstanceID, d.UUID), d.Missing, "uuid", "profile", "profileID", "gpuInstanceID", "computeInstanceID")
	}
	line("", "", "migDevices")
	line("MIG profiles", profileNames(g.MIGProfiles), "migProfiles")
	if !p.Opts.Wide {
		return
	}
	line("serial", g.Serial, "serial")
	line("VBIOS", g.VBIOS, "vbios")
	for i := range g.MIGProfiles {
		p.valueOrReason("", profileText(&g.MIGProfiles[i]), g.MIGProfiles[i].Missing, "name", "placements")
	}
}

// memorySlices returns the place of a partition: "memory slices 4-6".
func memorySlices(at nvidia.Placement) string {
	switch {
	case at.Size <= 0:
		return "unknown memory slices"
	case at.Size == 1:
		return fmt.Sprintf("memory slice %d", at.Start)
	default:
		return fmt.Sprintf("memory slices %d-%d", at.Start, at.Start+at.Size-1)
	}
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func numberOr(n *int, otherwise string) string {
	if n == nil {
		return otherwise
	}
	return fmt.Sprint(*n)
}

func bytesText(n *uint64) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf("%s MiB", english.Thousands(*n>>20))
}

func eccText(e *nvidia.ECC) string {
	switch {
	case e == nil:
		return ""
	case !e.Current:
		return "off" + pendingText(e.Current, e.Pending)
	}
	text := "on" + pendingText(e.Current, e.Pending)
	if e.Corrected != nil {
		text += fmt.Sprintf(", %s corrected", english.Count(int(*e.Corrected), "error"))
	}
	if e.Uncorrected != nil {
		text += fmt.Sprintf(", %d uncorrected", *e.Uncorrected)
	}
	return text
}

func pendingText(current, pending bool) string {
	switch {
	case current == pending:
		return ""
	case pending:
		return " (on after a reset)"
	default:
		return " (off after a reset)"
	}
}

func rowsText(r *nvidia.RemappedRows) string {
	if r == nil {
		return ""
	}
	text := fmt.Sprintf("%d replaced after corrected errors, %d after uncorrected ones", r.Corrected, r.Uncorrected)
	if r.Pending {
		text += ", a reset is needed"
	}
	if r.Failed {
		text += ", one could not be replaced"
	}
	return text
}

func xidText(g *nvidia.GPU) string {
	if len(g.XIDs) == 0 {
		if slices.ContainsFunc(g.Missing, func(m nvidia.Missing) bool { return m.Value == "xids" }) {
			return ""
		}
		return "none in the kernel log"
	}
	var codes []string
	for _, x := range g.XIDs {
		codes = append(codes, fmt.Sprint(x.Code))
	}
	return strings.Join(codes, ", ")
}

func nvlinkText(links []nvidia.NVLink) string {
	if len(links) == 0 {
		return ""
	}
	active, unknown := 0, 0
	for _, l := range links {
		if l.Active {
			active++
		}
		if len(l.Missing) > 0 {
			unknown++
		}
	}
	text := fmt.Sprintf("%d of %s up", active, english.Count(len(links), "link"))
	if unknown > 0 {
		text += fmt.Sprintf(", the other end of %d unknown", unknown)
	}
	return text
}

func fabricText(f *nvidia.Fabric) string {
	if f == nil {
		return ""
	}
	text := f.State
	if f.Status != "" {
		text += ": " + f.Status
	}
	if f.ClusterUUID != "" {
		text += fmt.Sprintf(", cluster %s, clique %d", f.ClusterUUID, f.CliqueID)
	}
	return text
}

func migText(m *nvidia.MIG) string {
	switch {
	case m == nil:
		return ""
	case m.Current:
		return "on" + pendingText(m.Current, m.Pending)
	default:
		return "off" + pendingText(m.Current, m.Pending)
	}
}

func profileNames(list []nvidia.MIGProfile) string {
	var names []string
	for _, p := range list {
		names = append(names, fmt.Sprintf("%s (%d)", cmp.Or(p.Name, "?"), p.Instances))
	}
	return strings.Join(names, ", ")
}

func profileText(m *nvidia.MIGProfile) string {
	var places []string
	for _, at := range m.Placements {
		places = append(places, fmt.Sprintf("%d-%d", at.Start, at.Start+at.Size-1))
	}
	text := fmt.Sprintf("%s: ID %d, %s MiB, %d multiprocessors, %d copy engines, %d decoders, %d encoders, %d JPEG, %d OFA", cmp.Or(m.Name, "?"), m.ID, english.Thousands(m.MemoryMiB),
		m.Multiprocessors, m.CopyEngines, m.Decoders, m.Encoders, m.JPEGEngines, m.OFAEngines)
	if len(places) > 0 {
		text += "; memory slices " + strings.Join(places, ", ")
	}
	return text
}

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
