// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	authorizationapi "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	storageapi "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// The typed clients of client-go are made from k8s.io/client-go/gentype. Those
// here are, too, but only those that are needed, and without server-side apply:
// kubernetes.Interface brings the types that this takes, for all of Kubernetes,
// into the program.

// typedVersions are the versions of API groups with objects that are read as Go
// types.
func typedVersions() []schema.GroupVersion {
	return []schema.GroupVersion{
		corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, authorizationapi.SchemeGroupVersion, schedulingapi.SchemeGroupVersion, storageapi.SchemeGroupVersion,
		resourceapi.SchemeGroupVersion, resourcev1beta2.SchemeGroupVersion, resourcev1beta1.SchemeGroupVersion, resourcev1alpha3.SchemeGroupVersion,
	}
}

func typedClient(config *rest.Config, version schema.GroupVersion, client *http.Client) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = &version
	config.APIPath = "/apis"
	if version.Group == corev1.GroupName {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(scheme.Scheme, scheme.Codecs).WithoutConversion()
	return rest.RESTClientForConfigAndClient(config, client)
}

// Pods is a client for pods in a namespace, or, if that is empty, in all.
func (c Clients) Pods(namespace string) *gentype.ClientWithList[*corev1.Pod, *corev1.PodList] {
	return gentype.NewClientWithList("pods", c.typed[corev1.SchemeGroupVersion], scheme.ParameterCodec, namespace,
		func() *corev1.Pod { return new(corev1.Pod) }, func() *corev1.PodList { return new(corev1.PodList) }, gentype.PrefersProtobuf[*corev1.Pod]())
}

// Nodes is a client for single nodes.
func (c Clients) Nodes() *gentype.Client[*corev1.Node] {
	return single(c, corev1.SchemeGroupVersion, "nodes", func() *corev1.Node { return new(corev1.Node) })
}

// AccessReviews is a client that asks what the user may do.
func (c Clients) AccessReviews() *gentype.Client[*authorizationapi.SelfSubjectAccessReview] {
	return single(c, authorizationapi.SchemeGroupVersion, "selfsubjectaccessreviews",
		func() *authorizationapi.SelfSubjectAccessReview { return new(authorizationapi.SelfSubjectAccessReview) })
}

func (c Clients) namespaces() *gentype.Client[*corev1.Namespace] {
	return single(c, corev1.SchemeGroupVersion, "namespaces", func() *corev1.Namespace { return new(corev1.Namespace) })
}

// statusRequests is a client for what makes the cluster count devices.
func (c Clients) statusRequests() *gentype.Client[*resourcev1alpha3.ResourcePoolStatusRequest] {
	return single(c, resourcev1alpha3.SchemeGroupVersion, "resourcepoolstatusrequests",
		func() *resourcev1alpha3.ResourcePoolStatusRequest {
			return new(resourcev1alpha3.ResourcePoolStatusRequest)
		})
}

// single is a client for objects that are in no namespace, without lists.
func single[P apiObject](c Clients, version schema.GroupVersion, resource string, empty func() P) *gentype.Client[P] {
	return gentype.NewClient(resource, c.typed[version], scheme.ParameterCodec, metav1.NamespaceNone, empty, gentype.PrefersProtobuf[P]())
}
