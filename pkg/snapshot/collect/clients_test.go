// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// flagsFor returns kubectl's flags with a kubeconfig for the server.
func flagsFor(t *testing.T, server string) *genericclioptions.ConfigFlags {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"lab": {Server: server}},
		Contexts:       map[string]*clientcmdapi.Context{"lab": {Cluster: "lab", Namespace: "serving"}},
		CurrentContext: "lab",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig = &path
	cache := t.TempDir()
	flags.CacheDir = &cache
	return flags
}

func TestNewClients(t *testing.T) {
	var lock sync.Mutex
	agents, accepted := map[string]bool{}, map[string]string{}
	answers := smallCluster()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		agents[r.UserAgent()] = true
		accepted[r.URL.Path] = r.Header.Get("Accept")
		lock.Unlock()
		answers.ServeHTTP(w, r)
	}))
	defer server.Close()

	clients, err := NewClients(flagsFor(t, server.URL))
	if err != nil {
		t.Fatal(err)
	}
	if clients.Namespace != "serving" {
		t.Errorf("got namespace %q", clients.Namespace)
	}
	if len(agents) != 0 {
		t.Errorf("the server was asked already: %v", accepted)
	}
	s := mustCollect(t, clients, Options{})
	if len(s.Pods) != 3 {
		t.Errorf("got %v", contents(s))
	}
	for agent := range agents {
		if !strings.HasPrefix(agent, "kubectl-dra/") {
			t.Errorf("got user agent %q", agent)
		}
	}
	if got := accepted["/api/v1/pods"]; !strings.HasPrefix(got, "application/vnd.kubernetes.protobuf,") {
		t.Errorf("pods were asked for as %q", got)
	}
}

func TestNewClientsWithBrokenKubeconfig(t *testing.T) {
	flags := flagsFor(t, "https://127.0.0.1:6443")
	if err := os.WriteFile(*flags.KubeConfig, []byte("clusters: [{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewClients(flags); err == nil || !strings.HasPrefix(err.Error(), "read kubeconfig: ") {
		t.Errorf("got error %v", err)
	}
}
