// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
)

func TestUnusedClaims(t *testing.T) {
	container := func(claims ...corev1.ResourceClaim) corev1.Container {
		return corev1.Container{Name: "main", Resources: corev1.ResourceRequirements{Claims: claims}}
	}
	claims := []PodClaim{{Entry: "gpus", Claim: &resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{
		Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: "big"}, {Name: "small"}}},
	}}}}
	for name, test := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"all of it":                     {corev1.PodSpec{Containers: []corev1.Container{container(corev1.ResourceClaim{Name: "gpus"})}}, ""},
		"a request":                     {corev1.PodSpec{Containers: []corev1.Container{container(corev1.ResourceClaim{Name: "gpus", Request: "big"})}}, ""},
		"an init container":             {corev1.PodSpec{InitContainers: []corev1.Container{container(corev1.ResourceClaim{Name: "gpus"})}, Containers: []corev1.Container{container()}}, ""},
		"no container":                  {corev1.PodSpec{Containers: []corev1.Container{container()}}, "no container names claim gpus"},
		"a request that is not":         {corev1.PodSpec{Containers: []corev1.Container{container(corev1.ResourceClaim{Name: "gpus", Request: "bigger"})}}, "container main names request bigger of claim gpus, which does not exist"},
		"an entry that is not":          {corev1.PodSpec{Containers: []corev1.Container{container(corev1.ResourceClaim{Name: "gpus"}, corev1.ResourceClaim{Name: "nic"})}}, "container main names claim nic, which is not in spec.resourceClaims"},
		"containers that are not known": {corev1.PodSpec{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus"}}
			found := UnusedClaims(&corev1.Pod{Spec: test.spec}, claims)
			if (len(found) == 0) != (test.want == "") || len(found) > 1 {
				t.Fatalf("%+v, want %q", found, test.want)
			}
			if len(found) == 1 && !strings.HasPrefix(found[0].Text(), test.want) {
				t.Errorf("%q, want %q", found[0].Text(), test.want)
			}
		})
	}
}
