// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func workload(apiVersion, kind, namespace, name string) *snapshot.Workload {
	return &snapshot.Workload{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, ObjectMeta: named(namespace, name)}
}

func TestTargets(t *testing.T) {
	pod := func(name string, claims ...corev1.PodResourceClaim) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: named("ml", name), Spec: corev1.PodSpec{ResourceClaims: claims}}
	}
	objects := func(change func(*snapshot.Snapshot)) *snapshot.Snapshot {
		s := &snapshot.Snapshot{}
		change(s)
		return s
	}
	tests := map[string]struct {
		objects *snapshot.Snapshot
		want    []string
		skipped []string
	}{
		"a claim goes with its pod": {objects(func(s *snapshot.Snapshot) {
			s.Pods = []*corev1.Pod{pod("p", corev1.PodResourceClaim{Name: "c", ResourceClaimName: ptr.To("used")})}
			s.Claims = []*resourceapi.ResourceClaim{{ObjectMeta: named("ml", "free")}, {ObjectMeta: named("ml", "used")}, {ObjectMeta: named("web", "used")}}
		}), []string{"Pod ml/p", "ResourceClaim ml/free", "ResourceClaim web/used"}, nil},
		"a template goes with its workload": {objects(func(s *snapshot.Snapshot) {
			w := workload("apps/v1", "Deployment", "ml", "d")
			w.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimTemplateName: ptr.To("used")}}
			s.Workloads = []*snapshot.Workload{w}
			s.Templates = []*resourceapi.ResourceClaimTemplate{{ObjectMeta: named("ml", "free")}, {ObjectMeta: named("ml", "used")}}
		}), []string{"Deployment ml/d", "ResourceClaimTemplate ml/free"}, nil},
		"what uses no devices is left out": {objects(func(s *snapshot.Snapshot) {
			s.Pods = []*corev1.Pod{pod("bare"), pod("p", corev1.PodResourceClaim{Name: "c", ResourceClaimName: ptr.To("c")})}
			s.SkippedNames = []string{"Service web"}
		}), []string{"Pod ml/p"}, []string{"Pod bare (uses no devices)", "Service web"}},
	}
	uses := func(pod *corev1.Pod) bool { return len(pod.Spec.ResourceClaims) > 0 }
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			targets, skipped, err := (&Manifests{Objects: test.objects}).Targets(uses)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, target := range targets {
				got = append(got, target.Object.Kind+" "+target.Object.Namespace+"/"+target.Object.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("targets differ (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.skipped, skipped); diff != "" {
				t.Errorf("skipped over differs (-want +got):\n%s", diff)
			}
		})
	}
	only := &snapshot.Snapshot{Pods: []*corev1.Pod{pod("bare")}, SkippedNames: []string{"Service web"}}
	_, _, err := (&Manifests{Objects: only}).Targets(uses)
	if want := "find a target in the files: there is none, only Pod bare (uses no devices), Service web"; cli.ExitCode(err) != cli.ExitUsage || err.Error() != want {
		t.Errorf("nothing to explain: error %v, want %s", err, want)
	}
}

func TestInNamespaceLeavesItsInputAlone(t *testing.T) {
	objects := &snapshot.Snapshot{
		Pods:      []*corev1.Pod{{ObjectMeta: named("", "p")}},
		Claims:    []*resourceapi.ResourceClaim{{ObjectMeta: named("", "c")}, {ObjectMeta: named("web", "c")}},
		Templates: []*resourceapi.ResourceClaimTemplate{{ObjectMeta: named("", "t")}},
		Workloads: []*snapshot.Workload{workload("apps/v1", "Deployment", "", "d")},
	}
	placed := objects.InNamespace("ml")
	for _, c := range cli.Candidates(placed) {
		if want := "ml"; c.Object.GetNamespace() != want && c.Object.GetNamespace() != "web" {
			t.Errorf("%s %s is in namespace %q, want %q", c.Kind.Kind, c.Object.GetName(), c.Object.GetNamespace(), want)
		}
	}
	if got := placed.Claims[1].Namespace; got != "web" {
		t.Errorf("a claim was moved to namespace %q", got)
	}
	for _, c := range cli.Candidates(objects) {
		if got := c.Object.GetNamespace(); got != "" && got != "web" {
			t.Errorf("the input was changed: %s %s is in namespace %q", c.Kind.Kind, c.Object.GetName(), got)
		}
	}
}
