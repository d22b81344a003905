// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/nvidia"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// splitsFrom is the release from which on shared counters have slices of their own, so that
// the driver distributes its devices differently.
const splitsFrom = "1.35.0"

// previewFlags are the settings of the driver.
type previewFlags struct {
	gpus   gpuFlags
	gates  map[string]string
	shares string
	diff   bool
}

func newPreview(streams genericiooptions.IOStreams, _ *genericclioptions.ConfigFlags, flags *probeFlags) *cobra.Command {
	preview := &previewFlags{}
	cmd := &cobra.Command{
		Use:   "preview",
		Short: "Show the ResourceSlices that the NVIDIA DRA driver would publish",
		Long: `Show the ResourceSlices that the NVIDIA DRA driver would publish for the node
on which this runs: its GPUs, the MIG devices that there are or, with the
driver's feature gate DynamicMIG, all that could be, with shared counters.
Names, attributes and capacities are those of the driver's source,
` + nvidia.DriverSource + ` (` + nvidia.DriverVersion + `).

-o yaml can be applied, and 'kubectl dra why --with-preview' shows what would
fit with it. With --diff, the preview is held against what the driver has
published for the node, device by device. Taints are left out, since the driver
adds them while it runs.

How the slices are cut depends on the version of Kubernetes:
--kubernetes-version, or that of the cluster or snapshot for --diff, or the
newest one.

The exit code is 0, with --diff 1 if there is a difference, and 2 if that, or
what the GPUs are, is not known. It is 1 too if the driver would not come up.`,
		Example: `  # What would the driver publish for this node?
  kubectl dra node-probe preview

  # Has it done so?
  kubectl dra node-probe preview --diff

  # Would a claim fit if the driver came up here?
  kubectl dra node-probe preview -o yaml | \
    kubectl dra why -f train.yaml --with-preview -

  # Slices of a DGX H100 with MIG devices made on demand, to try things out with
  kubectl dra node-probe preview --simulate dgx-h100 --node-name dgx-0 \
    --driver-feature-gates DynamicMIG=true -o yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return preview.run(cmd, streams, flags)
		},
	}
	preview.gpus.addTo(cmd)
	cmd.Flags().StringToStringVar(&preview.gates, "driver-feature-gates", nil, "Feature `GATES` of the driver, a list like DynamicMIG=true.")
	cmd.Flags().StringVar(&preview.shares, "consumable-shares", "", "The driver's option of this name, for its gate ConsumableShares: disabled, memory, unlimited or a `NUMBER`.")
	cmd.Flags().BoolVar(&preview.diff, "diff", false, "Compare with what is published for the node, in the cluster or the snapshot.")
	return cmd
}

func (f *previewFlags) run(cmd *cobra.Command, streams genericiooptions.IOStreams, flags *probeFlags) error {
	printer, err := flags.output.ToPrinter(streams)
	if err != nil {
		return err
	}
	reader, err := flags.reading.ToReader(cmd, streams)
	if err != nil {
		return err
	}
	if printer.Names && f.diff {
		return cli.Usagef("Allowed are json, yaml and templates.", "-o name: differences have no name")
	}
	settings, err := f.settings(flags.name)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	release := reader.Options.KubernetesVersion
	var snap *snapshot.Snapshot
	if f.diff {
		from, err := reader.Read(ctx, cli.Scope{AllNamespaces: true, Only: []string{snapshot.ResourceSlices}})
		if err != nil {
			return err
		}
		snap, release = from.Snap, cmp.Or(release, from.Snap.ServerVersion)
	}
	settings.Split = splits(release)
	found, err := f.gpus.look(ctx, flags.host())
	if err != nil {
		return err
	}
	if len(found.GPUs) == 0 {
		if code := checksCode(found.Checks); code != cli.ExitFits {
			return previewFailed(streams, printer.Text, found, code)
		}
	}
	list, err := nvidia.Preview(found, *settings)
	var cannot *nvidia.CannotStartError
	if errors.As(err, &cannot) {
		found.Checks = append(found.Checks, node.Bad("gpus/preview", "", "%v", cannot))
		return previewFailed(streams, printer.Text, found, cli.ExitDoesNotFit)
	}
	if err != nil {
		return err
	}
	if f.diff {
		return f.compare(streams, printer, nvidia.Compare(snap, found, *settings, list))
	}
	return f.show(streams, printer, found, settings, list)
}

// settings returns the settings of the driver.
func (f *previewFlags) settings(name string) (*nvidia.Settings, error) {
	gates := map[string]bool{}
	for _, gate := range slices.Sorted(maps.Keys(f.gates)) {
		on, err := strconv.ParseBool(f.gates[gate])
		if err != nil {
			return nil, cli.Usagef("Write it like DynamicMIG=true.", "read --driver-feature-gates: %s=%s is neither true nor false", gate, f.gates[gate])
		}
		gates[gate] = on
	}
	if name == "" {
		name = f.gpus.simulate
	}
	if name == "" {
		// As the kubelet does.
		host, err := os.Hostname()
		if err != nil {
			return nil, cli.Usagef("Give it with --node-name.", "find out the name of the node: %w", err)
		}
		name = strings.ToLower(strings.TrimSpace(host))
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return nil, cli.Usagef("Give it with --node-name.", "%q is not a valid node name: %s", name, problems[0])
	}
	settings := &nvidia.Settings{Node: name}
	if err := settings.Configure(gates, f.shares); err != nil {
		return nil, cli.Usagef("See --driver-feature-gates and --consumable-shares.", "%w", err)
	}
	return settings, nil
}

// splits reports whether a release of Kubernetes wants shared counters in slices of their
// own; an unknown release counts as new.
func splits(release string) bool {
	parsed, err := version.ParseGeneric(release)
	return err != nil || parsed.AtLeast(version.MustParseGeneric(splitsFrom))
}

func checksCode(checks []node.Check) int {
	switch node.Worst(checks) {
	case node.Problem:
		return cli.ExitDoesNotFit
	case node.Unknown:
		return cli.ExitUndetermined
	case node.OK:
		return cli.ExitFits
	default:
		return cli.ExitUndetermined
	}
}

// previewFailed says why there is no preview. It prints to standard error, since nothing
// else could be applied.
func previewFailed(streams genericiooptions.IOStreams, options render.Options, found *nvidia.Findings, code int) error {
	options.Color = false
	var bad []node.Check
	for _, check := range found.Checks {
		if check.State != node.OK {
			bad = append(bad, check)
		}
	}
	if err := writeChecks(streams.ErrOut, bad, options); err != nil {
		return err
	}
	return &cli.OutcomeError{Code: code}
}

func (f *previewFlags) compare(streams genericiooptions.IOStreams, printer *cli.Printer, c *nvidia.Comparison) error {
	var err error
	if printer.Machine != nil {
		err = printer.Machine.PrintObj(c, streams.Out)
	} else {
		err = writeComparison(streams.Out, c, printer.Text)
	}
	switch {
	case err != nil:
		return fmt.Errorf("print comparison: %w", err)
	case c.Unknown != "":
		return &cli.OutcomeError{Code: cli.ExitUndetermined}
	case len(c.Differences) > 0:
		return &cli.OutcomeError{Code: cli.ExitDoesNotFit}
	default:
		return nil
	}
}

func (f *previewFlags) show(streams genericiooptions.IOStreams, printer *cli.Printer, found *nvidia.Findings, settings *nvidia.Settings, list []*resourceapi.ResourceSlice) error {
	if printer.Names {
		for _, slice := range list {
			if err := printer.Machine.PrintObj(slice, streams.Out); err != nil {
				return fmt.Errorf("print slices: %w", err)
			}
		}
		return nil
	}
	if printer.Machine != nil {
		all := &resourceapi.ResourceSliceList{TypeMeta: metav1.TypeMeta{APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: "ResourceSliceList"}}
		for _, slice := range list {
			all.Items = append(all.Items, *slice)
		}
		if err := printer.Machine.PrintObj(all, streams.Out); err != nil {
			return fmt.Errorf("print slices: %w", err)
		}
		return nil
	}
	notes := []string{
		fmt.Sprintf("As by %s (%s), for node %s", nvidia.DriverSource, nvidia.DriverVersion, settings.Node),
		fmt.Sprintf("Assumed: feature gates of the driver DynamicMIG=%t, DRAListTypeAttributes=%t; --consumable-shares=%s; Kubernetes %s",
			settings.DynamicMIG, settings.ListAttributes, settings.Shares, map[bool]string{true: "1.35 or later", false: "1.34"}[settings.Split]),
		"The driver's chart also installs the DeviceClasses " + strings.Join(nvidia.Classes(), ", "),
	}
	return writePreview(streams.Out, list, found.Simulated, notes, printer.Text)
}

// writePreview writes the ResourceSlices that a driver would publish, a line for each
// device; wide ones have all attributes and capacities. notes are lines about their source.
func writePreview(w io.Writer, list []*resourceapi.ResourceSlice, machine string, notes []string, opts render.Options) error {
	p, done := simulatedPage(w, machine, opts)
	for _, note := range notes {
		p.Text(0, render.Faint, note)
	}
	for _, s := range list {
		p.Blank()
		p.Text(0, render.Strong, fmt.Sprintf("ResourceSlice %s: %s, %s", s.Name, english.Count(len(s.Spec.Devices), "device"), english.Count(len(s.Spec.SharedCounters), "counter set")))
		var names, kinds, memory []string
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			names, kinds, memory = append(names, d.Name), append(kinds, deviceKind(d)), append(memory, memoryText(d))
		}
		name, kind, size := render.Widest(48, names...), render.Widest(48, kinds...), render.Widest(20, memory...)
		for i := range s.Spec.Devices {
			p.Row(2, render.Cell{Text: names[i], Width: name}, render.Cell{Text: kinds[i], Width: kind}, render.Cell{Text: memory[i], Width: size, Right: true}, render.Cell{Text: consumedText(&s.Spec.Devices[i])})
			if opts.Wide {
				p.deviceValues(&s.Spec.Devices[i])
			}
		}
		for _, set := range s.Spec.SharedCounters {
			p.Text(2, render.Plain, set.Name+": "+strings.Join(counterValues(set.Counters), ", "))
		}
	}
	return done()
}

func deviceKind(d *resourceapi.Device) string {
	for _, name := range []resourceapi.QualifiedName{"profile", "productName"} {
		if v := d.Attributes[name].StringValue; v != nil {
			return *v
		}
	}
	return ""
}

func memoryText(d *resourceapi.Device) string {
	memory, ok := d.Capacity["memory"]
	if !ok {
		return "memory unknown"
	}
	return inventory.QuantityText(memory.Value.String())
}

func consumedText(d *resourceapi.Device) string {
	var sets []string
	for _, c := range d.ConsumesCounters {
		sets = append(sets, "of "+c.CounterSet)
	}
	if d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations {
		sets = append(sets, "shared")
	}
	return strings.Join(sets, ", ")
}

func (p *page) deviceValues(d *resourceapi.Device) {
	for _, name := range slices.SortedFunc(maps.Keys(d.Attributes), cmp.Compare) {
		p.Text(6, render.Faint, fmt.Sprintf("%s: %s", name, nvidia.AttributeText(d.Attributes[name])))
	}
	for _, name := range slices.SortedFunc(maps.Keys(d.Capacity), cmp.Compare) {
		capacity := d.Capacity[name]
		p.Text(6, render.Faint, fmt.Sprintf("capacity %s: %s", name, inventory.QuantityText(capacity.Value.String())))
	}
	for _, c := range d.ConsumesCounters {
		p.Text(6, render.Faint, fmt.Sprintf("counters of %s: %s", c.CounterSet, strings.Join(counterValues(c.Counters), ", ")))
	}
}

func counterValues(counters map[string]resourceapi.Counter) []string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		value := counters[name].Value
		texts = append(texts, name+"="+inventory.QuantityText(value.String()))
	}
	return texts
}

// writeComparison writes the difference between published slices and a preview: lines with
// a minus are published, lines with a plus would be.
func writeComparison(w io.Writer, c *nvidia.Comparison, opts render.Options) error {
	p, done := simulatedPage(w, c.Simulated, opts)
	if c.Unknown != "" {
		p.Text(0, render.Unsure, "Nothing can be compared: "+c.Unknown)
		return done()
	}
	if len(c.Differences) > 0 {
		p.Text(0, render.Bad, fmt.Sprintf("--- published by %s in pool %s", c.Driver, c.Pool))
		p.Text(0, render.Good, "+++ preview")
		for i := range c.Differences {
			p.difference(&c.Differences[i])
		}
		p.Blank()
	}
	if o := c.OtherSettings; o != nil {
		p.Text(0, render.Strong, otherSettingsText(o))
	}
	p.Text(0, render.Plain, fmt.Sprintf("%s published, %s in the preview, %d of them equal", english.Count(c.Published, "device"), english.Count(c.Previewed, "device"), c.Equal))
	return done()
}

// otherSettingsText names settings that explain differences, as flags.
func otherSettingsText(o *nvidia.OtherSettings) string {
	var flags []string
	if len(o.FeatureGates) > 0 {
		flags = append(flags, "--driver-feature-gates "+strings.Join(o.FeatureGates, ","))
	}
	if o.ConsumableShares != "" {
		flags = append(flags, "--consumable-shares "+o.ConsumableShares)
	}
	left := fmt.Sprintf("%d of %s left", o.Left, english.Count(o.Values, "different value"))
	if o.Left == 0 {
		left = "nothing differs"
	}
	return fmt.Sprintf("The driver may be run with other settings: with %s, %s", strings.Join(flags, " "), left)
}

func (p *page) difference(d *nvidia.Difference) {
	name := "device " + d.Device
	if d.CounterSet != "" {
		name = "counter set " + d.CounterSet
	}
	switch d.Change {
	case nvidia.OnlyPublished:
		p.Text(0, render.Bad, "-"+name)
	case nvidia.OnlyPreviewed:
		p.Text(0, render.Good, "+"+name)
	case nvidia.Changed:
		p.Row(0, render.Cell{Text: name, Mark: render.Strong})
		for _, f := range d.Fields {
			if f.Published != "" {
				p.Text(0, render.Bad, "-  "+f.Path+": "+f.Published)
			}
			if f.Previewed != "" {
				p.Text(0, render.Good, "+  "+f.Path+": "+f.Previewed)
			}
		}
	}
}

// writeChecks writes checks alone.
func writeChecks(w io.Writer, checks []node.Check, opts render.Options) error {
	p, done := simulatedPage(w, "", opts)
	p.nodeChecks(checks)
	return done()
}
