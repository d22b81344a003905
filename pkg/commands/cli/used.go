// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// ParseUsed parses arguments that name devices and nodes: device/POOL/DEVICE, node/NAME, or
// TYPE NAME …. It is empty if there are none, and fails if there are other arguments as
// well.
func ParseUsed(args []string) ([]api.ObjectRef, error) {
	const forms = "Write device/POOL/DEVICE or node/NAME, for example device/gpu-02/gpu-3."
	if len(args) > 1 && usedKind(args[0]) != "" {
		rest := make([]string, 0, len(args)-1)
		for _, name := range args[1:] {
			if kind, _, slashed := strings.Cut(name, "/"); slashed && usedKind(kind) != "" {
				return nil, Usagef(forms, "parse target: TYPE/NAME and TYPE NAME cannot be mixed")
			}
			rest = append(rest, args[0]+"/"+name)
		}
		args = rest
	}
	var targets []api.ObjectRef
	for _, arg := range args {
		resource, name, slashed := strings.Cut(arg, "/")
		kind := usedKind(resource)
		if !slashed || kind == "" {
			continue
		}
		if slices.Contains(strings.Split(name, "/"), "") {
			return nil, Usagef(forms, "parse target %q: a part of the name is empty", arg)
		}
		if kind == api.KindNode && strings.Contains(name, "/") {
			return nil, Usagef(forms, "parse target %q: not of the form node/NAME", arg)
		}
		targets = append(targets, api.Ref(kind, "", name))
	}
	if len(targets) > 0 && len(targets) < len(args) {
		return nil, Usagef("Ask about them one after the other.", "devices and nodes cannot be mixed with other targets: their answers are of another kind")
	}
	return targets, nil
}

// usedKind returns Device or Node if a word stands for one of these types, else empty.
func usedKind(resource string) string {
	switch strings.ToLower(resource) {
	case "device", "devices":
		return api.KindDevice
	case "node", "nodes", "no":
		return api.KindNode
	default:
		return ""
	}
}
