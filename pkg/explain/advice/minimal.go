// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import "slices"

// Minimal returns a minimal part of candidates with which, and with a background, a condition holds.
// It must hold with all of them. The method is QuickXplain (Junker, AAAI 2004); earlier candidates
// are preferred. It assumes that more candidates never end what holds: where they may, the caller
// checks the result.
func Minimal(holds func([]int) (bool, error), background, candidates []int) ([]int, error) {
	return minimal(holds, background, false, candidates)
}

// minimal recurs for Minimal. grown reports whether something was added to the background
// since it was last checked.
func minimal(holds func([]int) (bool, error), background []int, grown bool, candidates []int) ([]int, error) {
	if grown {
		ok, err := holds(background)
		if err != nil || ok {
			return nil, err
		}
	}
	if len(candidates) <= 1 {
		return candidates, nil
	}
	half := len(candidates) / 2
	first, second := candidates[:half], candidates[half:]
	fromSecond, err := minimal(holds, slices.Concat(background, first), true, second)
	if err != nil {
		return nil, err
	}
	fromFirst, err := minimal(holds, slices.Concat(background, fromSecond), len(fromSecond) > 0, first)
	if err != nil {
		return nil, err
	}
	return slices.Concat(fromFirst, fromSecond), nil
}
