// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/cdi"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/checkpoint"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/driver"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// conformFlags configure the test of a driver.
type conformFlags struct {
	*probeFlags
	streams genericiooptions.IOStreams
	config  *genericclioptions.ConfigFlags

	driver               string
	unallocated, foreign string
	restart, stop        string
	timeout, settle      time.Duration
	removesSlices        bool
}

const (
	// formatMarkdown is the format of the report to publish.
	formatMarkdown = "markdown"
	// maxCommandOutput limits the shown output of a command.
	maxCommandOutput = 4 << 10
)

func newConform(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags, probe *probeFlags) *cobra.Command {
	flags := &conformFlags{probeFlags: probe, streams: streams, config: config}
	reports := []string{cli.FormatJUnit, formatMarkdown}
	cmd := &cobra.Command{
		Use:   "conform CLAIM...",
		Short: "Try whether a driver does what it has to. Changes the node",
		Long: `Try whether a driver of this node does what the kubelet and the scheduler rely
on: how it registers, what it publishes, and how it prepares and unprepares
claims, again, together, and those that it has to refuse. It is for those who
write drivers. Each requirement has a stable name and says where it is from.

The CLAIMs are made for it: allocated to this node, with devices of the driver,
and used by nobody. A claim that is reserved, or that the kubelet has, is not
touched, and nothing forces that. All that was prepared is unprepared in the
end, also after Ctrl-C.

Some requirements take more than a claim: a second claim, one that is not
allocated (--unallocated), one of another driver (--foreign), and commands of
yours that restart and stop the driver (--restart-command, --stop-command).
They are run by sh, on the machine where this runs; --stop-command comes last,
and the driver stays stopped. What was not tried is marked ?, and so is what a
driver may choose.

The exit code is 0 if the driver meets all requirements, 1 if it breaks one,
and 2 if it breaks none and not all are known. -o junit is for pipelines, and
-o markdown is a report to publish: versions, requirements, results, each call
of the driver with its reply, and how to try what was not tried.`,
		Example: `  # The claim test has a device of the driver and no pod
  kubectl dra node-probe conform test -n drivers --driver gpu.example.com

  # Everything, for a pipeline
  kubectl dra node-probe conform one two --driver gpu.example.com \
    --unallocated pending --foreign nic \
    --restart-command 'systemctl restart gpu-driver' \
    --stop-command 'systemctl stop gpu-driver' -o junit > conform.xml

  # A report to publish
  kubectl dra node-probe conform test -n drivers -o markdown > CONFORMANCE.md`,
		Args: cobra.MinimumNArgs(1),
		// This check is also made before it runs on another node.
		PreRun: func(*cobra.Command, []string) { flags.output.Reports = reports },
		RunE:   func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },
	}
	flags.output.AddReports(cmd, reports...)
	f := cmd.Flags()
	f.StringVar(&flags.driver, "driver", "", "`DRIVER` to try. (default: the only one that the first claim has devices of)")
	f.StringVar(&flags.unallocated, "unallocated", "", "`CLAIM` without devices, which the driver has to refuse.")
	f.StringVar(&flags.foreign, "foreign", "", "`CLAIM` with devices of other drivers, for which it must not give any.")
	f.StringVar(&flags.restart, "restart-command", "", "`COMMAND` that restarts the driver.")
	f.StringVar(&flags.stop, "stop-command", "", "`COMMAND` that stops the driver in order.")
	f.BoolVar(&flags.removesSlices, "removes-slices", false, "The driver says that it removes its slices when it is stopped.")
	f.DurationVar(&flags.timeout, "timeout", driver.DefaultCallTimeout, "How long the driver may take for one call.")
	f.DurationVar(&flags.settle, "settle", time.Minute, "How long it may take to start or to stop, and a command to end.")
	return cmd
}

func (f *conformFlags) run(cmd *cobra.Command, names []string) error {
	for _, timeout := range []time.Duration{f.timeout, f.settle} {
		if err := checkTimeout(timeout); err != nil {
			return err
		}
	}
	printer, err := f.output.ToPrinter(f.streams)
	if err != nil {
		return err
	}
	if printer.Names {
		return cli.Usagef("Allowed are wide, json, yaml, junit, markdown and templates.", "-o name: requirements have no name")
	}
	snap, err := f.cluster(cmd, f.streams)
	if err != nil {
		return err
	}
	opts, err := f.options(cmd, snap, names)
	if err != nil {
		return err
	}
	host := f.host()
	if err := f.refuse(cmd.Context(), host, opts); err != nil {
		return err
	}
	found, err := driver.Conform(cmd.Context(), host, f.driver, *opts)
	if _, printErr := printer.PrintReport(found, func(w io.Writer, format string) error {
		if format == formatMarkdown {
			return writeConformanceMarkdown(w, found)
		}
		return render.JUnit(w, conformReport(found))
	}, func(w io.Writer, o render.Options) error { return writeConformance(w, found, o) }); err == nil {
		err = printErr
	}
	if err != nil {
		return err
	}
	return outcome(checksCode(found.Checks()))
}

// outcome returns an exit code as an error; nil for success.
func outcome(code int) error {
	if code == cli.ExitFits {
		return nil
	}
	return &cli.OutcomeError{Code: code}
}

// options finds the claims.
func (f *conformFlags) options(cmd *cobra.Command, snap *snapshot.Snapshot, names []string) (*driver.ConformOptions, error) {
	if snap == nil {
		return nil, cli.Usagef("Read a cluster or a snapshot that has the claims.", "find ResourceClaim %s: there is no cluster to find it in", names[0])
	}
	opts := &driver.ConformOptions{
		CallOptions: driver.CallOptions{Timeout: f.timeout, Resolve: resolver(f.host())},
		Cluster:     snap, Settle: f.settle, RemovesSlices: f.removesSlices, Program: f.version,
		Restart: f.shell("restart-command", f.restart), Stop: f.shell("stop-command", f.stop),
	}
	for _, name := range names {
		claim, err := f.find(snap, name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(opts.Claims, claim) {
			return nil, cli.Usagef("Give each claim once.", "ResourceClaim %s is given twice", name)
		}
		opts.Claims = append(opts.Claims, claim)
	}
	var err error
	if f.unallocated != "" {
		if opts.Unallocated, err = f.find(snap, f.unallocated); err != nil {
			return nil, err
		}
	}
	if f.foreign != "" {
		if opts.Foreign, err = f.find(snap, f.foreign); err != nil {
			return nil, err
		}
	}
	if f.driver == "" {
		drivers := driver.ConformOrder("", opts.Claims[0]).Drivers()
		if len(drivers) != 1 {
			return nil, cli.Usagef("Name one with --driver.", "ResourceClaim %s has devices of %d drivers", names[0], len(drivers))
		}
		f.driver = drivers[0]
	}
	if reader, err := f.reading.ToReader(cmd, f.streams); err == nil && reader.Live() {
		opts.Reread = func(ctx context.Context) (*snapshot.Snapshot, error) {
			from, err := reader.Read(ctx, cli.Scope{AllNamespaces: true, Only: clusterReads()})
			if err != nil {
				return nil, err
			}
			return from.Snap, nil
		}
	}
	return opts, nil
}

func (f *conformFlags) find(snap *snapshot.Snapshot, name string) (*resourceapi.ResourceClaim, error) {
	namespace, err := f.namespace(f.config)
	if err != nil {
		return nil, err
	}
	claim, err := claimsNamed(snap, namespace, name)
	if err == nil && claim == nil {
		err = cli.Usagef("Give -n for another namespace.", "find ResourceClaim %s: there is none in %s", name, snap.Source)
	}
	return claim, err
}

// refuse refuses to test a driver with claims that are in use, according to the cluster or
// the kubelet.
func (f *conformFlags) refuse(ctx context.Context, host *node.Host, opts *driver.ConformOptions) error {
	var here driver.Place
	if around := host.In(opts.Cluster); around != nil {
		here.Node = around.Node
	}
	// Without it, the node is not checked.
	here.BootID, _ = host.BootID()
	refusals := driver.RefuseConform(f.driver, opts, here)
	if kept := checkpoint.Look(ctx, host, nil).Kubelet; kept != nil {
		for _, claim := range slices.Concat(opts.Claims, []*resourceapi.ResourceClaim{opts.Unallocated, opts.Foreign}) {
			if claim != nil && slices.ContainsFunc(kept.Claims, func(c checkpoint.Claim) bool { return c.UID == string(claim.UID) }) {
				refusals = append(refusals, driver.Refusal{Reason: fmt.Sprintf("claim %s/%s: the kubelet has it", claim.Namespace, claim.Name)})
			}
		}
	}
	if len(refusals) == 0 {
		return nil
	}
	reasons := make([]string, 0, len(refusals))
	for _, r := range refusals {
		reasons = append(reasons, r.Reason)
	}
	return cli.Usagef("Make claims for it that no pod uses; nothing forces this.", "try driver %s: %s", f.driver, strings.Join(reasons, "; "))
}

// shell runs a command of the user; nil for none.
func (f *conformFlags) shell(flag, command string) func(context.Context) error {
	if command == "" {
		return nil
	}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, f.settle)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.WaitDelay = time.Second
		output := &bounded{}
		cmd.Stdout, cmd.Stderr = output, output
		err := cmd.Run()
		var failed *exec.ExitError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("--%s did not end within %s", flag, f.settle)
		case errors.As(err, &failed):
			return fmt.Errorf("--%s ends with exit code %d: %s", flag, failed.ExitCode(), strings.TrimSpace(output.String()))
		default:
			return fmt.Errorf("run --%s: %w", flag, err)
		}
	}
}

// bounded keeps the beginning of the text written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := maxCommandOutput - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// resolver looks up CDI names in the node's specs, which a driver may have just written.
func resolver(host *node.Host) driver.Resolver {
	return func(ctx context.Context) func(string) (*driver.Edits, error) {
		specs := cdi.Look(ctx, host, nil, nil)
		return func(id string) (*driver.Edits, error) { return resolveCDI(specs, id) }
	}
}

// conformReport returns the result as a report of findings.
func conformReport(c *driver.Conformance) *render.Report {
	found := &render.Report{Verb: "node-probe conform", Source: "driver " + c.Driver, FailOn: api.SeverityError}
	for _, r := range c.Results {
		found.Rules = append(found.Rules, render.Rule{Code: r.Name, Title: r.Source, Severity: api.SeverityError})
		finding := api.Finding{Code: r.Name, Message: r.Message, Objects: []api.ObjectRef{api.Ref("Driver", "", c.Driver)}}
		switch r.State {
		case node.OK:
			continue
		case node.Problem:
			finding.Severity = api.SeverityError
		case node.Unknown:
			finding.Severity = api.SeverityUnknown
		}
		found.Findings = append(found.Findings, finding)
	}
	return found
}

// writeConformance draws the test of a driver: a line for each requirement, and its source,
// if it is broken or with -o wide.
func writeConformance(w io.Writer, c *driver.Conformance, opts render.Options) error {
	p := newPage(opts)
	p.Text(0, render.Strong, fmt.Sprintf("Driver %s: %s", c.Driver, checkCounts(c.Checks())))
	if c.Endpoint != "" {
		p.Text(2, render.Faint, "endpoint "+c.Endpoint)
	}
	p.Blank()
	names := make([]string, len(c.Results))
	for i := range c.Results {
		names[i] = strings.TrimPrefix(c.Results[i].Name, "conform/")
	}
	width := render.Widest(render.Unlimited, names...)
	for i := range c.Results {
		r := &c.Results[i]
		p.Row(0, nodeSign(r.State), render.Cell{Text: names[i], Width: width}, render.Cell{Text: r.Message})
		if r.State == node.Problem || opts.Wide {
			p.Row(markWidth+render.ColumnGap+width+render.ColumnGap, render.Cell{Text: "required by " + r.Source, Mark: render.Faint})
		}
	}
	return p.write(w)
}

// writeConformanceMarkdown writes the test of a driver as a Markdown document to publish.
// The same results give the same document: it has no date and no durations.
func writeConformanceMarkdown(w io.Writer, c *driver.Conformance) error {
	var d markdown
	d.line("# Conformance of DRA driver %s", d.code(c.Driver))
	d.line("%s.", conformanceCounts(c))
	d.software(cmp.Or(c.Software, &driver.Software{}))
	d.results(c.Results)
	d.untried(c.Results)
	d.evidence(c.Results)
	if _, err := io.WriteString(w, d.String()); err != nil {
		return fmt.Errorf("print Markdown: %w", err)
	}
	return nil
}

// conformanceCounts counts the results of requirements in words.
func conformanceCounts(c *driver.Conformance) string {
	counts := map[string]int{}
	for i := range c.Results {
		counts[resultWord(&c.Results[i])]++
	}
	text := english.Count(len(c.Results), "requirement") + ":"
	for i, word := range []string{resultMet, resultBroken, resultNotKnown, resultNotTried} {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %d %s", counts[word], word)
	}
	return text
}

// Results of requirements in words.
const (
	resultMet      = "met"
	resultBroken   = "broken"
	resultNotKnown = "not known"
	resultNotTried = "not tried"
)

// resultWord returns the result of a requirement in words.
func resultWord(r *driver.Conformity) string {
	switch {
	case r.Needs != "":
		return resultNotTried
	case r.State == node.OK:
		return resultMet
	case r.State == node.Problem:
		return resultBroken
	default:
		return resultNotKnown
	}
}

// toTry returns how to give what a requirement needs.
func toTry(need driver.Need) string {
	switch need {
	case driver.NeedDriver:
		return "Start the driver, so that it registers and answers."
	case driver.NeedPrepared:
		return "Let the driver meet `conform/prepare`."
	case driver.NeedUnprepared:
		return "Let the driver meet `conform/unprepare`."
	case driver.NeedSecond:
		return "Name a second claim with devices of the driver."
	case driver.NeedUnallocated:
		return "Name a claim without devices with `--unallocated`."
	case driver.NeedForeign:
		return "Name a claim with devices of another driver with `--foreign`."
	case driver.NeedRestart:
		return "Give a command that restarts the driver with `--restart-command`."
	case driver.NeedStop:
		return "Give a command that stops the driver with `--stop-command`."
	case driver.NeedCluster:
		return "Run it on the node, with a kubeconfig of the cluster and without `--snapshot`."
	default:
		return ""
	}
}

// markdown collects the blocks of a Markdown document.
type markdown struct{ strings.Builder }

// line adds a block of one line.
func (d *markdown) line(format string, args ...any) {
	if d.Len() > 0 {
		d.WriteByte('\n')
	}
	d.WriteString(fmt.Sprintf(format, args...) + "\n")
}

// table adds a table. Its cells are Markdown.
func (d *markdown) table(rows ...[]string) {
	for i, row := range rows {
		text := "| " + strings.Join(row, " | ") + " |"
		if i > 0 {
			d.WriteString(text + "\n")
			continue
		}
		d.line("%s", text)
		d.WriteString(strings.Repeat("|---", len(row)) + "|\n")
	}
}

// text returns foreign text without a meaning for Markdown and HTML.
func (d *markdown) text(s string) string {
	return strings.NewReplacer(
		`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`, "<", "&lt;", ">", "&gt;", "&", "&amp;",
	).Replace(render.Escape(s))
}

// code returns a name as code, or as text if it cannot be code in a table.
func (d *markdown) code(s string) string {
	if s = render.Escape(s); s == "" || strings.ContainsAny(s, "`|") {
		return d.text(s)
	}
	return "`" + s + "`"
}

// codes returns several names as code.
func (d *markdown) codes(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = d.code(name)
	}
	return strings.Join(all, ", ")
}

// software adds the versions.
func (d *markdown) software(s *driver.Software) {
	const unknown = "not known"
	d.line("## Versions")
	d.table(
		[]string{"what", "version"},
		[]string{"images of the driver's pod", cmp.Or(d.codes(s.Images), unknown+": no pod of the cluster has the process that serves the driver's endpoint, or this could not be found out")},
		[]string{"services of the driver", cmp.Or(d.codes(s.Services), unknown)},
		[]string{"Kubernetes", cmp.Or(d.text(s.Kubernetes), unknown)},
		[]string{"kubelet", cmp.Or(d.text(s.Kubelet), unknown)},
		[]string{"container runtime", cmp.Or(d.text(s.ContainerRuntime), unknown)},
		[]string{"operating system", cmp.Or(d.text(s.OperatingSystem), unknown)},
		[]string{"kubectl-dra", cmp.Or(d.text(s.Program), unknown)},
	)
}

// results adds a line for each requirement.
func (d *markdown) results(results []driver.Conformity) {
	rows := [][]string{{"requirement", "result", "what was found", "required by"}}
	for i := range results {
		r := &results[i]
		rows = append(rows, []string{d.code(r.Name), resultWord(r), d.text(r.Message), d.text(r.Source)})
	}
	d.line("## Results")
	d.table(rows...)
}

// untried adds the requirements that were not tried, and how to try them.
func (d *markdown) untried(results []driver.Conformity) {
	rows := [][]string{{"requirement", "how to try it"}}
	for i := range results {
		if r := &results[i]; r.Needs != "" {
			rows = append(rows, []string{d.code(r.Name), toTry(r.Needs)})
		}
	}
	if len(rows) == 1 {
		return
	}
	d.line("## Not tried")
	d.table(rows...)
}

// evidence adds the calls for each requirement and their replies.
func (d *markdown) evidence(results []driver.Conformity) {
	rows := [][]string{{"requirement", "call", "claim", "reply"}}
	for i := range results {
		r := &results[i]
		for j := range r.Exchanges {
			e := &r.Exchanges[j]
			for k := range e.Claims {
				claim := &e.Claims[k]
				rows = append(rows, []string{
					d.code(r.Name), d.code(e.Service + "/" + e.Method), d.code(claim.Namespace+"/"+claim.Name) + ", UID " + d.code(claim.UID), d.reply(e, claim),
				})
			}
		}
	}
	if len(rows) == 1 {
		return
	}
	d.line("## Calls")
	d.line("Each call of the driver that prepared or unprepared claims, in its order, with the reply for each claim.")
	d.table(rows...)
}

// reply returns what a driver replied for a claim.
func (d *markdown) reply(e *driver.Exchange, claim *driver.ClaimReply) string {
	switch {
	case e.Error != "":
		return "the call fails: " + d.text(e.Error)
	case claim.Error != "":
		return "error: " + d.text(claim.Error)
	case !claim.Replied:
		return "none"
	case len(claim.Devices) == 0:
		return "no error, no devices"
	}
	devices := make([]string, 0, len(claim.Devices))
	for i := range claim.Devices {
		device := &claim.Devices[i]
		text := d.code(device.Pool + "/" + device.Device)
		if device.ShareID != "" {
			text += ", share " + d.code(device.ShareID)
		}
		if len(device.Requests) > 0 {
			text += " for " + d.codes(device.Requests)
		}
		for k := range device.CDI {
			text += ", CDI " + d.code(device.CDI[k].ID)
		}
		devices = append(devices, text)
	}
	return strings.Join(devices, "; ")
}
