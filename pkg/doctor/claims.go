// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// idle is how long a claim may have devices without a consumer.
const idle = time.Hour

func claimChecks() []Check {
	claims := []string{snapshot.ResourceClaims}
	withPods := []string{snapshot.ResourceClaims, snapshot.ResourcePods}
	withSlices := []string{snapshot.ResourceClaims, snapshot.ResourceSlices}
	return []Check{
		{
			Code: "DRA1401", Title: "claim reserved for a pod that is gone", Severity: api.SeverityWarning, Needs: withPods,
			About:  "The reservedFor list of a claim names a pod that has ended, does not exist, or is another one of the same name. As long as it does, nobody deallocates the devices.",
			Advice: "The resourceclaim controller removes such entries. See whether kube-controller-manager runs.",
			find:   claimCheck(api.FlagStaleReservation, "status.reservedFor", "check that kube-controller-manager runs: its resourceclaim controller removes the entry"),
		},
		{
			Code: "DRA1402", Title: "claim of a pod that is gone", Severity: api.SeverityWarning, Needs: withPods,
			About:  "A claim was generated for a pod that does not exist any more, and was not deleted with it.",
			Advice: "Delete the claim.",
			find:   claimCheck(api.FlagOrphaned, "metadata.ownerReferences", "delete the claim", "delete"),
		},
		{
			Code: "DRA1403", Title: "claim that is not deleted", Severity: api.SeverityWarning, Needs: claims,
			About:  "A claim is being deleted and somebody keeps it: a finalizer, or a pod for which it is reserved. Pods cannot use it any more, and its devices are not free.",
			Advice: "End the pod; where a finalizer is that of a driver that is gone, remove it.",
			find:   claimCheck(api.FlagHeld, "metadata.finalizers", "end the pods that use it; then the resourceclaim controller lets it go"),
		},
		{
			Code: "DRA1404", Title: "allocated device that is gone", Severity: api.SeverityError, Needs: withSlices,
			About:  "A claim has a device that no slice of its pool's newest generation has any more. A pod that is not started yet will not start.",
			Advice: "Bring the device back, or delete and recreate the pod so that it gets another one.",
			find:   claimCheck(api.FlagDeviceGone, "status.allocation.devices.results", "delete and recreate the pod, so that it gets another device"),
		},
		{
			Code: "DRA1405", Title: "device allocated twice", Severity: api.SeverityError, Needs: claims,
			About:  "Two claims have one device, of which at least one for itself, or shares of it are more than there is.",
			Advice: "Delete one of the pods with its claim.",
			find:   claimCheck(api.FlagDeviceTwice, "status.allocation.devices.results", "delete one of the pods, with its claim"),
		},
		{
			Code: "DRA1406", Title: "devices that no container uses", Severity: api.SeverityWarning, Needs: withPods,
			About:  "A pod has a claim that no container names in resources.claims, or names with a request that does not exist. The container runs without the devices.",
			Advice: "Name the claim in resources.claims of the container.",
			find:   claimCheck(api.FlagUnused, "spec.devices.requests", "name the claim in resources.claims of the container that needs it"),
		},
		{
			Code: "DRA1407", Title: "devices held for nobody", Severity: api.SeverityWarning, Needs: withPods,
			About:  "A claim has had its devices for more than an hour, and is reserved for nobody. Nobody else can get them.",
			Advice: "Delete the claim if no pod is going to use it.",
			find:   claimCheck(api.FlagUnreserved, "status.reservedFor", "delete the claim if no pod is going to use it", "delete"),
		},
		{
			Code: "DRA1408", Title: "unhealthy device in use", Severity: api.SeverityError, Needs: withPods,
			About:  "A kubelet reports a device that a pod uses as unhealthy.",
			Advice: "Move the pod, and taint the device.",
			find:   claimCheck(api.FlagDeviceUnhealthy, "status.allocation.devices.results", "recreate the pod on another device, and taint this one: kubectl dra taints add"),
		},
		{
			Code: "DRA1409", Title: "device that cannot be bound", Severity: api.SeverityError, Needs: claims,
			About:  "A driver reports that it cannot bind a device to a pod. The scheduler waits, and then allocates again.",
			Advice: "Read the condition in the status of the claim, and the log of the driver.",
			find:   claimCheck(api.FlagBindingFailed, "status.devices", "read the log of the driver"),
		},
		{
			Code: "DRA1410", Title: "device with a bad condition", Severity: api.SeverityWarning, Needs: claims,
			About:  "A driver reports a condition of an allocated device that is not as it should be, such as Ready=False.",
			Advice: "Read the condition in the status of the claim, and the log of the driver.",
			find:   claimCheck(api.FlagDeviceCondition, "status.devices", "read the log of the driver"),
		},
		{
			Code: "DRA1411", Title: "selector that no device can match", Severity: api.SeverityWarning, Needs: withSlices,
			About:  "A selector of a claim without devices, or of a template, compares with a driver, an attribute or a value that no published device has, or with a value of another type. No device matches as long as that is so.",
			Advice: "Compare the selector with 'kubectl dra devices -o wide'. If the hardware is yet to come, nothing is wrong.",
			find:   findUnmatched,
		},
	}
}

// claimCheck is a check for a flag that the inventory gives claims. The remedy may
// be to delete the claim.
func claimCheck(flag api.FlagName, path, advice string, deletes ...string) func(context.Context, *cluster) ([]api.Finding, error) {
	return func(_ context.Context, in *cluster) ([]api.Finding, error) {
		var found []api.Finding
		claims := in.claims()
		for i := range claims {
			claim := &claims[i]
			switch {
			case flag == api.FlagUnreserved && !heldFor(in.snap, claim, idle):
				continue
			case flag == api.FlagStaleReservation && lifecycle.JustStale(in.snap, in.snap.Claim(claim.Namespace, claim.Name)):
				continue
			}
			for _, f := range claim.Flags {
				if f.Name != flag {
					continue
				}
				o := whatif.Object(api.KindClaim, claim.Namespace, claim.Name)
				step := &api.NextStep{Actor: api.ActorAdmin, Text: advice}
				if len(deletes) > 0 {
					step.Commands = []string{"kubectl delete " + shell.KubectlObjects("resourceclaim", claim.Namespace, claim.Name)}
				}
				found = append(found, api.Finding{
					Objects:  []string{o},
					Message:  fmt.Sprintf("claim %s/%s: %s", claim.Namespace, claim.Name, f.Message),
					Evidence: []api.Evidence{{Object: o, Path: path, Found: f.Message}},
					Remedy:   step,
				})
			}
		}
		return found, nil
	}
}

// heldFor reports whether a claim has had its devices for that long.
func heldFor(snap *snapshot.Snapshot, claim *api.Claim, long time.Duration) bool {
	return claim.AllocatedAt != nil && snap.Now().Sub(claim.AllocatedAt.Time) >= long
}
