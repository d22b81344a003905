// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// Fixes makes the changes that findings name in the documents of files, in memory until
// they are written. Each document is parsed once for all of its changes, and afterwards
// read again to make sure that these alone were made.
type Fixes struct {
	// before are the documents as they are in the files, now as they were changed.
	before, now []files.Text
	// ofFile has the numbers of the documents of a file, in order.
	ofFile map[string][]int
	// files has the texts of the files that may be changed.
	files map[string][]byte
	// seen has what a document has been, so that changes which undo each other end.
	seen map[int]map[string]bool
}

// NewFixes returns fixes without changes. The texts were found in the named files.
func NewFixes(texts []files.Text, named []string) *Fixes {
	f := &Fixes{before: texts, now: slices.Clone(texts), ofFile: map[string][]int{}, files: map[string][]byte{}, seen: map[int]map[string]bool{}}
	for i := range texts {
		f.ofFile[texts[i].File] = append(f.ofFile[texts[i].File], i)
	}
	for path, numbers := range f.ofFile {
		text := changeable(path, named)
		// What is compressed has other text than its documents.
		if !slices.ContainsFunc(numbers, func(i int) bool { return !bytes.HasPrefix(text[min(texts[i].Offset, len(text)):], texts[i].Data) }) {
			f.files[path] = text
		}
	}
	return f
}

// Texts returns the documents as they are now.
func (f *Fixes) Texts() []files.Text { return f.now }

// Check removes from findings about the documents, as they are now, the changes that
// cannot be made.
func (f *Fixes) Check(findings []api.Finding) {
	possible := map[int]bool{}
	for number, changes := range f.changes(findings) {
		p := f.parse(number)
		for range maxTurns {
			_, made, rest := p.make(changes)
			for _, c := range made {
				possible[c.finding] = true
			}
			if changes = rest; len(made) == 0 {
				break
			}
		}
	}
	for i := range findings {
		if !possible[i] {
			findings[i].Fix = nil
		}
	}
}

// changeable returns the text of a file that may be changed: a named file, or a file in a
// named directory to which no link leads. It is nil for others.
func changeable(path string, named []string) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || !slices.Contains(named, path) && !insideOf(path, named) {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return text
}

// insideOf reports whether a file is in one of the directories, not by way of a link.
func insideOf(path string, named []string) bool {
	return slices.ContainsFunc(named, func(dir string) bool {
		below, err := filepath.Rel(dir, path)
		if err != nil || below == ".." || strings.HasPrefix(below, ".."+string(filepath.Separator)) {
			return false
		}
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return false
		}
		root, err := filepath.EvalSymlinks(dir)
		return err == nil && target == filepath.Join(root, below)
	})
}

// maxTurns bounds how many changes of one place are tried.
const maxTurns = 32

// Make makes the changes of findings about the documents as they are now. Of those that
// are in each other's way it makes the first: the others have to be found again. It
// returns the findings whose changes were made.
func (f *Fixes) Make(findings []api.Finding) (made []api.Finding) {
	lines := map[int]int{}
	changes := f.changes(findings)
	numbers := slices.Sorted(maps.Keys(changes))
	results := make([]result, len(numbers))
	files.OnAllProcessors(len(numbers), func() func(int) {
		return func(i int) { results[i].after, results[i].made, _ = f.parse(numbers[i]).make(changes[numbers[i]]) }
	})
	for i, number := range numbers {
		after, done := results[i].after, results[i].made
		if len(done) == 0 || f.seen[number][string(after.Data)] {
			continue
		}
		if f.seen[number] == nil {
			f.seen[number] = map[string]bool{}
		}
		f.seen[number][string(f.now[number].Data)] = true
		lines[number] = bytes.Count(after.Data, []byte("\n")) - bytes.Count(f.now[number].Data, []byte("\n"))
		f.now[number] = after
		for _, c := range done {
			made = append(made, findings[c.finding])
		}
	}
	for _, numbers := range f.ofFile {
		more := 0
		for _, i := range numbers {
			f.now[i].LinesBefore += more
			more += lines[i]
		}
	}
	return made
}

// result is a document after changes, and which of them were made.
type result struct {
	after files.Text
	made  []change
}

// change is a change that a finding makes to a document.
type change struct {
	finding, line int
	edits         []api.Edit
}

// changes returns the changes of findings, by the number of the document.
func (f *Fixes) changes(findings []api.Finding) map[int][]change {
	changes := map[int][]change{}
	for i := range findings {
		finding := &findings[i]
		numbers := f.ofFile[finding.File]
		if len(finding.Fix) == 0 || f.files[finding.File] == nil {
			continue
		}
		after := sort.Search(len(numbers), func(i int) bool { return f.now[numbers[i]].LinesBefore >= finding.Line })
		if after == 0 || after > 1 && f.now[numbers[after-1]].LinesBefore == f.now[numbers[after-2]].LinesBefore {
			// Two documents may stand in one line.
			continue
		}
		number := numbers[after-1]
		changes[number] = append(changes[number], change{i, finding.Line - f.now[number].LinesBefore, finding.Fix})
	}
	return changes
}

// parsed is a document with the places of its fields.
type parsed struct {
	files.Text
	yaml *yamlText
	root *yaml.Node
}

func (f *Fixes) parse(number int) *parsed {
	text := f.now[number]
	return &parsed{text, newYAMLText(text.Data), text.Root()}
}

// make makes changes that are not in each other's way, and leaves out those after which
// the document would not be what they say.
func (p *parsed) make(changes []change) (after files.Text, made, rest []change) {
	var list []splice
	var possible []change
	if p.root == nil {
		return p.Text, nil, nil
	}
	for _, c := range changes {
		prefix, err := itemAt(p.root, c.line, c.edits[0].Object)
		if err != nil {
			continue
		}
		own := make([]splice, 0, len(c.edits))
		edits := slices.Clone(c.edits)
		for i := range edits {
			edits[i].Path = prefix + edits[i].Path
			var s splice
			if s, err = p.yaml.edit(p.root, edits[i].Op, pointerWords(edits[i].Path), edits[i].Value); err != nil {
				break
			}
			own = append(own, s)
		}
		if err != nil {
			continue
		}
		var ok bool
		if list, ok = merge(list, own); ok {
			possible = append(possible, change{c.finding, c.line, edits})
		} else {
			rest = append(rest, c)
		}
	}
	budget := maxTries
	after, made = p.verified(list, possible, &budget)
	return after, made, rest
}

// merge adds pieces to a list, in order; it is not ok, and adds none, if two of them
// overlap.
func merge(list, more []splice) (merged []splice, ok bool) {
	merged = list
	for i, s := range more {
		at := sort.Search(len(merged), func(i int) bool { return merged[i].from >= s.from })
		if at > 0 && merged[at-1].to > s.from || at < len(merged) && (merged[at].from < s.to || merged[at].from == s.from) {
			if i > 0 {
				// What was added goes again.
				merged = slices.DeleteFunc(merged, func(m splice) bool { return slices.Contains(more[:i], m) })
			}
			return merged, false
		}
		merged = slices.Insert(merged, at, s)
	}
	return merged, true
}

// maxTries bounds how often a document is read again to find out which changes go wrong.
const maxTries = 64

// verified makes the changes, or as many of them as come out as they say.
func (p *parsed) verified(list []splice, changes []change, budget *int) (after files.Text, made []change) {
	if *budget--; len(changes) == 0 || *budget < 0 {
		return p.Text, nil
	}
	var edits []api.Edit
	for _, c := range changes {
		edits = append(edits, c.edits...)
	}
	after = p.With(p.yaml.spliced(list))
	if after.Err == nil && p.comesOut(edits, after.JSON) && !separates(after.Data) {
		return after, changes
	}
	if len(changes) == 1 {
		return p.Text, nil
	}
	// One of them alone goes wrong: find out in which half.
	half := len(changes) / 2
	for _, part := range [][]change{changes[:half], changes[half:]} {
		_, good := p.verified(p.splices(part), part, budget)
		made = append(made, good...)
	}
	if len(made) == len(changes) || len(made) == 0 {
		// Each is right, and together they are not.
		made = made[:min(len(made), half)]
	}
	after, made = p.verified(p.splices(made), made, budget)
	return after, made
}

// comesOut reports whether a document is another one after edits, all of which replace
// values.
func (p *parsed) comesOut(edits []api.Edit, after []byte) bool {
	want := p.JSON
	for _, e := range edits {
		at := kinds.ValueAt(want, pointerWords(e.Path))
		if e.Op != "replace" || at.From == at.To {
			return false
		}
		want = slices.Concat(want[:at.From], e.Value, want[at.To:])
	}
	if bytes.Equal(want, after) {
		return true
	}
	// Equal values may be written in different ways.
	var a, b any
	return json.Unmarshal(want, &a) == nil && json.Unmarshal(after, &b) == nil && reflect.DeepEqual(a, b)
}

// splices returns the pieces of changes that were made once, in order.
func (p *parsed) splices(changes []change) []splice {
	var list []splice
	for _, c := range changes {
		for _, e := range c.edits {
			if s, err := p.yaml.edit(p.root, e.Op, pointerWords(e.Path), e.Value); err == nil {
				list = append(list, s)
			}
		}
	}
	slices.SortFunc(list, func(a, b splice) int { return cmp.Compare(a.from, b.from) })
	return list
}

// separates reports whether a text is more than one document.
func separates(text []byte) bool {
	for _, marker := range []string{"---", "..."} {
		if bytes.HasPrefix(text, []byte(marker)) || bytes.Contains(text, []byte("\n"+marker)) {
			return true
		}
	}
	return false
}

// itemAt returns the path to the object at a line of a document, of which it may be an
// item.
func itemAt(root *yaml.Node, line int, object api.ObjectRef) (prefix string, err error) {
	for node := root; ; {
		if kind := scalarIn(node, "kind"); !strings.HasSuffix(kind, "List") {
			return prefix, nil
		}
		at, err := childOf(node, "items")
		if err != nil || at < 0 {
			return "", errNotEditable
		}
		items := node.Content[at+1].Content
		item := sort.Search(len(items), func(i int) bool { return items[i].Line > line }) - 1
		if item < 0 {
			return "", errNotEditable
		}
		node = items[item]
		prefix += "/items/" + strconv.Itoa(item)
		if nameIn(node) != object.Name {
			// Several items may stand in one line.
			return "", errNotEditable
		}
	}
}

func nameIn(node *yaml.Node) string {
	at, err := childOf(node, "metadata")
	if err != nil || at < 0 {
		return ""
	}
	return scalarIn(node.Content[at+1], "name")
}

func scalarIn(node *yaml.Node, key string) string {
	if node.Kind != yaml.MappingNode {
		return ""
	}
	at, err := childOf(node, key)
	if err != nil || at < 0 {
		return ""
	}
	return node.Content[at+1].Value
}

// changed returns the files that were changed, in order, and their texts after it.
func (f *Fixes) changed() (paths []string, after map[string][]byte) {
	after = map[string][]byte{}
	for path, numbers := range f.ofFile {
		var list []splice
		for _, i := range numbers {
			if old := &f.before[i]; !bytes.Equal(old.Data, f.now[i].Data) {
				list = append(list, splice{old.Offset, old.Offset + len(old.Data), string(f.now[i].Data)})
			}
		}
		if len(list) > 0 {
			paths = append(paths, path)
			after[path] = (&yamlText{text: f.files[path]}).spliced(list)
		}
	}
	slices.Sort(paths)
	return paths, after
}

// Diff writes the changes as a unified diff.
func (f *Fixes) Diff() string {
	paths, after := f.changed()
	return diffOf(paths, f.files, after)
}

// Write writes the files that were changed, and returns how many these are.
func (f *Fixes) Write() (int, error) {
	paths, after := f.changed()
	for _, path := range paths {
		if err := rewrite(path, f.files[path], after[path]); err != nil {
			return 0, fmt.Errorf("write %s: %w", path, err)
		}
	}
	return len(paths), nil
}

// rewrite gives a file another text. The file stays the same one, with its owner, its
// permissions and all of its names. A copy of the new text stands beside it until that is
// written, so that whatever happens, one of the two is whole.
func rewrite(path string, before, after []byte) (err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if text, err := os.ReadFile(path); err != nil || !bytes.Equal(text, before) {
		return errors.Join(err, errors.New("the file changed while it was checked; nothing was written to it"))
	}
	spare, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = spare.Write(after)
	if err = errors.Join(err, spare.Sync(), spare.Close()); err == nil {
		if _, err = file.WriteAt(after, 0); err == nil {
			err = errors.Join(file.Truncate(int64(len(after))), file.Sync())
		}
		if err != nil {
			return fmt.Errorf("%w; the whole new text is in %s", err, spare.Name())
		}
	}
	return errors.Join(err, os.Remove(spare.Name()))
}
