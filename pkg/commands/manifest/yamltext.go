// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	yamlv2 "go.yaml.in/yaml/v2"
	"go.yaml.in/yaml/v3"
)

// errNotEditable is a text in which the place of an edit cannot be found for
// certain, for example because of an alias.
var errNotEditable = errors.New("the text cannot be edited in place")

// yamlText is YAML, or JSON, that is edited without touching anything else:
// comments, quotes and line breaks stay as they are.
type yamlText struct {
	text []byte
	// lines has where each line starts; none if nothing can be edited.
	lines []int
	// ascii is true if each character is a byte, crlf if lines end as on Windows. The text
	// has only line feeds then.
	ascii, crlf bool
}

func newYAMLText(text []byte) *yamlText {
	t := &yamlText{text: text, ascii: !bytes.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })}
	if returns := bytes.Count(text, []byte("\r")); returns > 0 {
		if returns != bytes.Count(text, []byte("\r\n")) || returns != bytes.Count(text, []byte("\n")) {
			return t
		}
		t.text, t.crlf = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), true
	}
	t.lines = []int{0}
	for i, b := range t.text {
		if b == '\n' {
			t.lines = append(t.lines, i+1)
		}
	}
	return t
}

// maxWideLine bounds, in bytes, the lines in which characters of several bytes are counted.
const maxWideLine = 64 << 10

// start returns where a node begins.
func (t *yamlText) start(n *yaml.Node) (int, error) {
	if n.Line < 1 || n.Line > len(t.lines) || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		return 0, errNotEditable
	}
	at := t.lines[n.Line-1]
	switch {
	case t.ascii:
		at += n.Column - 1
	case n.Column > maxWideLine:
		return 0, errNotEditable
	default:
		// Columns count characters.
		for range n.Column - 1 {
			_, size := utf8.DecodeRune(t.text[at:])
			at += size
		}
	}
	if at > len(t.text) {
		return 0, errNotEditable
	}
	return at, nil
}

// end returns where a node ends, without white space and comments after it.
func (t *yamlText) end(n *yaml.Node) (int, error) {
	start, err := t.start(n)
	if err != nil {
		return 0, err
	}
	switch {
	case n.Kind == yaml.ScalarNode && n.Style&yaml.DoubleQuotedStyle != 0:
		return t.quoteEnd(start, '"')
	case n.Kind == yaml.ScalarNode && n.Style&yaml.SingleQuotedStyle != 0:
		return t.quoteEnd(start, '\'')
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		_, end := t.blockLines(start)
		return end, nil
	case n.Kind == yaml.ScalarNode:
		if !bytes.HasPrefix(t.text[start:], []byte(n.Value)) {
			return 0, errNotEditable
		}
		return start + len(n.Value), nil
	case n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode:
		if n.Style&yaml.FlowStyle != 0 {
			return t.flowEnd(start)
		}
		if len(n.Content) == 0 {
			return 0, errNotEditable
		}
		return t.end(n.Content[len(n.Content)-1])
	default:
		return 0, errNotEditable
	}
}

// quoteEnd returns the place after the quote that ends a text.
func (t *yamlText) quoteEnd(start int, quote byte) (int, error) {
	for i := start + 1; i < len(t.text); i++ {
		switch {
		case quote == '"' && t.text[i] == '\\':
			i++
		case t.text[i] == quote && quote == '\'' && i+1 < len(t.text) && t.text[i+1] == quote:
			i++
		case t.text[i] == quote:
			return i + 1, nil
		}
	}
	return 0, errNotEditable
}

// flowEnd returns the place after the bracket that ends a list or an object.
func (t *yamlText) flowEnd(start int) (int, error) {
	depth, before := 0, byte(0)
	for i := start; i < len(t.text); i++ {
		b := t.text[i]
		switch {
		case (b == '"' || b == '\'') && strings.IndexByte("{[,:", before) >= 0:
			end, err := t.quoteEnd(i, b)
			if err != nil {
				return 0, err
			}
			i, before = end-1, b
			continue
		case b == '#' && (t.text[i-1] == ' ' || t.text[i-1] == '\n'):
			i = t.lineEnd(i) - 1
			continue
		case b == '{' || b == '[':
			depth++
		case b == '}' || b == ']':
			if depth--; depth == 0 {
				return i + 1, nil
			}
		}
		if b != ' ' && b != '\n' && b != '\t' && b != '\r' {
			before = b
		}
	}
	return 0, errNotEditable
}

// blockLines returns the indentation of a block of text and where it ends.
func (t *yamlText) blockLines(start int) (indent, end int) {
	end = t.lineEnd(start)
	for at := end + 1; at < len(t.text); {
		next := t.lineEnd(at)
		line := t.text[at:next]
		blank := len(bytes.TrimSpace(line)) == 0
		depth := len(line) - len(bytes.TrimLeft(line, " "))
		switch {
		case blank:
		case indent == 0:
			indent = depth
			end = next
		case depth < indent:
			return indent, end
		default:
			end = next
		}
		at = next + 1
	}
	return indent, end
}

// lineEnd returns where the line ends, before its line break.
func (t *yamlText) lineEnd(at int) int {
	if i := bytes.IndexByte(t.text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(t.text)
}

func (t *yamlText) lineStart(at int) int {
	return bytes.LastIndexByte(t.text[:at], '\n') + 1
}

// splice is a piece of a text and what takes its place.
type splice struct {
	from, to int
	text     string
}

// spliced returns the text with all of the pieces replaced. They are in order and do not
// overlap.
func (t *yamlText) spliced(list []splice) []byte {
	var out []byte
	after := 0
	for _, s := range list {
		out = append(append(out, t.text[after:s.from]...), s.text...)
		after = s.to
	}
	out = append(out, t.text[after:]...)
	if t.crlf {
		return bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n"))
	}
	return out
}

// replace puts a string, a number or a truth value in the place of another.
func (t *yamlText) replace(n *yaml.Node, value json.RawMessage) (splice, error) {
	start, err := t.start(n)
	if err != nil {
		return splice{}, err
	}
	end, err := t.end(n)
	if err != nil || n.Kind != yaml.ScalarNode {
		return splice{}, errNotEditable
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		if len(value) == 0 || value[0] == '{' || value[0] == '[' {
			return splice{}, errNotEditable
		}
		return splice{start, end, string(value)}, nil
	}
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return splice{start, end, jsonText(text)}, nil
	case n.Style&yaml.SingleQuotedStyle != 0 && !strings.Contains(text, "\n"):
		return splice{start, end, "'" + strings.ReplaceAll(text, "'", "''") + "'"}, nil
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		indent, _ := t.blockLines(start)
		header := strings.TrimRight(string(t.text[start:t.lineEnd(start)]), " \r")
		if !strings.HasSuffix(text, "\n") {
			header = strings.TrimRight(header, "-+") + "-"
		}
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		return splice{start, end, header + "\n" + indented(lines, indent)}, nil
	default:
		return splice{start, end, flowText(value)}, nil
	}
}

func indented(lines []string, indent int) string {
	margin := strings.Repeat(" ", indent)
	for i, line := range lines {
		if line != "" {
			lines[i] = margin + line
		}
	}
	return strings.Join(lines, "\n")
}

// jsonText quotes a text as JSON does, with < and > as they are.
func jsonText(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	// A string can always be encoded.
	_ = encoder.Encode(text)
	return strings.TrimSuffix(out.String(), "\n")
}

// flowText writes a value on one line. A text stays without quotes if it can.
func flowText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	if isName(text) {
		return text
	}
	// Words such as on are texts for one version of YAML and not for the other.
	var back, old []any
	list := []byte("[" + text + "]")
	if yaml.Unmarshal(list, &back) == nil && yamlv2.Unmarshal(list, &old) == nil && slices.Equal(back, []any{text}) && slices.Equal(old, back) && !strings.Contains(text, "#") {
		return text
	}
	if !strings.ContainsAny(text, "\n\t") {
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return jsonText(text)
}

// isName reports whether a text is a name that all versions of YAML take for a text.
func isName(text string) bool {
	words := []string{"", "y", "n", "yes", "no", "on", "off", "true", "false", "null"}
	return strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && !slices.Contains(words, text) && text[0] >= 'a'
}

// blockText writes a value over as many lines as it takes.
func blockText(value json.RawMessage) ([]string, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(value, &node); err != nil {
		return nil, err
	}
	var plain func(n *yaml.Node)
	plain = func(n *yaml.Node) {
		n.Style = 0
		for _, child := range n.Content {
			plain(child)
		}
	}
	plain(&node)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&node); err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), nil
}

// remove takes out an item of a list, or the entry of an object with this key;
// at is the index in the parent's content of the item or the key.
func (t *yamlText) remove(parent *yaml.Node, at int) (splice, error) {
	first, last := parent.Content[at], parent.Content[at]
	step := 1
	if parent.Kind == yaml.MappingNode {
		last, step = parent.Content[at+1], 2
	}
	start, err := t.start(first)
	if err != nil {
		return splice{}, err
	}
	end, err := t.end(last)
	if err != nil {
		return splice{}, err
	}
	if parent.Style&yaml.FlowStyle != 0 {
		return t.removeFlow(start, end)
	}
	if len(parent.Content) == step {
		return splice{}, errNotEditable
	}
	if parent.Kind == yaml.SequenceNode {
		dash := bytes.LastIndexByte(t.text[:start], '-')
		if dash < 0 || len(bytes.TrimSpace(t.text[dash+1:start])) > 0 {
			return splice{}, errNotEditable
		}
		start = dash
	}
	line := t.lineStart(start)
	if len(bytes.TrimSpace(t.text[line:start])) > 0 {
		// It stands behind the dash of a list, where the next one has to go.
		if at+step >= len(parent.Content) {
			return splice{}, errNotEditable
		}
		next, err := t.start(parent.Content[at+step])
		if err != nil {
			return splice{}, err
		}
		return splice{start, next, ""}, nil
	}
	return splice{line, min(t.lineEnd(end)+1, len(t.text)), ""}, nil
}

// removeFlow takes out what stands between commas, with one of them.
func (t *yamlText) removeFlow(start, end int) (splice, error) {
	after := end
	for after < len(t.text) && strings.IndexByte(" \t\r\n", t.text[after]) >= 0 {
		after++
	}
	if after < len(t.text) && t.text[after] == ',' {
		after++
		for after < len(t.text) && strings.IndexByte(" \t\r\n", t.text[after]) >= 0 {
			after++
		}
		return splice{start, after, ""}, nil
	}
	before := bytes.TrimRight(t.text[:start], " \t\r\n")
	if len(before) > 0 && before[len(before)-1] == ',' {
		return splice{len(before) - 1, end, ""}, nil
	}
	return splice{start, end, ""}, nil
}

// add puts an entry at the end of an object, or, with an empty key, an item at
// the end of a list.
func (t *yamlText) add(parent *yaml.Node, key string, value json.RawMessage) (splice, error) {
	if parent.Style&yaml.FlowStyle != 0 {
		return t.addFlow(parent, key, value)
	}
	if len(parent.Content) == 0 {
		return splice{}, errNotEditable
	}
	end, err := t.end(parent)
	if err != nil {
		return splice{}, err
	}
	start, err := t.start(parent.Content[0])
	if err != nil {
		return splice{}, err
	}
	lines, err := blockText(value)
	if err != nil {
		return splice{}, err
	}
	margin := start - t.lineStart(start)
	name := flowText(json.RawMessage(jsonText(key)))
	switch {
	case key == "":
		margin = bytes.LastIndexByte(t.text[:start], '-') - t.lineStart(start)
		lines = strings.Split("- "+strings.TrimPrefix(indented(lines, 2), "  "), "\n")
	case value[0] == '{' || value[0] == '[':
		lines = append([]string{name + ":"}, strings.Split(indented(lines, 2), "\n")...)
	default:
		lines[0] = name + ": " + lines[0]
	}
	if margin < 0 {
		return splice{}, errNotEditable
	}
	end = t.lineEnd(end)
	return splice{end, end, "\n" + indented(lines, margin)}, nil
}

func (t *yamlText) addFlow(parent *yaml.Node, key string, value json.RawMessage) (splice, error) {
	start, err := t.start(parent)
	if err != nil {
		return splice{}, err
	}
	at, comma := start+1, ""
	if len(parent.Content) > 0 {
		if at, err = t.end(parent.Content[len(parent.Content)-1]); err != nil {
			return splice{}, err
		}
		comma = ", "
	}
	if key != "" {
		comma += jsonText(key) + ": "
	}
	return splice{at, at, comma + string(value)}, nil
}

// edit makes one operation of a JSON patch below a node.
func (t *yamlText) edit(n *yaml.Node, op string, path []string, value json.RawMessage) (splice, error) {
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	if len(path) == 0 || n.Kind != yaml.MappingNode && n.Kind != yaml.SequenceNode {
		return splice{}, errNotEditable
	}
	at, err := childOf(n, path[0])
	switch {
	case err != nil:
		return splice{}, err
	case len(path) > 1 && at < 0:
		return splice{}, fmt.Errorf("%w: there is no %s", errNotEditable, path[0])
	case len(path) > 1:
		return t.edit(n.Content[valueAt(n, at)], op, path[1:], value)
	case op == "remove" && at >= 0:
		return t.remove(n, at)
	case op == "add" && at < 0 && n.Kind == yaml.SequenceNode:
		return t.add(n, "", value)
	case op == "add" && at < 0:
		return t.add(n, path[0], value)
	case at >= 0 && op == "replace" && n.Content[valueAt(n, at)].Kind == yaml.MappingNode:
		return t.reshape(n.Content[valueAt(n, at)], value)
	case at >= 0 && (op == "replace" || n.Kind == yaml.MappingNode):
		return t.replace(n.Content[valueAt(n, at)], value)
	default:
		return splice{}, errNotEditable
	}
}

// childOf finds an item or a key in the content of a node; -1 if there is none.
func childOf(n *yaml.Node, word string) (int, error) {
	if n.Kind == yaml.SequenceNode {
		if word == "-" {
			return -1, nil
		}
		at, err := strconv.Atoi(word)
		if err != nil || at < 0 || at >= len(n.Content) {
			return 0, errNotEditable
		}
		return at, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == word {
			return i, nil
		}
	}
	return -1, nil
}

func valueAt(n *yaml.Node, at int) int {
	if n.Kind == yaml.MappingNode {
		return at + 1
	}
	return at
}
