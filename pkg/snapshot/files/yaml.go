// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v2"
	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// errAliases is a document whose aliases make it much larger than it looks.
var errAliases = errors.New("its YAML aliases expand to far more text than there is; write the values out")

// yamlToJSON converts one YAML document with the rules that kubectl has: YAML
// 1.1, keys become strings. It exists beside sigs.k8s.io/yaml for one reason:
// that one expands aliases without a bound.
func yamlToJSON(document []byte) (converted []byte, err error) {
	defer func() {
		// The parser reports what it knows as errors. For what it does not
		// know, a file must not be able to end the program.
		if r := recover(); r != nil {
			err = fmt.Errorf("not YAML: %v", r)
		}
	}()
	var value any
	if err := yaml.UnmarshalStrict(document, &value); err != nil {
		if !strings.Contains(err.Error(), "already set in map") {
			return nil, err
		}
		if key, line := yamlDuplicate(document); line > 0 {
			return nil, &duplicateError{key: key, line: line}
		}
		value = nil
		if err := yaml.Unmarshal(document, &value); err != nil {
			return nil, err
		}
	}
	c := converter{limit: 1<<20 + 16*len(document)}
	converted, err = c.value(make([]byte, 0, len(document)), value)
	if err != nil {
		return nil, err
	}
	return converted, nil
}

// converter writes what the YAML parser made as JSON.
type converter struct {
	// limit is the number of bytes after which it gives up.
	limit int
}

func (c converter) value(out []byte, value any) ([]byte, error) {
	if len(out) > c.limit {
		return nil, errAliases
	}
	switch value := value.(type) {
	case nil:
		return append(out, "null"...), nil
	case bool:
		return strconv.AppendBool(out, value), nil
	case int:
		return strconv.AppendInt(out, int64(value), 10), nil
	case int64:
		return strconv.AppendInt(out, value, 10), nil
	case uint64:
		return strconv.AppendUint(out, value, 10), nil
	case float64:
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return nil, fmt.Errorf("the number %v has no meaning in a Kubernetes object", value)
		}
		number, err := json.Marshal(value)
		return append(out, number...), err
	case string:
		if len(out)+len(value) > c.limit {
			return nil, errAliases
		}
		return appendString(out, value)
	case []any:
		return c.list(out, value)
	case map[any]any:
		return c.object(out, value)
	default:
		return nil, fmt.Errorf("a YAML value of type %T has no meaning in a Kubernetes object", value)
	}
}

func (c converter) list(out []byte, list []any) ([]byte, error) {
	out = append(out, '[')
	for i, element := range list {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = c.value(out, element); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

func (c converter) object(out []byte, object map[any]any) ([]byte, error) {
	type field struct {
		name  string
		value any
	}
	fields := make([]field, 0, len(object))
	for key, value := range object {
		name, err := fieldName(key)
		if err != nil {
			return nil, err
		}
		fields = append(fields, field{name, value})
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	out = append(out, '{')
	for i, f := range fields {
		if i > 0 {
			if fields[i-1].name == f.name {
				return nil, &duplicateError{key: f.name}
			}
			out = append(out, ',')
		}
		var err error
		if out, err = appendString(out, f.name); err != nil {
			return nil, err
		}
		if out, err = c.value(append(out, ':'), f.value); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func fieldName(key any) (string, error) {
	switch key := key.(type) {
	case string:
		return key, nil
	case bool:
		return strconv.FormatBool(key), nil
	case int:
		return strconv.Itoa(key), nil
	case int64:
		return strconv.FormatInt(key, 10), nil
	case uint64:
		return strconv.FormatUint(key, 10), nil
	case float64:
		return strconv.FormatFloat(key, 'g', -1, 64), nil
	default:
		return "", fmt.Errorf("a field name must be a string, found a value of type %T", key)
	}
}

// appendString appends a JSON string. Most need no escaping.
func appendString(out []byte, s string) ([]byte, error) {
	plain := utf8.ValidString(s)
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] >= ' ' && s[i] != '"' && s[i] != '\\'
	}
	if plain {
		out = append(out, '"')
		out = append(out, s...)
		return append(out, '"'), nil
	}
	quoted, err := json.Marshal(s)
	return append(out, quoted...), err
}

// duplicateError is a key that a mapping has twice, on a line of the text that
// was parsed if that is known. Without a key, that is not told.
type duplicateError struct {
	key  string
	line int
}

func (e *duplicateError) Error() string {
	at := ""
	if e.line > 0 {
		at = fmt.Sprintf("line %d: ", e.line)
	}
	key := ""
	if e.key != "" {
		key = kinds.Shortened(e.key) + ": "
	}
	return fmt.Sprintf("%s%s%v", at, key, kinds.ErrDuplicateKey)
}

// yamlError makes the parser's message fit: without its prefix, and with the
// line counted from the start of the file instead of the part it was given.
func yamlError(err error, document []byte, linesBefore int) error {
	if !saysObject(document) {
		err = withoutQuotes(err)
	}
	var duplicate *duplicateError
	if errors.As(err, &duplicate) {
		if duplicate.line > 0 {
			duplicate.line += linesBefore
		}
		return err
	}
	parts := yamlMessage().FindStringSubmatch(err.Error())
	if parts == nil {
		return err
	}
	line, err := strconv.Atoi(parts[1])
	if err != nil {
		return fmt.Errorf("not YAML: %s", parts[2])
	}
	return fmt.Errorf("not YAML: line %d: %s", line+linesBefore, parts[2])
}

// saysObject reports whether a text has what all objects of Kubernetes have. Anything
// else may be a key or a list of passwords, named by mistake: no error has a word of it.
func saysObject(text []byte) bool {
	return bytes.Contains(text, []byte("apiVersion")) && bytes.Contains(text, []byte("kind"))
}

// withoutQuotes returns an error of the parser without the text that it quotes.
func withoutQuotes(err error) error {
	if duplicate := (*duplicateError)(nil); errors.As(err, &duplicate) {
		return &duplicateError{line: duplicate.line}
	}
	return errors.New(regexp.MustCompile("(?s)( `.*`| '.{2,}'| \".*\"|: \\[\\]interface.*|: map\\[.*|: &.*)").ReplaceAllString(err.Error(), ""))
}

// yamlMessage returns an expression that splits the parser's message into the line and the
// error.
func yamlMessage() *regexp.Regexp {
	return regexp.MustCompile(`^yaml: (?:unmarshal errors:\s*)?(?:line (\d+): )?([\s\S]*)$`)
}

// yamlErrorLine returns the line of the file that an error about a document names, before
// or after [yamlError]; 0 if it names none.
func yamlErrorLine(err error, linesBefore int) int {
	var duplicate *duplicateError
	if errors.As(err, &duplicate) {
		return duplicate.line
	}
	parts := yamlMessage().FindStringSubmatch(err.Error())
	if parts == nil || parts[1] == "" {
		return 0
	}
	line, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}
	return line + linesBefore
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
