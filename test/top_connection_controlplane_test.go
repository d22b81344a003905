// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

// TestTopWithoutAnswers covers a server that stalls with its connections open, refuses
// connections, and comes back. The dashboard says so, and shows nothing as new meanwhile.
func TestTopWithoutAnswers(t *testing.T) {
	c := startCluster(t, controlplane.Options{WithoutScheduler: true, WithoutControllerManager: true})
	c.topFleet(t)
	r := startRelay(t, strings.TrimPrefix(c.plane.Config().Host, "https://"))
	kubeconfig, _ := changedKubeconfig(t, c.kubeconfig, func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		cluster.Server = "https://" + r.listener.Addr().String()
	})
	term := openTerminal(t, programFor(t, kubeconfig), 120, 30, "top")
	term.shows("Capacity", "last answer", "1 claim without a pod")

	// The clock on the right is that of what is shown.
	clock := func(screen string) string {
		return regexp.MustCompile(`\d\d:\d\d:\d\d`).FindString(screen)
	}
	silenced := time.Now().Format(time.TimeOnly)
	r.silence()
	term.shows("! for", "no answer")
	// The clock first goes back to the last answer: it ran on until the silence was noticed.
	var silent string
	if err := poll(t.Context(), func() bool {
		silent = term.screen()
		return strings.Contains(silent, "no answer") && clock(silent) <= silenced
	}); err != nil {
		t.Fatalf("the clock does not go back to the last answer, at most %s:\n%s", silenced, silent)
	}
	c.topClaim(t, "unheard", 1)
	if later := term.shows("last answer 1", "! for 1"); clock(later) != clock(silent) {
		t.Errorf("the clock runs on without answers: %s after %s\n%s", clock(later), clock(silent), later)
	}
	term.shows("1 claim without a pod")
	r.silence()
	term.shows("2 claims without a pod", "", "! for")

	r.refuse()
	// What is shown may first get as new as the last answer was.
	refused := term.shows("! for", "connection refused", "last answer 5")
	c.topClaim(t, "refused", 1)
	if later := term.shows("last answer 1", "! for 1"); clock(later) != clock(refused) {
		t.Errorf("the clock runs on while connections are refused: %s after %s\n%s", clock(later), clock(refused), later)
	}
	r.accept(t)
	term.shows("3 claims without a pod", "", "! for")
	term.keys("q")
	term.shows("ended with 0")
}
