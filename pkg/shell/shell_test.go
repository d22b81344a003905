// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package shell_test

import (
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
)

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"train-gpus": "train-gpus", "": "''", "-rf": "'-rf'", "a;b": "'a;b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'",
	} {
		if got := shell.Quote(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}
