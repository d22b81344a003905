// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// DecodeResource decodes an object of resource.k8s.io, nil for other kinds.
func DecodeResource(data []byte, version, kind string) (metav1.Object, error) {
	if err := checkResourceVersion(version, kind); err != nil {
		return nil, err
	}
	switch kind {
	case "ResourceSlice":
		return untyped(decodeSlice(data, version))
	case "DeviceClass":
		return untyped(decodeClass(data, version))
	case "ResourceClaim":
		return untyped(decodeClaim(data, version))
	case "ResourceClaimTemplate":
		return untyped(decodeTemplate(data, version))
	case "DeviceTaintRule":
		return untyped(DecodeTaintRule(data, version))
	case snapshot.KindPoolStatus:
		return decodePoolStatus(data, version)
	default:
		return nil, nil
	}
}

// ErrGone means that no supported release of Kubernetes has the version or the kind of an object.
var ErrGone = errors.New("gone")

// checkResourceVersion refuses what no server has any more, or none that this
// program knows, instead of leaving out objects that decide the answer.
func checkResourceVersion(version, kind string) error {
	replacement := ""
	switch kind {
	case "ResourceClass":
		replacement = "DeviceClass replaced it in Kubernetes 1.31"
	case "ResourceClassParameters":
		replacement = "spec.config of DeviceClass replaced it in Kubernetes 1.31"
	case "ResourceClaimParameters":
		replacement = "spec.devices of ResourceClaim replaced it in Kubernetes 1.31"
	case "PodSchedulingContext":
		replacement = "the scheduler allocates without it since Kubernetes 1.32"
	case "ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate":
		switch version {
		case "v1", "v1beta2", "v1beta1":
			return nil
		case "v1alpha1", "v1alpha2", "v1alpha3":
			return &FieldError{"apiVersion", fmt.Errorf("%s of resource.k8s.io/%s is %w since Kubernetes 1.32: "+
				"expected one of v1, v1beta2, v1beta1", kind, version, ErrGone)}
		}
		return &FieldError{"apiVersion", fmt.Errorf("resource.k8s.io/%s is not known: expected one of v1, v1beta2, v1beta1", version)}
	case "DeviceTaintRule":
		switch version {
		case "v1", "v1beta2", "v1alpha3":
			return nil
		}
		return &FieldError{"apiVersion", fmt.Errorf("resource.k8s.io/%s has no DeviceTaintRule: "+
			"expected one of v1, v1beta2, v1alpha3", version)}
	default:
		return nil
	}
	return fmt.Errorf("%s of resource.k8s.io/%s is %w: %s", kind, version, ErrGone, replacement)
}
