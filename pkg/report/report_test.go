// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

func example(t *testing.T) *cluster.Cluster {
	t.Helper()
	snap, err := files.Load(t.Context(), []string{"../../examples/cluster"}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cluster.New(snap)
}

func pageOf(t *testing.T, c *cluster.Cluster, opts Options) string {
	t.Helper()
	content, err := Of(t.Context(), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := content.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPage looks for what a reader looks for.
func TestPage(t *testing.T) {
	page := pageOf(t, example(t), Options{Version: "v1"})
	for _, want := range []string{
		"10 pods wait for devices", "research/pretrain-0", "Request gpus needs 8 devices with the same",
		"60 devices of class gpu.example.com, request gpus needs 8", // the funnel
		"request 4 devices instead of 8 in request gpus",            // a fix
		"kubectl get resourceclaimtemplate eight-gpus -n research",  // its command
		`<a href="#cause-1">cause 1</a>`,                            // its cause
		"11 nodes with devices of their own, 3 without.",
		"Counter set card-0", // partitions
		`<option value="0" selected>example.com/rack</option>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestPageOfNamespace must not show pods of others.
func TestPageOfNamespace(t *testing.T) {
	page := pageOf(t, example(t), Options{Namespace: "media"})
	if !strings.Contains(page, "media/encode-0") || strings.Contains(page, "research/pretrain-0") {
		t.Error("the page has pods of other namespaces, or lacks those of its own")
	}
}

// TestPolicy compares the content security policy with the style and the script of the page: a
// browser ignores them if a byte of them was written otherwise.
func TestPolicy(t *testing.T) {
	page := pageOf(t, example(t), Options{})
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)[1]
	policy = strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(policy)
	for _, element := range []string{"style", "script"} {
		_, after, _ := strings.Cut(page, "<"+element+">")
		text, _, _ := strings.Cut(after, "</"+element+">")
		sum := sha256.Sum256([]byte(text))
		if want := element + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy, want) {
			t.Errorf("policy %q lacks %s", policy, want)
		}
	}
	if !strings.Contains(policy, "default-src 'none'") || regexp.MustCompile(`(?i)\s(on[a-z]+|style)=`).MatchString(page) {
		t.Error("the page loads something, or has handlers or styles in attributes")
	}
}

// TestSnapshotInPage asks the page what the cluster was asked.
func TestSnapshotInPage(t *testing.T) {
	c := example(t)
	packed, err := files.Packed(c.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	page := pageOf(t, c, Options{Snapshot: packed})
	again, err := files.Content(t.Context(), "report.html", []byte(page), files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want, got := pageOf(t, c, Options{}), pageOf(t, cluster.New(again), Options{}); strings.ReplaceAll(got, again.Source, c.Snapshot.Source) != want {
		t.Error("the snapshot in the page gives another page")
	}
	for content, want := range map[string]string{
		pageOf(t, c, Options{}):                            "without a snapshot",
		page[:strings.Index(page, ";base64,")+100]:         "seems to be cut off",
		strings.Replace(page, ";base64,H", ";base64,*", 1): "is damaged",
	} {
		if _, err := files.Content(t.Context(), "report.html", []byte(content), files.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}

// TestHostileNames must not let names of a cluster become elements, or reorder text.
func TestHostileNames(t *testing.T) {
	c := example(t)
	const hostile = `</script><img src=x onerror=alert(1)>"' ` + "\u202e\x1b[31m"
	snap := *c.Snapshot
	snap.Source = hostile
	for _, pod := range snap.Pods {
		if pod.Name == "pretrain-0" {
			pod.Status.Conditions[0].Message = hostile
		}
	}
	page := pageOf(t, cluster.New(&snap), Options{})
	if strings.Contains(page, "<img") || strings.ContainsAny(page, "\u202e\x1b") {
		t.Error("the page has an element, or characters that a reader does not see, from the cluster")
	}
	if !strings.Contains(page, "&lt;img src=x") {
		t.Error("the name is not in the page at all")
	}
}

func TestServer(t *testing.T) {
	s := NewServer("token")
	server := httptest.NewServer(s)
	defer server.Close()
	ask := func(path string, change func(*http.Request)) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(r)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	if code, _ := ask("/token/", nil); code != http.StatusServiceUnavailable {
		t.Errorf("before there is a cluster: %d", code)
	}
	if err := s.Show(t.Context(), example(t), Options{}); err != nil {
		t.Fatal(err)
	}
	whatIf := func(keys ...string) string {
		q := url.Values{}
		for i := 0; i < len(keys); i += 2 {
			q.Set(keys[i], keys[i+1])
		}
		return "/token/what-if?" + q.Encode()
	}
	for _, test := range []struct {
		name, path string
		change     func(*http.Request)
		code       int
		want       string
	}{
		{"page", "/token/", nil, 200, "Ask</h2>"},
		{"no token", "/", nil, 404, ""},
		{"another token", "/other/", nil, 404, ""},
		{"another host", "/token/", func(r *http.Request) { r.Host = "attacker.example" }, 403, "this machine alone"},
		{"localhost of a forwarded port", "/token/", func(r *http.Request) { r.Host = "localhost:9999" }, 200, ""},
		{"another origin", "/token/", func(r *http.Request) { r.Header.Set("Origin", "http://attacker.example") }, 403, "no other page"},
		{"another site", "/token/", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403, "no other page"},
		{"another method", "/token/", func(r *http.Request) { r.Method = http.MethodPost }, 405, "nothing can be changed"},
		{"why", "/token/why?pod=research/pretrain-0", nil, 200, "Node gpu-03 has 8 available"},
		{"why not", "/token/why?pod=research/none", nil, 404, "none"},
		{"why what", "/token/why?pod=none", nil, 400, "expected NAMESPACE/NAME"},
		{"count", whatIf("change", "count", "class", "gpu.example.com", "count", "4", "where", ""), nil, 200, "gpu-03"},
		{"count too many", whatIf("change", "count", "class", "gpu.example.com", "count", "99"), nil, 400, "from 1 to 32"},
		{"count of no class", whatIf("change", "count", "class", "x", "count", "1"), nil, 400, "no DeviceClass"},
		{"drain", whatIf("change", "drain", "node", "gpu-02"), nil, 200, "research/ablation-0"},
		{"drain none", whatIf("change", "drain", "node", "x"), nil, 404, "x"},
		{"taint a pool", whatIf("change", "taint-pool", "pool", "gpu.example.com/gpu-02", "taint", "a=b:NoExecute"), nil, 200, "research/ablation-0"},
		{"taint a node", whatIf("change", "taint-node", "node", "gpu-02", "taint", "a=b:NoExecute"), nil, 200, "research/ablation-0"},
		{"no taint", whatIf("change", "taint-node", "node", "gpu-02", "taint", "<b>"), nil, 400, "&lt;b&gt;"},
		{"no change", whatIf("change", "x"), nil, 400, "expected a change"},
	} {
		if code, body := ask(test.path, test.change); code != test.code || !strings.Contains(body, test.want) {
			t.Errorf("%s: got %d, %.300s; want %d with %q", test.name, code, body, test.code, test.want)
		}
	}
}

// TestEvents waits for what a page is told.
func TestEvents(t *testing.T) {
	s, c := NewServer("token"), example(t)
	server := httptest.NewServer(s)
	defer server.Close()
	if err := s.Show(t.Context(), c, Options{}); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/token/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	hear := func() string {
		t.Helper()
		text := make([]byte, 200)
		n, err := answer.Body.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
	s.Lost("no connection\n\nevent: changed")
	if got := hear(); !strings.HasPrefix(got, "event: lost\ndata: no connection") || strings.Count(got, "\n") != 3 {
		t.Errorf("got %q", got)
	}
	if err := s.Show(t.Context(), c, Options{}); err != nil {
		t.Fatal(err)
	}
	if got := hear(); got != "event: changed\ndata: \n\n" {
		t.Errorf("got %q", got)
	}
}

func TestKeys(t *testing.T) {
	node := func(labels map[string]string) api.ListedNode { return api.ListedNode{Labels: labels} }
	got := keysOf([]api.ListedNode{
		node(map[string]string{"kubernetes.io/hostname": "a", "os": "linux", "rack": "r1", "serial": "1", "team": "x"}),
		node(map[string]string{"kubernetes.io/hostname": "b", "os": "linux", "rack": "r1", "serial": "2", "team": "y"}),
		node(map[string]string{"kubernetes.io/hostname": "c", "os": "linux", "rack": "r2", "serial": "3", "team": "x"}),
		node(map[string]string{"kubernetes.io/hostname": "d", "os": "linux", "rack": "r2", "serial": "4", "team": "y"}),
	})
	if want := "rack team"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}
