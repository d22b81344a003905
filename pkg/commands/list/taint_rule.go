// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// RuleFlags are the flags that, with a taint, describe a DeviceTaintRule.
type RuleFlags struct {
	Driver, Pool, Device string
	// Name is the name of the rule, empty to make one.
	Name string
	// All is true for a rule for all devices of the cluster.
	All bool
}

// AddTo adds the flags that choose devices; does is the verb for their help.
func (f *RuleFlags) AddTo(flags *pflag.FlagSet, does string) {
	flags.StringVar(&f.Driver, "driver", "", does+" devices of this `DRIVER`.")
	flags.StringVar(&f.Pool, "pool", "", does+" devices of this `POOL`.")
	flags.StringVar(&f.Device, "device", "", does+" devices named `DEVICE`.")
}

// Selector returns the selector of the flags, nil if they choose nothing.
func (f *RuleFlags) Selector() *resourceapi.DeviceTaintSelector {
	if f.Driver == "" && f.Pool == "" && f.Device == "" {
		return nil
	}
	given := func(value string) *string {
		if value == "" {
			return nil
		}
		return &value
	}
	return &resourceapi.DeviceTaintSelector{Driver: given(f.Driver), Pool: given(f.Pool), Device: given(f.Device)}
}

// Rule returns the DeviceTaintRule that the command line describes.
func (f *RuleFlags) Rule(text string) (*resourceapi.DeviceTaintRule, error) {
	key, value, effect, err := ParseTaint(text)
	if err != nil {
		return nil, err
	}
	if effect == "" {
		return nil, cli.Usagef("Write KEY[=VALUE]:EFFECT, for example example.com/xid=79:NoExecute.", "read taint %q: it has no effect", text)
	}
	selector := f.Selector()
	switch {
	case selector == nil && !f.All:
		return nil, cli.Usagef("Choose devices with --driver, --pool and --device, or say --all-devices if you mean all.",
			"taint %s: it would be on all devices of the cluster", text)
	case selector == nil:
		selector = &resourceapi.DeviceTaintSelector{}
	case f.All:
		return nil, cli.Usagef("Leave one of them out.", "--all-devices does not go with --driver, --pool or --device")
	}
	rule := &resourceapi.DeviceTaintRule{
		TypeMeta: metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "DeviceTaintRule"},
		Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: selector,
			Taint:          resourceapi.DeviceTaint{Key: key, Value: value, Effect: effect},
		},
	}
	rule.Name = cmp.Or(f.Name, ruleName(f.Pool, f.Device, f.Driver, key))
	return rule, nil
}

// ruleName makes a name that describes the rule.
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

// ParseTaint parses KEY[=VALUE][:EFFECT].
func ParseTaint(text string) (key, value string, effect resourceapi.DeviceTaintEffect, err error) {
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

// OneTaint fails unless there is one argument. Devices are chosen with flags.
func OneTaint(_ *cobra.Command, args []string) error {
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

// ProposeTaint proposes the keys in use, and the effects after them.
func ProposeTaint(ctx context.Context, c *cli.Completion) ([]string, error) {
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

// Rules is the API for DeviceTaintRules in the version that a server has.
type Rules struct {
	client  dynamic.ResourceInterface
	version schema.GroupVersion
}

// RulesOf asks a server for the version.
func RulesOf(clients collect.Clients) (*Rules, error) {
	mapping, err := clients.Mapper.RESTMapping(schema.GroupKind{Group: "resource.k8s.io", Kind: "DeviceTaintRule"})
	if err != nil {
		return nil, fmt.Errorf("find DeviceTaintRules at %s: %w", clients.Address(), err)
	}
	return &Rules{clients.Dynamic.Resource(mapping.Resource), mapping.GroupVersionKind.GroupVersion()}, nil
}

// Create adds a rule; dryRun has the API's options.
func (r *Rules) Create(ctx context.Context, rule *resourceapi.DeviceTaintRule, dryRun ...string) (*unstructured.Unstructured, error) {
	object, err := objectOf(rule)
	if err != nil {
		return nil, err
	}
	object.SetAPIVersion(r.version.String())
	added, err := r.client.Create(ctx, object, metav1.CreateOptions{DryRun: dryRun, FieldManager: cli.FieldManager})
	if err != nil {
		return nil, fmt.Errorf("add DeviceTaintRule %s: %w", rule.Name, err)
	}
	added.SetManagedFields(nil)
	return added, nil
}

// Delete deletes a rule, if it is still the same one.
func (r *Rules) Delete(ctx context.Context, rule *resourceapi.DeviceTaintRule, dryRun ...string) error {
	options := metav1.DeleteOptions{DryRun: dryRun}
	if rule.UID != "" {
		options.Preconditions = metav1.NewUIDPreconditions(string(rule.UID))
	}
	if err := r.client.Delete(ctx, rule.Name, options); err != nil {
		return fmt.Errorf("remove DeviceTaintRule %s: %w", rule.Name, err)
	}
	return nil
}

// objectOf returns a rule in the form for the server.
func objectOf(rule *resourceapi.DeviceTaintRule) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(rule)
	if err != nil {
		return nil, fmt.Errorf("write DeviceTaintRule %s: %w", rule.Name, err)
	}
	object := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	return object, nil
}
