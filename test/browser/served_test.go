// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bufio"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// served asks the questions of a page that is served.
func served(t *testing.T, browser *running, program string) {
	command := exec.CommandContext(t.Context(), program, "report", "--serve", "--snapshot", "../../examples/cluster")
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	page := visited(t, browser, strings.TrimSpace(address))
	// reply waits for an answer that has a text.
	reply := func(text string) {
		t.Helper()
		page.do(chromedp.Poll[chromedp.Void]("document.getElementById('reply').textContent.includes(" + strconv.Quote(text) + ")"))
	}
	ask := func(form, field, text string) {
		t.Helper()
		page.script("document.querySelector('" + field + "').value = " + strconv.Quote(text) + "; document.getElementById('" + form + "').requestSubmit()")
	}
	ask("why", "#why input", "research/pretrain-0")
	reply("Node gpu-03 has 8 available")
	page.script("document.querySelector('#queue tbody th').click()")
	reply("Does not fit.")
	page.script("const c = document.querySelector('#what-if select'); c.value = 'drain'; c.dispatchEvent(new Event('input', {bubbles: true}))")
	if !valueOf[bool](page, "document.querySelector('input[name=node]').checkVisibility() && !document.querySelector('input[name=where]').checkVisibility()") {
		t.Error("for a drain, other fields are shown than that of the node")
	}
	ask("what-if", "input[name=node]", "gpu-02")
	reply("1 pod evicted")
	if said := valueOf[string](page, "document.getElementById('state').textContent"); said != "This is a file: nothing changes." {
		t.Errorf("the page says %q", said)
	}
	page.quiet()
}
