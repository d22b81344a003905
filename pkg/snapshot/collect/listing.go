// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// chunkSize is how many objects are asked for at a time, as kubectl does.
const chunkSize = 500

// fetch reads a list chunk by chunk into *into. If the server forgets the list
// in the middle of it (410 Gone), it is read again from the start, this time in
// one piece, which cannot expire. The listing knows the version of the list
// afterwards.
func fetch[P metav1.Object](ctx context.Context, l *listing, from endpoint[P], into *[]P) error {
	return fetchSelected(ctx, l, metav1.ListOptions{}, from, into)
}

// fetchSelected is like [fetch], with selectors.
func fetchSelected[P metav1.Object](ctx context.Context, l *listing, options metav1.ListOptions, from endpoint[P], into *[]P) error {
	options.Limit = chunkSize
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all []P
	leftOut := map[string]error{}
	done := 0
	var end endlessness
	chunk := ask(ctx, options, from.list)
	for {
		// While a chunk arrives the server prepares the one behind it.
		ahead := chunk.following(ctx, options, from.list)
		page, err := chunk.wait()
		if chunk.token != "" && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) {
			options.Limit = 0
			all, done, end = nil, 0, endlessness{}
			clear(leftOut)
			chunk = ask(ctx, options, from.list)
			continue
		}
		if err != nil {
			return err
		}
		about, err := meta.ListAccessor(page)
		if err != nil {
			return err
		}
		err = meta.EachListItem(page, func(item runtime.Object) error {
			done++
			object, err := from.convert(item)
			var left *leftOutError
			switch {
			case err == nil:
				all = append(all, object)
			case errors.Is(err, errNotKept):
			case errors.As(err, &left):
				leftOut[left.name.String()] = err
			default:
				return err
			}
			return nil
		})
		if err == nil {
			err = end.check(about.GetContinue(), done)
		}
		if err != nil {
			return err
		}
		remaining := 0
		if count := about.GetRemainingItemCount(); count != nil {
			remaining = int(*count)
		}
		token := about.GetContinue()
		l.update(done, remaining, token == "")
		if token == "" {
			l.read(about.GetResourceVersion(), leftOut)
			*into = all
			return nil
		}
		if ahead == nil || ahead.token != token {
			options.Continue = token
			ahead = ask(ctx, options, from.list)
			options.Continue = ""
		}
		chunk = ahead
	}
}

const (
	// maxObjects limits how many objects a list has at most. Kubernetes is made for up to
	// 150,000 pods. So many pods of 2 KiB take 0.9 GiB of memory.
	maxObjects = 200_000
	// maxShortChunks limits how many chunks may have fewer objects than were asked for. API
	// servers fill all but the last one.
	maxShortChunks = 20
)

// endlessness notices a list that does not end.
type endlessness struct {
	tokens      map[string]bool
	done, short int
}

// check fails if a chunk that ends with this token, after so many objects of the list,
// need not be followed.
func (e *endlessness) check(token string, done int) error {
	if done-e.done < chunkSize {
		e.short++
	}
	e.done = done
	switch {
	case token == "":
		return nil
	case e.tokens[token]:
		return &refusedError{"a list of it does not end: it repeats a continue token"}
	case e.short > maxShortChunks:
		return &refusedError{fmt.Sprintf("a list of it does not end: %d chunks have fewer than %d objects", e.short, chunkSize)}
	case done > maxObjects:
		return &refusedError{fmt.Sprintf("a list of it does not end: it has more than %d objects", maxObjects)}
	case e.tokens == nil:
		e.tokens = map[string]bool{}
	}
	e.tokens[token] = true
	return nil
}

// chunk is a part of a list that has been asked for.
type chunk struct {
	// token is where it starts, empty for the first one.
	token string
	// next gets the token of the chunk behind it, if that is known before this
	// one has arrived.
	next chan string
	done chan struct{}
	page runtime.Object
	err  error
}

func ask(ctx context.Context, options metav1.ListOptions, list listFunc) *chunk {
	c := &chunk{token: options.Continue, next: make(chan string, 1), done: make(chan struct{})}
	ctx = withNextChunk(ctx, func(token string) {
		select {
		case c.next <- token:
		default:
		}
	})
	go func() {
		defer close(c.done)
		c.page, c.err = list(ctx, options)
	}()
	return c
}

// following asks for the chunk behind this one as early as possible. It is nil
// if there is none, or if that is not known before this one is there.
func (c *chunk) following(ctx context.Context, options metav1.ListOptions, list listFunc) *chunk {
	select {
	case options.Continue = <-c.next:
		return ask(ctx, options, list)
	case <-c.done:
		return nil
	}
}

func (c *chunk) wait() (runtime.Object, error) {
	<-c.done
	return c.page, c.err
}

// progress adds up what the lists that are read at the same time have got.
type progress struct {
	mu     sync.Mutex
	report func(done, total int, what string)
	lists  []*listing
}

// listing is the part of one list. All fields belong to the progress's lock.
type listing struct {
	progress *progress
	resource string
	done     int
	// remaining is how many objects are still to come, -1 while unknown.
	remaining int
	// version is the resourceVersion of the list that was read: where a watch
	// goes on from. Empty until then.
	version string
	// leftOut are the objects that were left out of it, with the reason.
	leftOut map[string]error
}

// list adds a list. All of them are added before the first one is read.
func (p *progress) list(resource string) *listing {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &listing{progress: p, resource: resource, remaining: -1}
	p.lists = append(p.lists, l)
	return l
}

// update tells how far a list is. A chunk without a count of what remains
// makes the total unknown, unless it is the last one.
func (l *listing) update(done, remaining int, last bool) {
	p := l.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	l.done, l.remaining = done, remaining
	if remaining == 0 && !last {
		l.remaining = -1
	}
	if p.report == nil {
		return
	}
	sum, total, known := 0, 0, true
	for _, other := range p.lists {
		sum += other.done
		total += other.done + other.remaining
		known = known && other.remaining >= 0
	}
	if !known {
		total = 0
	}
	p.report(sum, total, l.resource)
}

// read notes the version of the list that was read, and the objects left out of it.
func (l *listing) read(version string, leftOut map[string]error) {
	l.progress.mu.Lock()
	defer l.progress.mu.Unlock()
	l.version, l.leftOut = version, leftOut
}

// leftOut returns the objects left out of the lists, by resource.
func (p *progress) leftOut() map[string]map[string]error {
	p.mu.Lock()
	defer p.mu.Unlock()
	leftOut := map[string]map[string]error{}
	for _, l := range p.lists {
		if len(l.leftOut) > 0 {
			leftOut[l.resource] = l.leftOut
		}
	}
	return leftOut
}

// version returns the version of the list of a resource, empty if it was not read.
func (p *progress) version(resource string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lists {
		if l.resource == resource {
			return l.version
		}
	}
	return ""
}

// finished ends a list that has no answer, or no more of one.
func (l *listing) finished() { l.update(l.done, 0, true) }

// stop ends the reports, whatever is still under way.
func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report = nil
}
