// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

const (
	// ShownGroups is how many groups of nodes are listed by default.
	ShownGroups = 10
	// NamesWidth is how many cells the column of names takes at most from the column of
	// messages, and namesRoom the width that it needs to stand beside them.
	NamesWidth = 44
	namesRoom  = 24
	// whereWidth limits the width that the column of places takes from the messages,
	// messageWidth is the width that it must leave.
	whereWidth   = 44
	messageWidth = 36
)

// NameColumn writes the names of each group to stand beside the messages. It
// returns the width for these too, or false if there is no room for the names.
func (p *Page) NameColumn(margin int, groups []api.NodeGroup, messages []string) (names []string, message int, beside bool) {
	names = make([]string, len(groups))
	if p.Table == Unlimited {
		for i := range groups {
			names[i] = p.Some(groups[i].Names, groups[i].Count, namesLongest)
		}
		return names, Widest(AlignWidth, messages...), true
	}
	room := p.Table - margin - ColumnGap
	message = Widest(room, messages...)
	width := max(room-message, min(NamesWidth, max(room/3, namesRoom), room-messageWidth))
	if width < namesRoom {
		return nil, 0, false
	}
	for i := range groups {
		names[i] = p.Some(groups[i].Names, groups[i].Count, width)
	}
	if Widest(room, names...) > width {
		return nil, 0, false
	}
	return names, min(message, room-Widest(room, names...)), true
}

// MessageColumn divides the room beside the labels among messages and the places that
// they are about. It returns the width for the messages, or false if the places
// do not fit beside them.
func (p *Page) MessageColumn(margin int, messages, places []string) (message int, beside bool) {
	if p.Table == Unlimited {
		return Widest(AlignWidth, messages...), Widest(1, places...) > 0
	}
	room := p.Table - margin
	message, place := Widest(room, messages...), Widest(room, places...)
	if message+ColumnGap+place <= room {
		return message, place > 0
	}
	if beside := place <= whereWidth && room-ColumnGap-place >= messageWidth; beside {
		return room - ColumnGap - place, place > 0
	}
	return room, false
}
