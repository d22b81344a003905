// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"bytes"
	"errors"
	"hash/maphash"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Decoder decodes objects one after the other. What most objects of a cluster
// have in common is decoded once and then shared: the objects must not be
// changed after the next one was decoded. It remembers a bounded number of
// values, and is not safe for concurrent use.
type Decoder struct {
	options json.Options
	seed    maphash.Seed
	// strings and integers have values of attributes, by their hash.
	strings  [1 << 10]*string
	integers [1 << 6]*int64
	yes, no  *bool
	// entries are the entries of the map that is being decoded.
	entries []attribute
	// deviceList has the devices of the slice that is being decoded.
	deviceList manyDevices
	schemas    Schemas
	sharer     *Sharer
}

type attribute struct {
	name  resourceapi.QualifiedName
	value resourceapi.DeviceAttribute
}

// NewDecoder returns a decoder that remembers nothing yet.
func NewDecoder() *Decoder {
	d := &Decoder{seed: maphash.MakeSeed(), yes: new(true), no: new(false), schemas: Schemas{}, sharer: NewSharer()}
	d.options = json.JoinOptions(decoding, json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(decodeQuantity),
		json.UnmarshalFromFunc(decodeTime),
		json.UnmarshalFromFunc(d.devices),
		json.UnmarshalFromFunc(d.attributes),
		json.UnmarshalFromFunc((&repeated[map[resourceapi.QualifiedName]resourceapi.DeviceCapacity]{seed: d.seed}).decode),
		json.UnmarshalFromFunc((&repeated[map[string]resourceapi.Counter]{seed: d.seed}).decode),
		json.UnmarshalFromFunc((&repeated[[]resourceapi.DeviceRequest]{seed: d.seed}).decode),
		json.UnmarshalFromFunc((&repeated[corev1.ResourceList]{seed: d.seed}).decode),
	)))
	return d
}

// nextValue returns the text of the value that comes next, as far as it can be
// told without looking at all of it.
func nextValue(decoder *jsontext.Decoder) ([]byte, bool) {
	text := decoder.UnreadBuffer()
	from := SkipSpace(text, 0)
	if from < len(text) && (text[from] == ':' || text[from] == ',') {
		from = SkipSpace(text, from+1)
	}
	to, err := SkipValue(text, from)
	return text[from:to], err == nil
}

// repeated are values that are often written in the same way: the specs of claims made from
// one template, the attributes of devices of one model. Each is decoded once.
type repeated[T any] struct {
	seed maphash.Seed
	seen [1 << 7]struct {
		text  []byte
		value T
	}
}

// longestRepeated limits how long a text is remembered.
const longestRepeated = 2 << 10

// decode leaves what it does not know, and whatever is wrong, to the way in which
// all else is decoded.
func (r *repeated[T]) decode(decoder *jsontext.Decoder, value *T) error {
	text, ok := nextValue(decoder)
	if !ok || len(text) > longestRepeated || text[0] != '{' && text[0] != '[' {
		return errors.ErrUnsupported
	}
	known := &r.seen[maphash.Bytes(r.seed, text)%uint64(len(r.seen))]
	if !bytes.Equal(known.text, text) {
		var decoded T
		if err := json.Unmarshal(text, &decoded, decoding); err != nil {
			return errors.ErrUnsupported
		}
		known.text, known.value = bytes.Clone(text), decoded
	}
	*value = known.value
	return decoder.SkipValue()
}

// decodeTime decodes a time as its own method does, which takes much longer.
func decodeTime(decoder *jsontext.Decoder, t *metav1.Time) error {
	text, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	if len(text) > 2 && text[0] == '"' && bytes.IndexByte(text, '\\') < 0 {
		if parsed, err := time.Parse(time.RFC3339, string(text[1:len(text)-1])); err == nil {
			t.Time = parsed.Local()
			return nil
		}
	}
	return t.UnmarshalJSON(text)
}

// manyDevices has a type of its own, which is decoded like any other list.
type manyDevices []resourceapi.Device

// devices decodes the devices of a slice into a list that has room for no more. A list
// that grows leaves as much behind as it has in the end.
func (d *Decoder) devices(decoder *jsontext.Decoder, devices *[]resourceapi.Device) error {
	if decoder.PeekKind() != '[' {
		return errors.ErrUnsupported
	}
	if err := json.UnmarshalDecode(decoder, &d.deviceList); err != nil {
		return err
	}
	*devices = append(make([]resourceapi.Device, 0, len(d.deviceList)), d.deviceList...)
	clear(d.deviceList)
	return nil
}

// attributes decodes the attributes of a device if all of them are plain values
// in the order and form in which they are encoded.
func (d *Decoder) attributes(decoder *jsontext.Decoder, attributes *map[resourceapi.QualifiedName]resourceapi.DeviceAttribute) error {
	text, ok := nextValue(decoder)
	if !ok || text[0] != '{' {
		return errors.ErrUnsupported
	}
	d.entries = d.entries[:0]
	plain := true
	_, err := EachField(text, 0, func(name []byte, at int) (int, bool, error) {
		end, err := SkipValue(text, at)
		if err != nil {
			return end, false, err
		}
		var value resourceapi.DeviceAttribute
		plain = isPlain(name) && d.attribute(text[at:end], &value)
		d.entries = append(d.entries, attribute{resourceapi.QualifiedName(*d.text(name)), value})
		return end, plain, nil
	})
	if !plain || err != nil {
		return errors.ErrUnsupported
	}
	decoded := make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, len(d.entries))
	for i := range d.entries {
		decoded[d.entries[i].name] = d.entries[i].value
	}
	*attributes = decoded
	return decoder.SkipValue()
}

// attribute decodes {"string": "…"} and the like. It reports whether it could.
func (d *Decoder) attribute(text []byte, into *resourceapi.DeviceAttribute) bool {
	fields, plain := 0, false
	_, err := EachField(text, 0, func(kind []byte, at int) (int, bool, error) {
		end, err := SkipValue(text, at)
		if err != nil {
			return end, false, err
		}
		fields++
		value := text[at:end]
		switch string(kind) {
		case "string", "version":
			if plain = len(value) > 1 && value[0] == '"' && isPlain(value[1:len(value)-1]); !plain {
				return end, false, nil
			}
			if text := d.text(value[1 : len(value)-1]); kind[0] == 's' {
				into.StringValue = text
			} else {
				into.VersionValue = text
			}
		case "int":
			into.IntValue, plain = d.integer(value)
		case "bool":
			switch string(value) {
			case "true":
				into.BoolValue, plain = d.yes, true
			case "false":
				into.BoolValue, plain = d.no, true
			}
		}
		return end, plain, nil
	})
	return err == nil && plain && fields == 1
}

// isPlain reports whether a string has no escapes between its quotes.
func isPlain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// text returns the string, the same as before if it is remembered.
func (d *Decoder) text(value []byte) *string {
	known := &d.strings[maphash.Bytes(d.seed, value)%uint64(len(d.strings))]
	if *known == nil || **known != string(value) {
		*known = new(string(value))
	}
	return *known
}

// integer decodes an integer that is written with digits only.
func (d *Decoder) integer(value []byte) (*int64, bool) {
	number, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || value[0] == '+' {
		return nil, false
	}
	known := &d.integers[uint64(number)%uint64(len(d.integers))]
	if *known == nil || **known != number {
		*known = &number
	}
	return *known, true
}
