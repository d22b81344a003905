// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
)

// shellQuoted writes a word so that a shell takes it as it is. Every word of a
// command that comes from a cluster or from a file goes through it: commands get
// pasted.
func shellQuoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._/:=", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 && word[0] != '-' {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// shellWords are words quoted and joined.
func shellWords(words ...string) string {
	quoted := make([]string, 0, len(words))
	for _, word := range words {
		quoted = append(quoted, shellQuoted(word))
	}
	return strings.Join(quoted, " ")
}

// nameWords are a kind and names as arguments of kubectl. A name that begins with
// a hyphen, which only a file can have, must not become a flag.
func nameWords(resource, namespace string, names ...string) string {
	words := append([]string{resource}, names...)
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "-") }) {
		words = nil
		for _, name := range names {
			words = append(words, resource+"/"+name)
		}
	}
	if namespace == "" {
		return shellWords(words...)
	}
	return shellWords(words...) + " -n " + shellQuoted(namespace)
}
