// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
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
			Advice: "The resourceclaim controller removes such entries. Check that kube-controller-manager runs.",
			find:   claimCheck(api.FlagStaleReservation, "status.reservedFor", "check that kube-controller-manager runs: its resourceclaim controller removes the entry"),
		},
		{
			Code: "DRA1402", Title: "claim of a pod that is gone", Severity: api.SeverityWarning, Needs: withPods,
			About:  "A claim was generated for a pod that does not exist any more, and was not deleted with it.",
			Advice: "The garbage collector of kube-controller-manager deletes it. Delete it if it stays.",
			find:   claimCheck(api.FlagOrphaned, "metadata.ownerReferences", "the garbage collector deletes it; delete it if it stays", "delete"),
		},
		{
			Code: "DRA1403", Title: "claim that is not deleted", Severity: api.SeverityWarning, Needs: claims,
			About:  "A claim is being deleted and somebody keeps it: a finalizer, or a pod for which it is reserved. Pods cannot use it any more, and its devices are not free.",
			Advice: "A pod that uses the claim keeps it until it ends, and nothing has to be done. A finalizer is removed by its owner: check that the owner runs. Do not remove it by hand: what it stands for would be left undone, such as devices that a driver has not unprepared.",
			find:   findHeld,
		},
		{
			Code: codeGone, Title: "allocated device that is gone", Severity: api.SeverityError, Needs: withSlices,
			About:  "A claim has a device that no slice of its pool's newest generation has any more, while the driver still publishes the pool. A pod that runs may still work with it. One that is yet to start waits.",
			Advice: "Read the log of the driver: it says why it no longer publishes the device. If it stays away, pods that are yet to start get another one when they are recreated.",
			find:   findGone,
		},
		{
			Code: codeTwice, Title: "device allocated twice", Severity: api.SeverityError, Needs: claims,
			About:  "Two claims have one device, of which at least one for itself, or shares of it are more than there is.",
			Advice: "Find out which pod works with the device, and who wrote the status of the claims: the scheduler does not do this. The other pod gets a new claim when it is recreated.",
			find:   findTwice,
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
			Code: codeUnhealthy, Title: "unhealthy device in use", Severity: api.SeverityError, Needs: withPods,
			About:  "A kubelet reports a device that a pod uses as unhealthy.",
			Advice: "Taint the device, so that no other pod gets it. The devices of a running pod are never replaced: its owner decides when to recreate it.",
			find:   findUnhealthy,
		},
		{
			Code: codeUnbound, Title: "device that cannot be bound", Severity: api.SeverityError, Needs: claims,
			About:  "A driver reports that it cannot bind a device to a pod. The scheduler waits, and then allocates again.",
			Advice: "Read the condition in the status of the claim, and the log of the driver.",
			find:   claimCheck(api.FlagBindingFailed, "status.devices", "read the log of the driver; the scheduler then looks for other devices"),
		},
		{
			Code: codeCondition, Title: "device with a bad condition", Severity: api.SeverityWarning, Needs: claims,
			About:  "A driver reports a condition of an allocated device that is not as it should be. Ready=False is an Error: the device does not work.",
			Advice: "Read the condition in the status of the claim, and the log of the driver.",
			find:   findConditions,
		},
		{
			Code: "DRA1411", Title: "selector that no device can match", Severity: api.SeverityWarning, Needs: withSlices,
			About:  "A selector of a claim without devices, or of a template, compares with a driver, an attribute or a value that no published device has, or with a value of another type. No device matches as long as that is so.",
			Advice: "Compare the selector with 'kubectl dra devices -o wide'. If the hardware is yet to come, nothing is wrong.",
			find:   findUnmatched,
		},
	}
}

// claimCheck returns a check for an inventory flag of claims, with one finding for each
// claim. The remedy may be to delete the claim.
func claimCheck(flag api.FlagName, path, advice string, deletes ...string) func(context.Context, *cluster) ([]api.Finding, error) {
	return func(_ context.Context, in *cluster) ([]api.Finding, error) {
		var found []api.Finding
		claims := in.claims()
		for i := range claims {
			claim := &claims[i]
			switch {
			case flag == api.FlagUnreserved && !heldFor(in.cluster.Snapshot, claim, idle):
				continue
			case flag == api.FlagStaleReservation && lifecycle.JustStale(in.cluster.Snapshot, in.cluster.Snapshot.Claim(claim.Namespace, claim.Name)):
				continue
			}
			o := api.Ref(api.KindClaim, claim.Namespace, claim.Name)
			finding := api.Finding{Objects: []api.ObjectRef{o}, Remedy: &api.NextStep{Actor: api.ActorAdmin, Text: advice}}
			if len(deletes) > 0 {
				finding.Remedy.Commands = []string{"kubectl delete " + shell.KubectlObjects("resourceclaim", claim.Namespace, claim.Name)}
			}
			for _, f := range claim.Flags {
				if f.Name == flag {
					finding.Evidence = append(finding.Evidence, api.Evidence{Object: o, Path: path, Found: f.Message})
				}
			}
			if n := len(finding.Evidence); n > 0 {
				finding.Message = fmt.Sprintf("claim %s/%s: %s", claim.Namespace, claim.Name, finding.Evidence[0].Found)
				if n > 1 {
					finding.Message += fmt.Sprintf(", and %d more", n-1)
				}
				found = append(found, finding)
			}
		}
		return found, nil
	}
}

// heldFor reports whether a claim has had its devices for that long.
func heldFor(snap *snapshot.Snapshot, claim *api.Claim, long time.Duration) bool {
	return claim.AllocatedAt != nil && snap.Now().Sub(claim.AllocatedAt.Time) >= long
}

// said makes a finding of lifecycle's finding about a claim, in the words of why.
func said(of *lifecycle.Finding, step *api.NextStep, objects ...api.ObjectRef) api.Finding {
	if step == nil {
		step = firstStep(of.Steps)
	}
	return api.Finding{Objects: objects, Message: of.Reason, Evidence: of.Evidence, Remedy: step}
}

// eachResult calls a function for each allocated device.
func eachResult(in *cluster, call func(*resourceapi.ResourceClaim, *resourceapi.DeviceRequestAllocationResult)) {
	for _, claim := range in.cluster.Snapshot.Claims {
		if claim.Status.Allocation != nil {
			for i := range claim.Status.Allocation.Devices.Results {
				call(claim, &claim.Status.Allocation.Devices.Results[i])
			}
		}
	}
}

func findHeld(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, claim := range in.cluster.Snapshot.Claims {
		if claim.DeletionTimestamp == nil || len(claim.Finalizers)+len(claim.Status.ReservedFor) == 0 {
			continue
		}
		held := lifecycle.DeletingClaim(in.cluster.Snapshot, claim)
		held.Reason = "namespace " + claim.Namespace + ": " + held.Reason
		found = append(found, said(&held, nil, api.RefTo(api.KindClaim, claim)))
	}
	return found, nil
}

func findGone(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, claim := range in.cluster.Snapshot.Claims {
		gone := lifecycle.VanishedDevices(in.cluster, claim)
		if gone == nil {
			continue
		}
		step := lifecycle.PluginStep(in.cluster.Snapshot, claim.Status.Allocation.Devices.Results[0].Driver, nodesOf(claim)...)
		step.Text += ": " + gone.Steps[0].Text + "; a pod that runs may still work with it"
		f := said(gone, &step, api.RefTo(api.KindClaim, claim))
		f.Message = "namespace " + claim.Namespace + ": " + f.Message
		found = append(found, f)
	}
	return found, nil
}

func nodesOf(claim *resourceapi.ResourceClaim) []string {
	if node := facts.AllocatedNode(claim.Status.Allocation); node != "" {
		return []string{node}
	}
	return nil
}

// findTwice returns one finding for a device. The inventory reports shares that exceed the
// capacity.
func findTwice(ctx context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	told := map[api.ObjectRef]bool{}
	eachResult(in, func(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) {
		twice := lifecycle.Doubled(in.cluster, claim, result)
		if twice == nil {
			return
		}
		o := api.RefTo(api.KindClaim, claim)
		told[o] = true
		if at := slices.IndexFunc(found, func(f api.Finding) bool { return f.Message == twice.Reason }); at >= 0 {
			found[at].Objects = append(found[at].Objects, o)
			return
		}
		found = append(found, said(twice, nil, o))
	})
	others, err := claimCheck(api.FlagDeviceTwice, "status.allocation.devices.results", "find out who wrote the status of the claim: the scheduler does not do this")(ctx, in)
	for _, f := range others {
		if !told[f.Objects[0]] {
			found = append(found, f)
		}
	}
	return found, err
}

func findUnhealthy(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, pod := range in.cluster.Snapshot.Pods {
		if snapshot.Finished(pod) || len(pod.Spec.ResourceClaims) == 0 && pod.Status.ExtendedResourceClaimStatus == nil {
			continue
		}
		for _, sick := range lifecycle.Unhealthy(in.cluster, pod, in.cluster.Claims.OfPod(pod)) {
			sick.Reason = "pod " + english.QualifiedName(pod) + ": " + sick.Reason
			found = append(found, said(&sick, nil, api.RefTo(api.KindPod, pod)))
		}
	}
	return found, nil
}

// findConditions reports the conditions that drivers set on devices of claims. A device that is
// not ready is an Error.
func findConditions(ctx context.Context, in *cluster) ([]api.Finding, error) {
	notReady, drivers := map[api.ObjectRef]bool{}, map[api.ObjectRef]string{}
	eachResult(in, func(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) {
		o := api.RefTo(api.KindClaim, claim)
		drivers[o] = result.Driver
		notReady[o] = notReady[o] || lifecycle.DeviceNotReady(claim, result) != nil
	})
	found, err := claimCheck(api.FlagDeviceCondition, "status.devices", "read the log of the driver")(ctx, in)
	for i := range found {
		o := found[i].Objects[0]
		step := lifecycle.PluginStep(in.cluster.Snapshot, drivers[o], nodesOf(in.cluster.Snapshot.Claim(o.Namespace, o.Name))...)
		found[i].Remedy = &step
		if notReady[o] {
			found[i].Severity = api.SeverityError
		}
	}
	return found, err
}

// placed is a selector with its place.
type placed struct {
	object           api.ObjectRef
	path, expression string
}

// findUnmatched finds parts of selectors that no device can fulfill, because no device has
// the name or the value. It looks at claims without devices, and at templates.
func findUnmatched(ctx context.Context, in *cluster) ([]api.Finding, error) {
	if len(in.cluster.Pools.Devices()) == 0 {
		return nil, nil
	}
	evaluator := in.cluster.Gates.Selectors()
	catalog := eligibility.NewCatalog(in.cluster, evaluator)
	places := map[string][]placed{}
	var expressions []string
	told, err := toldByPods(ctx, in)
	if err != nil {
		return nil, err
	}
	for _, p := range selectorsInUse(in) {
		if told[p.object] {
			continue
		}
		if places[p.expression] == nil {
			expressions = append(expressions, p.expression)
		}
		places[p.expression] = append(places[p.expression], p)
	}
	var found []api.Finding
	for _, expression := range expressions {
		sel := evaluator.Compile(expression)
		for i := range sel.Conjuncts {
			if _, _, equality := sel.Conjuncts[i].Equality(); !equality {
				// Others may hold for a device that does not have it.
				continue
			}
			unknown := catalog.UnknownValue(&sel.Conjuncts[i])
			if unknown.Text == "" {
				continue
			}
			f := api.Finding{
				Message: fmt.Sprintf("no device can match %s: %s", sel.Conjuncts[i].Expression, unknown.Text),
				Remedy:  &api.NextStep{Actor: api.ActorUser, Text: "correct the selector", Commands: []string{"kubectl dra devices -o wide"}},
			}
			for _, p := range places[expression] {
				if !slices.Contains(f.Objects, p.object) {
					f.Objects = append(f.Objects, p.object)
				}
				f.Evidence = append(f.Evidence, api.Evidence{Object: p.object, Path: p.path, Found: p.expression})
			}
			found = append(found, f)
			break
		}
	}
	return found, nil
}

// toldByPods returns the claims and templates of waiting pods whose answer is that a
// selector is why: other checks report these pods.
func toldByPods(ctx context.Context, in *cluster) (map[api.ObjectRef]bool, error) {
	told := map[api.ObjectRef]bool{}
	if !in.opts.Makes(codeNever) || !in.opts.Makes(codeFails) || slices.ContainsFunc(waitingNeeds(), func(r string) bool { return in.cluster.Snapshot.Gap(r) != nil }) {
		return told, nil
	}
	answers, err := in.answers(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range answers {
		if !failsToSchedule(e) && !neverFits(e) || !slices.Contains([]api.Code{api.SelectorError, api.RequestSelectorFalse, api.AttributeMissing}, e.Code) {
			continue
		}
		for i := range e.Claims {
			told[api.Ref(api.KindClaim, e.Claims[i].Namespace, e.Claims[i].Name)] = true
		}
		if pod := in.cluster.Snapshot.Pod(e.Target.Namespace, e.Target.Name); pod != nil {
			for _, entry := range pod.Spec.ResourceClaims {
				told[api.Ref(api.KindTemplate, pod.Namespace, ptr.Deref(entry.ResourceClaimTemplateName, ""))] = true
			}
		}
	}
	return told, nil
}

// selectorsInUse lists the selectors of requests, starting with templates.
func selectorsInUse(in *cluster) []placed {
	var list []placed
	add := func(o api.ObjectRef, path string, selectors []resourceapi.DeviceSelector) {
		for i, s := range selectors {
			if s.CEL != nil {
				list = append(list, placed{o, fmt.Sprintf("%s.selectors[%d].cel.expression", path, i), s.CEL.Expression})
			}
		}
	}
	each := func(o api.ObjectRef, path string, requests []resourceapi.DeviceRequest) {
		for i := range requests {
			at := fmt.Sprintf("%s.devices.requests[%d]", path, i)
			if exactly := requests[i].Exactly; exactly != nil {
				add(o, at+".exactly", exactly.Selectors)
			}
			// One of several alternatives may be for missing devices.
		}
	}
	for _, template := range in.cluster.Snapshot.Templates {
		each(api.RefTo(api.KindTemplate, template), "spec.spec", template.Spec.Spec.Devices.Requests)
	}
	for _, claim := range in.cluster.Snapshot.Claims {
		if claim.Status.Allocation == nil {
			each(api.RefTo(api.KindClaim, claim), "spec", claim.Spec.Devices.Requests)
		}
	}
	return list
}
