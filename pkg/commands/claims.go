// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

type claimsFlags struct {
	*listFlags
	pending bool
	class   string
}

func newClaims(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := &claimsFlags{listFlags: newListFlags(config)}
	cmd := &cobra.Command{
		Use:     "claims [NAME ...]",
		Aliases: []string{"claim"},
		Short:   "List ResourceClaims and the devices that they got",
		Long: `List ResourceClaims: what they ask for, which devices they got, which pods use
them, and what is odd about them.

STATE is Pending, Allocated (it has devices), Reserved (and consumers may use
them) or Deleting. FLAGS are Unreserved (devices that nobody uses), WaitingForPod
(no pod uses it yet), Orphaned (its pod is gone), Held (its deletion waits for
somebody), StaleReservation (reserved for a pod that is gone or finished),
DeviceTwice (another claim has the same device) and DeviceGone (no slice has the
device any more).

With --pending, only claims without devices are listed, with the reason code and
the summary that 'kubectl dra why' gives.

A NAME can be a pattern like 'train-*'.`,
		Example: `  # The claims of all namespaces and their devices
  kubectl dra claims -A

  # Which claims have no devices, and why?
  kubectl dra claims -A --pending

  # Who uses devices of a class?
  kubectl dra claims -A --class gpu.nvidia.com

  # Claims with something odd about them
  kubectl dra claims -A -o jsonpath='{range .items[?(@.flags)]}{.namespace}/{.name} {.flags[*].message}{"\n"}{end}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := flags.toOptions(cmd, args, listing{
				kind: "Claim", plural: "ResourceClaims", namespaced: true,
				items: flags.items,
				keep:  flags.keep,
				table: func(items []inventory.Item) *metav1.Table {
					claims := typed[*inventory.Claim](items)
					if flags.pending {
						return render.PendingClaims(claims, flags.allNamespaces)
					}
					return render.Claims(claims, flags.allNamespaces)
				},
				total: claimTotal,
				name:  func(item inventory.Item) string { return "resourceclaim.resource.k8s.io/" + item.Names()[0] },
			}, streams)
			if err != nil {
				return err
			}
			return options.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&flags.pending, "pending", false, "Only claims without devices, with the reason.")
	cmd.Flags().StringVar(&flags.class, "class", "", "Only claims that ask for this DeviceClass, `CLASS`.")
	flags.addTo(cmd, true)
	cmd.ValidArgsFunction = flags.reading.complete("claim", "")
	flags.reading.completeFlags(cmd)
	return cmd
}

// items are the claims; those that are pending get their reason if it is asked
// for.
func (f *claimsFlags) items(ctx context.Context, from *listed) ([]inventory.Item, error) {
	claims := from.inventory.Claims()
	for i := range claims {
		c := &claims[i]
		if !f.pending || c.State != inventory.ClaimPending || !f.allNamespaces && from.namespace != "" && c.Namespace != from.namespace {
			continue
		}
		answer, err := explain.ExplainWith(ctx, from.alloc, from.snap, explain.Options{Kind: explain.KindClaim, Namespace: c.Namespace, Name: c.Name})
		if err != nil {
			return nil, err
		}
		c.Code, c.Reason = string(answer.Verdict), answer.Summary
		if len(answer.Nodes) > 0 && answer.Nodes[0].Code != "" {
			c.Code = string(answer.Nodes[0].Code)
		}
	}
	return asItems(claims), nil
}

func (f *claimsFlags) keep(item inventory.Item) bool {
	c, ok := item.(*inventory.Claim)
	if !ok || f.pending && c.State != inventory.ClaimPending {
		return false
	}
	if f.class == "" {
		return true
	}
	for _, r := range c.Requests {
		for _, class := range append([]string{r.DeviceClass}, r.DeviceClasses...) {
			if class == f.class {
				return true
			}
		}
	}
	return false
}

// claimTotal counts the claims by state.
func claimTotal(items []inventory.Item) string {
	counts, devices := map[inventory.ClaimState]int{}, 0
	for _, c := range typed[*inventory.Claim](items) {
		counts[c.State]++
		for _, r := range c.Requests {
			devices += len(r.Devices)
		}
	}
	var parts []string
	for _, state := range []inventory.ClaimState{inventory.ClaimPending, inventory.ClaimAllocated, inventory.ClaimReserved, inventory.ClaimDeleting} {
		if counts[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], strings.ToLower(string(state))))
		}
	}
	return fmt.Sprintf("%s: %s; %s", counted(len(items), "claim"), strings.Join(parts, ", "), counted(devices, "device"))
}
