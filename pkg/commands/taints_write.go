// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

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
	"github.com/spf13/pflag"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/names"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// ruleChange is a DeviceTaintRule to be made or removed, and how.
type ruleChange struct {
	reader *cli.Reader
	dryRun string
	yes    bool
	// printer prints the rule that is added; nil to say what was done. Everything
	// else goes to words then, which is standard output if there is no printer.
	printer printers.ResourcePrinter
	words   io.Writer
	streams genericiooptions.IOStreams
}

type ruleChangeFlags struct {
	reading              *cli.ReadingFlags
	driver, pool, device string
	name                 string
	dryRun               string
	yes                  bool
	everything           bool
}

func (f *ruleChangeFlags) toChange(cmd *cobra.Command, streams genericiooptions.IOStreams) (*ruleChange, error) {
	if !slices.Contains([]string{cli.DryRunNone, cli.DryRunClient, cli.DryRunServer}, f.dryRun) {
		return nil, cli.Usagef("Allowed are none, client and server.", "read --dry-run: %q is not a valid value", f.dryRun)
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

// addTo adds the flags; does says what is done with devices or rules of them.
func (f *ruleChangeFlags) addTo(cmd *cobra.Command, does string) {
	flags := cmd.Flags()
	flags.StringVar(&f.driver, "driver", "", does+" devices of this `DRIVER`.")
	flags.StringVar(&f.pool, "pool", "", does+" devices of this `POOL`.")
	flags.StringVar(&f.device, "device", "", does+" devices named `DEVICE`.")
	flags.StringVar(&f.dryRun, "dry-run", cli.DryRunNone, "`MODE` client only shows what would happen, server lets the API server check it, too, none does it.")
	f.reading.AddTo(cmd)
	names.CompleteFlags(f.reading, cmd)
}

func newTaintsAdd(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := &ruleChangeFlags{reading: cli.NewReadingFlags(config)}
	printing := genericclioptions.NewPrintFlags("")
	cmd := &cobra.Command{
		Use:   "add KEY[=VALUE]:EFFECT",
		Short: "Taint devices by a DeviceTaintRule",
		Long: `Taint devices by a new DeviceTaintRule. EFFECT is NoSchedule (no more pods get
the devices), NoExecute (and those that have them are evicted) or None (it only
informs). Choose devices by at least one of --driver, --pool and --device.

First it shows which devices get the taint and which pods would be evicted:
when, whether the pod is bare (nothing creates it again) or owned, and whether a
pod like it fits afterwards. On a terminal it asks before pods get evicted;
elsewhere that needs --yes, also if the pods that use the devices cannot be
read. A rule that selects all devices of the cluster needs --all-devices.

With -o, the rule is printed, and all else goes to standard error:
--dry-run=client -o yaml makes a manifest.`,
		Example: `  # Take one device out of service, and evict whoever uses it
  kubectl dra taints add --driver gpu.example.com --pool gpu-04 --device gpu-3 \
    example.com/xid=79:NoExecute

  # No new pods for the devices of a node; running pods stay
  kubectl dra taints add --pool gpu-04 example.com/maintenance:NoSchedule

  # What would happen?
  kubectl dra taints add --pool gpu-04 example.com/maintenance:NoExecute \
    --dry-run=client

  # A manifest to apply later
  kubectl dra taints add --pool gpu-04 example.com/maintenance:NoSchedule \
    --dry-run=client -o yaml > rule.yaml`,
		Args: oneTaint,
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := flags.toChange(cmd, streams)
			if err != nil {
				return err
			}
			rule, err := flags.rule(args[0])
			if err != nil {
				return err
			}
			if format := *printing.OutputFormat; format != "" {
				change.words = streams.ErrOut
				if change.printer, err = cli.NewPrinter(printing); err != nil {
					return cli.Usagef("Allowed are "+strings.Join(printing.AllowedFormats(), ", ")+".", "unknown output format %q", format)
				}
			}
			return change.add(cmd.Context(), rule)
		},
	}
	cmd.Flags().StringVar(&flags.name, "name", "", "`NAME` of the rule. Without one it is made from the taint and the devices.")
	cmd.Flags().BoolVarP(&flags.yes, "yes", "y", false, "Do not ask before pods get evicted.")
	cmd.Flags().BoolVar(&flags.everything, "all-devices", false, "Taint all devices of the cluster.")
	cli.AddFlags(cmd.Flags(), cli.GroupOutput, func(flags *pflag.FlagSet) {
		flags.StringVarP(printing.OutputFormat, "output", "o", "", fmt.Sprintf("`FORMAT` in which to print the rule, one of %s.", strings.Join(printing.AllowedFormats(), ", ")))
		templates := &cobra.Command{}
		printing.TemplatePrinterFlags.AddFlags(templates)
		flags.AddFlagSet(templates.Flags())
	})
	// It only fails if somebody registered one before.
	_ = cmd.RegisterFlagCompletionFunc("output", cli.Fixed(printing.AllowedFormats()...))
	flags.addTo(cmd, "Taint")
	cmd.ValidArgsFunction = names.Complete(flags.reading, proposeNewTaint)
	return cmd
}

// oneTaint fails unless there is one argument. Devices are chosen with flags.
func oneTaint(_ *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	out := "Write one taint, and choose devices with flags: --driver DRIVER --pool POOL --device DEVICE KEY[=VALUE]:EFFECT"
	found := "nothing"
	if len(args) > 0 {
		found = strings.Join(args, " ")
	}
	return cli.Usagef(out, "read arguments: expected one taint KEY[=VALUE]:EFFECT, found %s", found)
}

// selector is what the flags choose, nil if they choose nothing.
func (f *ruleChangeFlags) selector() *resourceapi.DeviceTaintSelector {
	if f.driver == "" && f.pool == "" && f.device == "" {
		return nil
	}
	given := func(value string) *string {
		if value == "" {
			return nil
		}
		return &value
	}
	return &resourceapi.DeviceTaintSelector{Driver: given(f.driver), Pool: given(f.pool), Device: given(f.device)}
}

// rule makes the DeviceTaintRule that the command line describes.
func (f *ruleChangeFlags) rule(text string) (*resourceapi.DeviceTaintRule, error) {
	key, value, effect, err := parseTaint(text)
	if err != nil {
		return nil, err
	}
	if effect == "" {
		return nil, cli.Usagef("Write KEY[=VALUE]:EFFECT, for example example.com/xid=79:NoExecute.", "read taint %q: it has no effect", text)
	}
	selector := f.selector()
	switch {
	case selector == nil && !f.everything:
		return nil, cli.Usagef("Choose devices with --driver, --pool and --device, or say --all-devices if you mean all.",
			"taint %s: it would be on all devices of the cluster", text)
	case selector == nil:
		selector = &resourceapi.DeviceTaintSelector{}
	case f.everything:
		return nil, cli.Usagef("Leave one of them out.", "--all-devices does not go with --driver, --pool or --device")
	}
	rule := &resourceapi.DeviceTaintRule{
		TypeMeta: metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "DeviceTaintRule"},
		Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: selector,
			Taint:          resourceapi.DeviceTaint{Key: key, Value: value, Effect: effect},
		},
	}
	rule.Name = cmp.Or(f.name, ruleName(f.pool, f.device, f.driver, key))
	return rule, nil
}

// ruleName makes a name that tells what the rule is about.
func ruleName(parts ...string) string {
	var words []string
	for _, part := range parts {
		if i := strings.LastIndexByte(part, '/'); i >= 0 {
			part = part[i+1:]
		}
		part = strings.ToLower(strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
				return r
			}
			return '-'
		}, part))
		if part = strings.Trim(part, "-."); part != "" {
			words = append(words, part)
		}
	}
	return strings.Join(words, "-")
}

func taintEffects() []resourceapi.DeviceTaintEffect {
	return []resourceapi.DeviceTaintEffect{
		resourceapi.DeviceTaintEffectNone, resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute,
	}
}

// parseTaint reads KEY[=VALUE][:EFFECT].
func parseTaint(text string) (key, value string, effect resourceapi.DeviceTaintEffect, err error) {
	rest, name, hasEffect := strings.Cut(text, ":")
	effect = resourceapi.DeviceTaintEffect(name)
	if hasEffect && !slices.Contains(taintEffects(), effect) {
		return "", "", "", cli.Usagef("Effects are NoSchedule, NoExecute and None.", "read taint %q: %q is not a valid effect", text, name)
	}
	key, value, _ = strings.Cut(rest, "=")
	if key == "" {
		return "", "", "", cli.Usagef("Write KEY[=VALUE]:EFFECT, for example example.com/xid=79:NoExecute.", "read taint %q: it has no key", text)
	}
	return key, value, effect, nil
}

func (c *ruleChange) add(ctx context.Context, rule *resourceapi.DeviceTaintRule) error {
	from, err := c.reader.Read(ctx, previewScope())
	if err != nil {
		return err
	}
	if slices.ContainsFunc(from.Snap.TaintRules, func(r *resourceapi.DeviceTaintRule) bool { return r.Name == rule.Name }) {
		return cli.Usagef("Choose another name with --name, or remove the other first: kubectl dra taints remove "+rule.Name,
			"add DeviceTaintRule %s: there is one of that name", rule.Name)
	}
	outcome, err := c.preview(ctx, from.Snap, rule)
	if err != nil {
		return err
	}
	if c.dryRun == cli.DryRunNone {
		if question := outcome.question(); question != "" {
			if err := c.confirm(question); err != nil {
				return err
			}
		}
	}
	object, err := c.create(ctx, rule)
	if err != nil {
		return err
	}
	if c.printer != nil {
		err = c.printer.PrintObj(object, c.streams.Out)
	} else {
		err = c.say("DeviceTaintRule %s %s", rule.Name, map[string]string{
			cli.DryRunClient: "would be added (dry run)", cli.DryRunServer: "added (server dry run)", cli.DryRunNone: "added",
		}[c.dryRun])
	}
	if err == nil && c.dryRun != cli.DryRunNone && outcome.unread != nil {
		return outcome.unread
	}
	return err
}

// create adds the rule, or makes the object that would be added, in the version
// that the server has.
func (c *ruleChange) create(ctx context.Context, rule *resourceapi.DeviceTaintRule) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(rule)
	if err != nil {
		return nil, fmt.Errorf("write DeviceTaintRule %s: %w", rule.Name, err)
	}
	object := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	if !c.reader.Live() {
		return object, nil
	}
	rules, version, err := c.rules()
	if err != nil {
		return nil, err
	}
	object.SetAPIVersion(version.String())
	if c.dryRun == cli.DryRunClient {
		return object, nil
	}
	added, err := rules.Create(ctx, object, metav1.CreateOptions{DryRun: c.dryRunOption(), FieldManager: cli.FieldManager})
	if err != nil {
		return nil, fmt.Errorf("add DeviceTaintRule %s: %w", rule.Name, err)
	}
	added.SetManagedFields(nil)
	return added, nil
}

// rules is the API for DeviceTaintRules in the version that the server has.
func (c *ruleChange) rules() (dynamic.ResourceInterface, schema.GroupVersion, error) {
	clients, err := snapshot.NewClients(c.reader.Config)
	if err != nil {
		return nil, schema.GroupVersion{}, fmt.Errorf("connect to the cluster: %w", err)
	}
	mapping, err := clients.Mapper.RESTMapping(schema.GroupKind{Group: "resource.k8s.io", Kind: "DeviceTaintRule"})
	if err != nil {
		return nil, schema.GroupVersion{}, fmt.Errorf("find DeviceTaintRules at %s: %w", clients.Address(), err)
	}
	return clients.Dynamic.Resource(mapping.Resource), mapping.GroupVersionKind.GroupVersion(), nil
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

// errNotConfirmed is what ends a change that nobody agreed to.
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

// proposeNewTaint proposes the keys that are in use, and the effects after them.
func proposeNewTaint(ctx context.Context, c *names.Completion) ([]string, error) {
	if len(c.Args) > 0 {
		return nil, nil
	}
	var list []string
	if taint, _, hasEffect := strings.Cut(c.Typed, ":"); hasEffect {
		for _, effect := range taintEffects() {
			list = append(list, taint+":"+string(effect))
		}
		return list, nil
	}
	_, keys, err := c.Taints(ctx, snapshot.ResourceTaintRules, snapshot.ResourceSlices)
	for _, key := range keys {
		list = append(list, key+":")
	}
	return list, err
}
