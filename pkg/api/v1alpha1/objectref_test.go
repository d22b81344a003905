// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestObjectRef has, for each reference, what JSON and the screens have.
func TestObjectRef(t *testing.T) {
	for _, test := range []struct {
		ref                            api.ObjectRef
		json, evidence, headline, flag string
	}{
		{
			api.Ref(api.KindPod, "ml", "train-0"),
			`{"kind":"Pod","namespace":"ml","name":"train-0"}`, "Pod/ml/train-0", "Pod ml/train-0", "pod/train-0",
		},
		{
			api.Ref(api.KindNode, "", "gpu-01"),
			`{"kind":"Node","name":"gpu-01"}`, "Node/gpu-01", "Node gpu-01", "node/gpu-01",
		},
		{
			api.RefTo("Job", &metav1.ObjectMeta{Namespace: "ml", Name: "train"}),
			`{"apiGroup":"batch","kind":"Job","namespace":"ml","name":"train"}`, "Job/ml/train", "Job ml/train", "job/train",
		},
		{
			api.Ref("Workload", "ml", "train").In("kueue.x-k8s.io"),
			`{"apiGroup":"kueue.x-k8s.io","kind":"Workload","namespace":"ml","name":"train"}`, "Workload/ml/train", "Workload ml/train", "workload/train",
		},
		{
			api.Ref("ResourceSlice", "", ""),
			`{"apiGroup":"resource.k8s.io","kind":"ResourceSlice"}`, "ResourceSlice", "ResourceSlice ", "resourceslice/",
		},
		{api.Ref(api.KindAPIServer, "", ""), `{"kind":"APIServer"}`, "API server", "APIServer ", "apiserver/"},
	} {
		data, err := json.Marshal(test.ref)
		if err != nil {
			t.Fatal(err)
		}
		if got := [4]string{string(data), test.ref.String(), test.ref.Title(), test.ref.Argument()}; got != [4]string{test.json, test.evidence, test.headline, test.flag} {
			t.Errorf("got %q, want %q", got, [4]string{test.json, test.evidence, test.headline, test.flag})
		}
	}
	if none := (api.ObjectRef{}); none.Argument() != "" {
		t.Errorf("no object is %q for kubectl", none.Argument())
	}
}
