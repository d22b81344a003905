// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/explanation"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// celFlags are the flags of cel.
type celFlags struct {
	cli.DeviceFlags
	reading    *cli.ReadingFlags
	output     *cli.OutputFlags
	device     string
	files      []string
	compare    string
	fromDevice string
}

// celOptions are the parsed flags.
type celOptions struct {
	cli.DeviceFlags
	// expression is empty for the prompt, and with a device to start from.
	expression string
	compare    *string
	device     string
	fromDevice string
	files      []string
	reader     *cli.Reader
	printer    *cli.Printer
	streams    genericiooptions.IOStreams
}

func newCEL(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	f := &celFlags{reading: cli.NewReadingFlags(config), output: cli.NewOutputFlags()}
	cmd := &cobra.Command{
		Use:   "cel [EXPRESSION]",
		Short: "Evaluate a CEL expression for devices before it is in a claim",
		Long: `Evaluate a CEL expression, as in the selector of a request, for all devices, as
the scheduler does: for how many it is true, is false or fails, by driver, node
and value, part by part, and what it costs. With an error on one device,
scheduling fails on every node for a claim that considers it. What was probably
meant is evaluated, too.

With --class, --driver or --device, it is evaluated for these devices only:
selectors of a request are for the devices of its class. --file takes devices
from a file with ResourceSlices instead of a cluster.

--from-device writes expressions for devices like one of them: those of its
driver with the same values but for what differs from device to device, such as
a UUID, and where it is in a node. Each was evaluated.

Without an expression, in a terminal, there is a prompt that evaluates while you
type. Tab completes domains, names and values.

The exit code is 0 if it is true for some device, 1 if it is for none or does
not compile. With --compare it is 0 if both have the same outcome for each
device, with --from-device if there is an expression.`,
		Example: `  # On which devices is it true?
  kubectl dra cel 'device.attributes["gpu.example.com"].numa == 0'

  # As in a request of a class
  kubectl dra cel --class gpu.example.com \
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0'

  # What does it read of one device?
  kubectl dra cel --device gpu-05/gpu-0 \
    'device.attributes["gpu.example.com"].productName == "Cirrus-40"'

  # Which devices would another expression select?
  kubectl dra cel 'device.driver == "gpu.example.com"' \
    --compare '"gpu.example.com" in device.attributes'

  # An expression for devices like this one
  kubectl dra cel --from-device gpu-01/gpu-0

  # For devices that no cluster has, from a file with ResourceSlices
  kubectl dra cel --file preview.yaml 'device.driver == "gpu.nvidia.com"'

  # In a script
  kubectl dra cel 'device.driver == "nic.example.com"' -o \
    jsonpath='{.outcomes}'`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.toOptions(cmd, args, streams)
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	f.AddTo(cmd.Flags())
	cmd.Flags().StringVar(&f.device, "device", "", "Only this `DEVICE`: DEVICE, POOL/DEVICE or DRIVER/POOL/DEVICE.")
	cmd.Flags().StringArrayVar(&f.files, "file", nil, "Take the devices from the ResourceSlices in this `FILE`; - is standard input. Can be repeated.")
	cmd.Flags().StringVar(&f.compare, "compare", "", "Show the devices for which this other `EXPRESSION` has another outcome.")
	cmd.Flags().StringVar(&f.fromDevice, "from-device", "", "Write expressions that select devices like this `DEVICE`, and no others.")
	f.reading.AddTo(cmd)
	f.output.AddTo(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	// RegisterFlagCompletionFunc only fails for duplicates.
	for _, name := range []string{"device", "from-device"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cli.CompleteWith(f.reading, cli.ProposeDevices))
	}
	_ = cmd.RegisterFlagCompletionFunc("compare", cobra.NoFileCompletions)
	cli.CompleteFlags(f.reading, cmd)
	return cmd
}

func (f *celFlags) toOptions(cmd *cobra.Command, args []string, streams genericiooptions.IOStreams) (*celOptions, error) {
	o := &celOptions{DeviceFlags: f.DeviceFlags, device: f.device, fromDevice: f.fromDevice, files: f.files, streams: streams}
	switch {
	case len(args) > 1:
		return nil, cli.Usagef("Put the expression in single quotes.", "read the expression: expected one word, found %d", len(args))
	case len(args) == 1 && strings.TrimSpace(args[0]) == "":
		return nil, cli.Usagef("List what there is to select by: kubectl dra attributes -o wide", "read the expression: it is empty")
	case len(args) == 1 && f.fromDevice != "":
		return nil, cli.Usagef("Leave one of them out.", "an expression and --from-device: it is --from-device that writes one")
	case len(args) == 1:
		o.expression = args[0]
	case f.fromDevice == "" && !isInteractive(streams):
		return nil, cli.Usagef("Write kubectl dra cel 'EXPRESSION', or run it in a terminal for a prompt.", "there is no expression, and no terminal to type one")
	}
	if cmd.Flags().Changed("compare") {
		if o.compare = &f.compare; o.expression == "" {
			return nil, cli.Usagef("Write the expression that it is compared with.", "--compare: there is no expression")
		}
	}
	if f.device != "" && f.fromDevice != "" {
		return nil, cli.Usagef("Leave one of them out.", "--device and --from-device: a single device is always like itself")
	}
	if err := cli.OnceStdin(f.files, f.reading.Paths); err != nil {
		return nil, err
	}
	var err error
	if o.reader, err = f.reading.ToReader(cmd, streams); err != nil {
		return nil, err
	}
	if o.printer, err = f.output.ToPrinter(streams); err != nil {
		return nil, err
	}
	if o.printer.Names {
		return nil, cli.Usagef("Print the devices with -o jsonpath='{.matching}', or with: kubectl dra devices --where EXPRESSION -o name", "-o name: an evaluation has no name")
	}
	if o.printer.Machine != nil && o.expression == "" && o.fromDevice == "" {
		return nil, cli.Usagef("Write the expression: kubectl dra cel 'EXPRESSION' -o json", "--output: the prompt is for people")
	}
	return o, nil
}

// isInteractive reports whether input and output are terminals.
func isInteractive(streams genericiooptions.IOStreams) bool {
	_, isTerminal := cli.Terminal(streams.Out)
	_, canType := cli.Terminal(streams.In)
	return isTerminal && canType && os.Getenv("TERM") != "dumb"
}

func (o *celOptions) run(ctx context.Context) error {
	from, err := o.read(ctx)
	if err != nil {
		return err
	}
	gaps := cli.GapsIn(from.Snap, o.Asks(), "", true)
	if len(gaps) > 0 {
		return &cli.GapError{Doing: "evaluate the expression", Gaps: gaps, Live: o.reader.Live()}
	}
	c := cluster.New(from.Snap)
	chosen, notes, err := o.choose(ctx, from, c)
	if err != nil {
		return err
	}
	devices := inventory.NewDeviceEvaluator(c, chosen, from.Snap.Class(o.Class))
	if o.expression == "" && o.fromDevice == "" {
		return o.prompt(ctx, devices, chosen, notes)
	}
	found, err := o.evaluate(ctx, devices, chosen, from)
	if err != nil {
		return err
	}
	found.DeviceClass, found.Driver, found.Device = o.Class, o.Driver, o.device
	if err := o.print(found, notes); err != nil {
		return err
	}
	return o.outcome(found)
}

// read reads the devices from the cluster or the file.
func (o *celOptions) read(ctx context.Context) (*cli.Source, error) {
	if len(o.files) == 0 {
		return o.reader.Read(ctx, cli.Scope{Only: o.Reads()})
	}
	files, err := files.Preview(ctx, o.files, o.reader.Options)
	if err != nil {
		return nil, err
	}
	if o.Class == "" && o.reader.Live() {
		return &cli.Source{Snap: files}, nil
	}
	from, err := o.reader.Read(ctx, cli.Scope{Only: []string{snapshot.ResourceClasses, snapshot.ResourceMetrics}})
	if err != nil {
		return nil, err
	}
	snap := *from.Snap
	snap.Slices = files.Slices
	snap.Gaps = slices.DeleteFunc(slices.Clone(snap.Gaps), func(g snapshot.Gap) bool { return g.Resource == snapshot.ResourceSlices })
	from.Snap = &snap
	return from, nil
}

// choose returns the devices that the flags choose, with notes on the choice.
func (o *celOptions) choose(ctx context.Context, from *cli.Source, c *cluster.Cluster) ([]*cluster.Device, []string, error) {
	wanted, err := o.Choice(from)
	if err != nil {
		return nil, nil, err
	}
	chosen, failures, err := inventory.New(c).ChosenDevices(ctx, wanted)
	if err != nil {
		return nil, nil, err
	}
	notes := append(cli.GapNotes(from.Snap, nil), cli.FailureNotes(failures)...)
	if o.device == "" {
		return chosen, notes, nil
	}
	named := devicesNamed(chosen, o.device)
	if len(named) == 0 {
		return nil, nil, o.noDevice(o.device, from)
	}
	return named, notes, nil
}

// noDevice returns the error for a device that does not exist or was not chosen.
func (o *celOptions) noDevice(name string, from *cli.Source) error {
	where := from.Snap.Source
	if len(o.files) > 0 {
		where = strings.Join(o.files, ", ")
	}
	for _, chosen := range []struct{ flag, value string }{{"--class", o.Class}, {"--driver", o.Driver}} {
		if chosen.value != "" {
			where += " (" + chosen.flag + " " + chosen.value + ")"
		}
	}
	return cli.NotFound("device", name, where+cli.Near(from.Snap, "", "device", name))
}

// devicesNamed returns the devices of a name, which may lack the pool and the driver.
func devicesNamed(list []*cluster.Device, name string) []*cluster.Device {
	var found []*cluster.Device
	for _, d := range list {
		if name == d.ID.Device || name == d.ID.Pool+"/"+d.ID.Device || name == d.ID.String() {
			found = append(found, d)
		}
	}
	return found
}

func (o *celOptions) evaluate(ctx context.Context, devices *inventory.DeviceEvaluator, chosen []*cluster.Device, from *cli.Source) (*api.Evaluation, error) {
	if o.fromDevice != "" {
		full := cli.FullNames[*cluster.Device]{Of: func(d *cluster.Device) string { return d.ID.String() }, There: "as", Choose: "Write it as POOL/DEVICE or DRIVER/POOL/DEVICE."}
		device, err := cli.OnlyOne("device", o.fromDevice, full, devicesNamed(chosen, o.fromDevice))
		if err != nil {
			return nil, err
		}
		if device == nil {
			return nil, o.noDevice(o.fromDevice, from)
		}
		return devices.Like(ctx, *device)
	}
	found, err := devices.Evaluate(ctx, o.expression)
	if err != nil || o.compare == nil {
		return found, err
	}
	return found, devices.Compare(ctx, found, *o.compare)
}

func (o *celOptions) print(found *api.Evaluation, notes []string) error {
	if o.printer.Machine != nil {
		if err := o.printer.Machine.PrintObj(found, o.streams.Out); err != nil {
			return fmt.Errorf("print evaluation: %w", err)
		}
	} else if err := explanation.Evaluation(o.streams.Out, found, o.printer.Text); err != nil {
		return err
	}
	return cli.PrintNotes(o.streams, notes...)
}

// outcome returns the exit code: whether the expression is true for the devices that were
// asked about.
func (o *celOptions) outcome(found *api.Evaluation) error {
	if text := inventory.UnendingText(found.Failures); text != "" {
		return &cli.UnendingError{Doing: "evaluate the expression", Reason: text}
	}
	yes := found.Outcomes.True > 0
	switch {
	case o.compare != nil:
		yes = found.Problem == nil && found.Comparison.Problem == nil && found.Comparison.Different == 0
	case o.fromDevice != "":
		yes = len(found.Like.Selectors) > 0
	}
	if !yes {
		return &cli.OutcomeError{Code: cli.ExitDoesNotFit}
	}
	return nil
}

// prompt evaluates typed expressions until the user quits.
func (o *celOptions) prompt(ctx context.Context, devices *inventory.DeviceEvaluator, chosen []*cluster.Device, notes []string) error {
	if err := cli.PrintNotes(o.streams, notes...); err != nil {
		return err
	}
	about := english.Count(len(chosen), "device")
	for _, of := range []struct{ what, name string }{{" of class ", o.Class}, {" of driver ", o.Driver}, {" named ", o.device}} {
		if of.name != "" {
			about += of.what + of.name
		}
	}
	return runPrompt(ctx, promptOptions{
		Devices: devices, Words: inventory.NewExpressionWords(chosen), About: render.Escape(about), Color: o.printer.Text.Color, Saved: savedOfUser(),
		Report: func(e *api.Evaluation, width int) string {
			text := o.printer.Text
			text.Width = width
			e.DeviceClass, e.Driver, e.Device = o.Class, o.Driver, o.device
			var report strings.Builder
			// Writing to memory does not fail.
			_ = explanation.Evaluation(&report, e, text)
			return report.String()
		},
	}, o.streams.In, o.streams.Out)
}
