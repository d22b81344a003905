// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// ruleChange is a DeviceTaintRule to be created or deleted, and how.
type ruleChange struct {
	reader *cli.Reader
	dryRun string
	yes    bool
	// printer prints the added rule; nil to print a sentence. Everything else goes to words
	// then, which is standard output if there is no printer.
	printer printers.ResourcePrinter
	words   io.Writer
	streams genericiooptions.IOStreams
}

type ruleChangeFlags struct {
	RuleFlags
	reading *cli.ReadingFlags
	dryRun  string
	yes     bool
}

func (f *ruleChangeFlags) toChange(cmd *cobra.Command, streams genericiooptions.IOStreams) (*ruleChange, error) {
	if !slices.Contains(cli.DryRuns(), f.dryRun) {
		return nil, cli.NotAllowed("dry-run", f.dryRun, cli.DryRuns())
	}
	reader, err := f.reading.ToReader(cmd, streams)
	if err != nil {
		return nil, err
	}
	if !reader.Live() && f.dryRun != cli.DryRunClient {
		return nil, cli.Usagef("Add --dry-run=client to see what would happen.", "a snapshot file cannot be changed")
	}
	return &ruleChange{reader: reader, dryRun: f.dryRun, yes: f.yes, words: streams.Out, streams: streams}, nil
}

// addTo adds the flags; does is the verb for their help.
func (f *ruleChangeFlags) addTo(cmd *cobra.Command, does string) {
	flags := cmd.Flags()
	f.AddTo(flags, does)
	flags.StringVar(&f.dryRun, "dry-run", cli.DryRunNone, "`MODE` client only shows what would happen, server lets the API server check it, too, none does it.")
	f.reading.AddTo(cmd)
	cli.CompleteFlags(f.reading, cmd)
}

// rules returns the API for DeviceTaintRules.
func (c *ruleChange) rules() (*Rules, error) {
	clients, err := collect.NewClients(c.reader.Config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return RulesOf(clients)
}

func (c *ruleChange) dryRunOption() []string {
	if c.dryRun == cli.DryRunServer {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func (c *ruleChange) suffix() string {
	if c.dryRun == cli.DryRunServer {
		return " (server dry run)"
	}
	return ""
}

// errNotConfirmed ends a change that nobody confirmed.
var errNotConfirmed = errors.New("nothing was changed")

// confirm asks on a terminal; elsewhere --yes must have answered already.
func (c *ruleChange) confirm(question string) error {
	if c.yes {
		return nil
	}
	if _, isTerminal := cli.Terminal(c.streams.In); !isTerminal {
		return cli.Usagef("Add --yes to do it, or --dry-run=client to see what would happen.", "%w: %s There is no terminal to ask on", errNotConfirmed, question)
	}
	if _, err := fmt.Fprintf(c.streams.ErrOut, "%s Go on? [y/N] ", question); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	answer, err := bufio.NewReader(c.streams.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return cli.Usagef("", "%w", errNotConfirmed)
	}
	return nil
}

func (c *ruleChange) say(format string, args ...any) error {
	if _, err := fmt.Fprintln(c.words, render.Escape(fmt.Sprintf(format, args...))); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// newTaintPreview returns the verb that shows the effect of rules in files.
func newTaintPreview(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	reading := cli.NewReadingFlags(config)
	var paths []string
	cmd := &cobra.Command{
		Use:   "preview -f FILE",
		Short: "Show which pods rules in a file would evict",
		Long: `Show which devices the DeviceTaintRules in the files would taint and which pods
they would evict, without applying them. Each rule is looked at alone. For each
pod that would be evicted it says when, whether the pod is bare (nothing creates
it again) or owned, and whether a pod like it fits afterwards. Waiting pods that
would not fit any more, or fit at last, are named, too: it is the answer of
'kubectl dra impact taint'.`,
		Example: `  # Whom would this rule evict?
  kubectl dra taints preview -f rule.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(paths) == 0 {
				return cli.Usagef(cli.HelpHint(cmd), "read --filename: no file is given")
			}
			reader, err := reading.ToReader(cmd, streams)
			if err != nil {
				return err
			}
			rules, err := files.Manifests(cmd.Context(), paths, reader.Options)
			if err != nil {
				return err
			}
			if len(rules.TaintRules) == 0 {
				return cli.Usagef("Write objects of kind DeviceTaintRule.", "read %s: there is no DeviceTaintRule in it", strings.Join(paths, ", "))
			}
			change := &ruleChange{reader: reader, words: streams.Out, streams: streams}
			from, err := reader.Read(cmd.Context(), previewScope())
			if err != nil {
				return err
			}
			var gapErr *cli.GapError
			for _, rule := range rules.TaintRules {
				outcome, err := change.preview(cmd.Context(), from.Snap, rule)
				if err != nil {
					return err
				}
				gapErr = cmp.Or(outcome.gapErr, gapErr)
			}
			if gapErr != nil {
				return gapErr
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVarP(&paths, "filename", "f", nil, "Read rules from this `FILE`; - is standard input. Can be repeated.")
	reading.AddTo(cmd)
	cli.CompleteFlags(reading, cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

// previewScope returns the scope for the effect of a rule.
func previewScope() cli.Scope {
	return cli.Scope{AllNamespaces: true, Only: inventory.StateReads(snapshot.ResourcePods, snapshot.ResourceNodes, snapshot.ResourceClasses, snapshot.ResourceTemplates, snapshot.ResourcePodGroups)}
}

// ruleOutcome is the predicted effect of a rule.
type ruleOutcome struct {
	rule    *resourceapi.DeviceTaintRule
	devices int
	evicted int
	// gapErr is the error about gaps in the requested objects, nil if there are none.
	gapErr *cli.GapError
}

// question returns the question before the rule is added, empty if it taints a device and evicts
// nobody.
func (o *ruleOutcome) question() string {
	switch {
	case o.inVain():
		return "No device matches now."
	case o.rule.Spec.Taint.Effect != resourceapi.DeviceTaintEffectNoExecute:
		return ""
	case o.gapErr != nil && o.evicted > 0:
		return fmt.Sprintf("This evicts %s, and any that could not be read.", english.Count(o.evicted, "pod"))
	case o.gapErr != nil:
		return "This evicts the pods that use the devices, which could not be read."
	case o.evicted > 0:
		return fmt.Sprintf("This evicts %s.", english.Count(o.evicted, "pod"))
	default:
		return ""
	}
}

// inVain reports whether the rule is known to taint no device now.
func (o *ruleOutcome) inVain() bool {
	return o.devices == 0 && (o.gapErr == nil || !slices.ContainsFunc(o.gapErr.Gaps, func(g snapshot.Gap) bool { return g.Resource == snapshot.ResourceSlices }))
}

// asks returns the resources that decide the effect of the rule.
func (o *ruleOutcome) asks() []string {
	if o.rule.Spec.Taint.Effect != resourceapi.DeviceTaintEffectNoExecute {
		return []string{snapshot.ResourceSlices}
	}
	return []string{snapshot.ResourceSlices, snapshot.ResourceClaims, snapshot.ResourcePods}
}

// preview shows the effect of a rule.
func (c *ruleChange) preview(ctx context.Context, snap *snapshot.Snapshot, rule *resourceapi.DeviceTaintRule) (*ruleOutcome, error) {
	return previewer{words: c.words, warnings: c.streams.ErrOut, live: c.reader.Live(), reports: c.dryRun != cli.DryRunNone}.preview(ctx, snap, rule)
}

// PreviewRule writes the devices that a rule would taint and the pods it would evict. The
// question is to be asked before the rule is added, empty if it evicts nobody.
func PreviewRule(ctx context.Context, w io.Writer, snap *snapshot.Snapshot, rule *resourceapi.DeviceTaintRule) (question string, err error) {
	outcome, err := previewer{words: w, warnings: w, live: true}.preview(ctx, snap, rule)
	if err != nil {
		return "", err
	}
	return outcome.question(), nil
}

// previewer writes the effect of a rule.
type previewer struct {
	words io.Writer
	// warnings takes what may be a mistake of the user.
	warnings io.Writer
	live     bool
	// reports is true if the caller reports the gaps.
	reports bool
}

func (c previewer) preview(ctx context.Context, snap *snapshot.Snapshot, rule *resourceapi.DeviceTaintRule) (*ruleOutcome, error) {
	outcome := &ruleOutcome{rule: rule}
	if gaps := cli.GapsIn(snap, outcome.asks(), "", true); len(gaps) > 0 {
		outcome.gapErr = &cli.GapError{Doing: "preview DeviceTaintRule " + rule.Name, Gaps: gaps, Live: c.live, Partial: true}
	}
	rule = rule.DeepCopy()
	if rule.Spec.Taint.TimeAdded == nil {
		rule.Spec.Taint.TimeAdded = &metav1.Time{Time: snap.Now()}
	}
	amended := snap.With(&snapshot.Snapshot{TaintRules: []*resourceapi.DeviceTaintRule{rule}})
	facts := cluster.New(amended)
	have := inventory.New(facts)
	for _, taint := range have.Taints() {
		if taint.Rule != rule.Name {
			continue
		}
		found, err := forecast.Assess(ctx, snap, forecast.Taint(rule))
		if err != nil {
			return nil, fmt.Errorf("decide where pods go: %w", err)
		}
		if err := render.TaintPreview(c.words, &taint, found, snap.Now()); err != nil {
			return nil, err
		}
		outcome.devices += len(taint.Devices)
		for _, pod := range taint.Pods {
			if pod.Evicted {
				outcome.evicted++
			}
		}
	}
	return outcome, c.notes(facts, outcome)
}

// notes writes what the preview does not show.
func (c previewer) notes(facts *cluster.Cluster, outcome *ruleOutcome) error {
	if outcome.inVain() {
		if err := cli.WriteNotes(c.warnings, noDevice(facts.Snapshot, outcome.rule)...); err != nil {
			return err
		}
	}
	var notes []string
	for _, gate := range []string{"DRADeviceTaints", "DRADeviceTaintRules"} {
		if !facts.Gates.Enabled(gate) {
			notes = append(notes, fmt.Sprintf("the feature gate %s is off, so the rule would do nothing", gate))
		}
	}
	for _, gap := range facts.Snapshot.Gaps {
		reported := c.reports && outcome.gapErr != nil && slices.Contains(outcome.gapErr.Gaps, gap)
		if reported || !slices.Contains(previewScope().Only, gap.Resource) {
			continue
		}
		if slices.Contains(outcome.asks(), gap.Resource) {
			notes = append(notes, "there may be more: "+gap.Reason)
			continue
		}
		notes = append(notes, gap.Reason)
	}
	return cli.WriteNotes(c.words, notes...)
}

// noDevice says that a rule matches no device, and which names in it do not exist.
func noDevice(snap *snapshot.Snapshot, rule *resourceapi.DeviceTaintRule) []string {
	notes := []string{"no device matches now"}
	if selector := rule.Spec.DeviceSelector; selector != nil {
		for _, err := range cli.AbsentDevices(snap, ptr.Deref(selector.Driver, ""), ptr.Deref(selector.Pool, ""), ptr.Deref(selector.Device, "")) {
			notes = append(notes, err.Error())
		}
	}
	return notes
}
