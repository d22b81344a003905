// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// running is a browser that runs.
type running struct{ context.Context }

// started starts a browser without a window. The test is skipped where there is none.
func started(tb testing.TB) *running {
	tb.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		tb.Skip("there is no chromium")
	}
	// The page is written here, and root has no sandbox.
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WSURLReadTimeout(2*time.Minute))
	allocator, release := chromedp.NewExecAllocator(context.Background(), options...)
	tb.Cleanup(release)
	browser, end := chromedp.NewContext(allocator)
	tb.Cleanup(end)
	if err := chromedp.Do(browser); err != nil {
		tb.Fatalf("start %s: %v", path, err)
	}
	return &running{browser}
}

// built returns the program, built from the working tree.
func built(tb testing.TB) string {
	tb.Helper()
	program := filepath.Join(tb.TempDir(), "kubectl-dra")
	build := exec.CommandContext(tb.Context(), "go", "build", "-ldflags", "-s -w", "-o", program, "./cmd/kubectl-dra")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("build the program: %v\n%s", err, out)
	}
	return program
}

// ran runs the program.
func ran(tb testing.TB, program string, args ...string) {
	tb.Helper()
	if out, err := exec.CommandContext(tb.Context(), program, args...).CombinedOutput(); err != nil {
		tb.Fatalf("kubectl dra %q: %v\n%s", args, err, out)
	}
}

// written returns the path of the report of a cluster.
func written(tb testing.TB, program, snapshot string, args ...string) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "report.html")
	ran(tb, program, append([]string{"report", "--snapshot", snapshot, "-o", file}, args...)...)
	return file
}

// tab is a page that is open in a browser.
type tab struct {
	testing.TB
	context.Context

	mutex    sync.Mutex
	problems []string
}

// opened opens a file, and collects what the browser does not like about it.
func opened(tb testing.TB, browser *running, file string, before ...chromedp.Action[chromedp.Void]) *tab {
	tb.Helper()
	return visited(tb, browser, (&url.URL{Scheme: "file", Path: file}).String(), before...)
}

// visited opens an address, and collects what the browser does not like about it. A page that is
// served may ask below its address.
func visited(tb testing.TB, browser *running, address string, before ...chromedp.Action[chromedp.Void]) *tab {
	tb.Helper()
	ctx, end := chromedp.NewContext(browser)
	tb.Cleanup(end)
	t := &tab{TB: tb, Context: ctx}
	add := func(format string, args ...any) {
		t.mutex.Lock()
		defer t.mutex.Unlock()
		t.problems = append(t.problems, fmt.Sprintf(format, args...))
	}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			add("exception: %s", e.ExceptionDetails.Exception.Description)
		case *runtime.EventConsoleAPICalled:
			add("the console has %s", e.Type)
		case *log.EventEntryAdded:
			add("the log has %s: %s", e.Entry.Level, e.Entry.Text)
		case *network.EventRequestWillBeSent:
			if below := strings.HasSuffix(address, "/") && strings.HasPrefix(e.Request.URL, address); e.Request.URL != address && !below {
				add("request of %s", e.Request.URL)
			}
		case *page.EventJavascriptDialogOpening:
			add("dialog: %s", e.Message)
			go func() {
				_, _ = chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
			}()
		}
	})
	if err != nil {
		tb.Fatal(err)
	}
	t.do(append(before, chromedp.Navigate(address))...)
	return t
}

// do runs actions in a tab.
func (t *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context, 2*time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// script runs statements in the page.
func (t *tab) script(text string) {
	t.Helper()
	t.do(chromedp.Evaluate[chromedp.Void](text))
}

// found returns what the browser did not like so far.
func (t *tab) found() []string {
	t.Helper()
	valueOf[bool](t, "true")
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return slices.Clone(t.problems)
}

// quiet fails the test if there was something that the browser did not like.
func (t *tab) quiet() {
	t.Helper()
	for _, problem := range t.found() {
		t.Error(problem)
	}
}

// valueOf returns the value of an expression in a page, or of what it promises.
func valueOf[T any](t *tab, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context, 2*time.Minute)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// changed writes a copy of a page with a text replaced.
func changed(t *testing.T, file string, change func(text string) string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "changed.html")
	if err := os.WriteFile(path, []byte(change(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
