// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/tables"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

type claimsFlags struct {
	pending bool
	class   string
}

// NewClaims returns the verb that lists ResourceClaims.
func NewClaims(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	type claim = *api.Claim
	flags := &claimsFlags{}
	cmd := &cobra.Command{
		Use:     "claims [NAME ...]",
		Aliases: []string{"claim"},
		Short:   "List ResourceClaims and the devices allocated to them",
		Long: `List ResourceClaims: what they request, which devices are allocated to them,
which pods use them, and warnings.

STATE is Pending, Allocated (it has devices), Reserved (and consumers may use
them) or Deleting. STAGE is the first stage in the life of its pod that is not
done, of several pods the least advanced: ClaimGeneration, Queueing, NodeFit,
Allocation, Binding, Reservation, Preparation, Injection, Running or Cleanup. It
is derived from claims and pods alone; 'kubectl dra why' also reads nodes and
events.

FLAGS, each with a message in -o wide and -o json, are

  Unreserved        it is allocated, but not reserved for any pod
  WaitingForPod     it is not allocated, and no pod uses it
  Orphaned          it was created for a pod that no longer exists
  Held              its deletion waits for a finalizer
  StaleReservation  it is reserved for a pod that is finished or deleted
  DeviceTwice       another claim has the same device
  DeviceGone        no ResourceSlice has the device, and it is not Ready
  DeviceCondition   the driver reports a condition such as Ready=False
  DeviceUnhealthy   a kubelet reports it
  Binding           its pod is not bound until the driver sets a condition
  BindingFailed     the driver reports that binding fails

-o wide also has the network data of network devices, and the ComputeDomain that
a claim names, with its status and how many of its nodes are ready.

With --pending, only claims without devices are listed, with the reason code and
the summary that 'kubectl dra why' gives.

A NAME can be a pattern like 'train-*'.`,
		Example: `  # The claims of all namespaces and their devices
  kubectl dra claims -A

  # Which claims have no devices, and why?
  kubectl dra claims -A --pending

  # Who uses devices of a class?
  kubectl dra claims -A --class gpu.example.com

  # Warnings, and the addresses of network devices
  kubectl dra claims -A -o wide

  # Claims with warnings
  kubectl dra claims -A -o \
    jsonpath='{range .items[?(@.flags)]}{.name} {.flags[*].message}{"\n"}{end}'`,
	}
	cmd.Flags().BoolVar(&flags.pending, "pending", false, "Only claims without devices, with the reason.")
	cmd.Flags().StringVar(&flags.class, "class", "", "Only claims that ask for the DeviceClass `CLASS`.")
	return newCommand(streams, config, cmd, listing[claim]{
		name: "Claim", plural: "ResourceClaims", prefix: "resourceclaim.resource.k8s.io/",
		names:      func(c claim) []string { return []string{c.Name, c.Namespace + "/" + c.Name} },
		namespaced: true, namespace: func(c claim) string { return c.Namespace },
		labels: func(c claim) map[string]string { return c.Labels }, labelsOf: "their own",
		// The API server knows the first names.
		fields: []field[claim]{
			{name: "metadata.name", of: func(c claim) string { return c.Name }},
			{name: "metadata.namespace", of: func(c claim) string { return c.Namespace }},
			{
				name: "state", of: func(c claim) string { return string(c.State) },
				values: texts(api.ClaimStatePending, api.ClaimStateAllocated, api.ClaimStateReserved, api.ClaimStateDeleting),
			},
			{name: "node", of: func(c claim) string { return c.Node }},
		},
		groups: []group[claim]{
			{"namespace", func(c claim, _ *listed) []string { return []string{c.Namespace} }},
			{"class", func(c claim, _ *listed) []string { return inventory.ClassesOf(c) }},
			{"owner", func(c claim, from *listed) []string { return inventory.OwnersOf(from.cluster, c) }},
		},
		ageless: func(c claim) { c.AgeSeconds = 0 },

		proposes: cli.Propose("claim"),
		asks:     []string{snapshot.ResourceClaims},
		domains:  true,
		reads: []string{
			snapshot.ResourceClaims, snapshot.ResourceSlices, snapshot.ResourcePods, snapshot.ResourcePodGroups,
			snapshot.ResourceTemplates, snapshot.ResourceClasses, snapshot.ResourceMetrics,
			snapshot.ResourceComputeDomains, snapshot.ResourceCliques,
		},
		unused: inventory.UnusedByClaims(),
		prepare: func(o *lister[claim]) error {
			if flags.pending {
				o.reads, o.unused = nil, nil
			}
			return nil
		},
		items:  flags.items,
		keep:   flags.keep,
		absent: func(from *listed) error { return cli.AbsentClass(from.Snap, flags.class) },
		table: func(claims []claim, from *listed) *metav1.Table {
			several := from.asked.allNamespaces || severalNamespaces(claims)
			if flags.pending {
				return tables.PendingClaims(claims, several)
			}
			return tables.Claims(claims, several)
		},
		details: func(_ context.Context, w io.Writer, claims []claim, _ *listed) error {
			return tables.ClaimDetails(w, claims, render.Options{Width: cli.OutputWidth(w)})
		},
		total: func(claims []claim, _ *listed) string { return tables.ClaimTotal(inventory.TotalOfClaims(claims)) },
	})
}

// items returns the claims with their stages; pending claims get their reason on request.
func (f *claimsFlags) items(ctx context.Context, from *listed) ([]*api.Claim, error) {
	claims := pointers(from.inventory.Claims())
	stages := lifecycle.NewStages(from.cluster)
	var pending []*api.Claim
	for i, c := range claims {
		c.Stage = string(stages.OfClaim(from.Snap.Claims[i]))
		if f.pending && c.State == api.ClaimStatePending && (from.asked.allNamespaces || from.Namespace == "" || c.Namespace == from.Namespace) {
			pending = append(pending, c)
		}
	}
	return claims, addReasons(ctx, from.cluster, pending)
}

// addReasons says of pending claims why they are: because of the first of their pods that waits in
// the queue, if there is one.
func addReasons(ctx context.Context, c *cluster.Cluster, pending []*api.Claim) error {
	waiting := map[api.ObjectRef]api.ObjectRef{}
	for _, pod := range c.Waiting() {
		for _, pc := range c.Claims.OfPod(pod) {
			if pc.Claim == nil {
				continue
			}
			if ref := api.RefTo(api.KindClaim, pc.Claim); waiting[ref].Kind == "" {
				waiting[ref] = api.RefTo(api.KindPod, pod)
			}
		}
	}
	targets := make([]explain.Options, 0, len(pending))
	for _, claim := range pending {
		ref := api.Ref(api.KindClaim, claim.Namespace, claim.Name)
		targets = append(targets, explain.Options{Object: cmp.Or(waiting[ref], ref)})
	}
	answers, err := explain.ExplainEquivalent(ctx, c, targets)
	if err != nil {
		return err
	}
	for i, claim := range pending {
		if answers[i].Err != nil {
			return answers[i].Err
		}
		answer := answers[i].Explanation
		claim.Code, claim.Outlook, claim.Reason = explain.Word(answer), explain.When(answer), answer.Summary
		if answer.Stage != "" {
			claim.Stage = string(answer.Stage)
		}
	}
	return nil
}

func (f *claimsFlags) keep(c *api.Claim, _ *request) bool {
	if f.pending && c.State != api.ClaimStatePending {
		return false
	}
	return f.class == "" || slices.Contains(inventory.ClassesOf(c), f.class)
}

// severalNamespaces reports whether claims are of more than one namespace. A file
// is listed completely unless a namespace is given.
func severalNamespaces(claims []*api.Claim) bool {
	return slices.ContainsFunc(claims, func(c *api.Claim) bool { return c.Namespace != claims[0].Namespace })
}

// NewClasses returns the verb that lists DeviceClasses.
func NewClasses(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	type class = *api.Class
	cmd := &cobra.Command{
		Use:     "classes [NAME ...]",
		Aliases: []string{"class"},
		Short:   "List DeviceClasses: which devices they select, and who uses them",
		Long: `List DeviceClasses: how many devices match the selectors and are free, and how
many claims ask for the class and have devices of it. FAILING counts the devices
on which a selector fails; a CEL error on one device makes scheduling fail on
every node for claims of the class. -o wide shows the error and the selectors. ≤
and ≥ mark counts that are only bounds, because you are not permitted to list
all slices, or the claims of all namespaces.

PLACEABLE counts the claims for one device of the class that the scheduler's
allocator can place now, one after another, for pods without tolerations. A
device that can be shared has room for several. WAITING counts the pods that
wait for devices of the class. -o wide says how many such claims nodes take, and
why claims do not get the other devices that no claim has.

EXTENDED RESOURCE is the name under which pods can request devices of the class
in their limits. On a node where a device plugin offers the same name, the
scheduler uses only the device plugin, and devices of the class can only be
requested by claims. -o wide shows both side by side for groups of nodes, and
the resources of device plugins that no class serves; -o json and 'kubectl dra
tree node/' have each node.

A NAME can be a pattern like 'gpu.*'.`,
		Example: `  # All classes
  kubectl dra classes

  # Where are devices idle, and why? With selectors, failures and device plugins
  kubectl dra classes -o wide

  # How many devices of each are free, the most last
  kubectl dra classes --sort-by .free

  # Classes with a selector that fails on some device
  kubectl dra classes -o \
    jsonpath='{range .items[?(@.failing>0)]}{.name} {.failure}{"\n"}{end}'`,
	}
	return newCommand(streams, config, cmd, listing[class]{
		name: "Class", plural: "DeviceClasses", prefix: "deviceclass.resource.k8s.io/",
		names:  func(c class) []string { return []string{c.Name} },
		labels: func(c class) map[string]string { return c.Labels }, labelsOf: "their own",
		fields: []field[class]{
			{name: "metadata.name", of: func(c class) string { return c.Name }},
			{name: "extendedResource", of: func(c class) string { return c.ExtendedResource }},
		},
		uncertain: func(c class) bool { return c.FreeIsUpperBound || c.ClaimsAreLowerBounds || c.DevicesAreLowerBounds },

		proposes: cli.Propose("class"),
		reads:    inventory.StateReads(snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourceTemplates, snapshot.ResourceClasses), asks: []string{snapshot.ResourceClasses},
		items: func(ctx context.Context, from *listed) ([]class, error) {
			classes, err := from.inventory.Classes(ctx)
			if err == nil {
				err = forecast.AddPlaceable(ctx, from.cluster, classes)
			}
			return pointers(classes), err
		},
		unending: func(class class) string { return inventory.UnendingText(class.Failures) },
		table:    plain(tables.Classes),
		details:  classDetails,
		total: func(classes []class, from *listed) string {
			return tables.ClassTotal(inventory.TotalOfClasses(classes), from.asked.inWide("how"))
		},
	})
}

// classDetails shows idle devices and extended resources of the classes and, unless certain
// classes were asked for, extended resources that no class serves.
func classDetails(ctx context.Context, w io.Writer, classes []*api.Class, from *listed) error {
	var resources []api.ExtendedResource
	for _, class := range classes {
		resources = append(resources, class.ExtendedResources...)
	}
	if len(classes) == len(from.Snap.Classes) {
		others, err := from.inventory.PluginResources(ctx)
		if err != nil {
			return err
		}
		resources = append(resources, others...)
	}
	return tables.ClassDetails(w, classes, resources, render.Options{Width: cli.OutputWidth(w)})
}
