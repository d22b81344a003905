// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// Load reads a snapshot from files: those that [Save] wrote, dumps of
// kubectl get -o yaml or -o json, manifests, in any mixture.
//
// A path is a file, a directory, of which all files named .yaml, .yml, .json,
// also with .gz, and .tar.gz are read in the order of their names, or "-" for
// Options.Stdin. What a file has is found out from its content: YAML, JSON,
// several documents of either, Lists, compressed or in a tar archive. Objects
// of resource.k8s.io may be of any beta version; they are converted, and get
// the defaults that the API server would set. Objects without a namespace keep
// none. Kinds that have nothing to do with the snapshot are counted in
// Skipped. Two objects of the same name must be equal.
//
// Whatever is wrong with the files is an [*InputError].
func Load(ctx context.Context, paths []string, opts Options) (*snapshot.Snapshot, error) {
	return load(ctx, paths, opts, asCluster, defaultLimits())
}

// Manifests is like [Load], for manifests that are about to be applied: the snapshot has
// only their objects, to be added to the snapshot of a cluster with
// [snapshot.Snapshot.With]. An object with only a metadata.generateName gets a name that
// ends in "xxxxx".
//
// They are judged as the API server would: unknown fields and invalid values for its
// devices are errors. SkippedNames has the others.
func Manifests(ctx context.Context, paths []string, opts Options) (*snapshot.Snapshot, error) {
	return load(ctx, paths, opts, asManifests, defaultLimits())
}

// Content is like [Load], for the content of a file that was read already. The name is for errors.
func Content(ctx context.Context, name string, content []byte, opts Options) (*snapshot.Snapshot, error) {
	opts.content = content
	return load(ctx, []string{name}, opts, asCluster, defaultLimits())
}

// Preview is like [Manifests], for the ResourceSlices that a driver would publish, to be
// added to the snapshot of a cluster with package preview. Anything else in the files is an
// [*InputError].
func Preview(ctx context.Context, paths []string, opts Options) (*snapshot.Snapshot, error) {
	preview, err := load(ctx, paths, opts, asPreview, defaultLimits())
	if err == nil && len(preview.Slices) == 0 {
		err = &InputError{Path: displayPaths(paths), Err: errors.New("expected ResourceSlices, found none")}
	}
	if err != nil {
		return nil, err
	}
	return preview, nil
}

func load(ctx context.Context, paths []string, opts Options, purpose purpose, limits limits) (*snapshot.Snapshot, error) {
	if len(paths) == 0 {
		return nil, &InputError{Path: "snapshot", Err: errors.New("no file is named; name one, or - for standard input")}
	}
	if err := checkPaths(paths, purpose); err != nil {
		return nil, err
	}
	all, err := read(ctx, paths, opts, purpose, limits)
	if err != nil {
		return nil, err
	}
	if all.documents == 0 {
		return nil, &InputError{Path: displayPaths(paths), Err: errors.New("there are no Kubernetes objects in it")}
	}
	if len(all.records) == 0 && all.gone != nil {
		return nil, all.gone
	}
	s, err := assemble(all, paths, opts)
	if err != nil {
		return nil, err
	}
	if purpose == asCluster {
		addListed(s, all.listed)
	}
	switch {
	case purpose != asCluster:
		s.Gaps = nil
	case len(all.headers) == 0:
		addMissing(s, all.listed, paths)
	}
	return s, nil
}

// checkPaths fails for paths that do not exist on this machine.
func checkPaths(paths []string, purpose purpose) error {
	var pipe string
	switch purpose {
	case asCluster:
		pipe = "kubectl dra why POD --snapshot -"
	case asManifests:
		pipe = "kubectl dra why -f -"
	case asPreview:
		pipe = "kubectl dra why POD --with-preview -"
	}
	for _, path := range paths {
		if strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://") {
			return &InputError{Path: path, Err: fmt.Errorf(
				"URLs are not read; download it, or pipe it: curl -fsSL %s | %s", path, pipe)}
		}
	}
	return nil
}

// result is a worker's result for a part.
type result struct {
	part *part
	decoded
	err error
}

// read decodes everything in the paths, in their order.
func read(ctx context.Context, paths []string, opts Options, purpose purpose, limits limits) (*decoded, error) {
	memory := newMemory(limits.memory)
	workers := runtime.GOMAXPROCS(0)
	var group sync.WaitGroup
	var results []*result
	// Parts after the first that failed need not be decoded. Those before it
	// are, so that the same input always gives the same error.
	var failed atomic.Int64
	failed.Store(math.MaxInt64)
	type job struct {
		index int64
		*result
	}
	jobs := make(chan job, 2*workers)
	for range workers {
		group.Go(func() {
			decoder := kinds.NewDecoder()
			for j := range jobs {
				if j.index > failed.Load() || ctx.Err() != nil {
					continue
				}
				j.decoder = decoder
				j.err = decodeWithin(ctx, memory, j.part, &j.decoded)
				// They are no longer needed.
				j.decoder, j.part.data, j.part.items = nil, nil, nil
				if j.part.release != nil {
					j.part.release()
				}
				for first := failed.Load(); j.err != nil && j.part.whole == nil && j.index < first; first = failed.Load() {
					if failed.CompareAndSwap(first, j.index) {
						break
					}
				}
			}
		})
	}
	r := reader{limits: limits, stdin: opts.Stdin, stdinName: cmp.Or(opts.StdinName, stdinName), size: &memory.size, leftOut: opts.leftOut}
	yaml := int64(0)
	r.part = func(p *part) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if failed.Load() != math.MaxInt64 {
			return errStopped
		}
		if p.yaml {
			yaml += int64(len(p.data))
		}
		results = append(results, &result{part: p, decoded: decoded{purpose: purpose}})
		jobs <- job{int64(len(results) - 1), results[len(results)-1]}
		return nil
	}
	r.text = func(file string, data []byte) error { return cut(file, data, r.part) }
	// Opening a pipe and reading from one cannot be interrupted.
	finished := make(chan error, 1)
	go func() {
		defer close(jobs)
		if opts.content != nil {
			r.grow(int64(len(opts.content)))
			finished <- r.content(paths[0], opts.content, 0, true)
			return
		}
		for _, path := range paths {
			if err := r.path(path); err != nil {
				finished <- err
				return
			}
		}
		finished <- nil
	}()
	var readError error
	select {
	case readError = <-finished:
	case <-ctx.Done():
		return nil, fmt.Errorf("read %s: %w", displayPaths(paths), ctx.Err())
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", displayPaths(paths), err)
	}
	all, err := mergeResults(ctx, memory, results)
	if err != nil {
		return nil, err
	}
	if readError != nil {
		return nil, readError
	}
	if yaml > 0 && opts.YAML != nil {
		opts.YAML(yaml)
	}
	return all, nil
}

// errStopped ends the reading of files after a part could not be decoded.
var errStopped = errors.New("stopped")

// mergeResults puts the results together and returns the first error. A YAML
// document that was cut into parts of which one is not valid YAML is decoded
// again as a whole, in case that the cut is to blame.
func mergeResults(ctx context.Context, memory *memory, results []*result) (*decoded, error) {
	suspects := map[*part]bool{}
	for _, r := range results {
		if r.err != nil && r.part.whole != nil {
			suspects[r.part.whole] = true
		}
	}
	all := &decoded{}
	records := 0
	for _, r := range results {
		records += len(r.records)
	}
	all.records = make([]record, 0, records)
	done := map[*part]bool{}
	for _, r := range results {
		whole := r.part.whole
		if whole == nil || !suspects[whole] {
			if r.err != nil {
				return nil, r.err
			}
			all.merge(&r.decoded)
			continue
		}
		if done[whole] {
			continue
		}
		done[whole] = true
		again := decoded{purpose: r.purpose, decoder: kinds.NewDecoder()}
		if err := decodeWithin(ctx, memory, whole, &again); err != nil {
			return nil, err
		}
		all.merge(&again)
	}
	return all, nil
}

// decodeWithin decodes one part into d, within the bounds of the memory.
func decodeWithin(ctx context.Context, memory *memory, p *part, d *decoded) error {
	size := p.size()
	done, err := memory.begin(ctx, size)
	if err != nil {
		return err
	}
	defer done()
	if err := decodePart(p, d); err != nil {
		return err
	}
	objects := len(d.records)
	for i := range d.records {
		if slice, ok := d.records[i].object.(*resourceapi.ResourceSlice); ok {
			objects += len(slice.Spec.Devices)
		}
	}
	if err := memory.check(size, objects); err != nil {
		p.whole = nil
		return &InputError{Path: p.at.file, Err: err}
	}
	return nil
}

// decodePart decodes one part into d.
func decodePart(p *part, d *decoded) error {
	if !p.yaml && p.items == nil {
		return decodeText(p.data, p, d)
	}
	if !p.yaml {
		for i, item := range p.items {
			if err := decodeItem(p.data[item.From:item.To], i, p, d); err != nil {
				return addLine(err, p.data, item.From, p)
			}
		}
		return nil
	}
	converted, err := yamlToJSON(p.data)
	if err != nil {
		return inputError(p.at, "", yamlError(err, p.data, p.linesBefore))
	}
	if !p.sequence {
		if converted[0] != '{' {
			return inputError(p.at, "", fmt.Errorf("expected a Kubernetes object, found %s", kinds.TypeInWords(converted)))
		}
		return d.document(converted, p.at)
	}
	items, _, err := kinds.Items(converted, 0)
	if err != nil {
		return inputError(p.at, "", err)
	}
	d.documents++ // the List
	for i, item := range items {
		if err := decodeItem(converted[item.From:item.To], i, p, d); err != nil {
			return err
		}
	}
	return nil
}

func decodeText(data []byte, p *part, d *decoded) error {
	if err := d.document(data, p.at); err != nil {
		return addLine(err, data, 0, p)
	}
	return nil
}

func decodeItem(data []byte, i int, p *part, d *decoded) error {
	at := p.at
	at.item += i + 1
	return d.nested(data, at, p.apiVersion, p.kind, 1)
}

// addLine adds the line to an error about the syntax of JSON text.
func addLine(err error, data []byte, from int, p *part) error {
	var input *InputError
	var syntax *kinds.SyntaxError
	if errors.As(err, &input) && errors.As(input.Err, &syntax) && syntax.Offset > 0 {
		input.Err = fmt.Errorf("line %d: %w", p.linesBefore+kinds.LineAt(data, from+int(syntax.Offset)), syntax)
	}
	return err
}

const (
	// memoryPerByte is how much memory each byte of a file may take. The objects
	// of a cluster take four.
	memoryPerByte = 8
	// memoryPerObject is set aside for each object and each device, for the facts computed
	// from them.
	memoryPerObject = 512
	// textPerCheck is how much text is decoded between two looks at the memory.
	textPerCheck = 256 << 10
	// largeInFlight is how much text of large documents is decoded at the same
	// time, since that takes many times as much memory.
	largeInFlight = kinds.MaxDocument
	// largeDocument is one of these.
	largeDocument = 128 << 10
)

// memory bounds what decoded files take. Some values are far larger in memory
// than as text; only the memory itself tells.
type memory struct {
	limit int64
	// size has the bytes of the files themselves.
	size atomic.Int64
	// before is the memory in use at the start.
	before int64
	// reserved is set aside for objects, and text was decoded since the last
	// check.
	reserved, text atomic.Int64
	large          *semaphore.Weighted
	checking       sync.Mutex
}

func newMemory(limit int64) *memory {
	return &memory{limit: limit, before: occupied(), large: semaphore.NewWeighted(largeInFlight)}
}

// occupied returns what objects take in memory, with those that are garbage.
func occupied() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(sample[0].Value.Uint64())
}

// begin waits until a text of this size may be decoded. The returned function
// ends that.
func (m *memory) begin(ctx context.Context, size int) (func(), error) {
	if size < largeDocument {
		return func() {}, nil
	}
	weight := int64(min(size, largeInFlight))
	if err := m.large.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	return func() { m.large.Release(weight) }, nil
}

// check fails if the decoded objects take too much memory.
func (m *memory) check(text, objects int) error {
	m.reserved.Add(int64(objects) * memoryPerObject)
	if m.text.Add(int64(text)) < textPerCheck {
		return nil
	}
	m.checking.Lock()
	defer m.checking.Unlock()
	m.text.Store(0)
	limit := max(m.limit, memoryPerByte*m.size.Load())
	allowed := m.before + limit - m.reserved.Load()
	// A quarter may be garbage, so that it is not collected all the time.
	if occupied() < allowed+limit/4 {
		return nil
	}
	runtime.GC()
	if occupied() < allowed {
		return nil
	}
	return fmt.Errorf("it would take more than %d MiB of memory; load fewer objects, or unpack the file if it is compressed", limit>>20)
}
