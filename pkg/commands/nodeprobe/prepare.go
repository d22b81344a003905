// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/cdi"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// orderFlags are the flags of prepare and unprepare.
type orderFlags struct {
	*probeFlags
	streams genericiooptions.IOStreams
	config  *genericclioptions.ConfigFlags
	driver  string
	uid     string
	dryRun  string
	timeout time.Duration
	cleanup bool
	twice   bool
	force   bool
}

func newPrepare(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags, probe *probeFlags) *cobra.Command {
	flags := &orderFlags{probeFlags: probe, streams: streams, config: config}
	cmd := &cobra.Command{
		Use:   "prepare CLAIM",
		Short: "Have the drivers of this node prepare a claim. Changes the node",
		Long: `Have the drivers of this node prepare a claim, by the call that the kubelet
makes before it starts a pod, and show the request, the reply, the CDI names in
it, what they do to a container, and whether the node has the device files.

This changes the node: the drivers set up devices and write CDI specs, and the
kubelet does not know of it. --cleanup takes it back, also after Ctrl-C;
without it run 'kubectl dra node-probe unprepare CLAIM'. --dry-run=client only
shows what would be sent to whom.

The claim must be in the cluster or the snapshot, allocated to this node, and
not reserved for a pod; everything else needs --force, and is refused with what
may follow from it.`,
		Example: `  # Prepare a claim, look at the reply, and take it back
  kubectl dra node-probe prepare train-gpus -n ml --cleanup

  # Is the driver idempotent, as the kubelet wants it to be?
  kubectl dra node-probe prepare train-gpus -n ml --twice --cleanup

  # A driver in development, without a cluster
  kubectl dra node-probe prepare test --claim-uid \
    0b5e9a2c-3c55-4b9f-9d3b-5f0b8d7c1a11 --driver gpu.example.com --force \
    --cleanup`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.run(cmd, driver.PrepareOperation, args[0])
		},
	}
	cmd.Flags().BoolVar(&flags.cleanup, "cleanup", false, "Unprepare the claim afterwards, also if that is interrupted or fails halfway.")
	flags.add(cmd)
	return cmd
}

func newUnprepare(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags, probe *probeFlags) *cobra.Command {
	flags := &orderFlags{probeFlags: probe, streams: streams, config: config}
	cmd := &cobra.Command{
		Use:   "unprepare CLAIM",
		Short: "Have the drivers of this node unprepare a claim. Changes the node",
		Long: `Have the drivers of this node take back what they did to prepare a claim, by
the call that the kubelet makes after a pod has ended.

This changes the node. The kubelet does not know of it: a pod that uses the
claim loses its devices without notice. A claim that is reserved for a pod,
that is not allocated to this node or that is not in the cluster needs --force.`,
		Example: `  # After 'node-probe prepare' without --cleanup
  kubectl dra node-probe unprepare train-gpus -n ml

  # What is left over from a claim that is gone
  kubectl dra node-probe unprepare train-gpus -n ml --claim-uid \
    0b5e9a2c-3c55-4b9f-9d3b-5f0b8d7c1a11 --driver gpu.example.com --force`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.run(cmd, driver.UnprepareOperation, args[0])
		},
	}
	flags.add(cmd)
	return cmd
}

func (f *orderFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.driver, "driver", "", "Call only this `DRIVER`. (default: all that the claim has devices of)")
	flags.StringVar(&f.uid, "claim-uid", "", "`UID` of the claim, for one that is not in the cluster; needs --driver and --force.")
	flags.DurationVar(&f.timeout, "timeout", driver.DefaultCallTimeout, "How long a driver may take for one call.")
	flags.BoolVar(&f.twice, "twice", false, "Make each call twice: the second one must bring the same.")
	flags.BoolVar(&f.force, "force", false, "Do it although something speaks against it.")
	flags.StringVar(&f.dryRun, "dry-run", cli.DryRunNone, "client: only show what would be sent; none: do it.")
}

func (f *orderFlags) run(cmd *cobra.Command, operation driver.Operation, name string) error {
	if f.dryRun != cli.DryRunNone && f.dryRun != cli.DryRunClient {
		return cli.NotAllowed("dry-run", f.dryRun, []string{cli.DryRunNone, cli.DryRunClient})
	}
	if err := checkTimeout(f.timeout); err != nil {
		return err
	}
	if _, err := f.output.ToPrinter(f.streams); err != nil {
		return err
	}
	snap, err := f.cluster(cmd, f.streams)
	if err != nil {
		return err
	}
	host := f.host()
	order, err := f.order(snap, operation, name)
	if err != nil {
		return err
	}
	var here driver.Place
	if around := host.In(snap); around != nil {
		here.Node = around.Node
	}
	// Without it, the node is not checked.
	here.BootID, _ = host.BootID()
	refusals := order.Refuse(snap, here)
	if len(refusals) > 0 && !f.force {
		consequences := make([]string, 0, len(refusals))
		for _, r := range refusals {
			consequences = append(consequences, r.Consequence)
		}
		return cli.Usagef("With --force it is done all the same. What may follow: "+strings.Join(consequences, "; ")+".", "%w", &driver.RefusedError{Order: order, Refusals: refusals})
	}
	done, err := driver.Do(cmd.Context(), host, order, driver.CallOptions{
		Timeout: f.timeout,
		Resolve: resolver(host),
	})
	done.Refusals = refusals
	outcome := f.print(f.streams, done, done.Checks, func(o render.Options) error { return writePreparation(f.streams.Out, done, o) })
	if err == nil {
		return outcome
	}
	if operation == driver.PrepareOperation && !order.Cleanup && len(done.Calls) > 0 {
		return fmt.Errorf("%w\nThe claim may be prepared now: kubectl dra node-probe unprepare %s", err, name)
	}
	return err
}

// order returns the order for a claim of the snapshot.
func (f *orderFlags) order(snap *snapshot.Snapshot, operation driver.Operation, name string) (*driver.Order, error) {
	namespace, err := f.namespace(f.config)
	if err != nil {
		return nil, err
	}
	o := &driver.Order{
		Operation: operation, Driver: f.driver, Cleanup: f.cleanup, Twice: f.twice, DryRun: f.dryRun == cli.DryRunClient,
		Claim: driver.Claim{Namespace: namespace, Name: name, UID: f.uid},
	}
	found, err := claimsNamed(snap, o.Claim.Namespace, name)
	if err != nil {
		return nil, err
	}
	switch {
	case found != nil:
		o.Object = found
		o.Claim.Namespace = found.Namespace
		if f.uid == "" {
			o.Claim.UID = string(found.UID)
		}
	case f.uid == "" && snap == nil:
		return nil, cli.Usagef("Read a cluster or a snapshot, or give --claim-uid and --driver.", "find ResourceClaim %s: there is no cluster to find it in", name)
	case f.uid == "" && hidden(snap, o.Claim.Namespace) != "":
		return nil, cli.Usagef("Give --claim-uid and --driver for a claim that cannot be read.", "find ResourceClaim %s: not all claims could be read: %s", name, hidden(snap, o.Claim.Namespace))
	case f.uid == "":
		return nil, cli.Usagef("Give -n for another namespace, or --claim-uid and --driver for a claim that is gone.", "find ResourceClaim %s: there is none in %s", name, snap.Source)
	case f.driver == "":
		return nil, cli.Usagef("Name the driver with --driver.", "find ResourceClaim %s: it is not in what was read, so its drivers are not known", name)
	case o.Claim.Namespace == "":
		o.Claim.Namespace = "default"
	}
	return o, nil
}

// hidden says why claims of a namespace may be missing in the snapshot; empty if none is.
func hidden(snap *snapshot.Snapshot, namespace string) string {
	gap := snap.Gap(snapshot.ResourceClaims)
	if gap == nil || gap.Namespace != "" && gap.Namespace == namespace {
		return ""
	}
	return gap.Reason
}

// claimsNamed finds the only claim of that name, in any namespace if none is
// given; nil if there is none.
func claimsNamed(snap *snapshot.Snapshot, namespace, name string) (*resourceapi.ResourceClaim, error) {
	if snap == nil {
		return nil, nil //nolint:nilnil // no claim is one of the answers
	}
	return cli.OnlyOneIn(snap.Claims, "ResourceClaim", namespace, name)
}

// resolveCDI looks up a CDI name in the specs of the node.
func resolveCDI(specs *cdi.Findings, id string) (*driver.Edits, error) {
	found, err := specs.Resolve(id)
	if err != nil {
		return nil, err
	}
	edits := &driver.Edits{Spec: found.Spec, Env: found.Env}
	for _, d := range found.DeviceNodes {
		one := driver.DeviceNode{Path: d.Path, HostPath: d.HostPath, State: node.OK}
		switch d.State {
		case cdi.Present, cdi.NotNeeded:
		case cdi.Absent:
			one.State, one.Message = node.Problem, "is not there"
		case cdi.Different:
			one.State, one.Message = node.Problem, "is not what the spec says: the node has "+d.Found
		case cdi.NotSeen:
			one.State, one.Message = node.Unknown, d.Found
		}
		edits.DeviceNodes = append(edits.DeviceNodes, one)
	}
	for _, m := range found.Mounts {
		edits.Mounts = append(edits.Mounts, m.HostPath+":"+m.ContainerPath)
	}
	for _, h := range found.Hooks {
		edits.Hooks = append(edits.Hooks, h.Name+": "+h.CommandLine())
	}
	return edits, nil
}

// writePreparation draws the calls of drivers for a claim.
func writePreparation(w io.Writer, done *driver.Preparation, opts render.Options) error {
	p := newPage(opts)
	p.Text(0, render.Strong, fmt.Sprintf("%s ResourceClaim %s/%s (UID %s)", done.Operation, done.Claim.Namespace, done.Claim.Name, done.Claim.UID))
	for _, r := range done.Refusals {
		p.Text(2, render.Unsure, "forced: "+r.Reason+"; "+r.Consequence)
	}
	for _, call := range done.Calls {
		p.Blank()
		p.call(call)
	}
	p.nodeChecks(done.Checks)
	return p.write(w)
}

// call draws a request and its reply.
func (p *page) call(call *driver.Call) {
	p.Text(0, render.Plain, fmt.Sprintf("%s of driver %s at %s", call.Method, call.Driver, call.Endpoint))
	service := call.Service
	if service == "" {
		service = "nothing"
	}
	for _, c := range call.Request {
		p.Text(2, render.Plain, fmt.Sprintf("-> %s: namespace %s, name %s, uid %s", service, c.Namespace, c.Name, c.UID))
	}
	switch {
	case call.DryRun:
		p.Text(2, render.Plain, "not sent (dry run)")
		return
	case call.Error != "":
		p.Text(2, render.Bad, fmt.Sprintf("<- after %s: %s", millisText(call.Millis), call.Error))
		return
	case len(call.Devices) == 0:
		p.Text(2, render.Plain, fmt.Sprintf("<- after %s: no error", millisText(call.Millis)))
		return
	}
	p.Text(2, render.Plain, fmt.Sprintf("<- after %s: %s", millisText(call.Millis), english.Count(len(call.Devices), "device")))
	for i := range call.Devices {
		p.preparedDevice(&call.Devices[i])
	}
}

func (p *page) preparedDevice(d *driver.PreparedDevice) {
	requests := strings.Join(d.Requests, ",")
	if requests == "" {
		requests = "all requests"
	}
	text := fmt.Sprintf("%s/%s for %s", d.Pool, d.Device, requests)
	if d.ShareID != "" {
		text += ", share " + d.ShareID
	}
	p.Text(4, render.Plain, text)
	for _, cdi := range d.CDI {
		p.Text(6, render.Plain, "CDI "+cdi.ID)
		if cdi.Error != "" {
			p.Text(8, render.Bad, cdi.Error)
		}
		if cdi.Edits != nil {
			p.preparedEdits(8, cdi.Edits)
		}
	}
}

func (p *page) preparedEdits(indent int, e *driver.Edits) {
	line := func(sign render.Cell, kind, text string) {
		p.Row(indent, sign, render.Cell{Text: kind, Width: len("device file")}, render.Cell{Text: text})
	}
	none := render.Cell{Width: 1}
	for _, n := range e.DeviceNodes {
		text := n.HostPath
		if n.Path != n.HostPath {
			text += " as " + n.Path
		}
		if n.State != node.OK {
			text += ": " + n.Message
		}
		line(nodeSign(n.State), "device file", text)
	}
	for _, list := range []struct {
		kind  string
		items []string
	}{{"mount", e.Mounts}, {"env", e.Env}, {"hook", e.Hooks}} {
		for _, item := range list.items {
			line(none, list.kind, item)
		}
	}
}
