// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// reached are the devices of a pool that a node can reach, and others, too.
type reached struct {
	pool    *cluster.Pool
	devices []cluster.Device
}

// reachedBy lists by pool the devices for several nodes that a node can reach.
// It lists none for a node that is not known. It fails if the node selector of a
// slice cannot be parsed.
func reachedBy(facts *cluster.Cluster, name string) ([]reached, error) {
	node := facts.Snapshot.Node(name)
	if node == nil {
		return nil, nil
	}
	pools, err := facts.Pools.For(node)
	if err != nil {
		return nil, fmt.Errorf("find the pools that node %s can reach: %w", name, err)
	}
	var list []reached
	for _, pool := range pools {
		var devices []cluster.Device
		for i := range pool.Devices {
			if alone, _ := deviceScope(&pool.Devices[i]); alone == "" {
				devices = append(devices, pool.Devices[i])
			}
		}
		if len(devices) > 0 {
			list = append(list, reached{pool.Pool, devices})
		}
	}
	return list, nil
}

// Reached counts the devices for several nodes that a node can reach. It fails
// if the node selector of a slice cannot be parsed.
func (v *Inventory) Reached(node string) (devices int, err error) {
	pools, err := reachedBy(v.cluster, node)
	for _, pool := range pools {
		devices += len(pool.devices)
	}
	return devices, err
}

// reachedBranch returns a pool for several nodes, without its devices.
func reachedBranch(eligible *eligibility.Devices, notRead notRead, pool reached) api.Branch {
	_, scope := deviceScope(&pool.devices[0])
	free, uncertain := 0, false
	for i := range pool.devices {
		if _, other := deviceScope(&pool.devices[i]); other != scope {
			scope = "several nodes"
		}
		if state, _ := deviceState(eligible, &pool.devices[i]); state == api.DeviceStateFree {
			free++
			uncertain = uncertain || notRead.uncertain(state)
		}
	}
	mark := ""
	if uncertain {
		mark = "≤"
	}
	return api.Branch{
		Of: "Pool", Name: pool.pool.Driver + "/" + pool.pool.Name, Uncertain: uncertain,
		Notes: []string{"for " + scope, fmt.Sprintf("%d devices, %s%d free", len(pool.devices), mark, free)},
	}
}

// NodeNames returns the names of all nodes, and of nodes that only slices name.
func (v *Inventory) NodeNames() []string {
	known := map[string]bool{}
	var names []string
	add := func(name string) {
		if name != "" && !known[name] {
			known[name] = true
			names = append(names, name)
		}
	}
	for _, node := range v.cluster.Snapshot.Nodes {
		add(node.Name)
	}
	for _, d := range v.cluster.Pools.Devices() {
		name, _ := deviceScope(&d)
		add(name)
	}
	return names
}
