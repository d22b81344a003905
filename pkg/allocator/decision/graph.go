// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

// bundle can be given to one of several columns, so many times in all.
type bundle struct {
	capacity int
	edges    []edge
}

// edge is how often a bundle may be given to one column.
type edge struct {
	column   int
	capacity int
}

// distribute gives the columns their demands out of the bundles and reports whether all
// of them get it: a maximum flow. The result has, for each bundle, how often it is given
// along each of its edges.
func distribute(bundles []bundle, wants []int) ([][]int, bool) {
	n := &network{bundles: bundles, left: make([]int, len(bundles)), given: make([][]int, len(bundles)), byColumn: make([][][2]int, len(wants))}
	for b := range bundles {
		n.left[b] = bundles[b].capacity
		n.given[b] = make([]int, len(bundles[b].edges))
		for e := range bundles[b].edges {
			column := bundles[b].edges[e].column
			n.byColumn[column] = append(n.byColumn[column], [2]int{b, e})
		}
	}
	for column, want := range wants {
		for _, at := range n.byColumn[column] {
			b, e := at[0], at[1]
			amount := min(want, n.left[b], bundles[b].edges[e].capacity)
			n.given[b][e] += amount
			n.left[b] -= amount
			want -= amount
		}
		for want > 0 {
			amount := n.augment(column, want)
			if amount == 0 {
				return nil, false
			}
			want -= amount
		}
	}
	return n.given, true
}

// network is the state of a flow.
type network struct {
	bundles  []bundle
	left     []int
	given    [][]int
	byColumn [][][2]int
}

// augment gives a column more, at most want, by moving others to bundles that have
// something left. It returns how much more.
func (n *network) augment(column, want int) int {
	// into[b] is the edge through which bundle b is reached, from[c] the one
	// through which column c gives something back.
	into := make(map[int][2]int)
	from := map[int][2]int{column: {-1, -1}}
	queue := []int{column}
	for len(queue) > 0 {
		c := queue[0]
		queue = queue[1:]
		for _, at := range n.byColumn[c] {
			b, e := at[0], at[1]
			if _, seen := into[b]; seen || n.given[b][e] >= n.bundles[b].edges[e].capacity {
				continue
			}
			into[b] = at
			if n.left[b] > 0 {
				return n.push(b, column, want, into, from)
			}
			for other, given := range n.given[b] {
				next := n.bundles[b].edges[other].column
				if _, seen := from[next]; seen || given == 0 {
					continue
				}
				from[next] = [2]int{b, other}
				queue = append(queue, next)
			}
		}
	}
	return 0
}

// push moves as much as possible along the path that ends in a bundle with something left.
func (n *network) push(end, column, want int, into, from map[int][2]int) int {
	amount := min(want, n.left[end])
	for b := end; ; {
		at := into[b]
		e := n.bundles[b].edges[at[1]]
		amount = min(amount, e.capacity-n.given[b][at[1]])
		if e.column == column {
			break
		}
		back := from[e.column]
		amount = min(amount, n.given[back[0]][back[1]])
		b = back[0]
	}
	n.left[end] -= amount
	for b := end; ; {
		at := into[b]
		n.given[b][at[1]] += amount
		c := n.bundles[b].edges[at[1]].column
		if c == column {
			return amount
		}
		back := from[c]
		n.given[back[0]][back[1]] -= amount
		b = back[0]
	}
}

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
