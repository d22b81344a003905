// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// The labels of NVIDIA's GPU feature discovery, and the resource that they describe.
const (
	labelReplicas    = "nvidia.com/gpu.replicas"
	labelStrategy    = "nvidia.com/gpu.sharing-strategy"
	labelMIGStrategy = "nvidia.com/mig.strategy"
	labelProduct     = "nvidia.com/gpu.product"
	resourceGPU      = corev1.ResourceName("nvidia.com/gpu")
	// migInfix stands between the GPU and the profile in the product of a MIG device.
	migInfix = "-MIG-"
)

// sharing returns how NVIDIA's device plugin divides the GPUs behind a resource, by labels. These
// describe nvidia.com/gpu, and nvidia.com/gpu.shared, which replicas may be called.
func sharing(labels map[string]string, name corev1.ResourceName) api.PluginSharing {
	if name != resourceGPU && name != resourceGPU+".shared" {
		return ""
	}
	replicas, err := strconv.Atoi(labels[labelReplicas])
	product := labels[labelProduct]
	switch shared := err == nil && replicas > 1 || strings.HasSuffix(product, "-SHARED"); {
	case shared && labels[labelStrategy] == string(api.SharingTimeSlicing):
		return api.SharingTimeSlicing
	case shared && labels[labelStrategy] == string(api.SharingMPS):
		return api.SharingMPS
	case shared:
		return api.SharingReplicas
	case labels[labelMIGStrategy] == "single" && strings.Contains(product, migInfix):
		return api.SharingMIG
	default:
		return ""
	}
}

// discovered reports whether labels of feature discovery tell how GPUs of a node are shared: the product
// of shared GPUs says so.
func discovered(node *corev1.Node) bool {
	return node.Labels[labelReplicas] != "" || node.Labels[labelProduct] != ""
}
