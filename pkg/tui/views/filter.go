// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// FilterHelp is how filters are written.
const FilterHelp = "WORD... (all)  !WORD (without)  ~REGEXP  COLUMN:WORD  --where CEL (devices)"

var errWhereDevices = errors.New("--where is for devices: press 4 first")

// rowFilter reports whether a row is wanted. It fails where it cannot tell.
type rowFilter func(s widget.Content, row int) (bool, error)

// parseFilter parses the text after "/": words that a row has in any of its columns, or in what Also of
// the content says besides, all of them. An empty text wants every row; nil stands for that. A word without capitals ignores
// the case. The note says what the filter could not tell.
func parseFilter(ctx context.Context, text string, p *live.Picture) (filter rowFilter, note string, err error) {
	text = strings.TrimSpace(text)
	if expression, ok := strings.CutPrefix(text, "--where"); ok {
		return whereFilter(ctx, strings.TrimSpace(expression), p)
	}
	var words []func(titles, cells []string) bool
	for word := range strings.FieldsSeq(text) {
		matches, err := parseWord(word)
		if err != nil {
			return nil, "", err
		}
		words = append(words, matches)
	}
	if len(words) == 0 {
		return nil, "", nil
	}
	return func(s widget.Content, row int) (bool, error) {
		titles := s.Columns()
		cells := make([]string, len(titles))
		for column := range cells {
			cells[column] = s.Cell(row, column)
		}
		if about, ok := s.(interface{ Also(row int) []string }); ok {
			cells = append(cells, about.Also(row)...)
		}
		for _, matches := range words {
			if !matches(titles, cells) {
				return false, nil
			}
		}
		return true, nil
	}, "", nil
}

// parseWord reads one word of a filter. COLUMN:WORD looks at the column of that title
// alone; where there is none, it is a word like others.
func parseWord(word string) (func(titles, cells []string) bool, error) {
	pattern, not := strings.CutPrefix(word, "!")
	inAny, err := matcherOf(pattern)
	if err != nil {
		return nil, err
	}
	title, rest, hasTitle := strings.Cut(pattern, ":")
	inOne, err := matcherOf(rest)
	if err != nil {
		return nil, err
	}
	return func(titles, cells []string) bool {
		if hasTitle {
			if column := columnOf(titles, title); column >= 0 {
				return rest == "" || inOne(cells[column]) != not
			}
		}
		return pattern == "" || slices.ContainsFunc(cells, inAny) != not
	}, nil
}

// columnOf returns the column of a title, as filters write it; -1 if there is none.
func columnOf(titles []string, title string) int {
	return slices.IndexFunc(titles, func(t string) bool { return strings.EqualFold(strings.ReplaceAll(t, " ", ""), title) })
}

// unknownColumn names the first column of a filter that no title has, if no row has the word, either;
// empty if there is none.
func unknownColumn(filter string, titles []string) string {
	if strings.HasPrefix(strings.TrimSpace(filter), "--where") {
		return ""
	}
	for word := range strings.FieldsSeq(filter) {
		if title, _, hasTitle := strings.Cut(strings.TrimPrefix(word, "!"), ":"); hasTitle && columnOf(titles, title) < 0 {
			known := make([]string, 0, len(titles))
			for _, t := range titles {
				known = append(known, strings.ToLower(strings.ReplaceAll(t, " ", "")))
			}
			return "no column " + title + " among " + strings.Join(known, ", ")
		}
	}
	return ""
}

// matcherOf reads a text, which ignores the case if it has no capitals, or ~REGEXP.
func matcherOf(pattern string) (func(cell string) bool, error) {
	expression, isRegexp := strings.CutPrefix(pattern, "~")
	switch {
	case isRegexp:
		compiled, err := regexp.Compile(expression)
		var wrong *syntax.Error
		if errors.As(err, &wrong) {
			return nil, fmt.Errorf("read the filter: %s in %s", wrong.Code, wrong.Expr)
		}
		if strings.ToLower(expression) == expression {
			compiled, err = regexp.Compile("(?i)" + expression)
		}
		return compiled.MatchString, err
	case strings.ToLower(pattern) == pattern:
		return func(cell string) bool { return strings.Contains(strings.ToLower(cell), pattern) }, nil
	default:
		return func(cell string) bool { return strings.Contains(cell, pattern) }, nil
	}
}

// whereFilter selects devices as a request would.
func whereFilter(ctx context.Context, expression string, p *live.Picture) (filter rowFilter, note string, err error) {
	if expression == "" {
		return nil, "", nil
	}
	if err := p.Cluster.Gates.Selectors().Compile(expression).Err; err != nil {
		return nil, "", fmt.Errorf("compile --where: %w", err)
	}
	// On some devices it may fail: these are left out, as by the allocator.
	ids, failures, err := p.Inventory.Choose(ctx, []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}})
	if err != nil {
		return nil, "", err
	}
	if len(failures) > 0 {
		left := 0
		for i := range failures {
			left += failures[i].Count
		}
		note = fmt.Sprintf("the expression fails on %s: %s", english.Count(left, "device"), inventory.FailureText(&failures[0]))
	}
	chosen := make(map[cluster.DeviceID]bool, len(ids))
	for _, id := range ids {
		chosen[id] = true
	}
	return func(s widget.Content, row int) (bool, error) {
		d, ok := s.Item(row).(*api.Device)
		if !ok {
			return false, errWhereDevices
		}
		return chosen[cluster.DeviceID{Driver: d.Driver, Pool: d.Pool, Device: d.Name}], nil
	}, note, nil
}
