// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func workload(apiVersion, kind, namespace, name string) *snapshot.Workload {
	return &snapshot.Workload{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, ObjectMeta: named(namespace, name)}
}

func TestParseTargets(t *testing.T) {
	ref := func(resource, name string) snapshot.Argument {
		return snapshot.Argument{Resource: resource, Name: name}
	}
	tests := map[string]struct {
		args    string
		want    []snapshot.Argument
		wantErr string
	}{
		"a bare name is a claim":  {args: "train", want: []snapshot.Argument{ref("resourceclaims", "train")}},
		"type and name":           {args: "pod/a", want: []snapshot.Argument{ref("pod", "a")}},
		"two words":               {args: "pod a", want: []snapshot.Argument{ref("pod", "a")}},
		"one type, two names":     {args: "pod a b", want: []snapshot.Argument{ref("pod", "a"), ref("pod", "b")}},
		"several":                 {args: "pod/a claim/b", want: []snapshot.Argument{ref("pod", "a"), ref("resourceclaims", "b")}},
		"short names":             {args: "Deploy/a", want: []snapshot.Argument{ref("deployments", "a")}},
		"with a group":            {args: "trainjobs.v1.kubeflow.org/a", want: []snapshot.Argument{ref("trainjobs.v1.kubeflow.org", "a")}},
		"claim as kubectl prints": {args: "resourceclaim.resource.k8s.io/a", want: []snapshot.Argument{ref("resourceclaims", "a")}},
		"with group and version":  {args: "resourceclaimtemplates.v1beta1.resource.k8s.io/a", want: []snapshot.Argument{ref("resourceclaimtemplates", "a")}},
		"pod of its group":        {args: "pods.v1./a pod.core/b", want: []snapshot.Argument{ref("pods", "a"), ref("pods", "b")}},
		"not of our group":        {args: "pods.metrics.k8s.io/a", want: []snapshot.Argument{ref("pods.metrics.k8s.io", "a")}},
		"no pods":                 {args: "svc/web", wantErr: "a Service has no pod template and can never be a target"},
		"mixed":                   {args: "pod/a b", wantErr: "mixed"},
		"no name":                 {args: "pod/", wantErr: "TYPE/NAME"},
		"no type":                 {args: "/a", wantErr: "TYPE/NAME"},
		"too many slashes":        {args: "ml/pod/a", wantErr: "TYPE/NAME"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseTargets(strings.Fields(test.args))
			if test.wantErr != "" {
				var usage *UsageError
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

func TestMeant(t *testing.T) {
	missing := &explain.TargetError{Message: "ResourceClaim ml/pod not found", Hint: "there is none"}
	tests := map[string]struct {
		args string
		err  error
		want string
	}{
		"a type alone":    {"pod", missing, "error: ResourceClaim ml/pod not found\npod is a type: write pod/NAME.\n"},
		"a claim":         {"train", missing, "error: ResourceClaim ml/pod not found\nthere is none\n"},
		"two claims":      {"a b", &collect.UnknownResourceError{Resource: "a"}, "error: find a b: the server has no type \"a\"\nFor 2 claims write: why claim/a claim/b\n"},
		"in a file":       {"a b", Usagef("", "%w", &unknownTypeError{}), "error: find a b: the server has no type \"a\"\nFor 2 claims write: why claim/a claim/b\n"},
		"a type and name": {"frobs/a", &collect.UnknownResourceError{Resource: "frobs"}, "error: find resource type: the server has no \"frobs\"\nsee what it has with: kubectl api-resources\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			PrintError(&out, WithSuggestion(strings.Fields(test.args), test.err))
			if out.String() != test.want {
				t.Errorf("got %q, want %q", out.String(), test.want)
			}
		})
	}
}

func TestCheckNames(t *testing.T) {
	for name, ok := range map[string]bool{"train-0": true, "a.b": true, "x,involvedObject.name=y": false, "Train": false, "": false, "a\x1bb": false} {
		err := CheckTargets([]snapshot.Argument{{Resource: "pods", Name: name}})
		if ok != (err == nil) || !ok && ExitCode(err) != ExitUsage {
			t.Errorf("%q: got error %v", name, err)
		}
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
		"the only one":      {"resourceclaims", "", "single", explain.Options{Object: api.Ref("ResourceClaim", "b", "single")}, ""},
		"chosen":            {"resourceclaim", "a", "twin", explain.Options{Object: api.Ref("ResourceClaim", "a", "twin")}, ""},
		"ambiguous":         {"resourceclaims", "", "twin", explain.Options{}, "namespaces a, b"},
		"nowhere":           {"pods", "", "x", explain.Options{Object: api.Ref("Pod", "default", "x")}, ""},
		"custom resource":   {"trainjobs", "", "t", explain.Options{Object: api.Ref("TrainJob", "b", "t").In("kubeflow.org")}, ""},
		"with its group":    {"trainjob.kubeflow.org", "", "t", explain.Options{Object: api.Ref("TrainJob", "b", "t").In("kubeflow.org")}, ""},
		"with its version":  {"trainjobs.v1.kubeflow.org", "", "t", explain.Options{Object: api.Ref("TrainJob", "b", "t").In("kubeflow.org")}, ""},
		"of another group":  {"trainjobs.example.com", "", "t", explain.Options{}, "no type \"trainjobs.example.com\""},
		"no such type":      {"frobs", "", "x", explain.Options{}, "no type \"frobs\""},
		"built in, missing": {"statefulsets", "b", "x", explain.Options{Object: api.Ref("StatefulSet", "b", "x")}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ResolveTarget(&Source{Namespace: test.namespace}, snap, snapshot.Argument{Resource: test.resource, Name: test.name})
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
	from := &Source{Namespace: "ml", KindOf: func(resource string) (schema.GroupKind, error) {
		if resource != "tj" {
			t.Errorf("asked for %q", resource)
		}
		return schema.GroupKind{Group: "kubeflow.org", Kind: "TrainJob"}, nil
	}}
	got, err := ResolveTarget(from, &snapshot.Snapshot{}, snapshot.Argument{Resource: "tj", Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (explain.Options{Object: api.Ref("TrainJob", "ml", "x").In("kubeflow.org")}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
