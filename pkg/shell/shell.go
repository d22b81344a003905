// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shell knows how to write a command so that it can be pasted: quoting,
// and how kubectl takes kinds and names. It runs nothing. Every package that
// suggests commands may import it.
package shell

import (
	"slices"
	"strings"
)

// Quote writes a word so that a shell takes it as it is. Every word of a
// command that comes from a cluster or from a file goes through it: commands get
// pasted.
func Quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._/:=", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 && word[0] != '-' {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Words returns words quoted and joined.
func Words(words ...string) string {
	quoted := make([]string, 0, len(words))
	for _, word := range words {
		quoted = append(quoted, Quote(word))
	}
	return strings.Join(quoted, " ")
}

// KubectlObjects returns a kind and names as arguments of kubectl. A name that begins with
// a hyphen, which only a file can have, must not become a flag.
func KubectlObjects(resource, namespace string, names ...string) string {
	words := append([]string{resource}, names...)
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "-") }) {
		words = nil
		for _, name := range names {
			words = append(words, resource+"/"+name)
		}
	}
	if namespace == "" {
		return Words(words...)
	}
	return Words(words...) + " -n " + Quote(namespace)
}

// Node returns the name of a node where kubectl expects one.
func Node(name string) string {
	if strings.HasPrefix(name, "-") {
		return Quote("node/" + name)
	}
	return Quote(name)
}

// Drain returns the command that evicts the pods of a node, except pods of DaemonSets. With force, it
// also deletes pods that nothing creates again.
func Drain(node string, force bool) string {
	command := "kubectl drain " + Node(node) + " --ignore-daemonsets --delete-emptydir-data"
	if force {
		command += " --force"
	}
	return command
}
