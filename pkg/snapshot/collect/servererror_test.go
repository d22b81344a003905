// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func TestCollectServerErrors(t *testing.T) {
	html := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>Please sign in</html>"))
	})
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	plain := func(handler http.Handler, change func(*rest.Config)) func(*testing.T) Clients {
		return func(t *testing.T) Clients {
			server := httptest.NewServer(handler)
			t.Cleanup(server.Close)
			config := &rest.Config{Host: server.URL}
			if change != nil {
				change(config)
			}
			return clientsFor(t, config)
		}
	}
	for _, tc := range []struct {
		name    string
		clients func(*testing.T) Clients
		want    string
	}{
		{"no server", func(t *testing.T) Clients {
			server := httptest.NewServer(smallCluster())
			server.Close()
			return clientsFor(t, &rest.Config{Host: server.URL})
		}, "connection refused; is the address right"},
		{"unknown CA", func(t *testing.T) Clients {
			server := startTLS(t, smallCluster())
			return clientsFor(t, &rest.Config{Host: server.URL})
		}, "certificate is signed by an unknown authority"},
		{"other name in the certificate", func(t *testing.T) Clients {
			server := startTLS(t, smallCluster())
			ca := server.TLS.Certificates[0].Leaf.Raw
			return clientsFor(t, &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: pemCertificate(ca), ServerName: "api.example.org"}})
		}, "its certificate is for another name"},
		{"no TLS", plain(smallCluster(), func(c *rest.Config) {
			c.Host = strings.Replace(c.Host, "http://", "https://", 1)
		}), "it does not speak TLS"},
		{"no answer", plain(smallCluster().with(apiServer{"/api/v1/pods": http.HandlerFunc(hang)}), func(c *rest.Config) {
			c.Timeout = 50 * time.Millisecond
		}), "no answer in time"},
		// The text of net/http, for which it has no type; at what moment it comes is
		// up to the scheduling of goroutines.
		{"shared connection breaks", plain(smallCluster(), func(c *rest.Config) {
			c.Wrap(func(http.RoundTripper) http.RoundTripper {
				return roundTripper(func(*http.Request) (*http.Response, error) {
					return nil, errors.New("http2: client connection force closed via ClientConn.Close")
				})
			})
		}), "it closed the connection"},
		{"web page instead of the API", plain(html, nil), "something that is no Kubernetes object"},
		{"web page instead of one list", plain(smallCluster().with(apiServer{"/api/v1/pods": html}), nil), "something that is no Kubernetes object"},
		{"half an answer", plain(smallCluster().with(apiServer{"/api/v1/pods": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"PodList","items":[{"metadata":`))
		})}), nil), "something that is no Kubernetes object"},
		{
			"list fails", plain(smallCluster().with(apiServer{"/api/v1/pods": refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError)}), nil),
			"it answered 500: refused by the test",
		},
		{"not ready", plain(refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable), nil), "it is not ready (503 Service Unavailable)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clients := tc.clients(t)
			s, err := Collect(t.Context(), clients, Options{})
			var server *ServerError
			if s != nil || !errors.As(err, &server) {
				t.Fatalf("got snapshot %v and error %v", s != nil, err)
			}
			if !strings.HasPrefix(err.Error(), "ask API server "+clients.Config.Host+": ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, want one with the address and %q", err, tc.want)
			}
		})
	}
}

func TestCollectUnauthorized(t *testing.T) {
	unauthorized := refuse(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
	plugin := func(command string) *clientcmdapi.ExecConfig {
		return &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: command,
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}
	}
	for _, tc := range []struct {
		name    string
		answers http.Handler
		plugin  *clientcmdapi.ExecConfig
		want    string
	}{
		{name: "everywhere", answers: unauthorized, want: "it does not accept the credentials"},
		{name: "once", answers: smallCluster().with(apiServer{"/api/v1/nodes": unauthorized}), want: "it does not accept the credentials"},
		{name: "for metrics", answers: smallCluster().with(apiServer{"/metrics": unauthorized}), want: "it does not accept the credentials"},
		{name: "no credential plugin", answers: smallCluster(), plugin: plugin("no-such-plugin"), want: "the credential plugin failed: executable no-such-plugin not found"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := startTLS(t, tc.answers)
			clients := clientsFor(t, &rest.Config{Host: server.URL, ExecProvider: tc.plugin, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
			_, err := Collect(t.Context(), clients, Options{})
			var unauthorized *UnauthorizedError
			if !errors.As(err, &unauthorized) {
				t.Fatalf("got error %v", err)
			}
			first, advice, _ := strings.Cut(err.Error(), "\n")
			if !strings.Contains(first, tc.want) || !strings.HasPrefix(advice, "see who you are with: kubectl auth whoami") {
				t.Errorf("got %q", err)
			}
		})
	}
}

func TestCollectForbidden(t *testing.T) {
	for name, clients := range map[string]Clients{
		"all of it": start(t, forbid()),
		"all it has": start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/version" || strings.Count(r.URL.Path, "/") == 3 && strings.HasPrefix(r.URL.Path, "/apis/") {
				smallCluster().ServeHTTP(w, r)
				return
			}
			forbid()(w, r)
		})),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Collect(t.Context(), clients, Options{})
			var forbidden *ForbiddenError
			if !errors.As(err, &forbidden) {
				t.Fatalf("got error %v", err)
			}
			for _, want := range []string{snapshot.ResourceNodes, snapshot.ResourceClaims, "nor in namespace ml", "\nask for a ClusterRole that may list these, or ask a user who can list them to save a snapshot", "see who you are with: kubectl auth whoami"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %q", want, err)
				}
			}
		})
	}
}

func TestCollectWithoutDRA(t *testing.T) {
	for _, tc := range []struct {
		version string
		served  apiServer
		want    []string
	}{
		{"v1.31.4", nil, []string{"(v1.31.4) has no API group resource.k8s.io", "on by default since Kubernetes 1.34; upgrade"}},
		{"v1.31.4", apiServer{"/apis/resource.k8s.io/v1alpha3": serves("resource.k8s.io/v1alpha3", "devicetaintrules")}, []string{"has resource.k8s.io only as v1alpha3"}},
		{"v1.35.0", nil, []string{"see whether --runtime-config of the API server turns it off"}},
		{"", nil, []string{"of unknown version", "since Kubernetes 1.34"}},
	} {
		t.Run(tc.version, func(t *testing.T) {
			answers := smallCluster().without("/apis/resource.k8s.io").with(tc.served).with(apiServer{"/version": map[string]any{"gitVersion": tc.version}})
			_, err := Collect(t.Context(), start(t, answers), Options{})
			var none *NoDRAError
			if !errors.As(err, &none) {
				t.Fatalf("got error %v", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %q", want, err)
				}
			}
		})
	}
}

func TestServerAddressHidesCredentials(t *testing.T) {
	for host, want := range map[string]string{
		"https://user:secret@10.0.0.1:6443": "https://10.0.0.1:6443",
		"10.0.0.1:6443":                     "http://10.0.0.1:6443",
		"":                                  "(no address)",
	} {
		if got := serverAddress(&rest.Config{Host: host}); got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
	}
}

func TestMetricsGap(t *testing.T) {
	for name, tc := range map[string]struct {
		answer any
		want   string
	}{
		"forbidden": {forbid(), "this user may not get the URL /metrics of the API server"},
		"missing":   {refuse(http.StatusNotFound, metav1.StatusReasonNotFound), "the API server has no metrics"},
		"other":     {text("up 1\n"), "the metrics of the API server do not include kubernetes_feature_enabled"},
		"failing":   {refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError), "the metrics of the API server could not be read: it answered 500"},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustCollect(t, start(t, smallCluster().with(apiServer{"/metrics": tc.answer})), Options{})
			if gap := s.Gap(snapshot.ResourceMetrics); gap == nil || !strings.HasPrefix(gap.Reason, tc.want) {
				t.Errorf("got gap %+v, want %q", gap, tc.want)
			}
		})
	}
}
