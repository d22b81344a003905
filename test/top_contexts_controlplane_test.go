// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

// TestTopContexts goes from one context to another in the dashboard: to a user who may see
// nothing, to a server that is not there, to a second way to the same cluster, and back.
// Nothing of the first connection stays open.
func TestTopContexts(t *testing.T) {
	c := startCluster(t, controlplane.Options{WithoutScheduler: true, WithoutControllerManager: true})
	c.topFleet(t)
	server := strings.TrimPrefix(c.plane.Config().Host, "https://")
	first, second := countConnections(t, server), countConnections(t, server)
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	nobody, err := clientcmd.LoadFromFile(c.kubeconfigOf(t, "nobody"))
	if err != nil {
		t.Fatal(err)
	}
	chosen := config.Contexts[config.CurrentContext]
	cluster := config.Clusters[chosen.Cluster]
	config.AuthInfos["nobody"] = nobody.AuthInfos[nobody.Contexts[nobody.CurrentContext].AuthInfo]
	context := func(name, address, user string) {
		at := cluster.DeepCopy()
		at.Server = "https://" + address
		config.Clusters[name] = at
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	}
	context("first", first.address, chosen.AuthInfo)
	context("second", second.address, chosen.AuthInfo)
	context("gone", "127.0.0.1:1", chosen.AuthInfo)
	context("blind", second.address, "nobody")
	config.CurrentContext = "first"
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}

	term := openTerminal(t, programFor(t, kubeconfig), 120, 30, "top", "--allow-changes")
	term.shows("Capacity", first.address, "1 claim without a pod")
	to := func(name string) {
		term.keys(":")
		term.shows("go to:", "contexts")
		term.types("ctx")
		term.shows("go to: ctx")
		term.keys("Enter")
		term.shows("context:", "blind", "second")
		term.types(name)
		term.shows("context: " + name)
		term.keys("Enter")
	}
	to("second")
	term.shows("Capacity", second.address, "1 claim without a pod", "", first.address)
	if title := term.tmux("display-message", "-p", "#{pane_title}"); !strings.HasPrefix(title, "dra top second") {
		t.Errorf("the window is called %q", title)
	}
	if err := poll(t.Context(), func() bool { return first.open.Load() == 0 }); err != nil {
		t.Errorf("%d connections to the first cluster stay open", first.open.Load())
	}
	// It is followed as the first one was.
	c.topClaim(t, "later", 1)
	term.shows("2 claims without a pod")
	term.keys("5")
	term.shows("1/2 claims")
	term.keys("x")
	term.shows("kubectl delete resourceclaim later -n research --wait=false --context=second", "[y/N]")
	term.keys("n")

	to("gone")
	term.shows("context gone:", "connection refused", "goes to another context", "", "Capacity")
	if err := poll(t.Context(), func() bool { return second.open.Load() == 0 }); err != nil {
		t.Errorf("%d connections to the second cluster stay open", second.open.Load())
	}
	to("blind")
	term.shows("context blind:", "this user may list none of", "", "Capacity")
	to("first")
	term.shows("Capacity", first.address, "2 claims without a pod")
	term.keys("q")
	term.shows("ended with 0")
}

// counted passes connections on, and counts the program's open ones.
type counted struct {
	address string
	open    atomic.Int32
}

func countConnections(t *testing.T, server string) *counted {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	c := &counted{address: listener.Addr().String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			c.open.Add(1)
			go func() {
				defer c.open.Add(-1)
				defer func() { _ = client.Close() }()
				to, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer func() { _ = to.Close() }()
				go func() { _, _ = io.Copy(client, to) }()
				_, _ = io.Copy(to, client)
			}()
		}
	}()
	return c
}
