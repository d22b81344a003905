// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// A recording is text in lines, compressed with Zstandard (RFC 8878). It has segments, each a
// frame of its own, so that older ones can be removed from the file and nobody has to read all
// before a moment. A segment has:
//
//   - an empty line, since the text before may have been cut off within a line,
//   - a line that says what it is (opening),
//   - a snapshot in JSON, in the lines that [files.Write] writes,
//   - a line that ends the moment (ending),
//   - for each later moment a line for each object that changed (change), and one that ends it.
//
// What comes after the last line that ends a moment was cut off and does not count. docs/recording.md
// describes the file for others.

// Kind is the kind in the first line of each segment.
const Kind = "Recording"

// Format is the version of the format that is written, and the newest that is read.
const Format = 1

// opening is the first line of a segment.
type opening struct {
	metav1.TypeMeta `json:",inline"`
	Format          int `json:"format"`
	// Begins is the time of the first moment.
	Begins time.Time `json:"begins"`
}

// ending is the line that ends a moment.
type ending struct {
	// Moment is the time of the moment.
	Moment time.Time `json:"moment"`
	// Sum is the CRC-32C of the segment up to the line before, from the opening on.
	Sum uint32 `json:"sum"`
	// Header has the other facts of the snapshot, if they differ from the moment before.
	// The time and the number of objects are not set.
	Header *snapshot.Header `json:"header,omitempty"`
	Missed *Missed          `json:"missed,omitempty"`
	// Own is the CRC-32C of the segment up to and with this line, as it would be without Own, which
	// is last in it. Older recordings lack it.
	Own *uint32 `json:"own,omitempty"`
}

// ownKey is how the last field of the line begins that ends a moment.
const ownKey = `,"own":`

// line returns the line that ends a moment, after text with a sum.
func (e *ending) line(sum uint32) ([]byte, error) {
	e.Sum, e.Own = sum, nil
	bare, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(bytes.TrimSuffix(bare, []byte("}")), "%s%d}\n", ownKey, sumOf(sum, bare)), nil
}

// isWhole reports whether the line that ends a moment is as it was written after text with a sum.
func (e *ending) isWhole(line []byte, sum uint32) bool {
	if e.Own == nil {
		return e.Sum == sum
	}
	at := bytes.LastIndex(line, []byte(ownKey))
	return at >= 0 && e.Sum == sum && *e.Own == sumOf(sumOf(sum, line[:at]), []byte("}"))
}

// change is the line about one object: with one of Put, Patch and Removed.
type change struct {
	// In is the list of the object, as [files.Lists] calls it: "Pod".
	In string `json:"in"`
	// Group and Kind are set where objects of several kinds are in one list.
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Put is the whole object.
	Put json.RawMessage `json:"put,omitempty"`
	// Patch is the JSON Merge Patch of the object as it was.
	Patch   json.RawMessage `json:"patch,omitempty"`
	Removed bool            `json:"removed,omitempty"`
}

// key tells the objects of all lists apart.
type key struct {
	list string
	snapshot.Identity
}

func (c *change) key() key {
	k := key{list: c.In}
	k.Kind.Group, k.Kind.Kind, k.Namespace, k.Name = c.Group, c.Kind, c.Namespace, c.Name
	return k
}

func changeOf(list string, object metav1.Object) change {
	id := snapshot.Identify(object)
	return change{In: list, Group: id.Kind.Group, Kind: id.Kind.Kind, Namespace: id.Namespace, Name: id.Name}
}

// sumOf continues the sum of a segment.
func sumOf(sum uint32, text []byte) uint32 {
	return crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), text)
}

// A patch is a JSON Merge Patch (RFC 7386). The libraries for it read numbers as floating-point
// numbers, which would change large integers of attributes and of opaque parameters.

// parse decodes a JSON object with its numbers as they are written.
func parse(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("expected one JSON object, found more")
	}
	return object, nil
}

// difference returns the patch that makes an object of another one. It is not ok if no patch does:
// a patch cannot set a field to null.
func difference(was, is map[string]any) (patch map[string]any, ok bool) {
	patch = map[string]any{}
	for key := range was {
		if _, kept := is[key]; !kept {
			patch[key] = nil
		}
	}
	for key, value := range is {
		before, had := was[key]
		if had && reflect.DeepEqual(before, value) {
			continue
		}
		inner, isObject := value.(map[string]any)
		innerBefore, wasObject := before.(map[string]any)
		switch {
		case value == nil, isObject && !wasObject && hasNull(inner):
			return nil, false
		case isObject && wasObject:
			below, ok := difference(innerBefore, inner)
			if !ok {
				return nil, false
			}
			patch[key] = below
		default:
			patch[key] = value
		}
	}
	return patch, true
}

// hasNull reports whether a field of an object is null. Items of lists do not count: lists are
// replaced as they are.
func hasNull(object map[string]any) bool {
	for _, value := range object {
		if inner, ok := value.(map[string]any); value == nil || ok && hasNull(inner) {
			return true
		}
	}
	return false
}

// apply changes an object by a patch. Values of the patch become part of it.
func apply(object, patch map[string]any) {
	for key, value := range patch {
		inner, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case isObject:
			below, ok := object[key].(map[string]any)
			if !ok {
				below = map[string]any{}
				object[key] = below
			}
			apply(below, inner)
		default:
			object[key] = value
		}
	}
}

// Moment is the state of a cluster at one point in time, [snapshot.Snapshot.TakenAt]. The
// snapshots of a recording share the objects that did not change.
type Moment struct {
	Snapshot *snapshot.Snapshot
	// Missed is the time before this moment in which the cluster was not watched; nil if it was
	// watched since the previous moment.
	Missed *Missed
	// After is the missed time that somebody asked for, after this moment; nil if the time is
	// known.
	After *Missed
}

// Missed is a time in which the cluster was not followed.
type Missed struct {
	// Since is when it was last known how the cluster is.
	Since time.Time `json:"since"`
	// Reason is one sentence for people.
	Reason string `json:"reason"`
}
