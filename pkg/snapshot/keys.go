// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"

	yamlv3 "go.yaml.in/yaml/v3"
)

// errDuplicateKey is a field that an object has twice. Decoders disagree about
// which one counts.
var errDuplicateKey = errors.New("duplicate key: a field can only be there once")

// yamlDuplicate finds a key that a mapping of a YAML document has twice, and its
// line. The parser that decodes reports those too, and also those that a merge
// key (<<) brings in and the mapping overrides, as it may.
func yamlDuplicate(document []byte) (key string, line int) {
	var root yamlv3.Node
	if yamlv3.Unmarshal(document, &root) != nil {
		return "", 0
	}
	nodes := []*yamlv3.Node{&root}
	for len(nodes) > 0 {
		node := nodes[0]
		nodes = append(nodes[1:], node.Content...)
		if node.Kind != yamlv3.MappingNode {
			continue
		}
		seen := map[string]bool{}
		for i := 0; i < len(node.Content); i += 2 {
			if seen[node.Content[i].Value] {
				return node.Content[i].Value, node.Content[i].Line
			}
			seen[node.Content[i].Value] = true
		}
	}
	return "", 0
}
