// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSkipValue covers values before a comma, and errors in them.
func TestSkipValue(t *testing.T) {
	for text, want := range map[string]string{
		`null`:                       "",
		`-1.5e3`:                     "",
		`"a \"quoted\" , text"`:      "",
		`"ends with a backslash \\"`: "",
		`[]`:                         "",
		`{"a":[1,{"b":"}]"}]}`:       "",
		"[1,\n 2]":                   "",
		`]`:                          `line 1: expected a value, found ']'`,
		`{"a":[1]`:                   ErrCutOff.Error(),
		`"no end \"`:                 ErrCutOff.Error(),
		``:                           ErrCutOff.Error(),
	} {
		rest := ",1"
		if want == ErrCutOff.Error() {
			rest = ""
		}
		end, err := SkipValue([]byte(text+rest), 0)
		switch {
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%q: error %v, want %s", text, err, want)
		case want == "" && (err != nil || end != len(text)):
			t.Errorf("%q ends at %d (%v), want %d", text, end, err, len(text))
		}
	}
}

// TestItems cuts a list into texts.
func TestItems(t *testing.T) {
	for text, test := range map[string]struct {
		want []string
		err  string
	}{
		` [ ] `:                        {},
		"[1 , {\"a\": [2]},\n\"x,]\"]": {want: []string{"1", `{"a": [2]}`, `"x,]"`}},
		"[1\n2]":                       {err: `line 2: expected "," or "]", found '2'`},
		"[1,]":                         {err: `line 1: expected a value, found ']'`},
		"[1":                           {err: ErrCutOff.Error()},
	} {
		spans, end, err := Items([]byte(text), SkipSpace([]byte(text), 0))
		if test.err != "" {
			if err == nil || err.Error() != test.err {
				t.Errorf("%q: error %v, want %s", text, err, test.err)
			}
			continue
		}
		var got []string
		for _, s := range spans {
			got = append(got, text[s.From:s.To])
		}
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil || strings.TrimSpace(text[end:]) != "" {
			t.Errorf("%q ends at %d (%v), -want +got:\n%s", text, end, err, diff)
		}
	}
}

// TestEachField lists the fields of an object up to "stop".
func TestEachField(t *testing.T) {
	for text, test := range map[string]struct {
		want string
		err  string
	}{
		` { } `:                           {},
		`{"a": 1, "b" : {"c": [2, "}"]}}`: {want: `a=1 b={"c": [2, "}"]}`},
		`{"a":1,"stop":2,"b" nonsense`:    {want: "a=1 stop=2"},
		`[1]`:                             {err: `line 1: expected an object, found '['`},
		"{\n a: 1}":                       {err: `line 2: expected a field name in double quotes, found 'a'`},
		`{"a" 1}`:                         {err: `line 1: expected ":", found '1'`},
		`{"a":1;"b":2}`:                   {want: "", err: `line 1: expected "," or "}", found '"'`},
		`{"a":1`:                          {err: ErrCutOff.Error()},
		``:                                {err: ErrCutOff.Error()},
	} {
		var got []string
		_, err := EachField([]byte(text), 0, func(key []byte, at int) (int, bool, error) {
			end, err := SkipValue([]byte(text), at)
			if err == nil {
				got = append(got, string(key)+"="+text[at:end])
			}
			return end, string(key) != "stop", err
		})
		if test.err != "" {
			if err == nil || err.Error() != test.err {
				t.Errorf("%q: error %v, want %s", text, err, test.err)
			}
			continue
		}
		if fields := strings.Join(got, " "); err != nil || fields != test.want {
			t.Errorf("%q has %s (%v), want %s", text, fields, err, test.want)
		}
	}
}

// TestEachFieldStopsAtErrors hands on what a visit says.
func TestEachFieldStopsAtErrors(t *testing.T) {
	failed := errors.New("failed")
	if _, err := EachField([]byte(`{"a":1,"b":2}`), 0, func([]byte, int) (int, bool, error) { return 0, true, failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

// TestLineAt counts lines from 1, and clips positions outside of the text.
func TestLineAt(t *testing.T) {
	for at, want := range map[int]int{-1: 1, 0: 1, 1: 1, 2: 2, 3: 3, 99: 3} {
		if got := LineAt([]byte("a\n\nb"), at); got != want {
			t.Errorf("byte %d is in line %d, want %d", at, got, want)
		}
	}
}
