// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"os"
	"path/filepath"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// header turns on what the tests are about.
const header = `
apiVersion: dra.kubectl.dev/v1alpha1
kind: Snapshot
serverVersion: v1.37.1
gates:
  DRAConsumableCapacity: {enabled: true, source: metrics}
  DRADeviceTaintRules: {enabled: true, source: metrics}
  DRADeviceTaints: {enabled: true, source: metrics}
  DRAPartitionableDevices: {enabled: true, source: metrics}
  DRADeviceCompatibilityGroups: {enabled: true, source: metrics}
`

// take loads YAML and takes the inventory of it.
func take(t *testing.T, documents string) *Inventory {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(path, []byte(documents), 0o600); err != nil {
		t.Fatal(err)
	}
	snap, err := files.Load(t.Context(), []string{path}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return takeOf(t, snap)
}

func takeOf(t *testing.T, snap *snapshot.Snapshot) *Inventory {
	t.Helper()
	c := cluster.New(snap)
	return New(c)
}

// poolsOf lists the pools by name.
func poolsOf(t *testing.T, v *Inventory) map[string]*api.Pool {
	t.Helper()
	pools, err := v.Pools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*api.Pool{}
	for i := range pools {
		byName[pools[i].Name] = &pools[i]
	}
	return byName
}
