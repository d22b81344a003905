// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestCommandsOfJob checks that one command replaces the claims of all pods of a Job: after
// the first of two commands, a gang can start, and the second waits for a claim in use.
func TestCommandsOfJob(t *testing.T) {
	snap := &snapshot.Snapshot{}
	var pods []api.RemedyPod
	for _, name := range []string{"train-b", "train-a"} {
		pod := testPod(name)
		pod.UID = types.UID("uid-" + name)
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: snapshot.KindJob, Name: "train", Controller: ptr.To(true)}}
		pod.Spec.ResourceClaims = pod.Spec.ResourceClaims[1:]
		pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: ptr.To(name + "-gpu")}}
		snap.Pods = append(snap.Pods, pod)
		snap.Claims = append(snap.Claims, testClaim(name+"-gpu", types.UID(name), pod))
		pods = append(pods, api.RemedyPod{Namespace: pod.Namespace, Name: name, Changed: true})
	}
	snap.Sort()
	edit := api.Edit{Object: api.Ref(api.KindTemplate, "ml", "one"), Op: "replace", Path: "/spec/spec/devices/requests/0/exactly/count", Value: json.RawMessage("1")}
	lines := Commands(snap, []api.Edit{edit}, pods)
	if !slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "kubectl get resourceclaim train-a-gpu train-b-gpu -n ml -o yaml | ")
	}) || len(lines) != 2 {
		t.Errorf("%s", strings.Join(lines, "\n"))
	}
}
