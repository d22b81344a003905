// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

// TestTroubleWithTheServer runs each verb that reads against an API server that does
// not know the user, that the user cannot trust or reach, and whose connections
// break in the middle of an answer; and from homes that cannot be written to.
func TestTroubleWithTheServer(t *testing.T) {
	c := startCluster(t, controlplane.Options{WithoutScheduler: true, WithoutControllerManager: true})
	for _, document := range strings.Split(completable, "---\n") {
		object, err := parseObject([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		if object.GetKind() == "Pod" {
			continue // nobody makes its service account
		}
		if err := c.create(t.Context(), object.GetNamespace(), object); err != nil {
			t.Fatal(err)
		}
	}
	address := strings.TrimPrefix(c.plane.Config().Host, "https://")
	verbs := []string{
		"why", "why train-gpus -n ml", "why deployment/x -n ml", "slices", "pools", "devices", "claims -A", "classes", "taints", "tree node/node-1",
		"top --once", "snapshot -o OUT", "claims --watch",
	}
	for name, test := range map[string]struct {
		change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)
		want   string
	}{
		"wrong token": {func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
			*user = clientcmdapi.AuthInfo{Token: "expired"}
		}, ""},
		"no user": {func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) { *user = clientcmdapi.AuthInfo{} }, ""},
		"another CA": {func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			cluster.CertificateAuthorityData = otherCA(t)
		}, "certificate"},
		"another name": {func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { cluster.TLSServerName = "example.com" }, "certificate"},
		"without TLS": {func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			cluster.Server, cluster.CertificateAuthorityData = "http://"+address, nil
		}, ""},
		"nobody listens": {func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			cluster.Server = "https://" + breaking(t, address, -1)
		}, "refused"},
		"breaks in an answer": {func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			cluster.Server = "https://" + breaking(t, address, 4000)
		}, "closed the connection"},
	} {
		t.Run(name, func(t *testing.T) {
			kubeconfig, server := changedKubeconfig(t, c.kubeconfig, test.change)
			p := programFor(t, kubeconfig)
			for _, verb := range verbs {
				out := filepath.Join(t.TempDir(), "out.yaml")
				code, stdout, stderr := p.tried(t, strings.Fields(strings.ReplaceAll(verb, "OUT", out))...)
				first, wayOut, _ := strings.Cut(stderr, "\n")
				if code != 4 || stdout != "" || !strings.HasPrefix(first, "error: ") || !strings.Contains(first, server) || !strings.Contains(first, test.want) || wayOut == "" {
					t.Errorf("%s: code %d\n%s\n%s", verb, code, stdout, stderr)
				}
				if left, err := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); err != nil || left != nil {
					t.Errorf("%s leaves %q, %v", verb, left, err)
				}
			}
		})
	}
	t.Run("no home", func(t *testing.T) {
		// Nothing can be made below a file.
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, env := range [][]string{
			{},
			{"HOME="},
			{"HOME=/nonexistent"},
			{"HOME=" + file},
			{"HOME=/proc"},
			{"HOME=/nonexistent", "XDG_CACHE_HOME=" + file, "KUBECACHEDIR=" + file, "TMPDIR=" + file},
		} {
			p := programFor(t, c.kubeconfig)
			p.env = slices.Concat(env, []string{"KUBECONFIG=" + c.kubeconfig})
			for _, verb := range verbs[:len(verbs)-1] {
				for _, from := range []string{"", " --snapshot " + filepath.Join("..", "examples", "cluster")} {
					if strings.Contains(verb, "deployment/") || from != "" && strings.HasPrefix(verb, "why ") || from != "" && strings.HasPrefix(verb, "tree") {
						continue // not in the file
					}
					args := strings.Fields(strings.ReplaceAll(verb, "OUT", filepath.Join(t.TempDir(), "out.yaml")) + from)
					if code, _, stderr := p.tried(t, args...); code > 1 || strings.Contains(stderr, "error") {
						t.Errorf("%v %s%s: code %d, %s", env, verb, from, code, stderr)
					}
				}
			}
		}
	})
}

// tried runs the program and returns all that becomes of it.
func (p *program) tried(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(t.Context(), p.path, slices.Concat(args, p.flags)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, &out, &errOut
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

// changedKubeconfig returns a copy with a change, and the address in it.
func changedKubeconfig(t *testing.T, kubeconfig string, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) (path, server string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	chosen := config.Contexts[config.CurrentContext]
	cluster, user := config.Clusters[chosen.Cluster], config.AuthInfos[chosen.AuthInfo]
	change(cluster, user)
	path = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path, cluster.Server
}

// otherCA returns the certificate of an authority that signed nothing.
func otherCA(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
}

// breaking listens for a server and breaks each connection after so many bytes of
// answers. With less than none, nobody listens.
func breaking(t *testing.T, server string, after int64) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	if after < 0 {
		_ = listener.Close()
		return listener.Addr().String()
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = client.Close() }()
				upstream, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer func() { _ = upstream.Close() }()
				go func() { _, _ = io.Copy(upstream, client) }()
				_, _ = io.CopyN(client, upstream, after)
			}()
		}
	}()
	return listener.Addr().String()
}
