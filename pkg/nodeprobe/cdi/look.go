// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"
	specs "tags.cncf.io/container-device-interface/specs-go"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const (
	// Kind is the kind of the findings.
	Kind = "NodeCDI"

	// maxSpec limits the size of a spec; the specs of 16 GPUs take less than 1 MiB.
	// maxSpecs limits the size of all specs.
	maxSpec  = 4 << 20
	maxSpecs = 64 << 20
)

// Look reads all specs of a node and compares them with the node, with the devices that the
// kubelet hands to the runtime, and with the claims of the cluster. snap is nil if there is
// no cluster, handed if the kubelet's state could not be read.
func Look(ctx context.Context, host *node.Host, snap *snapshot.Snapshot, handed Handed) *Findings {
	f := &Findings{
		TypeMeta:    metav1.TypeMeta{APIVersion: api.APIVersion, Kind: Kind},
		Directories: []Directory{},
		Specs:       []Spec{},
	}
	r := &reader{Findings: f, looker: looker{host: host, seen: map[string]look{}}, left: maxSpecs}
	for _, dir := range host.CDI {
		r.directory(ctx, dir)
	}
	r.count()
	f.findConflicts()
	f.compareNode()
	cluster := host.In(snap)
	if cluster != nil {
		f.Node = cluster.Node
	}
	f.compareClaims(cluster, handed)
	return f
}

// reader reads the directories.
type reader struct {
	*Findings
	looker
	// left counts the bytes that may still be read.
	left int64
}

func (r *reader) directory(ctx context.Context, dir string) {
	d := Directory{Path: dir}
	defer func() { r.Directories = append(r.Directories, d) }()
	entries, err := r.host.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	d.Exists = true
	if err != nil {
		d.Error = err.Error()
		check := node.Failed(checkDirectories, dir, err)
		d.NotRead = check.State == node.Unknown
		r.Checks = append(r.Checks, check)
		return
	}
	for _, entry := range entries {
		// Runtimes ignore other entries (scanSpecDirs, pkg/cdi/spec-dirs.go).
		if ext := path.Ext(entry.Name()); entry.IsDir() || ext != ".json" && ext != ".yaml" {
			continue
		}
		if err := ctx.Err(); err != nil {
			d.Error, d.NotRead = err.Error(), true
			r.Checks = append(r.Checks, node.NotKnown(checkDirectories, dir, "not all of it was read: %v", err))
			return
		}
		d.Specs++
		r.spec(dir, entry)
	}
}

func (r *reader) spec(dir string, entry fs.DirEntry) {
	s := Spec{Path: path.Join(dir, entry.Name())}
	if entry.Type()&fs.ModeSymlink != 0 {
		// The error occurs again when the file is read.
		s.Target, _, _ = r.host.Leaves(s.Path, dir)
	}
	err := r.fill(&s)
	switch {
	case err != nil && errors.Is(err, fs.ErrNotExist) && entry.Type()&fs.ModeSymlink != 0:
		s.Error = err.Error()
		r.Checks = append(r.Checks, node.Bad(checkSpecs, s.Path, "the link leads nowhere: %v", err))
	case err != nil:
		s.Error = err.Error()
		check := node.Failed(checkSpecs, s.Path, err)
		s.NotRead = check.State == node.Unknown
		r.Checks = append(r.Checks, check)
	}
	r.Specs = append(r.Specs, s)
}

func (r *reader) fill(s *Spec) error {
	if r.left <= 0 {
		return fmt.Errorf("it %w: the specs before it have %d bytes already", node.ErrNotRead, int64(maxSpecs))
	}
	data, err := r.host.ReadFileIn(path.Dir(s.Path), s.Path, maxSpec)
	if err != nil {
		return err
	}
	r.left -= int64(len(data))
	raw, err := parse(data)
	if err != nil {
		// The library's messages have several lines.
		return errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	s.Version, s.Kind, s.Edits = raw.Version, raw.Kind, r.edits(&raw.ContainerEdits)
	vendor, class := parser.ParseQualifier(raw.Kind)
	for i := range raw.Devices {
		d := &raw.Devices[i]
		s.Devices = append(s.Devices, Device{
			ID: parser.QualifiedName(vendor, class, d.Name), Name: d.Name,
			ClaimUID: claimUID(s.Path, class, d.Name),
			Edits:    r.edits(&d.ContainerEdits),
		})
	}
	return nil
}

// count says how many specs can be used.
func (r *reader) count() {
	good, devices := 0, 0
	for i := range r.Specs {
		if r.Specs[i].Error == "" {
			good++
			devices += len(r.Specs[i].Devices)
		}
	}
	if good > 0 {
		r.Checks = append(r.Checks, node.Good(checkSpecs, "", "%s with %s", english.Count(good, "spec"), english.Count(devices, "device")))
	}
	var there, gone []string
	for _, d := range r.Directories {
		switch {
		case !d.Exists:
			gone = append(gone, d.Path)
		case d.Error == "":
			there = append(there, d.Path)
		}
	}
	switch {
	case len(there) > 0 && len(r.Specs) == 0:
		r.Checks = append(r.Checks, node.Good(checkDirectories, "", "no spec in %s", strings.Join(there, ", ")))
	case len(gone) == len(r.Directories):
		r.Checks = append(r.Checks, node.Good(checkDirectories, "", "no such directory, and so no specs: %s", strings.Join(gone, ", ")))
	}
}

// place is the position of a device.
type place struct{ spec, device int }

// findConflicts finds devices that are in several specs (Cache.refresh, pkg/cdi/cache.go):
// two in one directory rule each other out, else the last directory counts.
func (f *Findings) findConflicts() {
	places, order := map[string][]place{}, []string{}
	for s := range f.Specs {
		for d := range f.Specs[s].Devices {
			id := f.Specs[s].Devices[d].ID
			if places[id] == nil {
				order = append(order, id)
			}
			places[id] = append(places[id], place{s, d})
		}
	}
	for _, id := range order {
		same := places[id]
		if len(same) > 1 {
			f.conflict(id, same)
		}
	}
}

func (f *Findings) conflict(id string, same []place) {
	at := func(p place) *Spec { return &f.Specs[p.spec] }
	var first, second string
	for i := 1; i < len(same) && second == ""; i++ {
		if a, b := at(same[i-1]).Path, at(same[i]).Path; path.Dir(a) == path.Dir(b) {
			first, second = a, b
		}
	}
	last := at(same[len(same)-1]).Path
	for _, p := range same {
		d, own := &at(p).Devices[p.device], at(p).Path
		switch {
		case second != "" && own == first:
			d.ConflictsWith = second
		case second != "":
			d.ConflictsWith = first
		case own != last:
			d.ShadowedBy = last
		}
	}
	if second != "" {
		check := node.Bad(checkConflicts, second, "device %s is in two specs, so runtimes use neither", id)
		check.Found, check.Required = second, first
		f.Checks = append(f.Checks, check)
		return
	}
	f.Checks = append(f.Checks, node.Good(checkConflicts, last, "device %s is in several directories; this spec counts", id))
}

// compareNode finds paths in specs that the node does not have.
func (f *Findings) compareNode() {
	found := len(f.Checks)
	nodes, mounts, hooks := 0, 0, 0
	for s := range f.Specs {
		spec := &f.Specs[s]
		faults := &faults{path: spec.Path}
		faults.add(&spec.Edits)
		for d := range spec.Devices {
			faults.add(&spec.Devices[d].Edits)
		}
		f.Checks = append(f.Checks, faults.checks()...)
		nodes, mounts, hooks = nodes+faults.nodes.all, mounts+faults.mounts.all, hooks+faults.hooks.all
	}
	if len(f.Checks) == found && nodes+mounts+hooks > 0 {
		f.Checks = append(f.Checks, node.Good(checkDeviceNodes, "", "the node has all that specs name: %s, %s, %s",
			english.Count(nodes, "device node"), english.Count(mounts, "mount"), english.Count(hooks, "hook")))
	}
}

// head has the fields that distinguish a spec from any other file.
type head struct {
	CDIVersion string `json:"cdiVersion"`
	Kind       string `json:"kind"`
}

// isSpec returns why a file is not a spec. The error never quotes the file: only errors
// about known specs may.
func isSpec(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("the file is empty")
	}
	content, err := yaml.YAMLToJSON(data)
	if err != nil {
		where := ""
		if line := regexp.MustCompile(`\bline ([0-9]{1,9})\b`).FindStringSubmatch(err.Error()); line != nil {
			where = ", see line " + line[1]
		}
		return fmt.Errorf("it cannot be parsed as JSON or YAML%s", where)
	}
	var spec head
	if err := json.Unmarshal(content, &spec); err != nil {
		return errors.New("it is not a CDI spec: expected an object with cdiVersion and kind")
	}
	if !regexp.MustCompile(`^v?[0-9]{1,9}(\.[0-9]{1,9}){0,2}$`).MatchString(spec.CDIVersion) {
		return errors.New("it is not a CDI spec: cdiVersion is not a version such as 0.6.0")
	}
	vendor, class := parser.ParseQualifier(spec.Kind)
	if parser.ValidateVendorName(vendor) != nil || parser.ValidateClassName(class) != nil {
		return errors.New("it is not a CDI spec: kind is not a vendor and a class, such as example.com/gpu")
	}
	return nil
}

// parse reads a spec and checks all that cdi.ReadSpec checks, which would open the file
// itself. Runtimes do not use a spec that it refuses.
func parse(data []byte) (*specs.Spec, error) {
	if err := isSpec(data); err != nil {
		return nil, err
	}
	raw, err := cdi.ParseSpec(data)
	if err != nil {
		return nil, err
	}
	if err := complete(&raw.ContainerEdits); err != nil {
		return nil, err
	}
	for i := range raw.Devices {
		if err := complete(&raw.Devices[i].ContainerEdits); err != nil {
			return nil, fmt.Errorf("device %q: %w", raw.Devices[i].Name, err)
		}
	}
	if err := specs.ValidateVersion(raw); err != nil {
		return nil, err
	}
	if err := annotations(raw.Annotations); err != nil {
		return nil, err
	}
	if err := (&cdi.ContainerEdits{ContainerEdits: &raw.ContainerEdits}).Validate(); err != nil {
		return nil, err
	}
	if len(raw.Devices) == 0 {
		return nil, errors.New("the spec has no devices")
	}
	names := map[string]bool{}
	for i := range raw.Devices {
		d := &raw.Devices[i]
		if names[d.Name] {
			return nil, fmt.Errorf("the spec has device %q twice", d.Name)
		}
		names[d.Name] = true
		if err := checkDevice(d); err != nil {
			return nil, fmt.Errorf("device %q: %w", d.Name, err)
		}
	}
	return raw, nil
}

func checkDevice(d *specs.Device) error {
	if err := parser.ValidateDeviceName(d.Name); err != nil {
		return err
	}
	if err := annotations(d.Annotations); err != nil {
		return err
	}
	e := &d.ContainerEdits
	if len(e.Env)+len(e.DeviceNodes)+len(e.Hooks)+len(e.Mounts)+len(e.AdditionalGIDs)+len(e.NetDevices) == 0 && e.IntelRdt == nil {
		return errors.New("it does nothing to a container")
	}
	return (&cdi.ContainerEdits{ContainerEdits: e}).Validate()
}

// complete refuses a null in a list, which the library does not expect.
func complete(e *specs.ContainerEdits) error {
	if slices.Contains(e.DeviceNodes, nil) || slices.Contains(e.Mounts, nil) || slices.Contains(e.Hooks, nil) || slices.Contains(e.NetDevices, nil) {
		return errors.New("a list of container edits has null in it")
	}
	return nil
}

func annotations(of map[string]string) error {
	return validation.ValidateAnnotations(of, field.NewPath("annotations")).ToAggregate()
}
