// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const (
	// Kind is the kind of the findings.
	Kind = "NodeState"

	// maxFile limits the size of a checkpoint. A claim takes some kilobytes. maxFiles
	// limits the size of all files.
	maxFile  = 8 << 20
	maxFiles = 64 << 20
)

// Look reads the checkpoints of a node and compares them with each other and with the
// cluster. snap is nil if there is no cluster.
func Look(ctx context.Context, host *node.Host, snap *snapshot.Snapshot) *Findings {
	f := &Findings{TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: Kind}, Drivers: []Checkpoint{}}
	cluster := host.In(snap)
	if cluster != nil {
		f.Node = cluster.Node
	}
	bootID, err := host.BootID()
	if err != nil {
		f.Checks = append(f.Checks, node.Failed(checkBoot, "", fmt.Errorf("read the boot ID: %w", err)))
	}
	f.BootID = bootID
	r := &reader{Findings: f, host: host, left: maxFiles, metadataDirs: map[string]bool{}}
	r.readKubelet(cluster)
	r.readDrivers(ctx)
	r.readDevices()
	f.nameClaims(cluster)
	f.verify()
	f.compareDrivers()
	f.compareMetadata(cluster, path.Join(host.Kubelet, "plugins"), r.metadataDirs)
	(&comparison{Findings: f, cluster: cluster}).run()
	return f
}

// reader reads the files.
type reader struct {
	*Findings

	host *node.Host
	// left counts the bytes that may still be read.
	left int64
	// metadataDirs are the drivers with a directory for the metadata of devices.
	metadataDirs map[string]bool
}

func (r *reader) readKubelet(cluster *node.Cluster) {
	file := path.Join(r.host.Kubelet, "dra_manager_state")
	c, err := r.read(r.host.Kubelet, file, "", parseKubelet)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.Checks = append(r.Checks, absent(file, cluster))
		return
	case errors.Is(err, errVersion):
		r.Checks = append(r.Checks, node.NotKnown(checkKubelet, file, "%v", err))
	case err != nil:
		r.Checks = append(r.Checks, node.Failed(checkKubelet, file, err))
	default:
		r.Checks = append(r.Checks, node.Good(checkKubelet, file, "the kubelet has %s", english.Count(len(c.Claims), "claim")))
	}
	r.Kubelet = c
}

// absent returns the check for a kubelet that has written no checkpoint.
func absent(file string, cluster *node.Cluster) node.Check {
	if cluster != nil && len(cluster.Claims) > 0 {
		return node.Bad(checkKubelet, file, "there is no such file, though pods of node %s use %s: this is not the kubelet's directory, or it never prepared any",
			cluster.Node, english.Count(len(cluster.Claims), "claim"))
	}
	return node.NotKnown(checkKubelet, file, "there is no such file: DRA is off in this kubelet, "+node.NoKubelet)
}

func (r *reader) readDrivers(ctx context.Context) {
	plugins := path.Join(r.host.Kubelet, "plugins")
	entries, err := r.host.ReadDir(plugins)
	if errors.Is(err, fs.ErrNotExist) {
		r.Checks = append(r.Checks, node.NotKnown(checkDriver, plugins, "there is no such directory: "+node.NoKubelet))
		return
	}
	if err != nil {
		r.Checks = append(r.Checks, node.Failed(checkDriver, plugins, err))
		return
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			r.Checks = append(r.Checks, node.NotKnown(checkDriver, plugins, "not all of it was read: %v", err))
			return
		}
		r.readDriver(plugins, path.Join(plugins, entry.Name(), "checkpoint.json"), entry.Name())
		r.readMetadata(ctx, plugins, entry.Name())
	}
}

func (r *reader) readDevices() {
	dir := path.Dir(devicesFile)
	devices := &DeviceCheckpoint{Path: devicesFile}
	c, err := r.read(dir, devicesFile, "", func(data []byte, _ *Checkpoint) error { return parseDevices(data, devices) })
	devices.Modified, devices.Error = c.Modified, c.Error
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := r.host.Stat(dir); err != nil {
			r.Checks = append(r.Checks, node.NotKnown(checkDevices, dir, "there is no such directory, which every kubelet has: no kubelet runs here"))
		} else {
			r.Checks = append(r.Checks, node.Good(checkDevices, devicesFile, "there is no such file: no device plugin has registered with this kubelet"))
		}
		return
	}
	r.Devices = devices
	if err != nil {
		r.Checks = append(r.Checks, node.Failed(checkDevices, devicesFile, err))
		return
	}
	r.Checks = append(r.Checks, node.Good(checkDevices, devicesFile, "the kubelet has %s of device plugins, and %s of containers with devices",
		english.Count(len(devices.Resources), "resource"), english.Count(len(devices.Containers), "entry")))
}

func (r *reader) readDriver(plugins, file, driver string) {
	// Most drivers have no such file, and only directories can have one.
	if _, err := r.host.Stat(file); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return
	}
	c, err := r.read(plugins, file, driver, parseDriver)
	if !inKnownForm(driver) && c.foreign(err) {
		*c = Checkpoint{Path: c.Path, Driver: c.Driver, Modified: c.Modified, OwnForm: true}
		r.Checks = append(r.Checks, node.Good(checkDriver, file, "driver %s has a form of its own for it, which only the driver can judge", driver))
		r.Drivers = append(r.Drivers, *c)
		return
	}
	switch {
	case errors.Is(err, errForm), errors.Is(err, errVersion):
		r.Checks = append(r.Checks, node.NotKnown(checkDriver, file, "%v", err))
	case err != nil:
		r.Checks = append(r.Checks, node.Failed(checkDriver, file, err))
	default:
		r.Checks = append(r.Checks, node.Good(checkDriver, file, "driver %s has %s", driver, english.Count(len(c.Claims), "claim")))
	}
	r.Drivers = append(r.Drivers, *c)
}

// inKnownForm reports whether the driver's checkpoint format is known. Other drivers may
// use the file name for another format.
func inKnownForm(driver string) bool { return strings.HasSuffix(driver, ".nvidia.com") }

// foreign reports whether a file is not, or not quite, in the known format. err is the
// error of parsing it.
func (c *Checkpoint) foreign(err error) bool {
	if err != nil {
		var fault *contentError
		return errors.As(err, &fault)
	}
	return slices.ContainsFunc(c.Checksums, func(sum Checksum) bool { return !sum.OK() })
}

// contentError means that a file was read and could not be understood.
type contentError struct{ err error }

func (e *contentError) Error() string { return e.err.Error() }

func (e *contentError) Unwrap() error { return e.err }

// nameClaims adds names to claims that only have UIDs in the file: the kubelet knows the
// claims that it has, the cluster the existing ones.
func (f *Findings) nameClaims(cluster *node.Cluster) {
	kept := map[string]*Claim{}
	if f.Kubelet != nil {
		for i := range f.Kubelet.Claims {
			kept[f.Kubelet.Claims[i].UID] = &f.Kubelet.Claims[i]
		}
	}
	for _, c := range f.all() {
		for i := range c.Claims {
			claim := &c.Claims[i]
			if claim.Name != "" {
				continue
			}
			if known := cluster.Claim(claim.UID); known != nil {
				claim.Namespace, claim.Name = known.Namespace, known.Name
			} else if known := kept[claim.UID]; known != nil {
				claim.Namespace, claim.Name = known.Namespace, known.Name
			}
		}
	}
}

// read reads a file; no link may lead out of the directory. It returns a checkpoint with an
// error, too.
func (r *reader) read(dir, file, driver string, parse func([]byte, *Checkpoint) error) (*Checkpoint, error) {
	c := &Checkpoint{Path: file, Driver: driver}
	var data []byte
	var err error
	if r.left > 0 {
		data, err = r.host.ReadFileIn(dir, file, maxFile)
	} else {
		err = fmt.Errorf("it %w: the checkpoints before it have %d bytes already", node.ErrNotRead, int64(maxFiles))
	}
	if err == nil {
		r.left -= int64(len(data))
		if info, statErr := r.host.Stat(file); statErr == nil {
			c.Modified = &metav1.Time{Time: info.ModTime().UTC().Truncate(time.Second)}
		}
		if err = parse(data, c); err != nil {
			err = &contentError{err}
		}
	}
	if err != nil {
		c.Error = err.Error()
	}
	return c, err
}

// verify compares checksums with the content.
func (f *Findings) verify() {
	good := 0
	for _, c := range f.all() {
		for _, sum := range c.Checksums {
			if sum.OK() {
				good++
				continue
			}
			what, who := "the checksum", "the kubelet"
			if sum.Of != "" {
				what = "the checksum of " + sum.Of
			}
			if c.Driver != "" {
				who = "driver " + c.Driver
			}
			check := node.Bad(checkSum, c.Path, "%s is wrong: %s does not start with such a file", what, who)
			if c.Error != "" {
				// The checksum of another version may be computed in another way.
				check = node.NotKnown(checkSum, c.Path, "%s is not the one that is computed here, by a program that does not understand all of the file", what)
			}
			f.Checks = append(f.Checks, sum.proving(check))
		}
	}
	if d := f.Devices; d != nil && d.Error == "" {
		switch sum := d.Checksum; {
		case sum == nil:
			f.Checks = append(f.Checks, node.NotKnown(checkSum, d.Path, "the checksum could not be checked: the file has fields that this program does not know"))
		case sum.OK():
			good++
		default:
			f.Checks = append(f.Checks, sum.proving(node.Bad(checkSum, d.Path, "the checksum is wrong: a kubelet that starts with such a file does not know which containers have which devices")))
		}
	}
	if good > 0 {
		f.Checks = append(f.Checks, node.Good(checkSum, "", "%s right", english.Count(good, "checksum")))
	}
}

// proving returns a check with the checksums as its evidence.
func (c Checksum) proving(check node.Check) node.Check {
	check.Found, check.Required = strconv.FormatUint(c.Found, 10), strconv.FormatUint(c.Expected, 10)
	return check
}

// compareDrivers compares the drivers' files with the registered drivers.
func (f *Findings) compareDrivers() {
	for i := range f.Drivers {
		c := &f.Drivers[i]
		switch {
		case c.BootID == "" || f.BootID == "":
		case c.BootID == f.BootID:
			f.Checks = append(f.Checks, node.Good(checkBoot, c.Path, "driver %s has started since the node was booted", c.Driver))
		default:
			check := node.Bad(checkBoot, c.Path, "driver %s has not started since the node was booted; what it has prepared is gone with the boot before", c.Driver)
			check.Found, check.Required = c.BootID, f.BootID
			f.Checks = append(f.Checks, check)
		}
		for j := range c.Claims {
			claim := &c.Claims[j]
			switch {
			case claim.State != PrepareStarted:
			case c.recent():
				f.Checks = append(f.Checks, node.NotKnown(checkPrepare, c.Path, "driver %s has begun to prepare %s, and may still be at it", c.Driver, claim.words()))
			default:
				f.Checks = append(f.Checks, node.Bad(checkPrepare, c.Path, "driver %s has begun to prepare %s and never finished: it failed or died over it", c.Driver, claim.words()))
			}
		}
		f.compareKubelet(c)
	}
}

// compareKubelet compares a driver's claims with the kubelet's.
func (f *Findings) compareKubelet(c *Checkpoint) {
	if f.Kubelet == nil || f.Kubelet.Error != "" || c.Error != "" || c.OwnForm {
		return
	}
	differ := func(format string, args ...any) {
		check := node.Bad(checkBoth, c.Path, format, args...)
		switch {
		case c.recent():
			check.State = node.Unknown
			check.Message += ", or the driver is at it right now"
		case !inKnownForm(c.Driver):
			check.State = node.Unknown
			check.Message += ", or it uses this form in another way than NVIDIA's drivers"
		}
		f.Checks = append(f.Checks, check)
	}
	same := 0
	kept := map[string]bool{}
	for i := range f.Kubelet.Claims {
		kept[f.Kubelet.Claims[i].UID] = true
	}
	has := map[string]bool{}
	for i := range c.Claims {
		claim := &c.Claims[i]
		has[claim.UID] = true
		if !kept[claim.UID] && claim.State == PrepareCompleted {
			differ("driver %s has prepared %s, of which the kubelet knows nothing: it is left over", c.Driver, claim.words())
		}
	}
	for i := range f.Kubelet.Claims {
		claim := &f.Kubelet.Claims[i]
		if !claim.of(c.Driver) {
			continue
		}
		if !has[claim.UID] {
			differ("the kubelet has devices of driver %s for %s, of which the driver knows nothing: it has lost it", c.Driver, claim.words())
			continue
		}
		same++
	}
	if same > 0 {
		f.Checks = append(f.Checks, node.Good(checkBoth, c.Path, "the kubelet and driver %s agree on %s", c.Driver, english.Count(same, "claim")))
	}
}

// readMetadata reads the metadata of devices that a driver has for containers.
func (r *reader) readMetadata(ctx context.Context, plugins, driver string) {
	dir := path.Join(plugins, driver, metadataDir)
	claims, err := r.host.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return
	case err != nil:
		r.Checks = append(r.Checks, node.Failed(checkMetadata, dir, err))
		return
	}
	r.metadataDirs[driver] = true
	for _, claim := range claims {
		requests, err := r.host.ReadDir(path.Join(dir, claim.Name()))
		if err != nil {
			r.Checks = append(r.Checks, node.Failed(checkMetadata, path.Join(dir, claim.Name()), err))
			continue
		}
		for _, request := range requests {
			if ctx.Err() != nil || len(r.Metadata) == maxMetadata {
				r.Checks = append(r.Checks, node.NotKnown(checkMetadata, dir, "not all of it was read"))
				return
			}
			m := Metadata{Path: path.Join(dir, claim.Name(), request.Name(), metadataFile), Driver: driver, Request: request.Name()}
			file, err := r.read(dir, m.Path, driver, func(data []byte, _ *Checkpoint) error { return m.parse(data) })
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if m.Modified, m.Error = file.Modified, file.Error; err != nil {
				r.Checks = append(r.Checks, node.Failed(checkMetadata, m.Path, err))
			}
			r.Metadata = append(r.Metadata, m)
		}
	}
}
