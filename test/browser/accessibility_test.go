// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// The version of axe-core, and the checksum of its program.
const (
	axeVersion = "4.14.1"
	axeSum     = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
)

// violation is something that axe-core finds.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// accessibility checks the page with axe-core in both themes, on a phone and on a screen, with
// everything unfolded, and that nothing is wider than the window.
func accessibility(t *testing.T, browser *running, file string) {
	axe := axeProgram(t)
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{320, 390, 820, 1280} {
			t.Run(fmt.Sprint(theme, width), func(t *testing.T) {
				page := opened(t, browser, file, themed(theme), chromedp.EmulateViewport(width, 844))
				page.script(`document.querySelectorAll("details").forEach(d => { d.open = true })`)
				if got := valueOf[int64](page, "document.documentElement.scrollWidth"); got > width {
					t.Errorf("the page is %d wide", got)
				}
				for _, text := range valueOf[[]string](page, `[...document.querySelectorAll("svg.drawing text")].filter(t => t.checkVisibility() &&
					(t.getBBox().x < 0 || t.getBBox().x + t.getBBox().width > t.ownerSVGElement.viewBox.baseVal.width + 1 || t.getBoundingClientRect().height < 11)).map(t => t.textContent)`) {
					t.Errorf("%q is cut in its drawing, or too small", text)
				}
				page.script(axe)
				violations := valueOf[[]violation](page, `axe.run({resultTypes: ["violations"]}).then(r => r.violations)`)
				for i := range violations {
					v := &violations[i]
					report := t.Logf
					if v.Impact == "serious" || v.Impact == "critical" {
						report = t.Errorf
					}
					report("%s: %s: %s (%d times), first %+v", v.Impact, v.ID, v.Help, len(v.Nodes), v.Nodes[0])
				}
			})
		}
	}
}

// themed shows pages as for a reader who prefers a theme.
func themed(theme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
		return err
	})
}

// axeProgram returns axe-core, which npm gets once. The test is skipped without npm.
func axeProgram(t *testing.T) string {
	t.Helper()
	cache := os.Getenv("KUBECTL_DRA_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			t.Skip(err)
		}
		cache = filepath.Join(user, "kubectl-dra")
	}
	folder := filepath.Join(cache, "browser")
	archive := filepath.Join(folder, "axe-core-"+axeVersion+".tgz")
	if _, err := os.Stat(archive); err != nil {
		npm, err := exec.LookPath("npm")
		if err != nil {
			t.Skip("there is no npm to get axe-core with")
		}
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		pack := exec.CommandContext(t.Context(), npm, "pack", "axe-core@"+axeVersion)
		pack.Dir = folder
		if out, err := pack.CombinedOutput(); err != nil {
			t.Skipf("npm does not get axe-core: %v\n%s", err, out)
		}
	}
	text, err := exec.CommandContext(t.Context(), "tar", "-xzOf", archive, "package/axe.min.js").Output()
	if err != nil {
		t.Fatalf("unpack %s: %v", archive, err)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != axeSum {
		t.Fatalf("axe.min.js of %s has the checksum %x", archive, sum)
	}
	return string(text)
}
