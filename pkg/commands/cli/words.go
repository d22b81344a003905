// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

// Among returns the proposals that begin with the typed word and are not arguments yet. No
// blank follows a proposal that has to be continued. Names that a shell would have to quote
// are left out, see [isInert].
func Among(proposals, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	var list []cobra.Completion
	for _, proposal := range proposals {
		if !strings.HasPrefix(proposal, typed) || slices.Contains(args, proposal) || !isInert(proposal) {
			continue
		}
		list = append(list, proposal)
		if strings.HasSuffix(proposal, "/") || strings.HasSuffix(proposal, "=") || strings.HasSuffix(proposal, ":") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
	}
	slices.Sort(list)
	return slices.Compact(list), directive
}

// isInert reports whether all shells read a word as it is written, and print it as it is:
// it has letters, digits and a few signs. Names in a cluster and in a kubeconfig can be
// commands in a shell, and completion scripts do not quote all that they insert, and
// evaluate the line again with the next Tab.
func isInert(word string) bool {
	return !strings.HasPrefix(word, "=") && !strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:=,@%+", r)
	})
}

// Fixed proposes fixed values.
func Fixed(values ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return Among(values, nil, typed)
	}
}

// ListOfFixed proposes for the last part of a list with commas.
func ListOfFixed(values ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return Among(Continued(typed, values), nil, typed)
	}
}

// Continued puts the finished parts of a list with commas before values.
func Continued(typed string, values []string) []string {
	done := typed[:strings.LastIndexByte(typed, ',')+1]
	list := make([]string, 0, len(values))
	for _, value := range values {
		list = append(list, done+value)
	}
	return list
}
