// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

const (
	// maxSnapshot is the largest text of a snapshot in a recording.
	maxSnapshot = 512 << 20
	// maxMoment is the largest text of the changes of one moment.
	maxMoment = 256 << 20
	// patchesKept is how many patches of an object are kept before they are applied, so that
	// the object is not decoded for each of them.
	patchesKept = 16
)

// player goes from moment to moment. Nobody pays for objects until a moment is asked for.
type player struct {
	ctx   context.Context
	name  string
	lines *lines
	opts  files.Options

	// base is the text of the snapshot that the segment begins with, until it is needed.
	base []byte
	// s has the objects of the last moment that was asked for; nil before.
	s *snapshot.Snapshot
	// header has the other facts of the snapshot, if they changed since s.
	header *snapshot.Header
	// changed are the objects that changed since s.
	changed map[key]*changed
	// entered is the last moment that was entered.
	entered ending

	// sum is the sum of the segment so far. read is the text of the next moment: a snapshot if
	// begins is set, else changes.
	sum    uint32
	read   []byte
	begins bool
}

// changed is an object that changed.
type changed struct {
	// whole is the object, if it is known; else it is the one in the snapshot.
	whole   []byte
	patches [][]byte
	removed bool
}

// next reads the text of the next moment, and returns its ending. It is not entered yet. What was cut
// off before a new segment is passed over.
func (p *player) next() (ending, error) {
	p.read, p.begins = p.read[:0], false
	inSnapshot := false
	for {
		line, err := p.lines.next()
		switch {
		case p.ctx.Err() != nil:
			return ending{}, p.ctx.Err()
		case err != nil:
			return ending{}, err
		case isOpening(line):
			if _, err := openingOf(line); err != nil {
				return ending{}, err
			}
			p.read, p.begins, inSnapshot = nil, true, true
			p.sum = sumOf(0, line)
		case !inSnapshot && isEnding(line):
			return p.ended(line)
		default:
			p.read = append(p.read, line...)
			inSnapshot = inSnapshot && string(line) != "]}\n"
			if limit := maxMoment; !inSnapshot && !p.begins && len(p.read) > limit || len(p.read) > maxSnapshot {
				return ending{}, fmt.Errorf("it has more than %d MiB of text in one moment", limit>>20)
			}
		}
	}
}

// isOpening reports whether a line begins a segment.
func isOpening(line []byte) bool { return bytes.HasPrefix(line, []byte(`{"kind":"`+Kind+`",`)) }

// ended decodes the line that ends the text that was read.
func (p *player) ended(line []byte) (ending, error) {
	var end ending
	if err := json.Unmarshal(line, &end); err != nil {
		return end, fmt.Errorf("expected the end of a moment, found %s: %w", kinds.Shortened(string(line)), err)
	}
	sum := sumOf(p.sum, p.read)
	if !end.isWhole(line, sum) {
		return end, fmt.Errorf("damaged: the text up to the moment %s is not what was written", end.Moment.Local().Format(time.RFC3339))
	}
	if h := end.Header; h != nil {
		h.APIVersion, h.Kind = "", ""
	}
	p.sum = sumOf(sum, line)
	return end, nil
}

// repeats reports whether a snapshot was read that is the same as the entered moment: the new segment
// continues the one before.
func (p *player) repeats(next ending) bool {
	return p.begins && !p.entered.Moment.IsZero() && next.Missed == nil && next.Moment.Equal(p.entered.Moment)
}

// enter goes on to the moment that was read.
func (p *player) enter(next ending) error {
	if p.begins {
		p.base, p.read = p.read, nil
		p.s, p.header, p.changed = nil, nil, map[key]*changed{}
	} else {
		for line := range bytes.Lines(p.read) {
			if err := p.change(line); err != nil {
				return err
			}
		}
	}
	if next.Header != nil {
		p.header = next.Header
	}
	p.entered = next
	return nil
}

// change notes a change of one object.
func (p *player) change(line []byte) error {
	var c change
	if err := json.Unmarshal(line, &c); err != nil {
		return fmt.Errorf("expected a change, found %s: %w", kinds.Shortened(string(line)), err)
	}
	k := c.key()
	object := p.changed[k]
	if object == nil {
		object = &changed{}
		p.changed[k] = object
	}
	switch {
	case c.Removed:
		*object = changed{removed: true}
	case c.Put != nil:
		*object = changed{whole: c.Put}
	case c.Patch != nil:
		object.patches = append(object.patches, c.Patch)
		if len(object.patches) < patchesKept {
			return nil
		}
		return p.apply(k, object)
	default:
		return fmt.Errorf("expected put, patch or removed, found %s", kinds.Shortened(string(line)))
	}
	return nil
}

// apply applies the patches of an object.
func (p *player) apply(k key, object *changed) error {
	if len(object.patches) == 0 {
		return nil
	}
	if object.whole == nil {
		var err error
		if object.whole, err = p.known(k, object.removed); err != nil {
			return err
		}
	}
	fields, err := parse(object.whole)
	if err != nil {
		return err
	}
	for _, text := range object.patches {
		patch, err := parse(text)
		if err != nil {
			return fmt.Errorf("patch of %s %s/%s: %w", k.list, k.Namespace, k.Name, err)
		}
		apply(fields, patch)
	}
	object.patches = nil
	object.whole, err = json.Marshal(fields)
	return err
}

// known returns an object of the snapshot.
func (p *player) known(k key, removed bool) ([]byte, error) {
	if err := p.load(); err != nil {
		return nil, err
	}
	for _, list := range files.Lists() {
		if list.Name != k.list || removed {
			continue
		}
		if object := list.Find(p.s, k.Identity); object != nil {
			return encode(list, object)
		}
	}
	return nil, fmt.Errorf("it has a change of %s %s/%s, which is not there", k.list, k.Namespace, k.Name)
}

// load decodes the snapshot that the segment begins with.
func (p *player) load() error {
	if p.s != nil {
		return nil
	}
	s, err := files.Content(p.ctx, p.name, p.base, p.opts)
	p.s, p.base = s, nil
	return err
}

// moment returns the moment that was entered last.
func (p *player) moment() (Moment, error) {
	if err := p.load(); err != nil {
		return Moment{}, err
	}
	if err := p.bring(); err != nil {
		return Moment{}, err
	}
	s := *p.s
	s.TakenAt = p.entered.Moment
	p.s = &s
	return Moment{Snapshot: p.s, Missed: p.entered.Missed}, nil
}

// bring brings what changed into a new snapshot.
func (p *player) bring() error {
	if len(p.changed) == 0 && p.header == nil {
		return nil
	}
	removed := map[string]map[snapshot.Identity]bool{}
	var text bytes.Buffer
	if err := p.beginList(&text); err != nil {
		return err
	}
	separator := ""
	for k, object := range p.changed {
		if err := p.apply(k, object); err != nil {
			return err
		}
		if object.whole == nil {
			if removed[k.list] == nil {
				removed[k.list] = map[snapshot.Identity]bool{}
			}
			removed[k.list][k.Identity] = true
			continue
		}
		text.WriteString(separator)
		text.Write(object.whole)
		separator = ",\n"
	}
	text.WriteString("]}\n")
	part, err := files.Content(p.ctx, p.name, text.Bytes(), p.opts)
	if err != nil {
		return err
	}
	s := p.s.With(part)
	for _, list := range files.Lists() {
		if ids := removed[list.Name]; len(ids) > 0 {
			list.Remove(s, func(id snapshot.Identity) bool { return ids[id] })
		}
	}
	if p.header != nil {
		s.ServerVersion, s.Emulator, s.OtherRelease = part.ServerVersion, part.Emulator, part.OtherRelease
		s.Served, s.Gates, s.Gaps, s.Listed = part.Served, part.Gates, part.Gaps, part.Listed
	}
	p.s, p.header = s, nil
	clear(p.changed)
	return nil
}

// beginList begins a list of objects, which has the header if that changed.
func (p *player) beginList(text *bytes.Buffer) error {
	if p.header == nil {
		text.WriteString(`{"kind":"List","apiVersion":"v1","items":[`)
		return nil
	}
	h := *p.header
	blank := files.Header(&snapshot.Snapshot{})
	h.TypeMeta = blank.TypeMeta
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	head, found := bytes.CutSuffix(head, []byte("}"))
	if !found {
		return errors.New("expected an object")
	}
	text.Write(head)
	text.WriteString(`,"items":[`)
	return nil
}
