// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"reflect"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// resourceAPI is the source of the rules for slices.
const resourceAPI = "k8s.io/api/resource/v1, ResourceSliceSpec"

// poolSlices are the slices of the newest generation of a pool.
type poolSlices struct {
	name       string
	generation int64
	slices     []*resourceapi.ResourceSlice
}

// pools returns the pools of the driver for this node alone, by name. unknown says why they
// are not known.
func (c *conformer) pools(snap *snapshot.Snapshot) (pools []poolSlices, unknown string) {
	around := c.host.In(snap)
	switch {
	case around == nil:
		return nil, "no cluster and no snapshot was read"
	case around.Node == "":
		return nil, around.Unknown
	}
	if gap := snap.Gap(snapshot.ResourceSlices); gap != nil {
		return nil, gap.Reason
	}
	byName := map[string]*poolSlices{}
	for _, slice := range snap.Slices {
		if slice.Spec.Driver != c.out.Driver || slice.Spec.NodeName == nil || *slice.Spec.NodeName != around.Node {
			continue
		}
		pool := slice.Spec.Pool
		p := byName[pool.Name]
		if p == nil || pool.Generation > p.generation {
			p = &poolSlices{name: pool.Name, generation: pool.Generation}
			byName[pool.Name] = p
		}
		if pool.Generation == p.generation {
			p.slices = append(p.slices, slice)
		}
	}
	for _, name := range sorted(byName) {
		pools = append(pools, *byName[name])
	}
	return pools, ""
}

func (p *poolSlices) devices() map[string]resourceapi.Device {
	devices := map[string]resourceapi.Device{}
	for _, slice := range p.slices {
		for i := range slice.Spec.Devices {
			devices[slice.Spec.Devices[i].Name] = slice.Spec.Devices[i]
		}
	}
	return devices
}

// slices checks the slices that the driver published for the node.
func (c *conformer) slices(context.Context) verdict {
	pools, unknown := c.pools(c.opts.Cluster)
	switch {
	case unknown != "":
		return untested(NeedCluster, "%s", unknown)
	case len(pools) == 0:
		return open("it has no slice for this node alone, which a driver of devices that several nodes reach may choose")
	}
	total := 0
	for i := range pools {
		p := &pools[i]
		seen := map[string]bool{}
		for _, slice := range p.slices {
			if faults := kinds.Rejected(slice, resourceapi.SchemeGroupVersion.String()); len(faults) > 0 {
				return fails("slice %s is none that the API takes: %v", slice.Name, faults[0])
			}
			switch n := slice.Spec.Pool.ResourceSliceCount; {
			case n < int64(len(p.slices)):
				return fails("pool %s has %d slices of generation %d, and slice %s says that it has %d", p.name, len(p.slices), p.generation, slice.Name, n)
			case n > int64(len(p.slices)):
				return fails("pool %s has %d of %d slices of generation %d: nothing is allocated from an incomplete pool", p.name, len(p.slices), n, p.generation)
			}
			for j := range slice.Spec.Devices {
				name := slice.Spec.Devices[j].Name
				if seen[name] {
					return fails("pool %s has device %s twice: nothing is allocated from it", p.name, name)
				}
				seen[name] = true
				total++
			}
		}
	}
	return conforms("%s with %s, complete and within the limits of the API", english.Count(len(pools), "pool"), english.Count(total, "device"))
}

// health checks the form of the health reports: the devices may be unhealthy.
func (c *conformer) health(ctx context.Context) verdict {
	if v, none := c.absent(); none {
		return v
	}
	health, err := AskHealth(ctx, c.host, nil, c.out.Driver, c.opts.Look)
	if err != nil {
		return untested(NeedDriver, "%s", reason(err))
	}
	at := slices.IndexFunc(health.Drivers, func(d DriverHealth) bool { return d.Endpoint == c.driver.plugin.Endpoint })
	if at < 0 {
		return untested(NeedDriver, "the driver was not found again")
	}
	d := &health.Drivers[at]
	switch {
	case d.NoService:
		return open("it does not report the health of devices, which a driver may choose")
	case d.Error == noReport:
		return open("no report came in time; a driver without devices has nothing to report")
	case d.Error != "":
		return fails("the stream of health: %s", d.Error)
	}
	known := map[[2]string]bool{}
	pools, unknown := c.pools(c.opts.Cluster)
	for i := range pools {
		for name := range pools[i].devices() {
			known[[2]string{pools[i].name, name}] = true
		}
	}
	for i := range d.Devices {
		device := &d.Devices[i]
		switch {
		case device.Pool == "" || device.Device == "":
			return fails("a report has a device without a pool or a name")
		case unknown == "" && len(known) > 0 && !known[[2]string{device.Pool, device.Device}]:
			return fails("a report has device %s/%s, which no slice for this node has", clip(device.Pool), clip(device.Device))
		case len(device.Message) > maxMessage:
			return fails("the message about device %s/%s has %d bytes, of which the kubelet takes %d", clip(device.Pool), clip(device.Device), len(device.Message), maxMessage)
		}
	}
	return conforms("it reports %s by %s", english.Count(len(d.Devices), "device"), d.Service)
}

// restart restarts the driver and prepares the claim again, with the same result. The
// unpreparation after it has to work, too.
func (c *conformer) restart(ctx context.Context) verdict {
	if v, none := c.untried(); none {
		return v
	}
	if c.opts.Restart == nil {
		return untested(NeedRestart, "nobody said how the driver is restarted")
	}
	before, _ := c.host.Stat(c.driver.plugin.Endpoint)
	if err := c.opts.Restart(ctx); err != nil {
		return untested(NeedRestart, "%v", err)
	}
	var found Preparation
	var same bool
	back := c.settle(ctx, func() bool {
		found = Preparation{}
		plugin := found.choose(c.host, c.out.Driver, registeredDrivers(ctx, c.host, c.opts.Look))
		if plugin == nil {
			return false
		}
		now, err := c.host.Stat(plugin.Endpoint)
		// While it ends, the old instance still answers. A new file may have the inode of
		// the old one.
		if same = err == nil && before != nil && os.SameFile(before, now) && before.ModTime().Equal(now.ModTime()); same {
			return false
		}
		c.driver.plugin, c.out.Endpoint = plugin, plugin.Endpoint
		return true
	})
	switch {
	case !back && same:
		return open("nothing shows that the driver was restarted: its socket is the same as before")
	case !back && len(found.Checks) > 0:
		return fails("after its restart, %s", found.Checks[0].Message)
	case !back:
		return fails("after its restart, it does not register in time")
	}
	again, v := c.driver.call(ctx, PrepareOperation, checkCall, checkReply)
	if again.Error != "" {
		return fails("after its restart, the claim cannot be prepared again: %s", again.Error)
	}
	if c.unstable {
		return conforms("after its restart, it registers, and the claim can be prepared again")
	}
	if v.state == node.OK && !slices.Equal(outcomes(c.first), outcomes(again)) {
		return fails("after its restart, preparing the claim again brings other devices or CDI names")
	}
	return conforms("after its restart, it registers, and preparing the claim again brings the same")
}

// generation compares the pools before and after the test.
func (c *conformer) generation(ctx context.Context) verdict {
	switch {
	case c.opts.Restart == nil:
		return untested(NeedRestart, "that takes a cluster and the driver's restart")
	case c.opts.Reread == nil:
		return untested(NeedCluster, "that takes a cluster and the driver's restart")
	}
	before, unknown := c.pools(c.opts.Cluster)
	if unknown != "" {
		return untested(NeedCluster, "%s", unknown)
	}
	snap, err := c.opts.Reread(ctx)
	if err != nil {
		return untested(NeedCluster, "the cluster could not be read again: %v", err)
	}
	after, unknown := c.pools(snap)
	if unknown != "" {
		return untested(NeedCluster, "%s", unknown)
	}
	for i := range after {
		now := &after[i]
		at := slices.IndexFunc(before, func(p poolSlices) bool { return p.name == now.name })
		if at < 0 {
			continue
		}
		switch old := &before[at]; {
		case now.generation < old.generation:
			return fails("pool %s went back from generation %d to %d: the scheduler keeps to the newer one, which is gone", now.name, old.generation, now.generation)
		case now.generation == old.generation && !sameDevices(old.devices(), now.devices()) && !sameNames(old.slices, now.slices):
			return fails("pool %s has other devices in other slices, and still generation %d", now.name, now.generation)
		}
	}
	return conforms("no pool went back to an earlier generation")
}

func sameDevices(a, b map[string]resourceapi.Device) bool { return reflect.DeepEqual(a, b) }

func sameNames(a, b []*resourceapi.ResourceSlice) bool {
	names := func(list []*resourceapi.ResourceSlice) []string {
		var all []string
		for _, slice := range list {
			all = append(all, slice.Name)
		}
		slices.Sort(all)
		return all
	}
	return slices.Equal(names(a), names(b))
}

// stop stops the driver. It is the last test.
func (c *conformer) stop(ctx context.Context) verdict {
	if v, none := c.absent(); none {
		return v
	}
	if c.opts.Stop == nil {
		return untested(NeedStop, "nobody said how the driver is stopped")
	}
	// Nobody could do it afterwards.
	c.out.Results = append(c.out.Results, c.driver.cleanUp(ctx)...)
	socket := c.driver.plugin.Registration.Path
	if err := c.opts.Stop(ctx); err != nil {
		return untested(NeedStop, "%v", err)
	}
	var left Plugin
	gone := c.settle(ctx, func() bool {
		if _, err := c.host.Stat(socket); errors.Is(err, fs.ErrNotExist) {
			return true
		}
		left = askPlugin(ctx, c.host, socket, c.opts.Look)
		return left.Registration.Answer == node.Stale
	})
	c.driver.plugin = nil
	switch {
	case !gone:
		return open("nothing shows that the driver was stopped: %s still answers", socket)
	case left.Registration.Answer == node.Stale:
		return fails("it leaves its registration socket %s behind: the kubelet tries it again and again", path.Base(socket))
	case c.opts.Reread == nil:
		return conforms("it removes its registration socket; whether slices are left is not known without a cluster")
	}
	return c.slicesLeft(ctx)
}

// slicesLeft looks for slices of a stopped driver.
func (c *conformer) slicesLeft(ctx context.Context) verdict {
	var left int
	var unknown string
	read := func() bool {
		snap, err := c.opts.Reread(ctx)
		if err != nil {
			unknown = err.Error()
			return true
		}
		var pools []poolSlices
		pools, unknown = c.pools(snap)
		left = 0
		for i := range pools {
			left += len(pools[i].slices)
		}
		return unknown != "" || left == 0
	}
	if c.opts.RemovesSlices {
		c.settle(ctx, read)
	} else {
		read()
	}
	switch {
	case unknown != "":
		return open("it removes its registration socket; whether slices are left is not known: %s", unknown)
	case left == 0:
		return conforms("it removes its registration socket, and no slice is left")
	case c.opts.RemovesSlices:
		return fails("it leaves %s when it is stopped, and says that it removes them", english.Count(left, "slice"))
	}
	return conforms("it removes its registration socket and leaves %s, which the kubelet removes if it stays away", english.Count(left, "slice"))
}
