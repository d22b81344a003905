// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// readingFlags are the flags of every verb that reads a cluster or a snapshot.
type readingFlags struct {
	config            *genericclioptions.ConfigFlags
	paths             []string
	previews          []string
	gates             []string
	kubernetesVersion string
}

func newReadingFlags(config *genericclioptions.ConfigFlags) *readingFlags {
	return &readingFlags{config: config}
}

func (f *readingFlags) addTo(cmd *cobra.Command) {
	group(cmd.Flags(), groupReading, func(flags *pflag.FlagSet) {
		flags.StringArrayVar(&f.paths, "snapshot", nil,
			"Read the file or directory `PATH` instead of a cluster; - is standard input. YAML or JSON, "+
				"also in .gz or .tar.gz: what 'kubectl dra snapshot' or 'kubectl get -o yaml' wrote. Can be repeated.")
		flags.StringSliceVar(&f.gates, "feature-gates", nil,
			"Feature `GATES`, a list like NAME=true,NAME=false; override the detected ones.")
		flags.StringVar(&f.kubernetesVersion, "kubernetes-version", "",
			"`VERSION` of the cluster, for the defaults of its feature gates; overrides the detected one.")
	})
}

// addPreviewTo adds the flag for what a driver would publish.
func (f *readingFlags) addPreviewTo(cmd *cobra.Command) {
	group(cmd.Flags(), groupReading, func(flags *pflag.FlagSet) {
		flags.StringArrayVar(&f.previews, "with-preview", nil,
			"Assume that the ResourceSlices in this `FILE` are published, in place of those of the same pools and nodes; - is standard input. "+
				"What 'kubectl dra node-probe preview -o yaml' wrote. Can be repeated.")
	})
}

// reader reads from where the flags say.
type reader struct {
	config   *genericclioptions.ConfigFlags
	paths    []string
	previews []string
	options  snapshot.Options
	// preview is what previews have, once they were read.
	preview *snapshot.Snapshot
	// namespace is the one asked for with -n, empty if none was.
	namespace string
	streams   genericiooptions.IOStreams
}

// clusterOnly are the flags that choose a cluster or a user, which a file is
// no match for.
func clusterOnly() []string {
	return []string{"kubeconfig", "context", "cluster", "user", "server", "token", "as", "as-group", "as-uid"}
}

// nameRule says what names look like.
const nameRule = "Names have lower-case letters, digits, '-' and '.' only."

func (f *readingFlags) toReader(cmd *cobra.Command, streams genericiooptions.IOStreams) (*reader, error) {
	for _, name := range clusterOnly() {
		if len(f.paths) > 0 && cmd.Flags().Changed(name) {
			return nil, usagef("Leave one of them out.", "--snapshot and --%s: a file and a cluster cannot be read together", name)
		}
	}
	if err := onceStdin(f.paths, f.previews); err != nil {
		return nil, err
	}
	if namespace := *f.config.Namespace; namespace != "" {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return nil, usagef(nameRule, "read --namespace: %q is not a valid namespace name", namespace)
		}
	}
	gates, err := snapshot.ParseGates(f.gates)
	if err != nil {
		return nil, usagef("See --feature-gates.", "%w", err)
	}
	version := f.kubernetesVersion
	if version != "" {
		if version, err = snapshot.ParseVersion(version); err != nil {
			return nil, usagef("See --kubernetes-version.", "%w", err)
		}
	}
	return &reader{
		config:    f.config,
		paths:     f.paths,
		previews:  f.previews,
		options:   snapshot.Options{Gates: gates, KubernetesVersion: version, Stdin: streams.In},
		namespace: *f.config.Namespace,
		streams:   streams,
	}, nil
}

// onceStdin fails if standard input is to be read more than once.
func onceStdin(lists ...[]string) error {
	found := false
	for _, path := range slices.Concat(lists...) {
		if path == "-" && found {
			return usagef("Save the others to files.", "standard input can be read only once: - is named twice")
		}
		found = found || path == "-"
	}
	return nil
}

// live is true if a cluster is read and not a file.
func (r *reader) live() bool { return len(r.paths) == 0 }

// scope is what to read of a cluster. Files are always read as a whole.
type scope struct {
	target        *snapshot.ObjectRef
	allNamespaces bool
	// only are the resources that matter; empty for all.
	only []string
	// unread are fields that nobody is going to look at, by resource.
	unread map[string][]snapshot.Field
	// manifests are about to be applied: what can refuse them, and what they
	// depend on, is read. May be nil.
	manifests *snapshot.Snapshot
	// starting is set if pods that do not start on their nodes matter.
	starting bool
}

// usesVolumes reports whether a pod of the manifests has PersistentVolumeClaims.
func (s *scope) usesVolumes() bool {
	return s.manifests != nil && (slices.ContainsFunc(s.manifests.Pods, func(pod *corev1.Pod) bool { return snapshot.UsesVolumeClaims(&pod.Spec) }) ||
		slices.ContainsFunc(s.manifests.Workloads, func(w *snapshot.Workload) bool { return snapshot.UsesVolumeClaims(&w.Template.Spec) }))
}

// source is what was read, and what only its origin can tell.
type source struct {
	snap *snapshot.Snapshot
	// namespace is that of whatever is named without one; empty if a file was
	// read and nobody chose a namespace.
	namespace string
	// clients are those of the cluster; nil for a file.
	clients *snapshot.Clients
	// kindOf asks the cluster for the kind of a resource type; nil for a file.
	kindOf func(resource string) (string, error)
}

// read asks the cluster or loads the files, and lays the previews over it.
func (r *reader) read(ctx context.Context, what scope) (*source, error) {
	if len(r.previews) > 0 && r.preview == nil {
		var err error
		r.preview, err = snapshot.LoadPreview(ctx, r.previews, r.options)
		var input *snapshot.InputError
		if errors.As(err, &input) {
			return nil, usagef("--with-preview takes what 'kubectl dra node-probe preview -o yaml' writes.", "%w", err)
		}
		if err != nil {
			return nil, err
		}
	}
	from, err := r.readPublished(ctx, what)
	if err == nil && r.preview != nil {
		from.snap = from.snap.WithPreview(r.preview)
	}
	return from, err
}

// readPublished asks the cluster or loads the files.
func (r *reader) readPublished(ctx context.Context, what scope) (*source, error) {
	if !r.live() {
		snap, err := snapshot.Load(ctx, r.paths, r.options)
		if err != nil {
			return nil, err
		}
		return &source{snap: snap, namespace: r.namespace}, nil
	}
	clients, err := snapshot.NewClients(r.config)
	if err != nil {
		// Nothing was sent yet: it is the flags or the kubeconfig.
		return nil, usagef("Check --kubeconfig, --context and the other flags, or read a saved cluster with --snapshot.", "%w", err)
	}
	bar := newProgress(r.streams.ErrOut, clients.Address())
	defer bar.done()
	snap, err := snapshot.Collect(ctx, clients, snapshot.CollectOptions{
		Options:       r.options,
		Namespace:     clients.Namespace,
		AllNamespaces: what.allNamespaces,
		Only:          what.only,
		Unread:        what.unread,
		Target:        what.target,
		Creates:       what.manifests != nil,
		UsesVolumes:   what.usesVolumes(),
		Starting:      what.starting,
		Progress:      bar.report,
	})
	if err != nil {
		return nil, err
	}
	kindOf := func(resource string) (string, error) {
		mapping, err := clients.Resolve(resource)
		if err != nil {
			return "", err
		}
		return mapping.GroupVersionKind.Kind, nil
	}
	return &source{snap: snap, namespace: clients.Namespace, clients: &clients, kindOf: kindOf}, nil
}
