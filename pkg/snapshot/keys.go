// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// errDuplicateKey is a field that an object has twice. Decoders disagree about
// which one counts.
var errDuplicateKey = errors.New("duplicate key: a field can only be there once")

// checkKeys fails for a JSON object that has a field twice, at any depth. What
// was YAML has none.
func (d *decoded) checkKeys(data []byte) error {
	if d.unique || !d.scanner.duplicate(data) {
		return nil
	}
	return &fieldError{strings.TrimPrefix(duplicateKey(data, ""), "."), errDuplicateKey}
}

// fewKeys is how many keys of an object are compared one by one.
const fewKeys = 24

// keyRef is a key of an object that is being read, and some of its bytes, by
// which most others are told from it.
type keyRef struct {
	key  []byte
	hint uint64
}

func newKeyRef(key []byte) keyRef {
	const word = 4
	n := len(key)
	if n < word {
		hint := uint64(n)
		for _, c := range key {
			hint = hint<<8 | uint64(c)
		}
		return keyRef{key, hint}
	}
	return keyRef{key, uint64(binary.LittleEndian.Uint32(key))<<32 | uint64(binary.LittleEndian.Uint32(key[n-word:]))}
}

func (k keyRef) isIn(keys []keyRef) bool {
	for i := range keys {
		if keys[i].hint == k.hint && bytes.Equal(keys[i].key, k.key) {
			return true
		}
	}
	return false
}

// keyScanner finds objects in a JSON text that have a key twice. It looks at
// each character once and decodes nothing. It can be used again.
type keyScanner struct {
	// keys has those of all objects around a place; starts has where each
	// object's begin, -1 for a list.
	keys   []keyRef
	starts []int
	// index has the keys of large objects, by where they start.
	index map[int]map[string]bool
}

// duplicate reports whether an object has a key twice. Of text that is not JSON
// it says anything.
func (s *keyScanner) duplicate(data []byte) bool {
	s.keys, s.starts, s.index = s.keys[:0], s.starts[:0], nil
	// start is that of the object or list at hand.
	start := -1
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{':
			start = len(s.keys)
			s.starts = append(s.starts, start)
		case '[':
			start = -1
			s.starts = append(s.starts, start)
		case '}', ']':
			if len(s.starts) == 0 {
				return false
			}
			if start >= 0 {
				s.keys = s.keys[:start]
				delete(s.index, start)
			}
			s.starts = s.starts[:len(s.starts)-1]
			start = -1
			if len(s.starts) > 0 {
				start = s.starts[len(s.starts)-1]
			}
		case '"':
			end, err := skipString(data, i)
			if err != nil {
				return false
			}
			text := data[i+1 : end-1]
			i = end - 1
			if start < 0 {
				continue
			}
			if end < len(data) && isSpace(data[end]) {
				end = skipSpace(data, end)
			}
			if end < len(data) && data[end] == ':' && s.seen(start, unescapedKey(text)) {
				return true
			}
		}
	}
	return false
}

// seen adds a key to those of the object that starts there, and reports whether
// it is among them.
func (s *keyScanner) seen(start int, key []byte) bool {
	ref := newKeyRef(key)
	if len(s.keys)-start < fewKeys {
		if ref.isIn(s.keys[start:]) {
			return true
		}
		s.keys = append(s.keys, ref)
		return false
	}
	if s.index == nil {
		s.index = map[int]map[string]bool{}
	}
	known := s.index[start]
	if known == nil {
		known = make(map[string]bool, 2*fewKeys)
		for _, other := range s.keys[start:] {
			known[string(other.key)] = true
		}
		s.index[start] = known
	}
	if known[string(key)] {
		return true
	}
	known[string(key)] = true
	// Objects that begin later have other places.
	s.keys = append(s.keys, ref)
	return false
}

// unescapedKey is what a key in quotes stands for.
func unescapedKey(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	var key string
	if json.Unmarshal(append(append([]byte{'"'}, text...), '"'), &key) != nil {
		return text
	}
	return []byte(key)
}

// duplicateKey returns the path of the first key that is there twice, or
// nothing.
func duplicateKey(data []byte, path string) (found string) {
	// Deeper than that, the path would be too long to read.
	const longestPath = 1000
	if len(path) > longestPath {
		return path
	}
	if !new(keyScanner).duplicate(data) {
		return ""
	}
	switch start := skipSpace(data, 0); {
	case start >= len(data):
	case data[start] == '[':
		items, _, err := arrayItems(data, start)
		for i := 0; err == nil && i < len(items) && found == ""; i++ {
			found = duplicateKey(data[items[i].from:items[i].to], fmt.Sprintf("%s[%d]", path, i))
		}
	case data[start] == '{':
		seen := map[string]bool{}
		_, _ = eachField(data, start, func(key []byte, at int) (int, bool, error) {
			name := string(unescapedKey(key))
			if seen[name] {
				found = path + "." + name
				return at, false, nil
			}
			seen[name] = true
			end, err := skipValue(data, at)
			if err == nil {
				found = duplicateKey(data[at:end], path+"."+name)
			}
			return end, found == "", err
		})
	}
	return found
}

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
