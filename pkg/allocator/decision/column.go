// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/binary"
	"slices"
)

// entry is an item with its place among all items.
type entry struct {
	item
	order int
}

// columns merges equal entries, in the order of their first ones.
func (p *placement) columns(entries []entry) []column {
	var result []column
	known := make(map[string]int)
	for i := range entries {
		key := p.columnKey(&entries[i].item)
		at, found := known[key]
		if !found {
			at = len(result)
			known[key] = at
			result = append(result, column{order: entries[i].order, claim: entries[i].claim, admin: entries[i].admin, cands: entries[i].cands})
		}
		result[at].items = append(result[at].items, i)
		result[at].demand += entries[i].count
	}
	return result
}

// columnKey returns a key that is equal for items that may be merged. Their devices can be
// dealt out to them when no device is shared, or when all want the same number.
func (p *placement) columnKey(it *item) string {
	var key []byte
	if p.admin {
		key = binary.AppendVarint(key, int64(it.run))
	}
	count := -1
	for _, c := range it.cands {
		if p.s.problem.Devices[c.Device].Shared {
			count = it.count
		}
	}
	key = binary.AppendVarint(key, int64(count))
	for _, c := range it.cands {
		key = binary.AppendVarint(key, int64(c.Device))
		key = p.appendTakes(key, c)
		for _, constraint := range p.distinct {
			if values := valuesOf(c, constraint); values != nil {
				key = binary.AppendVarint(key, int64(constraint))
				key = appendInts(key, values)
			}
		}
		key = binary.AppendVarint(key, -1)
	}
	return string(key)
}

// appendTakes appends the capacity that a candidate takes of a shared device.
func (p *placement) appendTakes(key []byte, c *Candidate) []byte {
	device := &p.s.problem.Devices[c.Device]
	if !device.Shared {
		return key
	}
	for i := range device.Capacity {
		key = binary.AppendVarint(key, take(c, i))
	}
	return key
}

// appendInts appends a list and its length.
func appendInts(key []byte, list []int) []byte {
	key = binary.AppendVarint(key, int64(len(list)))
	for _, i := range list {
		key = binary.AppendVarint(key, int64(i))
	}
	return key
}

// apportion distributes the devices of a column, of which there may be too many, to items
// that want these counts. No item gets the same device twice: either no device is listed
// twice, or all want the same number and take turns.
func apportion(devices, counts []int) [][]int {
	assigned := make([][]int, len(counts))
	equal := !slices.ContainsFunc(counts, func(c int) bool { return c != counts[0] })
	total := 0
	for _, count := range counts {
		total += count
	}
	turn := 0
	for _, device := range devices[:total] {
		for len(assigned[turn]) == counts[turn] {
			turn = (turn + 1) % len(counts)
		}
		assigned[turn] = append(assigned[turn], device)
		if equal {
			turn = (turn + 1) % len(counts)
		}
	}
	return assigned
}
