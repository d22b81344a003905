// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/tables"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// NewUsage returns the verb that lists who uses devices.
func NewUsage(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	type usage = *api.Usage
	var since string
	cmd := &cobra.Command{
		Use:   "usage [NAME ...]",
		Short: "List who uses devices, and who waits for them",
		Long: `List how many devices each namespace uses, the largest use first: its share of
all devices in use, the pods that wait and for how long the first of them does,
and the devices that are idle. --by owner has workloads, --by label=KEY the
values of a label of the pods or, where they have none, of the claims or of the
namespaces.

IDLE counts devices of claims without a pod that is still there; IDLE FOR is how
long the first of them is: since the last pod has ended or, without a pod, since
the allocation. A claim that only a finished pod names keeps its devices until
it is deallocated.

A device that two claims of a group share counts once. ≥ and ? mark what may be
more, or is not known, where claims or pods could not be read. Shares are of the
whole cluster, also with -n.

With a recording, --since adds up the hours of used devices, of idle ones and of
waiting pods up to its end, or up to --at. Times in which the cluster was not
recorded do not count.`,
		Example: `  # Which namespace uses how many devices?
  kubectl dra usage -A

  # Which workload, and what is idle?
  kubectl dra usage -A --by owner --sort-by .idle

  # By team
  kubectl dra usage -A --by label=team

  # Who used how many device hours, and left how many idle?
  kubectl dra usage -A --snapshot cluster.rec --since 24h

  # How much of each class?
  kubectl dra usage -A -o \
    jsonpath='{range .items[*].classes[*]}{.class} {.used}{"\n"}{end}'`,
	}
	cmd.Flags().StringVar(&since, "since", "", "Add up the hours of a recording since this `TIME`, as for --at.")
	return newCommand(streams, config, cmd, listing[usage]{
		name: "Usage", plural: "uses of devices",
		names:     func(u usage) []string { return []string{u.Name} },
		fields:    []field[usage]{{name: "name", of: func(u usage) string { return u.Name }}},
		uncertain: func(u usage) bool { return u.UsedIsLowerBound || u.PodsAreUnknown },
		ageless: func(u usage) {
			u.LongestSeconds, u.IdleSeconds = 0, 0
			for i := range u.Classes {
				u.Classes[i].LongestSeconds = 0
			}
		},
		labelsOf: "the pods or, where they have none, of the claims or of the namespaces", groupedBy: []string{groupNamespace, "owner"}, namespaced: true,

		proposes: cli.Propose("namespace"),
		reads: []string{
			snapshot.ResourceClaims, snapshot.ResourcePods, snapshot.ResourceTemplates, snapshot.ResourceClasses,
			snapshot.ResourceNodes, snapshot.ResourceNamespaces, snapshot.ResourceMetrics,
		},
		asks:   []string{snapshot.ResourceClaims},
		unused: inventory.UnusedByUsage(),
		prepare: func(o *lister[usage]) error {
			if since != "" && o.reader.Live() {
				return cli.NeedsRecording()
			}
			o.reader.SaysSource = since != ""
			return nil
		},
		items: func(ctx context.Context, from *listed) ([]usage, error) {
			of := inventory.UsageOf{By: from.asked.by, Namespace: from.Namespace, Labels: from.asked.byLabels}
			if from.asked.allNamespaces {
				of.Namespace = ""
			}
			if since != "" {
				list, err := usageSince(ctx, from, since, of)
				return pointers(list), err
			}
			return pointers(from.inventory.UsageBy(of)), nil
		},
		table: func(items []usage, from *listed) *metav1.Table {
			return tables.Usage(items, strings.TrimPrefix(from.asked.by, labelGroup))
		},
		total: func(items []usage, _ *listed) string { return tables.UsageTotal(inventory.TotalOfUsage(items)) },
	})
}

// usageSince adds up the usage of a recording.
func usageSince(ctx context.Context, from *listed, since string, of inventory.UsageOf) ([]api.Usage, error) {
	begin, err := cli.ParseTime(since, from.Snap.TakenAt, time.Local)
	if err != nil {
		return nil, err
	}
	moments, err := from.asked.reader.Moments(ctx, begin)
	if err != nil {
		return nil, err
	}
	var hours inventory.UsageHours
	var c *cluster.Cluster
	var list []api.Usage
	var first, last time.Time
	for m, err := range moments {
		if err != nil {
			return nil, err
		}
		if m.Missed != nil && c != nil {
			hours.Add(m.Missed.Since, false, list)
		}
		changed := true
		if c == nil {
			c = cluster.New(m.Snapshot)
		} else {
			before := c.Snapshot
			changed = !snapshot.SameList(before.Claims, m.Snapshot.Claims) || !snapshot.SameList(before.Pods, m.Snapshot.Pods)
			c = c.Amended(m.Snapshot)
		}
		if changed {
			list = inventory.New(c).UsageBy(of)
		}
		at := m.Snapshot.TakenAt
		if at.Before(begin) {
			at = begin
		}
		if first.IsZero() {
			first = at
		}
		hours.Add(at, m.Missed != nil, list)
		last = at
	}
	// The groups and the ages are taken from the last state.
	hours.Add(last, false, inventory.New(c).UsageBy(of))
	note := "from " + first.Local().Format(time.DateTime) + " to " + last.Local().Format(time.DateTime)
	if missed := last.Sub(first) - hours.Known; missed > 0 {
		note += "; without " + duration.HumanDuration(missed) + " that were not recorded"
	}
	from.notes = append(from.notes, note)
	return hours.Usage(of.By), nil
}
