// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	authorizationapi "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// The typed clients of client-go are made from k8s.io/client-go/gentype. Those
// here are, too, but only those that are needed, and without server-side apply:
// kubernetes.Interface brings the types that this takes, for all of Kubernetes,
// into the program.

// Pods returns a client for pods in a namespace, or, if that is empty, in all.
func (c Clients) Pods(namespace string) *gentype.ClientWithList[*corev1.Pod, *corev1.PodList] {
	return gentype.NewClientWithList("pods", c.typed[corev1.SchemeGroupVersion], scheme.ParameterCodec, namespace,
		func() *corev1.Pod { return new(corev1.Pod) }, func() *corev1.PodList { return new(corev1.PodList) }, gentype.PrefersProtobuf[*corev1.Pod]())
}

// Nodes returns a client for single nodes.
func (c Clients) Nodes() *gentype.Client[*corev1.Node] {
	return single(c, corev1.SchemeGroupVersion, "nodes", func() *corev1.Node { return new(corev1.Node) })
}

// AccessReviews returns a client that asks what the user may do.
func (c Clients) AccessReviews() *gentype.Client[*authorizationapi.SelfSubjectAccessReview] {
	return single(c, authorizationapi.SchemeGroupVersion, "selfsubjectaccessreviews",
		func() *authorizationapi.SelfSubjectAccessReview { return new(authorizationapi.SelfSubjectAccessReview) })
}

// ReviewsOfOthers returns a client that asks what others than the user may do.
func (c Clients) ReviewsOfOthers() *gentype.Client[*authorizationapi.SubjectAccessReview] {
	return single(c, authorizationapi.SchemeGroupVersion, "subjectaccessreviews",
		func() *authorizationapi.SubjectAccessReview { return new(authorizationapi.SubjectAccessReview) })
}

func (c Clients) namespaces() *gentype.Client[*corev1.Namespace] {
	return single(c, corev1.SchemeGroupVersion, "namespaces", func() *corev1.Namespace { return new(corev1.Namespace) })
}

// statusRequests returns a client for what makes the cluster count devices.
func (c Clients) statusRequests() *gentype.Client[*resourcev1alpha3.ResourcePoolStatusRequest] {
	return single(c, resourcev1alpha3.SchemeGroupVersion, "resourcepoolstatusrequests",
		func() *resourcev1alpha3.ResourcePoolStatusRequest {
			return new(resourcev1alpha3.ResourcePoolStatusRequest)
		})
}

// single returns a client for objects that are in no namespace, without lists.
func single[P apiObject](c Clients, version schema.GroupVersion, resource string, empty func() P) *gentype.Client[P] {
	return gentype.NewClient(resource, c.typed[version], scheme.ParameterCodec, metav1.NamespaceNone, empty, gentype.PrefersProtobuf[P]())
}

// apiObject is a Go type of the API.
type apiObject interface {
	runtime.Object
	metav1.Object
}

// Clients is all that is needed to talk to one cluster as one user.
type Clients struct {
	// Config is the connection, with protobuf preferred for built-in types.
	Config *rest.Config
	// Namespace is the default namespace, from the flags or the context.
	Namespace string

	Discovery *discovery.DiscoveryClient
	Dynamic   dynamic.Interface
	// typed are for the objects of [typedVersions].
	typed map[schema.GroupVersion]rest.Interface
	// Mapper turns what users type ("deploy", "jobs.batch") into resources. It
	// asks the server when it is first used.
	Mapper meta.RESTMapper
}

// Address returns the address of the API server, for messages.
func (c Clients) Address() string { return serverAddress(c.Config) }
