// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

// tie is something that things can have in common: of some kind, with one or
// two numbers.
type tie struct {
	kind tieKind
	a, b int
}

type tieKind int

const (
	tieDevice tieKind = iota
	tieCounter
	tieGroups
	tieConstraint
	tieClaim
)

// unionFind collects things which are tied together, directly or not.
type unionFind struct {
	parent []int
	ties   map[tie]int
}

func newUnionFind(n int) *unionFind {
	u := &unionFind{parent: make([]int, n), ties: make(map[tie]int)}
	for i := range u.parent {
		u.parent[i] = i
	}
	return u
}

func (u *unionFind) find(i int) int {
	for u.parent[i] != i {
		u.parent[i] = u.parent[u.parent[i]]
		i = u.parent[i]
	}
	return i
}

// tie puts i together with all others that have the same tie.
func (u *unionFind) tie(i int, t tie) {
	other, found := u.ties[t]
	if !found {
		u.ties[t] = i
		return
	}
	u.parent[u.find(i)] = u.find(other)
}

// sets returns the sets, each in ascending order and all in the order of their first
// members.
func (u *unionFind) sets() [][]int {
	var result [][]int
	at := make(map[int]int)
	for i := range u.parent {
		root := u.find(i)
		set, found := at[root]
		if !found {
			set = len(result)
			at[root] = set
			result = append(result, nil)
		}
		result[set] = append(result[set], i)
	}
	return result
}
