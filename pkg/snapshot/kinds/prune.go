// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Field is a field of an API object that somebody does not look at.
type Field struct {
	// Path is the path in the newest API version, through lists and all:
	// "spec.devices.attributes". It ends before a map, or behind it.
	Path string
	// Unless names a field of the object with which it is looked at after all;
	// empty if there is none.
	Unless string
}

// ReadFields makes a list of fields without exceptions.
func ReadFields(paths ...string) []Field {
	list := make([]Field, 0, len(paths))
	for _, path := range paths {
		list = append(list, Field{Path: path})
	}
	return list
}

// The API server sends protobuf as four bytes and a message runtime.Unknown
// (k8s.io/apimachinery/pkg/runtime/generated.proto) with the object in it.
const (
	protobufMagic  = "k8s\x00"
	unknownContent = 2 // Unknown.raw
	listMeta       = 1 // the metadata of every list
	listItems      = 2 // the items of every list
)

// pieceOfList is how much of a shorter list is in one piece of memory, about.
const pieceOfList = 64 << 10

// pruner takes fields out of a list in protobuf.
type pruner struct {
	in *bufio.Reader
	// usual is taken out of an object, less is taken out of an object that has one of the
	// fields in exceptions.
	usual, less pruning
	exceptions  [][]protowire.Number
	// object is the one at hand as it came.
	object bytes.Buffer
	// list is the shorter list, in pieces that nobody has to copy while it
	// grows.
	list net.Buffers
	// found is told where the next chunk starts, as soon as that is known. May
	// be nil.
	found func(token string)
}

// reader is a list without fields.
type reader struct {
	*pruner
	// rest is the unread rest of the shorter list, nil before the first read.
	rest io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if r.rest == nil {
		list, err := r.run()
		if err != nil {
			return 0, err
		}
		r.rest = list
	}
	return r.rest.Read(p)
}

// NewReader reads a list as the API server sends it, without fields of its objects,
// which are of a type. Fields that the type does not have are ignored, and what is
// not in the protobuf format is passed on as it is. Of the long list no more than one
// object at a time is in memory. nextChunk may be nil; it is called with where the
// next chunk of the list starts, as soon as that is known, unless this is the last
// one.
func NewReader(from io.Reader, object reflect.Type, fields []Field, nextChunk func(token string)) io.Reader {
	p := &pruner{in: bufio.NewReaderSize(from, 64<<10), usual: pruning{}, less: pruning{}, found: nextChunk}
	for _, field := range fields {
		numbers := FieldNumbers(object, field.Path)
		if len(numbers) == 0 {
			continue
		}
		p.usual.add(numbers)
		if field.Unless == "" {
			p.less.add(numbers)
		} else {
			p.exceptions = append(p.exceptions, FieldNumbers(object, field.Unless))
		}
	}
	return &reader{pruner: p}
}

// run reads the list and returns it shorter.
func (p *pruner) run() (io.Reader, error) {
	if magic, err := p.in.Peek(len(protobufMagic)); err != nil || string(magic) != protobufMagic {
		// It is for others to say what is wrong with it.
		return p.in, nil
	}
	if _, err := p.in.Discard(len(protobufMagic)); err != nil {
		return nil, err
	}
	envelope, complete := []byte(protobufMagic), false
	for {
		number, kind, err := p.tag()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			if number == unknownContent && kind == protowire.BytesType {
				err, complete = p.content(), true
			} else {
				envelope, err = p.appendField(envelope, number, kind)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("read list: %w", err)
		}
	}
	if !complete {
		return nil, fmt.Errorf("read list: %w", io.ErrUnexpectedEOF)
	}
	envelope = protowire.AppendTag(envelope, unknownContent, protowire.BytesType)
	size := 0
	for _, piece := range p.list {
		size += len(piece)
	}
	envelope = protowire.AppendVarint(envelope, uint64(size))
	return io.MultiReader(bytes.NewReader(envelope), &p.list), nil
}

// piece returns what comes next in the list is appended to.
func (p *pruner) piece() *[]byte {
	if n := len(p.list); n == 0 || len(p.list[n-1]) > pieceOfList {
		p.list = append(p.list, make([]byte, 0, pieceOfList+pieceOfList/4))
	}
	return &p.list[len(p.list)-1]
}

// content reads the list itself.
func (p *pruner) content() error {
	size, err := p.uvarint()
	if err != nil {
		return err
	}
	outer := p.in
	defer func() { p.in = outer }()
	limited := &io.LimitedReader{R: outer, N: int64(size)}
	p.in = bufio.NewReader(limited)
	for {
		number, kind, err := p.tag()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			to := p.piece()
			if number == listItems && kind == protowire.BytesType {
				*to, err = p.appendItem(*to)
			} else {
				*to, err = p.appendField(*to, number, kind)
				if err == nil && number == listMeta && kind == protowire.BytesType {
					p.meta()
				}
			}
		}
		if err != nil {
			return err
		}
	}
	if limited.N > 0 {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// meta looks for the next chunk in the metadata that was read last.
func (p *pruner) meta() {
	var meta metav1.ListMeta
	if p.found != nil && meta.Unmarshal(p.object.Bytes()) == nil && meta.Continue != "" {
		p.found(meta.Continue)
	}
}

// appendItem appends the rest of one object of the list.
func (p *pruner) appendItem(to []byte) ([]byte, error) {
	if err := p.bytes(); err != nil {
		return nil, err
	}
	object := p.object.Bytes()
	rules := p.usual
	if slices.ContainsFunc(p.exceptions, func(numbers []protowire.Number) bool { return has(object, numbers) }) {
		rules = p.less
	}
	return rules.appendNested(to, listItems, object)
}

// tag reads the tag of a field. The error is io.EOF at the end.
func (p *pruner) tag() (protowire.Number, protowire.Type, error) {
	tag, err := binary.ReadUvarint(p.in)
	if err != nil {
		return 0, 0, err
	}
	number, kind := protowire.DecodeTag(tag)
	if !number.IsValid() {
		return 0, 0, errMalformed()
	}
	return number, kind, nil
}

func (p *pruner) uvarint() (uint64, error) {
	value, err := binary.ReadUvarint(p.in)
	return value, cutShort(err)
}

// bytes reads a length and as many bytes into p.object.
func (p *pruner) bytes() error {
	size, err := p.uvarint()
	if err != nil {
		return err
	}
	p.object.Reset()
	if int64(size) < 0 {
		return errMalformed()
	}
	_, err = io.CopyN(&p.object, p.in, int64(size))
	return cutShort(err)
}

// appendField copies the rest of a field behind its tag.
func (p *pruner) appendField(to []byte, number protowire.Number, kind protowire.Type) ([]byte, error) {
	to = protowire.AppendTag(to, number, kind)
	switch kind {
	case protowire.VarintType:
		value, err := p.uvarint()
		return protowire.AppendVarint(to, value), err
	case protowire.BytesType:
		err := p.bytes()
		return protowire.AppendBytes(to, p.object.Bytes()), err
	default:
		// There are no others in these messages.
		return nil, errMalformed()
	}
}

func errMalformed() error { return errors.New("malformed protobuf") }

// cutShort returns the error for an end where there must be more.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// pruning says which parts of a message to leave out: fields as a whole (nil), or parts of
// them.
type pruning map[protowire.Number]pruning

func (p pruning) add(numbers []protowire.Number) {
	first, rest := numbers[0], numbers[1:]
	inner, known := p[first]
	switch {
	case len(rest) == 0:
		p[first] = nil
	case known && inner == nil:
		// It is left out as a whole.
	default:
		if !known {
			inner = pruning{}
			p[first] = inner
		}
		inner.add(rest)
	}
}

// appendTo appends the rest of a message.
func (p pruning) appendTo(to, message []byte) ([]byte, error) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(number, kind, message[n:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		field := message[:n+size]
		message = message[n+size:]
		inner, known := p[number]
		switch {
		case !known:
			to = append(to, field...)
		case inner != nil && kind == protowire.BytesType:
			value, _ := protowire.ConsumeBytes(field[n:])
			var err error
			if to, err = inner.appendNested(to, number, value); err != nil {
				return nil, err
			}
		}
	}
	return to, nil
}

// appendNested appends the rest of a message that is a field of another.
func (p pruning) appendNested(to []byte, number protowire.Number, message []byte) ([]byte, error) {
	to = protowire.AppendTag(to, number, protowire.BytesType)
	start := len(to)
	to, err := p.appendTo(to, message)
	if err != nil {
		return nil, err
	}
	// The length comes before, and is known only now.
	length := protowire.AppendVarint(nil, uint64(len(to)-start))
	return slices.Insert(to, start, length...), nil
}

// has reports whether a message has a field.
func has(message []byte, numbers []protowire.Number) bool {
	for len(message) > 0 && len(numbers) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		size := protowire.ConsumeFieldValue(number, kind, message[n:])
		if size < 0 {
			return false
		}
		if number == numbers[0] {
			if len(numbers) == 1 {
				return true
			}
			value, _ := protowire.ConsumeBytes(message[n : n+size])
			if has(value, numbers[1:]) {
				return true
			}
		}
		message = message[n+size:]
	}
	return false
}

// FieldNumbers returns the protobuf number of each field on a path, or nothing if there
// is no such path.
func FieldNumbers(object reflect.Type, path string) []protowire.Number {
	var numbers []protowire.Number
	for name := range strings.SplitSeq(path, ".") {
		for object.Kind() == reflect.Pointer || object.Kind() == reflect.Slice {
			object = object.Elem()
		}
		field, found := fieldNamed(object, name)
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if !found || len(tag) < 2 {
			return nil
		}
		number, err := strconv.ParseInt(tag[1], 10, 32)
		if err != nil {
			return nil
		}
		numbers = append(numbers, protowire.Number(number))
		object = field.Type
	}
	return numbers
}

// fieldNamed looks a field up by its name in JSON.
func fieldNamed(object reflect.Type, name string) (reflect.StructField, bool) {
	if object.Kind() != reflect.Struct {
		return reflect.StructField{}, false
	}
	for i := range object.NumField() {
		field := object.Field(i)
		if tagged, _, _ := strings.Cut(field.Tag.Get("json"), ","); tagged == name {
			return field, true
		}
	}
	return reflect.StructField{}, false
}
