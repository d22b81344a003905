// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestCommandsForOthers expects below the commands of a cause how many owners need others, and
// commands that print them.
func TestCommandsForOthers(t *testing.T) {
	cause := api.Cause{Message: "no place", NextStep: &api.NextStep{Actor: api.ActorUser, Text: "ask for less", Commands: []string{"kubectl edit"}}}
	for _, name := range []string{"b", "c", "d", "e"} {
		cause.AlsoFor = append(cause.AlsoFor, api.Ref(api.KindPod, "ml", name))
	}
	cause.AlsoFor = append(cause.AlsoFor, api.Ref("Deployment", "web", "f"))
	for commands, want := range map[bool]string{
		true: "     kubectl edit\n     5 more owners need this for objects of their own, 4 of them here. Print the commands:\n" +
			"     kubectl dra why pod/b pod/c pod/d -n ml --commands\n     kubectl dra why deployment/f -n web --commands\n",
		false: "     you: ask for less\n",
	} {
		var out strings.Builder
		p := NewPage(Options{Width: 100, Commands: commands})
		writeCauses(p, []api.Cause{cause}, causesOptions{})
		if err := p.Print(&out); err != nil || !strings.HasSuffix(out.String(), want) {
			t.Errorf("commands %v (%v): got\n%swant\n%s", commands, err, out.String(), want)
		}
	}
}

func TestBar(t *testing.T) {
	for percent, want := range map[int]string{
		-5: "[----------]", 0: "[----------]", 1: "[#---------]", 9: "[#---------]", 40: "[####------]",
		99: "[#########-]", 100: "[##########]", 140: "[##########]",
	} {
		if got := Bar(percent); got != want {
			t.Errorf("%d%%: %s, want %s", percent, got, want)
		}
	}
}

func TestDrawnBar(t *testing.T) {
	for _, test := range []struct {
		part, whole int
		want        string
	}{{0, 8, ""}, {8, 8, "██████████"}, {1, 1000, "▏"}, {4, 8, "█████"}, {1, 8, "█▎"}, {1, 0, ""}} {
		if got := DrawnBar(test.part, test.whole, 10); got != test.want {
			t.Errorf("%d of %d: %q, want %q", test.part, test.whole, got, test.want)
		}
	}
}
