// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v2"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Format is how a snapshot is written.
type Format string

const (
	// JSON is one JSON object with one item a line.
	JSON Format = "json"
	// YAML is one YAML document for the header and one for each object.
	YAML Format = "yaml"
)

// Write writes everything that [Load] reads back to an equal snapshot. In JSON
// that is one object of kind Snapshot with one object of the cluster on each
// line; in YAML it is a document of kind Snapshot and one for each object.
func Write(w io.Writer, s *snapshot.Snapshot, format Format) error {
	buffered := bufio.NewWriterSize(w, 64<<10)
	var err error
	switch format {
	case JSON:
		err = writeJSON(buffered, s)
	case YAML:
		err = writeYAML(buffered, s)
	default:
		err = fmt.Errorf("unknown format %q: expected %s or %s", format, JSON, YAML)
	}
	if err == nil {
		err = buffered.Flush()
	}
	if err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	return nil
}

// Save saves the snapshot as a file that only its owner can read. The
// extension decides the format: .json, .yaml or .yml, each also with .gz.
// The file is there completely or not at all, also when the context is canceled.
func Save(ctx context.Context, s *snapshot.Snapshot, path string) error {
	format, compressed, err := formatOf(path)
	if err != nil {
		return err
	}
	return SaveWhole(ctx, path, func(w io.Writer) error { return writeTo(w, s, format, compressed) })
}

// Packed returns the snapshot as gzipped JSON.
func Packed(s *snapshot.Snapshot) ([]byte, error) {
	var b bytes.Buffer
	err := writeTo(&b, s, JSON, true)
	return b.Bytes(), err
}

// SaveWhole writes a file that only its owner can read. It is there completely or not at all, also
// when the context is canceled.
func SaveWhole(ctx context.Context, path string, write func(io.Writer) error) (err error) {
	// os.CreateTemp makes files with mode 0600.
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return saveError(path, err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	if err := write(&cancelableWriter{ctx, file}); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return saveError(path, err)
	}
	if err := file.Close(); err != nil {
		return saveError(path, err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return saveError(path, err)
	}
	return nil
}

// cancelableWriter fails after the context is canceled.
type cancelableWriter struct {
	ctx context.Context
	to  io.Writer
}

func (w *cancelableWriter) Write(text []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.to.Write(text)
}

// saveError names the file that the user named instead of the temporary file.
func saveError(path string, err error) error {
	var (
		atPath *fs.PathError
		atLink *os.LinkError
	)
	switch {
	case errors.As(err, &atPath):
		err = atPath.Err
	case errors.As(err, &atLink):
		err = atLink.Err
	}
	return fmt.Errorf("save %s: %w", path, err)
}

func writeTo(w io.Writer, s *snapshot.Snapshot, format Format, compressed bool) error {
	if !compressed {
		return Write(w, s, format)
	}
	stream := gzip.NewWriter(w)
	if err := Write(stream, s, format); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	return nil
}

func formatOf(path string) (format Format, compressed bool, err error) {
	name := strings.ToLower(filepath.Base(path))
	name, compressed = strings.CutSuffix(name, ".gz")
	switch filepath.Ext(name) {
	case ".json":
		return JSON, compressed, nil
	case ".yaml", ".yml":
		return YAML, compressed, nil
	default:
		return "", false, fmt.Errorf("save snapshot as %s: unknown file extension: "+
			"expected .json, .yaml, .yml, .json.gz, .yaml.gz or .yml.gz", path)
	}
}

func writeJSON(w io.Writer, s *snapshot.Snapshot) error {
	head, err := json.Marshal(headerOf(s))
	if err != nil {
		return err
	}
	// The items go before the brace that ends the header.
	if _, err := fmt.Fprintf(w, "%s,\"items\":[", bytes.TrimSuffix(head, []byte("}"))); err != nil {
		return err
	}
	separator := "\n"
	err = eachManifest(s, func(manifest any) error {
		line, err := json.Marshal(manifest)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s%s", separator, line)
		separator = ",\n"
		return err
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "\n]}\n")
	return err
}

func writeYAML(w io.Writer, s *snapshot.Snapshot) error {
	save := func(manifest any) error {
		document, err := MarshalYAML(manifest)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "---\n%s", document)
		return err
	}
	if err := save(headerOf(s)); err != nil {
		return err
	}
	return eachManifest(s, save)
}

func headerOf(s *snapshot.Snapshot) snapshot.Header {
	h := Header(s)
	objects := 0
	for _, list := range Lists() {
		objects += list.Len(s)
	}
	h.Objects = &objects
	return h
}

// Header returns what a snapshot is saved with besides its objects, and without their number.
func Header(s *snapshot.Snapshot) snapshot.Header {
	h := snapshot.Header{ServerVersion: s.ServerVersion, Emulator: s.Emulator, Served: s.Served, Gates: s.Gates, Gaps: s.Gaps, Listed: s.Listed}
	h.APIVersion, h.Kind = api.APIVersion, snapshot.KindSnapshot
	if !s.TakenAt.IsZero() {
		h.TakenAt = &s.TakenAt
	}
	return h
}

// eachManifest calls save with each object as it is to be written.
func eachManifest(s *snapshot.Snapshot, save func(manifest any) error) error {
	for _, list := range Lists() {
		for object := range list.All(s) {
			manifest, err := list.Manifest(object)
			if err == nil {
				err = save(manifest)
			}
			if err != nil {
				return fmt.Errorf("%s %s/%s: %w", list.Name, object.GetNamespace(), object.GetName(), err)
			}
		}
	}
	return nil
}

// MarshalYAML writes an object as YAML, whatever its strings have. It exists
// beside sigs.k8s.io/yaml since that one reads the JSON of an object as YAML,
// which fails for characters and for long field names that JSON and the API
// server allow. What a terminal would obey or not show, such as a right-to-left
// override, is written as an escape: who reads it gets the same value.
func MarshalYAML(object any) ([]byte, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode as JSON: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	if value, err = withNumbers(value); err != nil {
		return nil, err
	}
	// JSON has the two separators of lines and paragraphs as escapes.
	if !bytes.ContainsFunc(text, isHidden) && !bytes.Contains(text, []byte(`\u202`)) {
		return yaml.Marshal(value)
	}
	return marshalHidden(value, text)
}

// isHidden reports whether YAML counts an invisible character as printable: the others are
// escaped by the encoder.
func isHidden(r rune) bool { return r >= 0xa0 && r <= 0xffff && !unicode.IsPrint(r) }

// marshalHidden puts a mark in place of each hidden character, with a control character,
// for which the encoder quotes the string, and a word that occurs nowhere in the text.
// The escape then takes the place of the mark.
func marshalHidden(value any, text []byte) ([]byte, error) {
	word := "hidden:"
	for bytes.Contains(text, []byte(word)) {
		word = "x" + word
	}
	written, err := yaml.Marshal(withMarks(value, "\x01"+word))
	if err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(written, []byte(`\x01`+word), []byte(`\u`)), nil
}

// withMarks returns a value with marks in its strings and in its keys.
func withMarks(value any, mark string) any {
	switch value := value.(type) {
	case string:
		return marked(value, mark)
	case []any:
		for i := range value {
			value[i] = withMarks(value[i], mark)
		}
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, of := range value {
			object[marked(key, mark)] = withMarks(of, mark)
		}
		return object
	}
	return value
}

// marked returns a text with a mark and four digits for each hidden character.
func marked(text, mark string) string {
	var b strings.Builder
	for _, r := range text {
		if isHidden(r) {
			fmt.Fprintf(&b, "%s%04X", mark, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// withNumbers replaces, in place, numbers as JSON has them by those that Go
// has: integers as long as they fit.
func withNumbers(value any) (_ any, err error) {
	switch value := value.(type) {
	case json.Number:
		return toNumber(value)
	case []any:
		for i := range value {
			if value[i], err = withNumbers(value[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range value {
			if value[key], err = withNumbers(value[key]); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

func toNumber(number json.Number) (any, error) {
	if integer, err := number.Int64(); err == nil {
		return integer, nil
	}
	float, err := number.Float64()
	if err != nil {
		return nil, fmt.Errorf("the number %s is too large", number)
	}
	return float, nil
}
