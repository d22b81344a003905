// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// twoSlices returns something of everything, the second one with partitions.
func twoSlices() *resourceapi.ResourceSliceList {
	device := func(name string) resourceapi.Device {
		return resourceapi.Device{
			Name:       name,
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"model": {StringValue: ptr.To("x")}, "numa": {IntValue: ptr.To(int64(1))}},
			Taints:     []resourceapi.DeviceTaint{{Key: "key", Effect: resourceapi.DeviceTaintEffectNoSchedule}},
		}
	}
	list := &resourceapi.ResourceSliceList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "more", RemainingItemCount: ptr.To(int64(3))}}
	for i := range 2 {
		list.Items = append(list.Items, resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("slice-", i), Labels: map[string]string{"a": "b"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "driver"}},
			},
			Spec: resourceapi.ResourceSliceSpec{Driver: "gpu.example.com", Devices: []resourceapi.Device{device("gpu-0"), device("gpu-1")}},
		})
	}
	list.Items[1].Spec.PartitionTypeAttribute = ptr.To(resourceapi.FullyQualifiedName("gpu.example.com/model"))
	return list
}

const protobufMagic = "k8s\x00"

func TestReaderLeavesOutNoMore(t *testing.T) {
	fields := append(kinds.ReadFields("metadata.managedFields", "spec.devices.taints.key", "no.such.field"),
		kinds.Field{Path: "spec.devices.attributes", Unless: "spec.partitionTypeAttribute"})
	var token string
	short, err := io.ReadAll(kinds.NewReader(bytes.NewReader(testsnapshot.Encode(t, twoSlices())), reflect.TypeFor[resourceapi.ResourceSlice](), fields, func(next string) { token = next }))
	if err != nil {
		t.Fatal(err)
	}
	want := twoSlices()
	want.Kind, want.APIVersion = "ResourceSliceList", "resource.k8s.io/v1"
	for i := range want.Items {
		want.Items[i].ManagedFields = nil
		for d := range want.Items[i].Spec.Devices {
			want.Items[i].Spec.Devices[d].Taints[0].Key = ""
		}
	}
	for d := range want.Items[0].Spec.Devices {
		want.Items[0].Spec.Devices[d].Attributes = nil
	}
	if diff := cmp.Diff(want, testsnapshot.Decode(t, short)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if token != "more" {
		t.Errorf("the next chunk starts at %q, want more", token)
	}
}

// TestReaderFailsWhereTheListDoes cuts a list off at every byte: the rest must not look
// like a shorter list.
func TestReaderFailsWhereTheListDoes(t *testing.T) {
	whole := testsnapshot.Encode(t, twoSlices())
	for n := len(protobufMagic) + 1; n < len(whole); n++ {
		short, err := io.ReadAll(kinds.NewReader(bytes.NewReader(whole[:n]), reflect.TypeFor[resourceapi.ResourceSlice](), nil, nil))
		if err != nil {
			continue
		}
		// What comes behind the list in the envelope is empty.
		list, ok := testsnapshot.Decode(t, short).(*resourceapi.ResourceSliceList)
		if !ok || len(list.Items) != 2 {
			t.Errorf("%d of %d bytes: there is no error, but %v", n, len(whole), list)
		}
	}
}

// FuzzPrune covers anything in place of a list. What the decoder takes must be the same
// before and after, if no field is left out.
func FuzzPrune(f *testing.F) {
	f.Add(testsnapshot.Encode(f, twoSlices()))
	f.Add([]byte(protobufMagic + "\x12\x02\x12\x00"))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		object := reflect.TypeFor[resourceapi.ResourceSlice]()
		_, _ = io.ReadAll(kinds.NewReader(bytes.NewReader(data), object, kinds.ReadFields("spec.devices.attributes", "metadata.managedFields"), nil))
		same, err := io.ReadAll(kinds.NewReader(io.MultiReader(bytes.NewReader(data)), object, nil, nil))
		before, beforeErr := runtime.Decode(scheme.Codecs.UniversalDeserializer(), data)
		if err != nil || beforeErr != nil {
			return
		}
		if list, ok := before.(*resourceapi.ResourceSliceList); ok {
			if diff := cmp.Diff(list, testsnapshot.Decode(t, same)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		}
	})
}
