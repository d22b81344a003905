// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// ReadingFlags are the flags of every verb that reads a cluster or a snapshot.
type ReadingFlags struct {
	Config            *genericclioptions.ConfigFlags
	Paths             []string
	Previews          []string
	gates             []string
	kubernetesVersion string
	allNamespaces     bool
	at                string
}

// NewReadingFlags returns the flags, with kubectl's own in config.
func NewReadingFlags(config *genericclioptions.ConfigFlags) *ReadingFlags {
	return &ReadingFlags{Config: config}
}

// AddTo adds the flags of every verb that reads. List verbs have their own
// --all-namespaces.
func (f *ReadingFlags) AddTo(cmd *cobra.Command) {
	AddFlags(cmd.Flags(), GroupReading, func(flags *pflag.FlagSet) {
		flags.StringArrayVar(&f.Paths, "snapshot", nil,
			"Read the file or directory `PATH` instead of a cluster; - is standard input. YAML or JSON, "+
				"also in .gz or .tar.gz: what 'kubectl dra snapshot' or 'kubectl get -o yaml' wrote. Can be repeated. "+
				"Or one recording, which 'kubectl dra record' wrote.")
		flags.StringVar(&f.at, "at", "",
			"`TIME` of a recording to look at, instead of its end: 2026-09-01T09:14:00Z, 09:14 (local time, the last one in it), or 2h before the end.")
		flags.StringSliceVar(&f.gates, "feature-gates", nil,
			"Feature `GATES`, a list like NAME=true,NAME=false; override the detected ones.")
		flags.StringVar(&f.kubernetesVersion, "kubernetes-version", "",
			"`VERSION` of the cluster, for the defaults of its feature gates; overrides the detected one.")
	})
	if cmd.Flags().Lookup("all-namespaces") == nil {
		AddFlags(cmd.Flags(), GroupCluster, func(flags *pflag.FlagSet) {
			flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "Look at all namespaces, also with --namespace.")
		})
	}
}

// AddPreviewTo adds the flag for previewed slices.
func (f *ReadingFlags) AddPreviewTo(cmd *cobra.Command) {
	AddFlags(cmd.Flags(), GroupReading, func(flags *pflag.FlagSet) {
		flags.StringArrayVar(&f.Previews, "with-preview", nil,
			"Assume that the ResourceSlices in this `FILE` are published, in place of those of the same pools and nodes; - is standard input. "+
				"What 'kubectl dra node-probe preview -o yaml' wrote. Can be repeated.")
	})
}

// clusterOnly returns the flags that choose a cluster or a user, which do not go with a
// file.
func clusterOnly() []string {
	return []string{"kubeconfig", "context", "cluster", "user", "server", "token", "as", "as-group", "as-uid"}
}

// ToReader checks the flags. Nothing is read yet.
func (f *ReadingFlags) ToReader(cmd *cobra.Command, streams genericiooptions.IOStreams) (*Reader, error) {
	for _, name := range clusterOnly() {
		if len(f.Paths) > 0 && cmd.Flags().Changed(name) {
			return nil, Usagef("Leave one of them out.", "--snapshot and --%s: a file and a cluster cannot be read together", name)
		}
	}
	if f.at != "" && len(f.Paths) == 0 {
		return nil, Usagef("Name the recording with --snapshot FILE.", "--at is for a recording, not for a cluster")
	}
	if err := OnceStdin(f.Paths, f.Previews); err != nil {
		return nil, err
	}
	if namespace := *f.Config.Namespace; namespace != "" {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return nil, Usagef(NameRule, "read --namespace: %q is not a valid namespace name", namespace)
		}
	}
	gates, err := snapshot.ParseGates(f.gates)
	if err != nil {
		return nil, Usagef("See --feature-gates.", "%w", err)
	}
	version := f.kubernetesVersion
	if version != "" {
		if version, err = snapshot.ParseVersion(version); err != nil {
			return nil, Usagef("See --kubernetes-version.", "%w", err)
		}
	}
	// A note that cannot be printed does not prevent the answer.
	leftOut := func(note string) { _ = PrintNotes(streams, note) }
	only := *f.Config.Namespace
	if f.allNamespaces {
		only = ""
	}
	namespace := *f.Config.Namespace
	if everywhere, err := cmd.Flags().GetBool("all-namespaces"); err == nil && everywhere {
		namespace = ""
	}
	return &Reader{
		namespace: namespace,
		Only:      only,
		Config:    f.Config,
		paths:     f.Paths,
		at:        f.at,
		previews:  f.Previews,
		Options:   files.Options{Gates: gates, KubernetesVersion: version, Stdin: streams.In, LeftOut: leftOut},
		Namespace: *f.Config.Namespace,
		streams:   streams,
	}, nil
}

// OnceStdin fails if standard input is to be read more than once.
func OnceStdin(lists ...[]string) error {
	found := false
	for _, path := range slices.Concat(lists...) {
		if path == "-" && found {
			return Usagef("Save the others to files.", "standard input can be read only once: - is named twice")
		}
		found = found || path == "-"
	}
	return nil
}

// Scope says which objects of a cluster to read. Files are always read as a whole.
type Scope struct {
	Target        *snapshot.Argument
	AllNamespaces bool
	// Only are the needed resources; empty for all.
	Only []string
	// Unused are unused fields, by resource.
	Unused map[string][]kinds.Field
	// Manifests are about to be applied: objects that can refuse them, and their
	// dependencies, are read. May be nil.
	Manifests *snapshot.Snapshot
	// Creates is set if the question concerns pods or claims that do not exist yet: objects
	// that can refuse them are read.
	Creates bool
	// Evicts is set if pods are about to be evicted: objects that may delay that are read.
	Evicts bool
	// Ends is set if the time until which pods run matters.
	Ends bool
	// Starting is set if pods that do not start on their nodes matter.
	Starting bool
	// Health is set for a question about problems.
	Health bool
	// Admission is set if it matters which pods Kueue holds back.
	Admission bool
	// ComputeDomains is set if the ComputeDomains of claims matter.
	ComputeDomains bool
	// DevicePlugins is set if it matters how device plugins divide devices.
	DevicePlugins bool
	// Scaling is set if another number of pods of the target may be proposed.
	Scaling bool
}

// WithCauses returns a scope with what it takes, besides, to find the causes of a cluster.
func (s Scope) WithCauses() Scope {
	s.Starting, s.Health, s.Admission, s.ComputeDomains = true, true, true, true
	return s
}

// usesVolumes reports whether a pod of the manifests has PersistentVolumeClaims.
func (s *Scope) usesVolumes() bool {
	return s.Manifests != nil && (slices.ContainsFunc(s.Manifests.Pods, func(pod *corev1.Pod) bool { return snapshot.UsesVolumeClaims(&pod.Spec) }) ||
		slices.ContainsFunc(s.Manifests.Workloads, func(w *snapshot.Workload) bool { return snapshot.UsesVolumeClaims(&w.Template.Spec) }))
}

// NamespaceGone reports whether a namespace is known not to exist.
func (s *Source) NamespaceGone(namespace string) bool {
	return namespace != "" && s.Snap.NamespaceGone(namespace)
}

// Read reads the cluster or the files, and adds the previews.
func (r *Reader) Read(ctx context.Context, what Scope) (*Source, error) {
	if len(r.previews) > 0 && r.preview == nil {
		var err error
		r.preview, err = files.Preview(ctx, r.previews, r.Options)
		var input *files.InputError
		if errors.As(err, &input) {
			return nil, Usagef("--with-preview takes what 'kubectl dra node-probe preview -o yaml' writes.", "%w", err)
		}
		if err != nil {
			return nil, err
		}
	}
	from, err := r.readPublished(ctx, what)
	if err == nil && r.preview != nil {
		from.Snap = snapshot.WithPreview(from.Snap, r.preview)
	}
	if err == nil && what.Target == nil && what.Manifests == nil && len(from.Snap.Namespaces)+len(r.paths) > 0 {
		err = from.AbsentNamespace(ctx, r.namespace)
	}
	return from, err
}

// largeYAML is an amount of YAML that takes seconds to read.
const largeYAML = 32 << 20

// yamlNote suggests how to read a large cluster faster.
func (r *Reader) yamlNote(size int64) string {
	note := fmt.Sprintf("reading %d MiB of YAML takes several times as long as JSON", size>>20)
	from := ""
	for _, path := range r.paths {
		if path == "-" {
			return note + "; save clusters with: kubectl dra snapshot -o cluster.json.gz"
		}
		from += " --snapshot " + shell.Quote(path)
	}
	return note + "; to save it as JSON: kubectl dra snapshot" + from + " -o cluster.json.gz"
}

// readPublished reads the cluster or the files.
func (r *Reader) readPublished(ctx context.Context, what Scope) (*Source, error) {
	if !r.Live() {
		options, yaml := r.Options, int64(0)
		options.YAML = func(size int64) { yaml = size }
		bar := NewProgress(r.streams.ErrOut, "Reading "+strings.Join(r.paths, ", "))
		snap, err := r.ReadFiles(ctx, r.paths, r.at, options)
		bar.Done()
		if err == nil && yaml >= largeYAML {
			err = PrintNotes(r.streams, r.yamlNote(yaml))
		}
		if err != nil {
			return nil, err
		}
		return &Source{Snap: snap, Namespace: r.Namespace}, nil
	}
	clients, err := collect.NewClients(r.Config)
	if err != nil {
		// Nothing was sent yet: the flags or the kubeconfig are wrong.
		return nil, Usagef("Check --kubeconfig, --context and the other flags, or read a saved cluster with --snapshot.", "%w", err)
	}
	bar := NewProgress(r.streams.ErrOut, "Asking API server "+clients.Address())
	defer bar.Done()
	snap, err := collect.Collect(ctx, clients, collect.Options{
		Gates: r.Options.Gates, KubernetesVersion: r.Options.KubernetesVersion,
		Namespace:      clients.Namespace,
		AllNamespaces:  what.AllNamespaces,
		Only:           what.Only,
		Unused:         what.Unused,
		Target:         what.Target,
		Creates:        what.Creates || what.Manifests != nil,
		UsesVolumes:    what.usesVolumes(),
		Evicts:         what.Evicts,
		Ends:           what.Ends,
		Starting:       what.Starting,
		Health:         what.Health,
		Admission:      what.Admission,
		ComputeDomains: what.ComputeDomains,
		DevicePlugins:  what.DevicePlugins,
		Scaling:        what.Scaling,
		Progress:       bar.Report,
	})
	if err != nil {
		return nil, err
	}
	kindOf := func(resource string) (schema.GroupKind, error) {
		mapping, err := clients.Resolve(resource)
		if err != nil {
			return schema.GroupKind{}, err
		}
		return mapping.GroupVersionKind.GroupKind(), nil
	}
	return &Source{Snap: snap, Namespace: clients.Namespace, Clients: &clients, KindOf: kindOf}, nil
}
