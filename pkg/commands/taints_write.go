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
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// The values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// ruleChange is a DeviceTaintRule to be made or removed, and how.
type ruleChange struct {
	reader     *reader
	dryRun     string
	yes        bool
	everything bool
	streams    genericiooptions.IOStreams
}

type ruleChangeFlags struct {
	reading              *readingFlags
	driver, pool, device string
	name                 string
	dryRun               string
	yes                  bool
	everything           bool
}

func (f *ruleChangeFlags) toChange(cmd *cobra.Command, streams genericiooptions.IOStreams) (*ruleChange, error) {
	if !slices.Contains([]string{dryRunNone, dryRunClient, dryRunServer}, f.dryRun) {
		return nil, usagef("Allowed are none, client and server.", "read --dry-run: %q is no such mode", f.dryRun)
	}
	reader, err := f.reading.toReader(cmd, streams)
	if err != nil {
		return nil, err
	}
	if !reader.live() && f.dryRun != dryRunClient {
		return nil, usagef("Add --dry-run=client to see what would happen.", "a snapshot file cannot be changed")
	}
	return &ruleChange{reader: reader, dryRun: f.dryRun, yes: f.yes, everything: f.everything, streams: streams}, nil
}

func (f *ruleChangeFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.driver, "driver", "", "Taint devices of this `DRIVER`.")
	flags.StringVar(&f.pool, "pool", "", "Taint devices of this `POOL`.")
	flags.StringVar(&f.device, "device", "", "Taint devices named `DEVICE`.")
	flags.StringVar(&f.dryRun, "dry-run", dryRunNone, "`MODE` client only shows what would happen, server lets the API server check it, too, none does it.")
	flags.BoolVarP(&f.yes, "yes", "y", false, "Do not ask before pods get evicted.")
	f.reading.addTo(cmd)
	f.reading.completeFlags(cmd)
}

func newTaintsPreview(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	reading := newReadingFlags(config)
	var files []string
	cmd := &cobra.Command{
		Use:   "preview -f FILE",
		Short: "Show which pods rules in a file would evict",
		Long: `Show which devices the DeviceTaintRules in the files would taint and which pods
they would evict, without applying them.`,
		Example: `  # Whom would this rule evict?
  kubectl dra taints preview -f rule.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(files) == 0 {
				return usagef(helpHint(cmd), "read --filename: no file is given")
			}
			reader, err := reading.toReader(cmd, streams)
			if err != nil {
				return err
			}
			rules, err := snapshot.LoadObjects(cmd.Context(), files, reader.options)
			if err != nil {
				return err
			}
			if len(rules.TaintRules) == 0 {
				return usagef("Write objects of kind DeviceTaintRule.", "read %s: there is no DeviceTaintRule in it", strings.Join(files, ", "))
			}
			change := &ruleChange{reader: reader, streams: streams}
			from, err := reader.read(cmd.Context(), previewScope())
			if err != nil {
				return err
			}
			for _, rule := range rules.TaintRules {
				if _, err := change.preview(cmd.Context(), from.snap, rule); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "Read rules from this `FILE`; - is standard input. Can be repeated.")
	reading.addTo(cmd)
	reading.completeFlags(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

func newTaintsAdd(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := &ruleChangeFlags{reading: newReadingFlags(config)}
	cmd := &cobra.Command{
		Use:   "add KEY[=VALUE]:EFFECT",
		Short: "Taint devices by a DeviceTaintRule",
		Long: `Taint devices by a new DeviceTaintRule. EFFECT is NoSchedule (no more pods get
the devices), NoExecute (and those that have them are evicted) or None (it only
informs). Choose devices by at least one of --driver, --pool and --device.

First it shows which devices get the taint and which pods would be evicted. On a
terminal it asks before pods get evicted; elsewhere that needs --yes. A rule
that selects all devices of the cluster needs --all-devices.`,
		Example: `  # Take one device out of service, and evict whoever uses it
  kubectl dra taints add --driver gpu.example.com --pool gpu-04 --device gpu-3 \
    example.com/xid=79:NoExecute

  # No more pods for the devices of a node, those that run stay
  kubectl dra taints add --pool gpu-04 example.com/maintenance:NoSchedule

  # What would happen?
  kubectl dra taints add --pool gpu-04 example.com/maintenance:NoExecute \
    --dry-run=client`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := flags.toChange(cmd, streams)
			if err != nil {
				return err
			}
			rule, err := flags.rule(args[0])
			if err != nil {
				return err
			}
			return change.add(cmd.Context(), rule)
		},
	}
	cmd.Flags().StringVar(&flags.name, "name", "", "`NAME` of the rule. Without one it is made from the taint and the devices.")
	cmd.Flags().BoolVar(&flags.everything, "all-devices", false, "Taint all devices of the cluster.")
	flags.addTo(cmd)
	cmd.ValidArgsFunction = flags.reading.complete(proposeNewTaint)
	return cmd
}

func newTaintsRemove(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := &ruleChangeFlags{reading: newReadingFlags(config)}
	cmd := &cobra.Command{
		Use:   "remove (RULE | KEY[=VALUE][:EFFECT])",
		Short: "Remove DeviceTaintRules",
		Long: `Remove DeviceTaintRules: the one of that name, or those with the taint and, if
they are given, exactly the driver, pool and device.

Taints that a driver sets in its slices cannot be removed like this.`,
		Example: `  # By name
  kubectl dra taints remove gpu-02-memory-errors

  # By what the rule says
  kubectl dra taints remove example.com/maintenance:NoSchedule
  kubectl dra taints remove gpu.example.com/ecc \
    --driver gpu.example.com --pool gpu-02 --device gpu-3`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := flags.toChange(cmd, streams)
			if err != nil {
				return err
			}
			return change.remove(cmd.Context(), args[0], flags.selector())
		},
	}
	flags.addTo(cmd)
	cmd.ValidArgsFunction = flags.reading.complete(proposeRules)
	return cmd
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
		return nil, usagef("Write KEY[=VALUE]:EFFECT, for example example.com/xid=79:NoExecute.", "read taint %q: it has no effect", text)
	}
	selector := f.selector()
	switch {
	case selector == nil && !f.everything:
		return nil, usagef("Choose devices with --driver, --pool and --device, or say --all-devices if you mean all.",
			"taint %s: it would be on all devices of the cluster", text)
	case selector == nil:
		selector = &resourceapi.DeviceTaintSelector{}
	case f.everything:
		return nil, usagef("Leave one of them out.", "--all-devices does not go with --driver, --pool or --device")
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
		return "", "", "", usagef("Effects are NoSchedule, NoExecute and None.", "read taint %q: %q is no effect", text, name)
	}
	key, value, _ = strings.Cut(rest, "=")
	if key == "" {
		return "", "", "", usagef("Write KEY[=VALUE]:EFFECT, for example example.com/xid=79:NoExecute.", "read taint %q: it has no key", text)
	}
	return key, value, effect, nil
}

func (c *ruleChange) add(ctx context.Context, rule *resourceapi.DeviceTaintRule) error {
	from, err := c.reader.read(ctx, previewScope())
	if err != nil {
		return err
	}
	if slices.ContainsFunc(from.snap.TaintRules, func(r *resourceapi.DeviceTaintRule) bool { return r.Name == rule.Name }) {
		return usagef("Choose another name with --name, or remove the other first: kubectl dra taints remove "+rule.Name,
			"add DeviceTaintRule %s: there is one of that name", rule.Name)
	}
	evicted, err := c.preview(ctx, from.snap, rule)
	if err != nil {
		return err
	}
	if c.dryRun == dryRunClient {
		return c.say("DeviceTaintRule %s would be added (dry run)", rule.Name)
	}
	if c.dryRun == dryRunNone && evicted > 0 {
		if err := c.confirm(fmt.Sprintf("Evict %s?", counted(evicted, "pod"))); err != nil {
			return err
		}
	}
	rules, version, err := c.rules()
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(rule)
	if err != nil {
		return fmt.Errorf("write DeviceTaintRule %s: %w", rule.Name, err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion(version.String())
	unstructured.RemoveNestedField(object.Object, "status")
	if _, err := rules.Create(ctx, object, metav1.CreateOptions{DryRun: c.dryRunOption(), FieldManager: fieldManager}); err != nil {
		return fmt.Errorf("add DeviceTaintRule %s: %w", rule.Name, err)
	}
	return c.say("DeviceTaintRule %s added%s", rule.Name, c.suffix())
}

// fieldManager names this program to the API server as the author of changes.
const fieldManager = "kubectl-dra"

func (c *ruleChange) remove(ctx context.Context, what string, selector *resourceapi.DeviceTaintSelector) error {
	from, err := c.reader.read(ctx, scope{allNamespaces: true, only: []string{snapshot.ResourceTaintRules}})
	if err != nil {
		return err
	}
	chosen := rulesLike(from.snap.TaintRules, what, selector)
	if len(chosen) == 0 {
		return usagef("List what there is: kubectl dra taints --field-selector rule!=", "remove %q: there is no such DeviceTaintRule in %s", what, from.snap.Source)
	}
	if c.dryRun == dryRunClient {
		for _, rule := range chosen {
			if err := c.say("DeviceTaintRule %s would be removed (dry run)", rule.Name); err != nil {
				return err
			}
		}
		return nil
	}
	rules, _, err := c.rules()
	if err != nil {
		return err
	}
	for _, rule := range chosen {
		options := metav1.DeleteOptions{DryRun: c.dryRunOption()}
		if rule.UID != "" {
			options.Preconditions = metav1.NewUIDPreconditions(string(rule.UID))
		}
		if err := rules.Delete(ctx, rule.Name, options); err != nil {
			return fmt.Errorf("remove DeviceTaintRule %s: %w", rule.Name, err)
		}
		if err := c.say("DeviceTaintRule %s removed%s", rule.Name, c.suffix()); err != nil {
			return err
		}
	}
	return nil
}

// rulesLike finds rules by name or by what they say.
func rulesLike(rules []*resourceapi.DeviceTaintRule, what string, selector *resourceapi.DeviceTaintSelector) []*resourceapi.DeviceTaintRule {
	if selector == nil {
		for _, rule := range rules {
			if rule.Name == what {
				return []*resourceapi.DeviceTaintRule{rule}
			}
		}
	}
	key, value, effect, err := parseTaint(what)
	if err != nil {
		return nil
	}
	var chosen []*resourceapi.DeviceTaintRule
	for _, rule := range rules {
		taint := rule.Spec.Taint
		if taint.Key == key && (value == "" || taint.Value == value) && (effect == "" || taint.Effect == effect) &&
			(selector == nil || rule.Spec.DeviceSelector != nil && sameSelector(*rule.Spec.DeviceSelector, *selector)) {
			chosen = append(chosen, rule)
		}
	}
	return chosen
}

func sameSelector(a, b resourceapi.DeviceTaintSelector) bool {
	return ptr.Equal(a.Driver, b.Driver) && ptr.Equal(a.Pool, b.Pool) && ptr.Equal(a.Device, b.Device)
}

// previewScope is what tells what a rule would do.
func previewScope() scope {
	return scope{allNamespaces: true, only: stateReads(snapshot.ResourcePods)}
}

// preview shows what a rule would do, and counts the pods that it would evict.
func (c *ruleChange) preview(ctx context.Context, snap *snapshot.Snapshot, rule *resourceapi.DeviceTaintRule) (evicted int, err error) {
	rule = rule.DeepCopy()
	if rule.Spec.Taint.TimeAdded == nil {
		rule.Spec.Taint.TimeAdded = &metav1.Time{Time: snap.Now()}
	}
	amended := snap.With(&snapshot.Snapshot{TaintRules: []*resourceapi.DeviceTaintRule{rule}})
	alloc, err := allocator.New(ctx, amended)
	if err != nil {
		return 0, fmt.Errorf("set up the allocator: %w", err)
	}
	for _, taint := range inventory.New(alloc, amended).Taints() {
		if taint.Rule != rule.Name {
			continue
		}
		if err := render.TaintPreview(c.streams.Out, &taint, snap.Now()); err != nil {
			return 0, err
		}
		for _, pod := range taint.Pods {
			if pod.Evicted {
				evicted++
			}
		}
	}
	if selector := rule.Spec.DeviceSelector; selector != nil {
		for _, note := range noSuchDevices(snap, alloc, ptr.Deref(selector.Driver, ""), ptr.Deref(selector.Pool, ""), ptr.Deref(selector.Device, "")) {
			if err := c.say("Note: %s", note); err != nil {
				return 0, err
			}
		}
	}
	for _, gate := range []string{"DRADeviceTaints", "DRADeviceTaintRules"} {
		if !alloc.FeatureEnabled(gate) {
			if err := c.say("Note: the feature gate %s is off, so the rule would do nothing", gate); err != nil {
				return 0, err
			}
		}
	}
	for _, gap := range snap.Gaps {
		if !slices.Contains(previewScope().only, gap.Resource) {
			continue
		}
		note := "Note: " + gap.Reason
		if slices.Contains([]string{snapshot.ResourceSlices, snapshot.ResourceClaims, snapshot.ResourcePods}, gap.Resource) {
			note = "Note: there may be more: " + gap.Reason
		}
		if err := c.say("%s", note); err != nil {
			return 0, err
		}
	}
	return evicted, nil
}

// rules is the API for DeviceTaintRules in the version that the server has.
func (c *ruleChange) rules() (dynamic.ResourceInterface, schema.GroupVersion, error) {
	clients, err := snapshot.NewClients(c.reader.config)
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
	if c.dryRun == dryRunServer {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func (c *ruleChange) suffix() string {
	if c.dryRun == dryRunServer {
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
	if _, isTerminal := terminal(c.streams.In); !isTerminal {
		return usagef("Add --yes to do it, or --dry-run=client to see what would happen.", "%w: pods would be evicted, and there is no terminal to ask on", errNotConfirmed)
	}
	if _, err := fmt.Fprintf(c.streams.ErrOut, "%s [y/N] ", question); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	answer, err := bufio.NewReader(c.streams.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return usagef("", "%w", errNotConfirmed)
	}
	return nil
}

func (c *ruleChange) say(format string, args ...any) error {
	if _, err := fmt.Fprintln(c.streams.Out, render.Escape(fmt.Sprintf(format, args...))); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
