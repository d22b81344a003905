// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// position is a line and a column of a file, both from 1. Columns count characters.
type position struct{ line, column int }

// place is where a field stands in a text.
type place struct {
	position
	// node is its value; nil if the field is not there. Then the position is the
	// innermost field around it.
	node *yaml.Node
	// path is the path of the field in the version of the object.
	path string
}

// pathTokens splits a path like spec.devices[0].attributes["a.b/c"].
func pathTokens(path string) []string {
	var tokens []string
	for path != "" {
		switch path[0] {
		case '.':
			path = path[1:]
		case '[':
			end := strings.IndexByte(path, ']')
			if quoted, err := strconv.QuotedPrefix(path[1:]); err == nil {
				key, _ := strconv.Unquote(quoted)
				tokens = append(tokens, key)
				path = strings.TrimPrefix(path[1+len(quoted):], "]")
				continue
			}
			if end < 0 {
				return append(tokens, path[1:])
			}
			tokens = append(tokens, path[1:end])
			path = path[end+1:]
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			tokens = append(tokens, path[:end])
			path = path[end:]
		}
	}
	return tokens
}

// inVersion returns the tokens of a path in the version of the object: in v1beta1, the
// fields below exactly belong to the request, and the fields of devices are in basic.
func (o *object) inVersion(tokens []string) []string {
	if o.apiVersion != groupName+"/v1beta1" {
		return tokens
	}
	var out []string
	for i, token := range tokens {
		switch {
		case token == "exactly" && i > 1 && tokens[i-2] == "requests":
		case i > 2 && o.kind == "ResourceSlice" && tokens[i-2] == "devices" && token != "name":
			out = append(out, "basic", token)
		default:
			out = append(out, token)
		}
	}
	return out
}

// locate finds a field in the text of the object.
func (o *object) locate(path string) place {
	tokens := o.inVersion(pathTokens(path))
	found := place{position: position{line: o.text.LinesBefore + 1, column: 1}, path: joinPath(tokens)}
	node := o.node()
	if node == nil {
		return found
	}
	found.position = o.positionOf(node)
	for _, token := range tokens {
		for node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		key, value := childOf(node, token)
		if value == nil {
			return found
		}
		found.position = o.positionOf(value)
		if key != nil && value.Kind != yaml.ScalarNode {
			found.position = o.positionOf(key)
		}
		node = value
	}
	found.node = node
	return found
}

// keyOf returns the position of the name of a field that should not exist.
func (o *object) keyOf(path string) position {
	tokens := pathTokens(path)
	node := o.node()
	at := o.locate(path).position
	for _, token := range tokens {
		if node == nil {
			break
		}
		for node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		key, value := childOf(node, token)
		if key != nil {
			at = o.positionOf(key)
		}
		node = value
	}
	return at
}

func (o *object) positionOf(node *yaml.Node) position {
	return position{o.text.LinesBefore + node.Line, node.Column}
}

// childOf returns a field of a mapping, or an element of a list, which has no key.
func childOf(node *yaml.Node, token string) (key, value *yaml.Node) {
	switch node.Kind { //nolint:exhaustive // the others have no parts
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == token {
				return node.Content[i], node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(node.Content) {
			return nil, node.Content[i]
		}
	}
	return nil, nil
}

// pointer returns a path as a JSON pointer, in the version of the object.
func (o *object) pointer(path string) string {
	var b strings.Builder
	for _, token := range o.inVersion(pathTokens(path)) {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

func joinPath(tokens []string) string {
	var b strings.Builder
	for _, token := range tokens {
		_, err := strconv.Atoi(token)
		switch {
		case err == nil:
			b.WriteString("[" + token + "]")
		case strings.ContainsAny(token, "./["):
			b.WriteString("[" + strconv.Quote(token) + "]")
		case b.Len() > 0:
			b.WriteString("." + token)
		default:
			b.WriteString(token)
		}
	}
	return b.String()
}

// within returns the position of a character in the text that a field has, by its line and
// column in the value; the position of the field where that cannot be told.
func (o *object) within(path string, line, column int) position {
	found := o.locate(path)
	node := found.node
	if node == nil || node.Kind != yaml.ScalarNode || line < 1 || column < 1 {
		return found.position
	}
	lines := bytes.Split(o.text.Data, []byte("\n"))
	if node.Line < 1 || node.Line > len(lines) {
		return found.position
	}
	switch node.Style &^ yaml.TaggedStyle { //nolint:exhaustive // positions in folded text are not known
	case 0:
		if line == 1 && hasText(lines[node.Line-1], node.Column, node.Value) {
			return position{found.line, found.column + column - 1}
		}
	case yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle:
		if line == 1 && hasText(lines[node.Line-1], node.Column+1, node.Value) {
			return position{found.line, found.column + column}
		}
	case yaml.LiteralStyle:
		if node.Line+line > len(lines) {
			return found.position
		}
		first := lines[node.Line]
		indent := len(first) - len(bytes.TrimLeft(first, " "))
		return position{found.line + line, indent + column}
	}
	return found.position
}

// hasText reports whether a line has the text of a value at a column.
func hasText(line []byte, column int, text string) bool {
	runes := []rune(string(line))
	return column-1 <= len(runes) && strings.HasPrefix(string(runes[column-1:]), text)
}
