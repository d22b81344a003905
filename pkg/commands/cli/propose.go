// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// Propose proposes the names of objects of a type, as users write them: objects in the
// namespace of the question, and of pods only candidates that may need devices.
func Propose(resource string) Proposer {
	return func(ctx context.Context, c *Completion) ([]string, error) {
		if c.Reader.Live() {
			return liveNames(ctx, c, resource)
		}
		from, err := c.read(ctx)
		if err != nil {
			return nil, err
		}
		return namesIn(from.Snap, c.namespace(from.Namespace), fullResource(resource)), nil
	}
}

// namespace returns the namespace of the names, empty for all.
func (c *Completion) namespace(chosen string) string {
	if c.flag("all-namespaces") == "true" {
		return ""
	}
	return chosen
}

// liveNames asks a cluster only for names, if they are enough.
func liveNames(ctx context.Context, c *Completion, resource string) ([]string, error) {
	clients, err := collect.NewClients(c.Reader.Config)
	if err != nil {
		return nil, err
	}
	namespace := c.namespace(clients.Namespace)
	if !names(fullResource(resource), corev1.SchemeGroupVersion.WithKind(api.KindPod)) {
		return clients.Names(ctx, aliasOf(resource), namespace)
	}
	pods, err := clients.Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var names []string
	for i := range pods.Items {
		if mayUseDevices(&pods.Items[i]) {
			names = append(names, pods.Items[i].Name)
		}
	}
	return names, nil
}

// aliasOf returns the cluster's name of a type with a short name of this program.
func aliasOf(resource string) string {
	switch resource {
	case "class":
		return snapshot.ResourceClasses
	case "slice":
		return snapshot.ResourceSlices
	case nameRule:
		return snapshot.ResourceTaintRules
	default:
		return resource
	}
}

// sliceParts are the names in one ResourceSlice.
type sliceParts struct {
	driver, pool string
	devices      []string
}

// slices reads the ResourceSlices, restricted by the flags --driver, --pool and --node,
// each for the other flags.
func (c *Completion) slices(ctx context.Context) ([]sliceParts, error) {
	from, err := c.read(ctx, snapshot.ResourceSlices)
	if err != nil {
		return nil, err
	}
	driver, pool, node := c.flag("driver"), c.flag("pool"), c.flag("node")
	var list []sliceParts
	for _, slice := range from.Snap.Slices {
		if driver != "" && slice.Spec.Driver != driver || pool != "" && slice.Spec.Pool.Name != pool ||
			node != "" && ptr.Deref(slice.Spec.NodeName, "") != node {
			continue
		}
		parts := sliceParts{driver: slice.Spec.Driver, pool: slice.Spec.Pool.Name}
		for i := range slice.Spec.Devices {
			parts.devices = append(parts.devices, slice.Spec.Devices[i].Name)
		}
		list = append(list, parts)
	}
	return list, nil
}

// proposeSliceParts proposes names that are in slices.
func proposeSliceParts(of func(sliceParts) []string) Proposer {
	return func(ctx context.Context, c *Completion) ([]string, error) {
		parts, err := c.slices(ctx)
		var list []string
		for _, part := range parts {
			list = append(list, of(part)...)
		}
		return list, err
	}
}

// ProposeDevices proposes DRIVER/POOL/DEVICE, or another name of a device, part by part as
// for paths of files.
func ProposeDevices(ctx context.Context, c *Completion) ([]string, error) {
	parts, err := c.slices(ctx)
	var full, short, bare []string
	for _, part := range parts {
		for _, device := range part.devices {
			full = append(full, part.driver+"/"+part.pool+"/"+device)
			short = append(short, part.pool+"/"+device)
			bare = append(bare, device)
		}
	}
	return nextParts(c.Typed, full, short, bare), err
}

// ProposePools proposes names of pools, or DRIVER/POOL after a slash.
func ProposePools(ctx context.Context, c *Completion) ([]string, error) {
	parts, err := c.slices(ctx)
	var full, bare []string
	for _, part := range parts {
		full = append(full, part.driver+"/"+part.pool)
		bare = append(bare, part.pool)
	}
	if c.Typed == "" {
		return bare, err
	}
	return nextParts(c.Typed, bare, full), err
}

// nextParts cuts names after the part that is being typed. Of several forms of names, the
// first that matches the typed text counts.
func nextParts(typed string, forms ...[]string) []string {
	for _, names := range forms {
		var list []string
		for _, name := range names {
			rest, ok := strings.CutPrefix(name, typed)
			if !ok {
				continue
			}
			if i := strings.IndexByte(rest, '/'); i >= 0 {
				rest = rest[:i+1]
			}
			if rest != "" || len(list) == 0 {
				list = append(list, typed+rest)
			}
		}
		if len(list) > 0 {
			return list
		}
	}
	return nil
}

// proposeAttributes proposes columns of devices: attributes and capacities, without the
// domain if it is the driver's.
func proposeAttributes(ctx context.Context, c *Completion) ([]string, error) {
	from, err := c.read(ctx, snapshot.ResourceSlices)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	eachPublished(from.Snap, func(driver string, name resourceapi.QualifiedName) {
		found[strings.TrimPrefix(string(name), driver+"/")] = true
	})
	return Continued(c.Typed, slices.Collect(maps.Keys(found))), nil
}

// ProposeAttributes proposes attributes and capacities by their qualified names.
func ProposeAttributes(ctx context.Context, c *Completion) ([]string, error) {
	from, err := c.read(ctx, snapshot.ResourceSlices)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	eachPublished(from.Snap, func(driver string, name resourceapi.QualifiedName) { found[selector.Qualified(name, driver)] = true })
	return slices.Collect(maps.Keys(found)), nil
}

// ProposeRules proposes names of DeviceTaintRules and the keys of their taints.
func ProposeRules(ctx context.Context, c *Completion) ([]string, error) {
	rules, keys, err := c.Taints(ctx, snapshot.ResourceTaintRules)
	return append(rules, keys...), err
}

// ProposeTaints proposes keys of taints, including taints in slices, and names of rules.
func ProposeTaints(ctx context.Context, c *Completion) ([]string, error) {
	rules, keys, err := c.Taints(ctx, snapshot.ResourceTaintRules, snapshot.ResourceSlices)
	return append(rules, keys...), err
}

// Taints reads the names of rules, and the keys of taints of the resources.
func (c *Completion) Taints(ctx context.Context, resources ...string) (rules, keys []string, err error) {
	from, err := c.read(ctx, resources...)
	if err != nil {
		return nil, nil, err
	}
	for _, rule := range from.Snap.TaintRules {
		rules = append(rules, rule.Name)
		keys = append(keys, rule.Spec.Taint.Key)
	}
	if !slices.Contains(resources, snapshot.ResourceSlices) {
		return rules, keys, nil
	}
	for _, slice := range from.Snap.Slices {
		for i := range slice.Spec.Devices {
			for _, taint := range slice.Spec.Devices[i].Taints {
				keys = append(keys, taint.Key)
			}
		}
	}
	return rules, keys, nil
}

// proposeFromKubeconfig proposes names that are in the kubeconfig.
func proposeFromKubeconfig(of func(clientcmdapi.Config) iter.Seq[string]) Proposer {
	return func(_ context.Context, c *Completion) ([]string, error) {
		config, err := collect.Kubeconfig(c.Reader.Config).RawConfig()
		return slices.Collect(of(config)), err
	}
}

// ProposeTargets proposes targets: types with a slash, names of claims, and names after a
// type.
func ProposeTargets(ctx context.Context, c *Completion) ([]string, error) {
	if kind, typed, slashed := strings.Cut(c.Typed, "/"); slashed {
		switch usedKind(kind) {
		case api.KindDevice:
			of := &Completion{Cmd: c.Cmd, Args: c.Args, Typed: typed, Reader: c.Reader}
			return WithType(ctx, of, kind, ProposeDevices)
		case api.KindNode:
			return WithType(ctx, c, kind, Propose("node"))
		}
		if kindWithoutPods(kind) != "" {
			return nil, nil
		}
		return WithType(ctx, c, kind, Propose(kind))
	}
	if len(c.Args) > 0 && !strings.Contains(c.Args[0], "/") {
		if !IsType(c.Args[0]) {
			return nil, nil
		}
		return Propose(c.Args[0])(ctx, c)
	}
	types := []string{"claim/", "pod/", "template/", "device/", "node/"}
	for _, kind := range builtInTargets() {
		if kind.Group != "resource.k8s.io" && kind.Kind != "Pod" {
			types = append(types, strings.ToLower(kind.Kind)+"/")
		}
	}
	c.offer(types...)
	if len(c.Args) > 0 {
		return nil, nil
	}
	return Propose("claim")(ctx, c)
}

// WithType puts "TYPE/" before the names.
func WithType(ctx context.Context, c *Completion, kind string, propose Proposer) ([]string, error) {
	list, err := propose(ctx, c)
	for i := range list {
		list[i] = kind + "/" + list[i]
	}
	return list, err
}

// CompleteFlags completes the values of those flags that a command has.
func CompleteFlags(f *ReadingFlags, cmd *cobra.Command) {
	gates := make([]string, 0, 2*len(snapshot.KnownGates()))
	for _, gate := range snapshot.KnownGates() {
		gates = append(gates, gate+"=true", gate+"=false")
	}
	device := CompleteWith(f, ProposeDevices)
	if cmd.Flags().Lookup("driver") != nil {
		// There, the three flags together name a device.
		device = CompleteWith(f, proposeSliceParts(func(s sliceParts) []string { return s.devices }))
	}
	values := map[string]cobra.CompletionFunc{
		"node":               CompleteWith(f, Propose("node")),
		"class":              CompleteWith(f, Propose("class")),
		"driver":             CompleteWith(f, proposeSliceParts(func(s sliceParts) []string { return []string{s.driver} })),
		"pool":               CompleteWith(f, proposeSliceParts(func(s sliceParts) []string { return []string{s.pool} })),
		"device":             device,
		"columns":            CompleteWith(f, proposeAttributes),
		"feature-gates":      ListOfFixed(gates...),
		"color":              Fixed(ColorAuto, ColorAlways, ColorNever),
		"dry-run":            Fixed(DryRuns()...),
		"format":             Fixed(string(files.YAML), string(files.JSON)),
		"where":              cobra.NoFileCompletions,
		"name":               cobra.NoFileCompletions,
		"selector":           cobra.NoFileCompletions,
		"limit":              cobra.NoFileCompletions,
		"sort-by":            cobra.NoFileCompletions,
		"kubernetes-version": cobra.NoFileCompletions,
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if cmd.Flags().Lookup(name) != nil {
			// RegisterFlagCompletionFunc only fails for duplicates.
			_ = cmd.RegisterFlagCompletionFunc(name, values[name])
		}
	}
}

// CompleteClusterFlags completes kubectl's own flags whose values are names, for all
// commands.
func CompleteClusterFlags(f *ReadingFlags, root *cobra.Command) {
	values := map[string]cobra.CompletionFunc{
		"namespace": CompleteWith(f, Propose("namespace")),
		"context":   CompleteWith(f, proposeFromKubeconfig(func(c clientcmdapi.Config) iter.Seq[string] { return maps.Keys(c.Contexts) })),
		"cluster":   CompleteWith(f, proposeFromKubeconfig(func(c clientcmdapi.Config) iter.Seq[string] { return maps.Keys(c.Clusters) })),
		"user":      CompleteWith(f, proposeFromKubeconfig(func(c clientcmdapi.Config) iter.Seq[string] { return maps.Keys(c.AuthInfos) })),
	}
	for name, value := range values {
		_ = root.RegisterFlagCompletionFunc(name, value)
	}
}
