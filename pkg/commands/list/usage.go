// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// NewUsage returns the verb that lists who uses devices.
func NewUsage(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := newListFlags(config, usageKind())
	flags.groupNames, flags.labelGroups, flags.by = []string{groupNamespace, "owner"}, true, groupNamespace
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
whole cluster, also with -n.`,
		Example: `  # Which namespace uses how many devices?
  kubectl dra usage -A

  # Which workload, and what is idle?
  kubectl dra usage -A --by owner --sort-by .idle

  # By team
  kubectl dra usage -A --by label=team

  # How much of each class?
  kubectl dra usage -A -o \
    jsonpath='{range .items[*].classes[*]}{.class} {.used}{"\n"}{end}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			by := flags.by
			options, err := newListOptions(flags, cmd, args, listing[*api.Usage]{
				kind:  usageKind(),
				reads: []string{snapshot.ResourceClaims, snapshot.ResourceSlices, snapshot.ResourcePods, snapshot.ResourceTemplates, snapshot.ResourceClasses, snapshot.ResourceNamespaces, snapshot.ResourceMetrics},
				asks:  []string{snapshot.ResourceClaims},
				items: func(_ context.Context, from *listed) ([]*api.Usage, error) {
					namespace := from.Namespace
					if flags.allNamespaces {
						namespace = ""
					}
					return pointers(from.inventory.UsageBy(by, namespace)), nil
				},
				table: func(items []*api.Usage, _ *listed) *metav1.Table {
					return render.Usage(items, strings.TrimPrefix(by, labelGroup))
				},
				total: func(items []*api.Usage, _ *listed) string { return render.UsageTotal(inventory.TotalOfUsage(items)) },
			}, streams)
			if err != nil {
				return err
			}
			options.by = ""
			return options.run(cmd.Context())
		},
	}
	flags.addTo(cmd, true)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	flags.complete(cmd)
	return cmd
}

func usageKind() kind[*api.Usage] {
	type usage = *api.Usage
	return kind[usage]{
		name: "Usage", plural: "uses of devices",
		names:     func(u usage) []string { return []string{u.Name} },
		fields:    []field[usage]{{name: "name", of: func(u usage) string { return u.Name }}},
		uncertain: func(u usage) bool { return u.UsedIsLowerBound || u.PodsAreUnknown },
		ageless: func(u usage) usage {
			out := *u
			out.LongestSeconds, out.IdleSeconds = 0, 0
			out.Classes = append([]api.TeamClass{}, u.Classes...)
			for i := range out.Classes {
				out.Classes[i].LongestSeconds = 0
			}
			return &out
		},
	}
}
