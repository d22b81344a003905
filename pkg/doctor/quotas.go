// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

func quotaChecks() []Check {
	return []Check{
		{
			Code: "DRA1604", Title: "quota for devices that is nearly used", Severity: api.SeverityInfo, Needs: []string{snapshot.ResourceQuotas},
			About:  "A ResourceQuota for claims, or for the devices of a class, is used to at least nine tenths. Beyond it, the API server refuses claims, and those of templates are not created.",
			Advice: "Raise the quota, or delete claims that are not used.",
			find:   findTightQuotas,
		},
		{
			Code: "DRA1606", Title: "claim of a pod that is not created", Severity: api.SeverityError, Needs: append(waitingNeeds(), snapshot.ResourceQuotas),
			About:  "A pod waits for a claim from a template, and the API server refuses to create the claim: a ResourceQuota forbids it, an admission webhook, or the template is wrong. Or nobody creates it: the resourceclaim controller of kube-controller-manager does not run.",
			Advice: "Raise the quota, or lift what refuses the claim. 'kubectl dra why' has the evidence.",
			find:   findNotCreated,
		},
		{
			Code: "DRA1607", Title: "quota for a class that is missing", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourceQuotas, snapshot.ResourceClasses},
			About:  "A ResourceQuota limits the devices of a class that is not there. It limits nothing.",
			Advice: "Correct the name of the class in the key.",
			find:   findMissingQuotaClasses,
		},
	}
}

// findNotCreated returns the pods whose claims are overdue.
func findNotCreated(ctx context.Context, in *cluster) ([]api.Finding, error) {
	return waitingCheck(func(e *api.Explanation) bool {
		pod := in.cluster.Snapshot.Pod(e.Target.Namespace, e.Target.Name)
		return e.Stage == api.StageClaimGeneration && !failsToSchedule(e) && !neverFits(e) && pod != nil && lifecycle.Overdue(in.cluster.Snapshot, pod.CreationTimestamp.Time)
	})(ctx, in)
}

func findMissingQuotaClasses(_ context.Context, in *cluster) ([]api.Finding, error) {
	var names []string
	for _, class := range in.cluster.Snapshot.Classes {
		names = append(names, class.Name)
	}
	var found []api.Finding
	for _, quota := range in.cluster.Snapshot.Quotas {
		for _, key := range slices.Sorted(maps.Keys(quota.Spec.Hard)) {
			class, ok := kinds.QuotaClass(key)
			if !ok || slices.Contains(names, class) {
				continue
			}
			f := api.Finding{
				Objects:  []api.ObjectRef{api.RefTo(kindQuota, quota)},
				Message:  fmt.Sprintf("quota %s of namespace %s: %s", quota.Name, quota.Namespace, kinds.MissingQuotaClassText(class)),
				Evidence: []api.Evidence{{Object: api.RefTo(kindQuota, quota), Path: fmt.Sprintf("spec.hard[%q]", key), Found: class, Required: "a DeviceClass that exists"}},
				Remedy: &api.NextStep{
					Actor: api.ActorAdmin, Text: "correct the name of the class in the key",
					Commands: []string{"kubectl edit " + shell.KubectlObjects("resourcequota", quota.Namespace, quota.Name)},
				},
			}
			f.Remedy.Text += english.DidYouMean(class, names)
			found = append(found, f)
		}
	}
	return found, nil
}

// tight is the percentage from which on a quota is nearly used.
const tight = 90

func findTightQuotas(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, quota := range in.cluster.Snapshot.Quotas {
		for _, name := range slices.Sorted(maps.Keys(quota.Status.Hard)) {
			hard, used := quota.Status.Hard[name], quota.Status.Used[name]
			if !countsDevices(in, name) || hard.IsZero() || used.AsApproximateFloat64()*100 < hard.AsApproximateFloat64()*tight {
				continue
			}
			f := api.Finding{
				Objects:  []api.ObjectRef{api.RefTo(kindQuota, quota)},
				Message:  fmt.Sprintf("quota %s of namespace %s: %s of %s %s used", quota.Name, quota.Namespace, used.String(), hard.String(), name),
				Evidence: []api.Evidence{{Object: api.RefTo(kindQuota, quota), Path: "status.used[" + string(name) + "]", Found: used.String(), Required: "less than " + hard.String()}},
				Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: "raise the quota, or delete claims that are not used"},
			}
			if used.Cmp(hard) >= 0 {
				f.Severity = api.SeverityWarning
			}
			found = append(found, f)
		}
	}
	return found, nil
}

// countsDevices reports whether a quota of a resource counts claims or devices.
func countsDevices(in *cluster, name corev1.ResourceName) bool {
	extended, requested := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	return name == kinds.QuotaOfClaims || strings.HasSuffix(string(name), corev1.ResourceClaimsPerClass) ||
		strings.HasPrefix(string(name), corev1.ResourceImplicitExtendedClaimsPerClass) ||
		requested && in.cluster.Claims.ClassOf(corev1.ResourceName(extended)) != nil
}
