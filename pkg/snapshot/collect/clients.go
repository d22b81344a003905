// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"fmt"
	"net"
	"net/http"
	goruntime "runtime"
	"runtime/debug"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationapi "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyapi "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	storageapi "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/streaming/pkg/httpstream"
)

// The typed clients of client-go are made from k8s.io/client-go/gentype. Those
// here are, too, but only those that are needed, and without server-side apply:
// kubernetes.Interface brings the types that this takes, for all of Kubernetes,
// into the program.

// Kubeconfig returns what kubectl's own flags and the environment say about the cluster,
// which is read when it is first used. Unlike kubectl's, it copies no kubeconfig from where
// kubectl had it before 2015: that would write a file, and fails where the home is none,
// even if no file in it is asked for. The getter has to keep what it reads.
func Kubeconfig(getter genericclioptions.RESTClientGetter) clientcmd.ClientConfig {
	kubeconfig := getter.ToRawKubeConfigLoader()
	if rules, ok := kubeconfig.ConfigAccess().(*clientcmd.ClientConfigLoadingRules); ok {
		rules.MigrationRules = nil
	}
	return kubeconfig
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

// NewClients makes the clients from kubectl's own flags. It reads the
// kubeconfig and sends nothing.
func NewClients(getter genericclioptions.RESTClientGetter) (Clients, error) {
	return newClients(getter, nil)
}

// NewClientsUntil is like [NewClients], with connections that are closed when ctx is done.
func NewClientsUntil(ctx context.Context, getter genericclioptions.RESTClientGetter) (Clients, error) {
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext)
	context.AfterFunc(ctx, dialer.CloseAll)
	return newClients(getter, dialer.DialContext)
}

// newClients makes clients; dial may be nil for the usual way to connect.
func newClients(getter genericclioptions.RESTClientGetter, dial func(ctx context.Context, network, address string) (net.Conn, error)) (Clients, error) {
	kubeconfig := Kubeconfig(getter)
	config, err := getter.ToRESTConfig()
	if err != nil {
		return Clients{}, fmt.Errorf("read kubeconfig: %w", err)
	}
	namespace, _, err := kubeconfig.Namespace()
	if err != nil {
		return Clients{}, fmt.Errorf("read namespace from kubeconfig: %w", err)
	}
	if flags, ok := getter.(*genericclioptions.ConfigFlags); ok {
		// The mapper has a connection of its own.
		flags.WrapConfigFn = guarded
	}
	mapper, err := getter.ToRESTMapper()
	if err != nil {
		return Clients{}, fmt.Errorf("read kubeconfig: %w", err)
	}

	clients, err := clientsOf(config, dial)
	if err != nil {
		return Clients{}, err
	}
	clients.Namespace, clients.Mapper = namespace, mapper
	return clients, nil
}

// NewClientsOf is like [NewClients], from a connection. The default namespace is "default".
func NewClientsOf(config *rest.Config) (Clients, error) {
	clients, err := clientsOf(config, nil)
	if err != nil {
		return Clients{}, err
	}
	clients.Namespace = metav1.NamespaceDefault
	discovered := memory.NewMemCacheClient(clients.Discovery)
	clients.Mapper = restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(discovered), discovered, func(string) {})
	return clients, nil
}

// Limits of our own requests. [Collect] sends about a dozen requests, plus one
// for every 500 objects; the limits of client-go for controllers (5 and 10)
// would be what it waits for.
const (
	clientQPS   = 50
	clientBurst = 100
)

// clientsOf makes clients without a namespace and a mapper; dial may be nil for the usual way to
// connect.
func clientsOf(config *rest.Config, dial func(ctx context.Context, network, address string) (net.Conn, error)) (Clients, error) {
	config = rest.CopyConfig(config)
	if dial != nil {
		config.Dial = dial
	}
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.QPS = clientQPS
	config.Burst = clientBurst
	config.UserAgent = userAgent()
	// That a version is deprecated is no news to those who do not choose it.
	config.WarningHandlerWithContext = rest.NoWarnings{}
	config.Wrap(pruneUnused)
	config.Wrap(failWhenLost)

	clients, err := connect(config)
	if err != nil {
		return Clients{}, fmt.Errorf("set up connection to %s: %w", serverAddress(config), err)
	}
	return clients, nil
}

// connect makes what sends requests.
func connect(config *rest.Config) (Clients, error) {
	config = guarded(rest.CopyConfig(config))
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return Clients{}, err
	}
	clients := Clients{Config: config, typed: map[schema.GroupVersion]rest.Interface{}}
	if clients.Dynamic, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return Clients{}, err
	}
	limited := rest.CopyConfig(config)
	if limited.RateLimiter == nil && limited.QPS > 0 {
		// One limit for all of them.
		limited.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(limited.QPS, limited.Burst)
	}
	if clients.Discovery, err = discovery.NewDiscoveryClientForConfigAndClient(limited, client); err != nil {
		return Clients{}, err
	}
	for _, version := range typedVersions() {
		if clients.typed[version], err = typedClient(limited, version, client); err != nil {
			return Clients{}, err
		}
	}
	return clients, nil
}

// userAgent names this program in the audit log of the API server.
func userAgent() string {
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		version = info.Main.Version
	}
	return fmt.Sprintf("kubectl-dra/%s (%s/%s)", version, goruntime.GOOS, goruntime.GOARCH)
}

// typedVersions returns the versions of API groups with objects that are read as Go types.
func typedVersions() []schema.GroupVersion {
	return []schema.GroupVersion{
		corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion, authorizationapi.SchemeGroupVersion, schedulingapi.SchemeGroupVersion, schedulingv1alpha3.SchemeGroupVersion, storageapi.SchemeGroupVersion, policyapi.SchemeGroupVersion,
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

// ContextOf returns the context that the flags or the kubeconfig choose; empty if there is
// none.
func ContextOf(flags *genericclioptions.ConfigFlags) string {
	if flags.Context != nil && *flags.Context != "" {
		return *flags.Context
	}
	raw, err := Kubeconfig(flags).RawConfig()
	if err != nil {
		return ""
	}
	return raw.CurrentContext
}

// Address returns the address of the API server, for messages.
func (c Clients) Address() string { return serverAddress(c.Config) }

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

// Executor runs a command in a container of a pod. It connects as kubectl does:
// through a websocket, and through SPDY if the server or something before it doesn't
// know that. The options name the container, the command and the streams.
func (c Clients) Executor(namespace, pod string, options *corev1.PodExecOptions) (remotecommand.Executor, error) {
	url := c.Pods("").GetClient().Post().
		Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(options, scheme.ParameterCodec).URL()
	spdy, err := remotecommand.NewSPDYExecutor(c.Config, "POST", url)
	if err != nil {
		return nil, err
	}
	websocket, err := remotecommand.NewWebSocketExecutor(c.Config, "GET", url.String())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(websocket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}
