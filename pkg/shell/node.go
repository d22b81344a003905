// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package shell

import "strings"

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
