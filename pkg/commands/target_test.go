// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func workload(apiVersion, kind, namespace, name string) *snapshot.Workload {
	return &snapshot.Workload{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, ObjectMeta: named(namespace, name)}
}

func TestParseTargets(t *testing.T) {
	ref := func(resource, name string) snapshot.ObjectRef {
		return snapshot.ObjectRef{Resource: resource, Name: name}
	}
	tests := map[string]struct {
		args    string
		want    []snapshot.ObjectRef
		wantErr string
	}{
		"a bare name is a claim": {args: "train", want: []snapshot.ObjectRef{ref("resourceclaims", "train")}},
		"type and name":          {args: "pod/a", want: []snapshot.ObjectRef{ref("pod", "a")}},
		"two words":              {args: "pod a", want: []snapshot.ObjectRef{ref("pod", "a")}},
		"one type, two names":    {args: "pod a b", want: []snapshot.ObjectRef{ref("pod", "a"), ref("pod", "b")}},
		"several":                {args: "pod/a claim/b", want: []snapshot.ObjectRef{ref("pod", "a"), ref("resourceclaims", "b")}},
		"short names":            {args: "Deploy/a", want: []snapshot.ObjectRef{ref("deployments", "a")}},
		"with a group":           {args: "trainjobs.v1.kubeflow.org/a", want: []snapshot.ObjectRef{ref("trainjobs.v1.kubeflow.org", "a")}},
		"mixed":                  {args: "pod/a b", wantErr: "mixed"},
		"no name":                {args: "pod/", wantErr: "TYPE/NAME"},
		"no type":                {args: "/a", wantErr: "TYPE/NAME"},
		"too many slashes":       {args: "ml/pod/a", wantErr: "TYPE/NAME"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseTargets(strings.Fields(test.args))
			if test.wantErr != "" {
				var usage *usageError
				if !errors.As(err, &usage) || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want a usage error with %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("targets differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	snap := &snapshot.Snapshot{
		Claims: []*resourceapi.ResourceClaim{
			{ObjectMeta: named("a", "twin")}, {ObjectMeta: named("b", "single")}, {ObjectMeta: named("b", "twin")},
		},
		Workloads: []*snapshot.Workload{
			workload("kubeflow.org/v1", "Job", "b", "theirs"),
			workload("batch/v1", "Job", "b", "ours"),
			workload("kubeflow.org/v1", "TrainJob", "b", "t"),
		},
	}
	tests := map[string]struct {
		resource, namespace, name string
		want                      explain.Options
		wantErr                   string
	}{
		"the only one":      {"resourceclaims", "", "single", explain.Options{Kind: "ResourceClaim", Namespace: "b", Name: "single"}, ""},
		"chosen":            {"resourceclaim", "a", "twin", explain.Options{Kind: "ResourceClaim", Namespace: "a", Name: "twin"}, ""},
		"ambiguous":         {"resourceclaims", "", "twin", explain.Options{}, "namespaces a, b"},
		"nowhere":           {"pods", "", "x", explain.Options{Kind: "Pod", Namespace: "default", Name: "x"}, ""},
		"custom resource":   {"trainjobs", "", "t", explain.Options{Kind: "TrainJob", Namespace: "b", Name: "t"}, ""},
		"with its group":    {"trainjob.kubeflow.org", "", "t", explain.Options{Kind: "TrainJob", Namespace: "b", Name: "t"}, ""},
		"with its version":  {"trainjobs.v1.kubeflow.org", "", "t", explain.Options{Kind: "TrainJob", Namespace: "b", Name: "t"}, ""},
		"of another group":  {"trainjobs.example.com", "", "t", explain.Options{}, "no \"trainjobs.example.com\""},
		"no such type":      {"frobs", "", "x", explain.Options{}, "no \"frobs\""},
		"built in, missing": {"statefulsets", "b", "x", explain.Options{Kind: "StatefulSet", Namespace: "b", Name: "x"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := resolve(&source{namespace: test.namespace}, snap, snapshot.ObjectRef{Resource: test.resource, Name: test.name})
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want one with %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("target differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolveAsksCluster(t *testing.T) {
	from := &source{namespace: "ml", kindOf: func(resource string) (string, error) {
		if resource != "tj" {
			t.Errorf("asked for %q", resource)
		}
		return "TrainJob", nil
	}}
	got, err := resolve(from, &snapshot.Snapshot{}, snapshot.ObjectRef{Resource: "tj", Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (explain.Options{Kind: "TrainJob", Namespace: "ml", Name: "x"}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTargetsOf(t *testing.T) {
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
	}{
		"a claim goes with its pod": {objects(func(s *snapshot.Snapshot) {
			s.Pods = []*corev1.Pod{pod("p", corev1.PodResourceClaim{Name: "c", ResourceClaimName: ptr.To("used")})}
			s.Claims = []*resourceapi.ResourceClaim{{ObjectMeta: named("ml", "free")}, {ObjectMeta: named("ml", "used")}, {ObjectMeta: named("web", "used")}}
		}), []string{"Pod ml/p", "ResourceClaim ml/free", "ResourceClaim web/used"}},
		"a template goes with its workload": {objects(func(s *snapshot.Snapshot) {
			w := workload("apps/v1", "Deployment", "ml", "d")
			w.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimTemplateName: ptr.To("used")}}
			s.Workloads = []*snapshot.Workload{w}
			s.Templates = []*resourceapi.ResourceClaimTemplate{{ObjectMeta: named("ml", "free")}, {ObjectMeta: named("ml", "used")}}
		}), []string{"Deployment ml/d", "ResourceClaimTemplate ml/free"}},
		"what has no claims is left out": {objects(func(s *snapshot.Snapshot) {
			s.Pods = []*corev1.Pod{pod("bare"), pod("p", corev1.PodResourceClaim{Name: "c", ResourceClaimName: ptr.To("c")})}
		}), []string{"Pod ml/p"}},
		"unless it is all there is": {objects(func(s *snapshot.Snapshot) {
			s.Pods = []*corev1.Pod{pod("bare")}
		}), []string{"Pod ml/bare"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			targets, err := targetsOf(test.objects)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, target := range targets {
				got = append(got, target.Kind+" "+target.Namespace+"/"+target.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("targets differ (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := targetsOf(&snapshot.Snapshot{}); exitCode(err) != exitUsage {
		t.Errorf("nothing to explain: error %v, want a usage error", err)
	}
}

func TestInNamespaceLeavesItsInputAlone(t *testing.T) {
	objects := &snapshot.Snapshot{
		Pods:      []*corev1.Pod{{ObjectMeta: named("", "p")}},
		Claims:    []*resourceapi.ResourceClaim{{ObjectMeta: named("", "c")}, {ObjectMeta: named("web", "c")}},
		Templates: []*resourceapi.ResourceClaimTemplate{{ObjectMeta: named("", "t")}},
		Workloads: []*snapshot.Workload{workload("apps/v1", "Deployment", "", "d")},
	}
	placed := inNamespace(objects, "ml")
	for _, c := range candidates(placed) {
		if want := "ml"; c.object.GetNamespace() != want && c.object.GetNamespace() != "web" {
			t.Errorf("%s %s is in namespace %q, want %q", c.kind.Kind, c.object.GetName(), c.object.GetNamespace(), want)
		}
	}
	if got := placed.Claims[1].Namespace; got != "web" {
		t.Errorf("a claim was moved to namespace %q", got)
	}
	for _, c := range candidates(objects) {
		if got := c.object.GetNamespace(); got != "" && got != "web" {
			t.Errorf("the input was changed: %s %s is in namespace %q", c.kind.Kind, c.object.GetName(), got)
		}
	}
}
