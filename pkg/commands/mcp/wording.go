// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"regexp"
	"slices"
	"strings"
)

// argumentOf returns the name that a flag has as an argument of a tool. Flags of the server stay
// what they are.
func argumentOf(flag string) string {
	switch flag {
	case "filename", "file", "f":
		return "manifest"
	case "field-selector":
		return "fields"
	case "output":
		return "detail"
	case "snapshot", "before", "kubeconfig", "context", "feature-gates", "kubernetes-version", "help":
		return "--" + flag
	default:
		return strings.ReplaceAll(flag, "-", "_")
	}
}

// listOf returns the call that lists what a verb lists, empty if no tool does.
func listOf(verb string) string {
	return map[string]string{
		"nodes":   "tool devices, by node",
		"classes": "tool status",
		"slices":  "tool devices, by driver",
		"pools":   "tool devices, by pool",
		"devices": "tool devices",
		"tree":    "tool why, for waiting pods",
		"usage":   "tool devices",
	}[verb]
}

//nolint:gochecknoglobals // They never change.
var (
	// listHint and helpHint match advice that names verbs which are no tools.
	listHint = regexp.MustCompile(`(?m)^List what there is: kubectl dra ([a-z]+).*\n?`)
	helpHint = regexp.MustCompile(`(?m)^See 'kubectl dra .*--help'\.\n?`)
	// standardInput matches what a manifest is called on a command line.
	standardInput = regexp.MustCompile(`\bstandard input\b|-f FILE\b`)
	// flagName matches a flag, also the short one of a manifest.
	flagName = regexp.MustCompile(`(^|[\s'"(])(?:--([a-z][a-z-]*)|-(f))\b`)
)

// forAgent returns what a verb wrote to standard error in the words of the tools: their names for
// flags, and no path of this machine.
func (o *options) forAgent(text string) string {
	text = listHint.ReplaceAllStringFunc(text, func(line string) string {
		call := listOf(listHint.FindStringSubmatch(line)[1])
		if call == "" {
			return ""
		}
		return "List what there is: " + call + ".\n"
	})
	text = helpHint.ReplaceAllString(text, "")
	text = standardInput.ReplaceAllString(text, "manifest")
	for _, path := range o.paths() {
		text = strings.ReplaceAll(text, "file "+path, "what is served")
		// Other paths may be words of the message.
		if strings.ContainsAny(path, "/\\.") && strings.Trim(path, "./\\") != "" {
			text = strings.ReplaceAll(text, path, "what is served")
		}
	}
	return flagName.ReplaceAllStringFunc(text, func(match string) string {
		parts := flagName.FindStringSubmatch(match)
		return parts[1] + argumentOf(parts[2]+parts[3])
	})
}

// paths returns the files that the server was started with, the longest first: one can be a part
// of another.
func (o *options) paths() []string {
	var paths []string
	if o.before != "" {
		paths = append(paths, o.before)
	}
	for _, flag := range o.reads {
		for _, name := range []string{"snapshot", "kubeconfig"} {
			if path, ok := strings.CutPrefix(flag, "--"+name+"="); ok && path != "" {
				paths = append(paths, path)
			}
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return len(b) - len(a) })
	return paths
}
