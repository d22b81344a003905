// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// The typed clients of client-go are made from k8s.io/client-go/gentype. Those
// here are, too, but only those that are needed, and without server-side apply:
// kubernetes.Interface brings the types for that, of all of Kubernetes, into the
// program, and these make a large part of it.

// typedVersions are the versions of API groups with objects that are read as Go
// types.
func typedVersions() []schema.GroupVersion {
	return []schema.GroupVersion{
		corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, authorizationapi.SchemeGroupVersion, schedulingapi.SchemeGroupVersion,
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

// pointerTo is the pointer to a type of the API.
type pointerTo[T any] interface {
	*T
	runtime.Object
}

// typed is a client for the objects of one of [typedVersions] in a namespace.
// No namespace is all of them, or stands for objects that are in none.
func typed[T, L any, P interface {
	pointerTo[T]
	metav1.Object
}, PL pointerTo[L]](c Clients, version schema.GroupVersion, resource, namespace string) *gentype.ClientWithList[P, PL] {
	return gentype.NewClientWithList(resource, c.typed[version], scheme.ParameterCodec, namespace,
		func() P { return new(T) }, func() PL { return new(L) }, gentype.PrefersProtobuf[P]())
}

// Pods is a client for pods in a namespace, or, if that is empty, in all.
func (c Clients) Pods(namespace string) *gentype.ClientWithList[*corev1.Pod, *corev1.PodList] {
	return typed[corev1.Pod, corev1.PodList](c, corev1.SchemeGroupVersion, "pods", namespace)
}

// Nodes is a client for nodes.
func (c Clients) Nodes() *gentype.ClientWithList[*corev1.Node, *corev1.NodeList] {
	return typed[corev1.Node, corev1.NodeList](c, corev1.SchemeGroupVersion, "nodes", metav1.NamespaceAll)
}

// AccessReviews is a client that asks what the user may do.
func (c Clients) AccessReviews() *gentype.Client[*authorizationapi.SelfSubjectAccessReview] {
	return gentype.NewClient("selfsubjectaccessreviews", c.typed[authorizationapi.SchemeGroupVersion], scheme.ParameterCodec, metav1.NamespaceNone,
		func() *authorizationapi.SelfSubjectAccessReview { return &authorizationapi.SelfSubjectAccessReview{} },
		gentype.PrefersProtobuf[*authorizationapi.SelfSubjectAccessReview]())
}

func (c Clients) namespaces() *gentype.ClientWithList[*corev1.Namespace, *corev1.NamespaceList] {
	return typed[corev1.Namespace, corev1.NamespaceList](c, corev1.SchemeGroupVersion, "namespaces", metav1.NamespaceAll)
}

// statusRequests is a client for what makes the cluster count devices.
func (c Clients) statusRequests() *gentype.ClientWithList[*resourcev1alpha3.ResourcePoolStatusRequest, *resourcev1alpha3.ResourcePoolStatusRequestList] {
	return typed[resourcev1alpha3.ResourcePoolStatusRequest, resourcev1alpha3.ResourcePoolStatusRequestList](
		c, resourcev1alpha3.SchemeGroupVersion, "resourcepoolstatusrequests", metav1.NamespaceAll)
}
