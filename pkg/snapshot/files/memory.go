// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

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
