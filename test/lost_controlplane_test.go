// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

// The ways in which a relay loses connections: how many bytes of answers it passes on.
const (
	passAll    = -1
	beforeTLS  = 0
	withinTLS  = 500
	inAnAnswer = 1500
)

// relay stands between the program and a server.
type relay struct {
	listener net.Listener
	server   string

	mu sync.Mutex
	// after is how many bytes of answers a connection passes on, or [passAll].
	after int64
	open  map[net.Conn]bool
	// accepted counts connections.
	accepted int
	// silent is there while answers are held back, and closed when they come again.
	silent chan struct{}
}

func startRelay(t *testing.T, server string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{server: server, after: passAll, open: map[net.Conn]bool{}}
	r.serve(t, listener)
	return r
}

func (r *relay) serve(t *testing.T, listener net.Listener) {
	t.Helper()
	r.listener = listener
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go r.pass(client)
		}
	}()
}

func (r *relay) pass(client net.Conn) {
	defer func() { _ = client.Close() }()
	r.mu.Lock()
	r.accepted++
	after := r.after
	r.open[client] = true
	r.mu.Unlock()
	if after == beforeTLS {
		return
	}
	server, err := net.Dial("tcp", r.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() { _, _ = io.Copy(server, client) }()
	if after == passAll {
		_, _ = io.Copy(client, held{r, server})
	} else {
		_, _ = io.CopyN(client, server, after)
	}
}

// held reads the answers of a server, unless the relay is silent.
type held struct {
	relay  *relay
	server io.Reader
}

func (h held) Read(p []byte) (int, error) {
	n, err := h.server.Read(p)
	h.relay.mu.Lock()
	silent := h.relay.silent
	h.relay.mu.Unlock()
	if silent != nil {
		<-silent
	}
	return n, err
}

// silence keeps connections open and holds all answers back, until it is called again.
func (r *relay) silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.silent == nil {
		r.silent = make(chan struct{})
		return
	}
	close(r.silent)
	r.silent = nil
}

// refuse closes open connections and refuses new ones.
func (r *relay) refuse() {
	_ = r.listener.Close()
	r.lose(passAll)
}

// accept takes connections again, at the same address.
func (r *relay) accept(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", r.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r.serve(t, listener)
}

// lose closes open connections, and each new one after so many bytes.
func (r *relay) lose(after int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.after = after
	for client := range r.open {
		_ = client.Close()
	}
	clear(r.open)
}

// count returns how many connections there were since the last time.
func (r *relay) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := r.accepted
	r.accepted = 0
	return count
}

// TestLostConnections closes connections to the API server before any reply, and the
// connections of programs that watch.
func TestLostConnections(t *testing.T) {
	c := startCluster(t, controlplane.Options{WithoutScheduler: true, WithoutControllerManager: true})
	c.createAll(t, "watch", watchObjects)
	address := strings.TrimPrefix(c.plane.Config().Host, "https://")
	through := func(t *testing.T) (*relay, *program, string) {
		r := startRelay(t, address)
		kubeconfig, server := changedKubeconfig(t, c.kubeconfig, func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			cluster.Server = "https://" + r.listener.Addr().String()
		})
		return r, programFor(t, kubeconfig), server
	}
	ways := map[string]int64{"before TLS": beforeTLS, "within TLS": withinTLS, "in an answer": inAnAnswer}

	for name, after := range ways {
		t.Run("never back, "+name, func(t *testing.T) {
			t.Parallel()
			r, p, server := through(t)
			claims := p.start(t, "claims", "--watch", "-n", "watch")
			claims.waitRow(t, "ADDED", "claim-1")
			r.lose(after)
			claims.wait(t, claims.stderr, "that the connection is lost", func(line string) bool { return strings.HasPrefix(line, "Trying again for up to 2m; ") })
			claims.wait(t, claims.stderr, "an error", func(line string) bool {
				return strings.HasPrefix(line, "error: watch ResourceClaims: no connection for 2m: ") && strings.Contains(line, server)
			})
			all := claims.stderr.all()
			if _ = claims.cmd.Wait(); claims.cmd.ProcessState.ExitCode() != 4 {
				t.Errorf("code %d, want 4", claims.cmd.ProcessState.ExitCode())
			}
			for _, line := range all {
				if line == "Connected again." {
					t.Errorf("it was never connected again: %q", all)
				}
			}
		})
		t.Run("back, "+name, func(t *testing.T) {
			t.Parallel()
			r, p, server := through(t)
			claims := p.start(t, "claims", "--watch", "-n", "watch", "-o", "name")
			pools := p.start(t, "pools", "--watch")
			claims.waitRow(t, "resourceclaim.resource.k8s.io/claim-1")
			pools.waitRow(t, "ADDED", "pool-a")
			r.lose(after)
			for _, watching := range []*running{claims, pools} {
				watching.wait(t, watching.stderr, "the server", func(line string) bool { return strings.Contains(line, server) })
			}
			// What is created meanwhile is not missed.
			created := "back-" + strings.ReplaceAll(strings.ToLower(name), " ", "-")
			c.createAll(t, "watch", strings.ReplaceAll(`{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: NEW}, spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: watch}}]}}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: NEW}, spec: {driver: watch.example.com, nodeName: NEW, pool: {name: NEW, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}]}}
`, "NEW", created))
			r.lose(passAll)
			for _, watching := range []*running{claims, pools} {
				watching.wait(t, watching.stderr, "that it is connected again", func(line string) bool { return line == "Connected again." })
			}
			claims.stdout.rewind()
			pools.stdout.rewind()
			claims.waitRow(t, "resourceclaim.resource.k8s.io/"+created)
			pools.waitRow(t, "ADDED", created)
		})
		if after == inAnAnswer {
			continue // more than one connection is made where several answers arrive
		}
		t.Run("at once, "+name, func(t *testing.T) {
			t.Parallel()
			r, p, server := through(t)
			r.lose(after)
			for _, verb := range []string{
				"why", "why claim-1", "why pod/x", "why deployment/x", "slices", "pools", "pools --ask-server", "devices", "claims -A", "classes", "taints",
				"tree node/node-1", "top --once", "snapshot -o OUT", "claims --watch", "taints add --pool pool-a a=b:NoSchedule --dry-run=client",
			} {
				began := time.Now()
				code, stdout, stderr := p.tried(t, strings.Fields(strings.ReplaceAll(verb, "OUT", filepath.Join(t.TempDir(), "out.yaml")))...)
				if code != 4 || stdout != "" || !strings.HasPrefix(stderr, "error: ask API server "+server+": it closed the connection\n") {
					t.Errorf("%s: code %d after %s\n%s\n%s", verb, code, time.Since(began), stdout, stderr)
				}
				if tried := r.count(); tried != 1 {
					t.Errorf("%s makes %d connections, want 1", verb, tried)
				}
			}
		})
	}
}
