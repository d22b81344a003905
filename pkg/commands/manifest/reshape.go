// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reshape replaces an object by an object with the same entries, of which some are one
// level deeper or higher, as versions of an API differ. Their text moves as it is.
func (t *yamlText) reshape(n *yaml.Node, value json.RawMessage) (splice, error) {
	before, err := documentJSON(n)
	if err != nil {
		return splice{}, err
	}
	var old, want map[string]any
	if json.Unmarshal(before, &old) != nil || json.Unmarshal(value, &want) != nil {
		return splice{}, errNotEditable
	}
	if key, ok := nestedUnder(old, want); ok {
		return t.nest(n, key, want)
	}
	if key, ok := nestedUnder(want, old); ok {
		return t.unnest(n, key)
	}
	return splice{}, errNotEditable
}

// nestedUnder returns the key of the deeper object under which it has the entries that the
// flat one has itself.
func nestedUnder(flat, deeper map[string]any) (string, bool) {
	for key, value := range deeper {
		inner, ok := value.(map[string]any)
		if _, both := flat[key]; both || !ok {
			continue
		}
		same := len(flat) == len(inner)+len(deeper)-1
		for name, value := range flat {
			other, below := inner[name]
			if !below {
				other = deeper[name]
			}
			same = same && reflect.DeepEqual(value, other)
		}
		if same {
			return key, true
		}
	}
	return "", false
}

// entry is the text of a key with its value, and of the comments before it.
type entry struct{ key, lead, text string }

// entries returns the entries of an object in block style, the margin of its keys, and the
// span of all of them.
func (t *yamlText) entries(n *yaml.Node) (list []entry, margin, from, to int, err error) {
	if n.Kind != yaml.MappingNode || n.Style&yaml.FlowStyle != 0 || len(n.Content) == 0 {
		return nil, 0, 0, 0, errNotEditable
	}
	after := 0
	for i := 0; i+1 < len(n.Content); i += 2 {
		start, err := t.start(n.Content[i])
		if err != nil {
			return nil, 0, 0, 0, err
		}
		end, err := t.end(n.Content[i+1])
		if err != nil {
			return nil, 0, 0, 0, err
		}
		end = t.lineEnd(end)
		e := entry{key: n.Content[i].Value, text: string(t.text[start:end])}
		if i == 0 {
			margin, from = start-t.lineStart(start), start
		} else if lead := t.lineStart(start); lead > after {
			e.lead = string(t.text[after:lead])
		} else if lead < after-1 {
			return nil, 0, 0, 0, errNotEditable
		}
		after = min(end+1, len(t.text))
		to = end
		list = append(list, e)
	}
	return list, margin, from, to, nil
}

func (t *yamlText) nest(n *yaml.Node, key string, want map[string]any) (splice, error) {
	if n.Style&yaml.FlowStyle != 0 {
		return t.nestFlow(n, key, want)
	}
	list, margin, from, to, err := t.entries(n)
	if err != nil {
		return splice{}, err
	}
	blank := strings.Repeat(" ", margin)
	var kept, moved strings.Builder
	for i, e := range list {
		if _, stays := want[e.key]; !stays {
			moved.WriteString(deeper(e.lead + blank + e.text + "\n"))
			continue
		}
		if kept.Len() == 0 && i > 0 && e.lead != "" {
			return splice{}, errNotEditable
		}
		if kept.Len() > 0 {
			kept.WriteString(e.lead + blank)
		}
		kept.WriteString(e.text + "\n")
	}
	if kept.Len() > 0 {
		kept.WriteString(blank)
	}
	kept.WriteString(key + ":\n" + moved.String())
	return splice{from, to, strings.TrimSuffix(kept.String(), "\n")}, nil
}

// deeper moves lines to the right.
func deeper(lines string) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		if strings.TrimSpace(line) != "" {
			b.WriteString("  ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// nestFlow does it in braces, on one line.
func (t *yamlText) nestFlow(n *yaml.Node, key string, want map[string]any) (splice, error) {
	start, err := t.start(n)
	if err != nil {
		return splice{}, err
	}
	end, err := t.end(n)
	if err != nil {
		return splice{}, err
	}
	if strings.Contains(string(t.text[start:end]), "\n") {
		return splice{}, errNotEditable
	}
	quote := ""
	var kept, moved []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		text, err := t.pair(n.Content[i], n.Content[i+1])
		if err != nil {
			return splice{}, err
		}
		if n.Content[i].Style&yaml.DoubleQuotedStyle != 0 {
			quote = `"`
		}
		if _, stays := want[n.Content[i].Value]; stays {
			kept = append(kept, text)
		} else {
			moved = append(moved, text)
		}
	}
	kept = append(kept, quote+key+quote+": {"+strings.Join(moved, ", ")+"}")
	return splice{start, end, "{" + strings.Join(kept, ", ") + "}"}, nil
}

// pair returns the text of a key and its value.
func (t *yamlText) pair(key, value *yaml.Node) (string, error) {
	start, err := t.start(key)
	if err != nil {
		return "", err
	}
	end, err := t.end(value)
	if err != nil {
		return "", err
	}
	return string(t.text[start:end]), nil
}

// unnest moves the entries under a key up to where the key is.
func (t *yamlText) unnest(n *yaml.Node, key string) (splice, error) {
	at, err := childOf(n, key)
	if err != nil || at < 0 {
		return splice{}, errNotEditable
	}
	name, inner := n.Content[at], n.Content[at+1]
	if len(inner.Content) == 0 || inner.Kind != yaml.MappingNode {
		return splice{}, errNotEditable
	}
	start, err := t.start(name)
	if err != nil {
		return splice{}, err
	}
	end, err := t.end(inner)
	if err != nil {
		return splice{}, err
	}
	if n.Style&yaml.FlowStyle != 0 || inner.Style&yaml.FlowStyle != 0 {
		return t.unnestFlow(n, inner, start, end)
	}
	list, margin, from, _, err := t.entries(inner)
	if err != nil {
		return splice{}, err
	}
	// What stands between the key and the first entry is white space alone.
	if strings.TrimSpace(strings.TrimPrefix(string(t.text[start:from]), name.Value+":")) != "" {
		return splice{}, errNotEditable
	}
	outer := start - t.lineStart(start)
	var b strings.Builder
	for i, e := range list {
		text := e.lead + strings.Repeat(" ", margin) + e.text
		for line := range strings.Lines(text) {
			cut := min(margin-outer, len(line)-len(strings.TrimLeft(line, " ")))
			b.WriteString(line[cut:])
		}
		if i+1 < len(list) {
			b.WriteString("\n")
		}
	}
	return splice{start, t.lineEnd(end), strings.TrimLeft(b.String(), " ")}, nil
}

func (t *yamlText) unnestFlow(n, inner *yaml.Node, start, end int) (splice, error) {
	var parts []string
	for i := 0; i+1 < len(inner.Content); i += 2 {
		text, err := t.pair(inner.Content[i], inner.Content[i+1])
		if err != nil {
			return splice{}, err
		}
		parts = append(parts, text)
	}
	separator := ", "
	if n.Style&yaml.FlowStyle == 0 {
		separator = "\n" + strings.Repeat(" ", start-t.lineStart(start))
	}
	return splice{start, end, strings.Join(parts, separator)}, nil
}
