// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
)

// filterHelp is how filters are written.
const filterHelp = "TEXT  !TEXT (without)  ~REGEXP  --where CEL (devices)"

var errWhereDevices = errors.New("--where is for devices: press 4 first")

// rowFilter reports whether a row is wanted. It fails where it cannot tell.
type rowFilter func(s content, row int) (bool, error)

// parseFilter reads what was typed after "/". An empty text wants every row; nil
// stands for that. A text without capitals ignores the case. The note says what
// the filter could not tell.
func parseFilter(ctx context.Context, text string, p *picture) (filter rowFilter, note string, err error) {
	text = strings.TrimSpace(text)
	if expression, ok := strings.CutPrefix(text, "--where"); ok {
		return where(ctx, strings.TrimSpace(expression), p)
	}
	not := false
	if rest, ok := strings.CutPrefix(text, "!"); ok {
		not, text = true, strings.TrimSpace(rest)
	}
	var matches func(string) bool
	switch pattern, isRegexp := strings.CutPrefix(text, "~"); {
	case text == "":
		return nil, "", nil
	case isRegexp:
		if strings.ToLower(pattern) == pattern {
			pattern = "(?i)" + pattern
		}
		expression, err := regexp.Compile(pattern)
		if err != nil {
			return nil, "", fmt.Errorf("read the filter: %w", err)
		}
		matches = expression.MatchString
	case strings.ToLower(text) == text:
		matches = func(cell string) bool { return strings.Contains(strings.ToLower(cell), text) }
	default:
		matches = func(cell string) bool { return strings.Contains(cell, text) }
	}
	return func(s content, row int) (bool, error) {
		for column := range s.columns() {
			if matches(s.cell(row, column)) {
				return !not, nil
			}
		}
		return not, nil
	}, "", nil
}

// where selects devices as a request would.
func where(ctx context.Context, expression string, p *picture) (filter rowFilter, note string, err error) {
	if expression == "" {
		return nil, "", nil
	}
	if err := p.alloc.Facts.Gates.Selectors().Compile(expression).Err; err != nil {
		return nil, "", fmt.Errorf("compile --where: %w", err)
	}
	// On some devices it may fail: these are left out, as by the allocator.
	ids, failures, err := p.inventory.Choose(ctx, []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}})
	if err != nil {
		return nil, "", err
	}
	if len(failures) > 0 {
		left := 0
		for i := range failures {
			left += failures[i].Count
		}
		note = fmt.Sprintf("the expression fails on %s: %s", devices(left), inventory.FailureText(&failures[0]))
	}
	chosen := make(map[cluster.DeviceID]bool, len(ids))
	for _, id := range ids {
		chosen[id] = true
	}
	return func(s content, row int) (bool, error) {
		d, ok := s.item(row).(*api.Device)
		if !ok {
			return false, errWhereDevices
		}
		return chosen[cluster.DeviceID{Driver: d.Driver, Pool: d.Pool, Device: d.Name}], nil
	}, note, nil
}
