// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

func TestExitCode(t *testing.T) {
	tests := map[string]struct {
		err  error
		want int
	}{
		"nothing":         {nil, 0},
		"outcome":         {&OutcomeError{ExitUndetermined}, 2},
		"usage":           {Usagef("", "wrong flag"), 3},
		"wrapped usage":   {fmt.Errorf("run: %w", Usagef("", "wrong flag")), 3},
		"bad input":       {&files.InputError{Path: "x.yaml", Err: fs.ErrNotExist}, 3},
		"no such target":  {&explain.TargetError{Message: "no pod"}, 3},
		"no such type":    {&collect.UnknownResourceError{Resource: "frobs"}, 3},
		"no pod template": {&collect.NoTemplateError{Resource: "configmaps", Name: "x"}, 3},
		"server":          {&collect.ServerError{Server: "https://x", Problem: "refused"}, 4},
		"not allowed":     {&collect.ForbiddenError{Server: "https://x"}, 4},
		"interrupted":     {context.Canceled, 4},
		"I/O":             {fs.ErrPermission, 4},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ExitCode(test.err); got != test.want {
				t.Errorf("exit code %d, want %d", got, test.want)
			}
		})
	}
}

func TestVerdictCode(t *testing.T) {
	for verdict, want := range map[api.Verdict]int{
		api.Allocated: 0, api.Fits: 0, api.DoesNotFit: 1, api.Blocked: 1, api.Error: 1, api.Undetermined: 2,
	} {
		if got := VerdictCode(verdict); got != want {
			t.Errorf("%s: exit code %d, want %d", verdict, got, want)
		}
	}
}

func TestWorse(t *testing.T) {
	order := []int{4, 3, 1, 2, 0}
	for i, bad := range order {
		for _, better := range order[i:] {
			if got := Worse(bad, better); got != bad {
				t.Errorf("worse(%d, %d) = %d", bad, better, got)
			}
			if got := Worse(better, bad); got != bad {
				t.Errorf("worse(%d, %d) = %d", better, bad, got)
			}
		}
	}
}

func TestPrintError(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"nothing":          {nil, ""},
		"outcome":          {&OutcomeError{ExitDoesNotFit}, ""},
		"plain":            {errors.New("read x: it is gone"), "error: read x: it is gone\n"},
		"with a way out":   {Usagef("Say which.", "find x: ambiguous"), "error: find x: ambiguous\nSay which.\n"},
		"with its own":     {&explain.TargetError{Message: "no pod x", Hint: "there is y"}, "error: no pod x\nthere is y\n"},
		"interrupted":      {fmt.Errorf("ask: %w", context.Canceled), "error: interrupted\n"},
		"escape sequences": {errors.New("no pod \x1b[2J\u202e"), "error: no pod \\x1b[2J\\u202e\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			PrintError(&out, test.err)
			if out.String() != test.want {
				t.Errorf("printed %q, want %q", out.String(), test.want)
			}
		})
	}
}
