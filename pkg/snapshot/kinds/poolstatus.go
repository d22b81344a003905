// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// decodePoolStatus decodes a request that has been answered. Those without an
// answer say nothing.
func decodePoolStatus(data []byte, version string) (metav1.Object, error) {
	if version != resourcev1alpha3.SchemeGroupVersion.Version {
		return nil, nil
	}
	request, err := DecodeAs[resourcev1alpha3.ResourcePoolStatusRequest](data)
	if err != nil || request.Status == nil {
		return nil, err
	}
	return untyped(request, nil)
}
