// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

func TestNewCapacity(t *testing.T) {
	for _, test := range []struct {
		total, used string
		want        api.Capacity
	}{
		{"100Gi", "40Gi", api.Capacity{Name: "n", Total: "100Gi", Consumed: "40Gi", Available: "60Gi", ConsumedPercent: 40}},
		{"8", "3", api.Capacity{Name: "n", Total: "8", Consumed: "3", Available: "5", ConsumedPercent: 38}},
		{"1Gi", "512Mi", api.Capacity{Name: "n", Total: "1Gi", Consumed: "512Mi", Available: "512Mi", ConsumedPercent: 50}},
		{"0", "0", api.Capacity{Name: "n", Total: "0", Consumed: "0", Available: "0"}},
		{"10", "12", api.Capacity{Name: "n", Total: "10", Consumed: "12", Available: "-2", ConsumedPercent: 120}},
	} {
		if got := newCapacity("n", resource.MustParse(test.total), resource.MustParse(test.used)); got != test.want {
			t.Errorf("%s of %s: %+v, want %+v", test.used, test.total, got, test.want)
		}
	}
}

func TestAttributeText(t *testing.T) {
	for want, attribute := range map[string]resourceapi.DeviceAttribute{
		"A100":        {StringValue: ptr.To("A100")},
		"-3":          {IntValue: ptr.To[int64](-3)},
		"false":       {BoolValue: ptr.To(false)},
		"1.2.3":       {VersionValue: ptr.To("1.2.3")},
		"a,b":         {StringValues: []string{"a", "b"}},
		"1.0.0,2.0.0": {VersionValues: []string{"1.0.0", "2.0.0"}},
		"1,2":         {IntValues: []int64{1, 2}},
		"true,false":  {BoolValues: []bool{true, false}},
		"":            {},
	} {
		if got := selector.Plain(attribute); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
