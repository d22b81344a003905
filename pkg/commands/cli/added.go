// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// AddedNodes are hypothetical nodes like one of the cluster.
type AddedNodes struct {
	Like  string
	Count int
}

// mostAdded limits how many nodes can be added at once. No cluster has more.
const mostAdded = 10_000

// ParseAdded parses the values of --add: node=NAME or node=NAME,count=N.
func ParseAdded(values []string) ([]AddedNodes, error) {
	const forms = "Write --add node=NAME or --add node=NAME,count=N, where NAME is a node that the new ones are like."
	added := make([]AddedNodes, 0, len(values))
	for _, value := range values {
		a := AddedNodes{Count: 1}
		for part := range strings.SplitSeq(value, ",") {
			key, text, _ := strings.Cut(part, "=")
			switch key {
			case "node":
				a.Like = text
			case "count":
				n, err := strconv.Atoi(text)
				if err != nil || n < 1 || n > mostAdded {
					return nil, Usagef(forms, "--add %s: the count must be a number from 1 to %d", value, mostAdded)
				}
				a.Count = n
			default:
				return nil, Usagef(forms, "--add %s: %q is not one of node, count", value, key)
			}
		}
		if a.Like == "" {
			return nil, Usagef(forms, "--add %s: it names no node", value)
		}
		added = append(added, a)
	}
	return added, nil
}

// AddNodes returns a snapshot with more nodes.
func AddNodes(snap *snapshot.Snapshot, added []AddedNodes) (*snapshot.Snapshot, error) {
	after := snap
	for _, a := range added {
		if snap.Node(a.Like) == nil {
			return nil, Missing(snap, "", nameNode, a.Like)
		}
		after = whatif.AddNodes(after, a.Like, a.Count)
	}
	return after, nil
}

// ProposeAdded completes values of --add.
func ProposeAdded(ctx context.Context, c *Completion) ([]string, error) {
	nodes, err := Propose("nodes")(ctx, c)
	if err != nil {
		return nil, err
	}
	values := make([]string, 0, len(nodes))
	for _, node := range nodes {
		values = append(values, "node="+node)
	}
	return values, nil
}
