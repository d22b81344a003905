// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"errors"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// part is a piece of a text that is decoded on its own.
type part struct {
	// at is where it is from. For a piece of a List, at.item is the number of
	// items before it.
	at place
	// data is the text: an object, or for a piece of a List the items.
	data []byte
	// items has the items of a piece of a JSON List. They are spans of data.
	items []kinds.Span
	// apiVersion and kind are the defaults for items without them.
	apiVersion, kind string
	// yaml is true if data is YAML, and sequence if it is the items of a List.
	yaml, sequence bool
	// linesBefore counts the lines of the file before data, offset the bytes of a document.
	linesBefore, offset int
	// whole is the YAML document that a sequence was cut from, in case that
	// the cut was wrong; nil if it is too large to try.
	whole *part
	// release is called once data is no longer needed, if it is not nil.
	release func()
}

// size returns how much text the part has.
func (p *part) size() int {
	if len(p.items) == 0 {
		return len(p.data)
	}
	return p.items[len(p.items)-1].To - p.items[0].From
}

// The sizes, in bytes of text, that make it worthwhile to cut a document, and
// that a piece should have.
const (
	worthCutting = 64 << 10
	pieceSize    = 64 << 10
)

// cut divides a text into documents, and large Lists into their items.
func cut(file string, data []byte, emit func(*part) error) error {
	return cutAt(file, data, len(data), 0, emit)
}

// cutAt is like cut, for a text from which so many lines were removed at an index.
func cutAt(file string, data []byte, removedAt, removed int, emit func(*part) error) error {
	c := cutter{file: file, data: data, emit: emit, removedAt: removedAt, removed: removed}
	for {
		more, err := c.next()
		if err != nil || !more {
			return err
		}
	}
}

type cutter struct {
	file     string
	data     []byte
	pos      int
	line     int
	lineAt   int
	document int
	emit     func(*part) error
	// removed is how many lines of the file the text lacks at removedAt.
	removedAt, removed int
	// whole is true if large Lists are not to be cut into their items.
	whole bool
}

// next emits the next document.
func (c *cutter) next() (more bool, err error) {
	c.pos = skipBetweenDocuments(c.data, c.pos)
	if c.pos >= len(c.data) {
		return false, nil
	}
	if startsJSON(c.data[c.pos:]) {
		c.document++
		return true, c.json()
	}
	end, next := yamlDocumentEnd(c.data, c.pos)
	text := c.data[c.pos:end]
	start := c.pos
	c.pos = next
	if isBlankYAML(text) {
		return true, nil
	}
	c.document++
	return true, c.yaml(text, start)
}

func (c *cutter) place() place { return place{file: c.file, document: c.document} }

// linesBefore counts lines; each byte of the text is looked at once.
func (c *cutter) linesBefore(pos int) int {
	c.line += bytes.Count(c.data[c.lineAt:pos], []byte{'\n'})
	c.lineAt = pos
	if pos >= c.removedAt {
		return c.line + c.removed
	}
	return c.line
}

// startsJSON reports whether a text begins like a JSON object, and not like a YAML flow
// mapping, which seldom has quotes.
func startsJSON(data []byte) bool {
	if data[0] != '{' {
		return false
	}
	i := kinds.SkipSpace(data, 1)
	return i >= len(data) || data[i] == '"' || data[i] == '}'
}

// json emits the JSON document at c.pos.
func (c *cutter) json() error {
	start := c.pos
	o, err := outlineObject(c.data, start)
	if err != nil {
		if errors.Is(err, kinds.ErrCutOff) {
			err = &kinds.SyntaxError{Err: err}
		}
		var misplaced *kinds.PositionError
		if errors.As(err, &misplaced) && start >= c.removedAt {
			misplaced.Line += c.removed
		}
		if errors.Is(err, kinds.ErrDuplicateKey) && !saysObject(c.data[start:]) {
			err = kinds.ErrDuplicateKey
		}
		return &InputError{Path: c.file, Document: c.document, Object: o.kind, Err: err}
	}
	c.pos = o.end
	if o.isList && o.end-start >= worthCutting && !c.whole {
		return c.jsonList(start, o)
	}
	if o.end-start > kinds.MaxDocument {
		return &InputError{Path: c.file, Document: c.document, Object: o.kind, Err: kinds.TooLarge(o.end - start)}
	}
	return c.emit(&part{at: c.place(), data: c.data[start:o.end], linesBefore: c.linesBefore(start), offset: start})
}

func (c *cutter) jsonList(start int, o outline) error {
	// The list itself, without items, is a part too: it may be a header.
	empty := append(bytes.TrimSuffix(withoutItems(c.data[start:o.end]), []byte("}")), `,"items":[]}`...)
	if len(empty) > kinds.MaxDocument {
		return inputError(c.place(), o.kind, kinds.TooLarge(len(empty)))
	}
	if err := c.emit(&part{at: c.place(), data: empty, linesBefore: c.linesBefore(start)}); err != nil {
		return err
	}
	apiVersion, kind := itemKind(o.apiVersion, o.kind)
	for first := 0; first < len(o.items); {
		end := first
		for end < len(o.items) && o.items[end].To-o.items[first].From < pieceSize {
			end++
		}
		end = max(end, first+1)
		if size := o.items[first].To - o.items[first].From; size > kinds.MaxDocument {
			at := c.place()
			at.item, at.list = first+1, o.kind
			return inputError(at, "", kinds.TooLarge(size))
		}
		piece := &part{at: c.place(), data: c.data, items: o.items[first:end], apiVersion: apiVersion, kind: kind}
		piece.at.item, piece.at.list = first, o.kind
		if err := c.emit(piece); err != nil {
			return err
		}
		first = end
	}
	return nil
}

// yaml emits a YAML document that begins at start.
func (c *cutter) yaml(text []byte, start int) error {
	whole := &part{at: c.place(), data: text, yaml: true, linesBefore: c.linesBefore(start), offset: start}
	if len(text) < worthCutting || c.whole {
		return c.emit(whole)
	}
	list, apiVersion, kind, ok := yamlList(text)
	if len(text) > kinds.MaxDocument {
		if !ok {
			return inputError(c.place(), "", kinds.TooLarge(len(text)))
		}
		whole = nil
	}
	if !ok {
		return c.emit(whole)
	}
	itemVersion, itemKind := itemKind(apiVersion, kind)
	item := 0
	for first := 0; first < len(list.items); {
		end := first
		for end < len(list.items) && list.items[end].To-list.items[first].From < pieceSize {
			end++
		}
		end = max(end, first+1)
		from, to := list.items[first].From, list.items[end-1].To
		if to-from > kinds.MaxDocument {
			at := c.place()
			at.item, at.list = item+1, kind
			return inputError(at, "", kinds.TooLarge(to-from))
		}
		piece := &part{
			at: c.place(), data: text[from:to], yaml: true, sequence: true, apiVersion: itemVersion, kind: itemKind,
			linesBefore: c.linesBefore(start + from), whole: whole,
		}
		piece.at.item, piece.at.list = item, kind
		if err := c.emit(piece); err != nil {
			return err
		}
		item += end - first
		first = end
	}
	return nil
}

// skipBetweenDocuments skips white space and the lines that separate documents.
func skipBetweenDocuments(data []byte, i int) int {
	for {
		i = kinds.SkipSpace(data, i)
		lineStart := i == 0 || data[i-1] == '\n'
		switch {
		case lineStart && isMarker(data, i, "---"), lineStart && isMarker(data, i, "..."):
			i += 3
		case lineStart && i < len(data) && data[i] == '%':
			i = lineEnd(data, i)
		default:
			if lineStart {
				return i
			}
			// Indentation belongs to a YAML document.
			for i > 0 && i < len(data) && data[i] != '{' && (data[i-1] == ' ' || data[i-1] == '\t') {
				i--
			}
			return i
		}
	}
}

// isMarker reports whether a line starts with --- or ... as a separator.
func isMarker(data []byte, i int, marker string) bool {
	return bytes.HasPrefix(data[i:], []byte(marker)) && (i+3 == len(data) || kinds.IsSpace(data[i+3]))
}

// lineEnd returns the index of the next line.
func lineEnd(data []byte, i int) int {
	if newline := bytes.IndexByte(data[i:], '\n'); newline >= 0 {
		return i + newline + 1
	}
	return len(data)
}

// yamlDocumentEnd returns where the YAML document at from ends, and where to
// look for the next one. A separator at the start of a line always ends a
// document: YAML forbids such lines in text of any kind.
func yamlDocumentEnd(data []byte, from int) (end, next int) {
	for i := lineEnd(data, from); i < len(data); i = lineEnd(data, i) {
		if isMarker(data, i, "---") || isMarker(data, i, "...") {
			return i, i
		}
	}
	return len(data), len(data)
}

// isBlankYAML reports whether a document has nothing but comments.
func isBlankYAML(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// yamlItems is a YAML document in block style whose top level has "items:".
type yamlItems struct {
	items []kinds.Span
	// rest is the document without its items.
	rest []byte
}

// yamlList finds the items of a document that is a List.
func yamlList(text []byte) (list yamlItems, apiVersion, kind string, ok bool) {
	list, ok = findYAMLItems(text)
	if !ok || len(list.rest) > kinds.MaxDocument || len(list.items) > kinds.MaxItems {
		return list, "", "", false
	}
	rest, err := yamlToJSON(list.rest)
	if err != nil {
		return list, "", "", false
	}
	apiVersion, kind, err = peekKind(rest)
	return list, apiVersion, kind, err == nil && strings.HasSuffix(kind, "List")
}

// findYAMLItems finds the items of a List as kubectl writes it, by the
// indentation of their dashes. It may be wrong about documents in other
// styles; then the parts are no valid YAML.
func findYAMLItems(text []byte) (list yamlItems, ok bool) {
	inItems, dash := false, -1
	for i := 0; i < len(text); {
		end := lineEnd(text, i)
		indent := 0
		for i+indent < end && text[i+indent] == ' ' {
			indent++
		}
		body := text[i+indent : end]
		isDash := len(body) > 0 && body[0] == '-' && (len(body) == 1 || kinds.IsSpace(body[1]))
		blank := len(bytes.TrimSpace(body)) == 0 || body[0] == '#'
		if inItems && dash < 0 && isDash {
			dash = indent
		}
		switch {
		case inItems && isDash && indent == dash:
			if len(list.items) > kinds.MaxItems {
				return list, false
			}
			list.items = append(list.items, kinds.Span{From: i, To: end})
		case inItems && (blank || indent > dash):
			if len(list.items) > 0 {
				list.items[len(list.items)-1].To = end
			}
		case !inItems && indent == 0 && string(bytes.TrimSpace(body)) == "items:":
			inItems = true
		case indent == 0 && isDash:
			return list, false
		default:
			inItems = false
			list.rest = append(list.rest, text[i:end]...)
		}
		i = end
	}
	return list, len(list.items) > 0
}

// itemKind returns what the items of a typed list are if they do not say.
func itemKind(listVersion, listKind string) (apiVersion, kind string) {
	if listKind == snapshot.KindSnapshot || listKind == "List" {
		return "", ""
	}
	return listVersion, strings.TrimSuffix(listKind, "List")
}

// withoutItems copies a JSON object without its field "items".
func withoutItems(data []byte) []byte {
	out := []byte{'{'}
	_, _ = kinds.EachField(data, 0, func(key []byte, at int) (int, bool, error) {
		end, err := kinds.SkipValue(data, at)
		if err != nil || string(key) == "items" {
			return end, true, err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), key...), `":`...)
		out = append(out, data[at:end]...)
		return end, true, nil
	})
	return append(out, '}')
}

// describeObject names an object that may not be decodable.
func describeObject(data []byte, kind string) string {
	namespace, name := peekName(data)
	switch {
	case name == "":
		return kind
	case namespace == "":
		return kind + "/" + name
	default:
		return kind + "/" + namespace + "/" + name
	}
}

// peekName finds the name of an object that may not be decodable.
func peekName(data []byte) (namespace, name string) {
	_, _ = kinds.EachField(data, 0, func(key []byte, at int) (int, bool, error) {
		end, err := kinds.SkipValue(data, at)
		if err != nil || string(key) != "metadata" {
			return end, true, err
		}
		_, err = kinds.EachField(data[at:end], 0, func(key []byte, from int) (int, bool, error) {
			to, err := kinds.SkipValue(data[at:end], from)
			if value := data[at:end][from:to]; err == nil && len(value) > 1 && value[0] == '"' {
				switch string(key) {
				case "namespace":
					namespace = string(value[1 : len(value)-1])
				case "name":
					name = string(value[1 : len(value)-1])
				}
			}
			return to, true, err
		})
		return end, false, err
	})
	return namespace, name
}

// outline is the top level of a JSON object.
type outline struct {
	apiVersion, kind string
	// items has the elements of the field "items", if it is an array.
	items []kinds.Span
	// isList is true if the object is a List: its kind says so and it has items.
	isList bool
	// end is the index after the closing brace.
	end int
}

// outlineObject finds the outline of the JSON object that begins at from.
func outlineObject(data []byte, from int) (outline, error) {
	var o outline
	hasItems := false
	var seen [][]byte
	end, err := kinds.EachField(data, from, func(key []byte, at int) (int, bool, error) {
		if len(seen) < maxOutlined && containsKey(seen, key) {
			return at, false, kinds.AtField(string(key), kinds.ErrDuplicateKey)
		}
		seen = append(seen, key)
		if string(key) == "items" && at < len(data) && data[at] == '[' {
			items, end, err := kinds.Items(data, at)
			o.items, hasItems = items, true
			return end, true, err
		}
		end, err := kinds.SkipValue(data, at)
		if err == nil {
			o.note(key, data[at:end])
		}
		return end, true, err
	})
	o.end = end
	o.isList = hasItems && (strings.HasSuffix(o.kind, "List") || o.kind == snapshot.KindSnapshot)
	return o, err
}

// maxOutlined limits how many fields of an object are compared when it is outlined: more
// than a List has. The decoder checks other objects.
const maxOutlined = 16

func containsKey(keys [][]byte, key []byte) bool {
	for _, other := range keys {
		if bytes.Equal(other, key) {
			return true
		}
	}
	return false
}

// peekKind finds the apiVersion and kind of the JSON object in data and looks
// no further than that takes.
func peekKind(data []byte) (apiVersion, kind string, err error) {
	var o outline
	_, err = kinds.EachField(data, 0, func(key []byte, at int) (int, bool, error) {
		end, err := kinds.SkipValue(data, at)
		if err == nil {
			o.note(key, data[at:end])
		}
		return end, o.apiVersion == "" || o.kind == "", err
	})
	return o.apiVersion, o.kind, err
}

func (o *outline) note(key, value []byte) {
	if len(value) < 2 || value[0] != '"' {
		return
	}
	switch string(key) {
	case "apiVersion":
		o.apiVersion = string(value[1 : len(value)-1])
	case "kind":
		o.kind = string(value[1 : len(value)-1])
	}
}
