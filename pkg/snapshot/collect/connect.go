// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/client-go/util/flowcontrol"
)

// Limits of our own requests. [Collect] sends about a dozen requests, plus one
// for every 500 objects; the limits of client-go for controllers (5 and 10)
// would be what it waits for.
const (
	clientQPS   = 50
	clientBurst = 100
)

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
	return fmt.Sprintf("kubectl-dra/%s (%s/%s)", version, runtime.GOOS, runtime.GOARCH)
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
