// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/names"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
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

// rules is the API for DeviceTaintRules in the version that the server has.
func (c *ruleChange) rules() (dynamic.ResourceInterface, schema.GroupVersion, error) {
	clients, err := collect.NewClients(c.reader.Config)
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
