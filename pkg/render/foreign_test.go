// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"testing"
)

func TestForeign(t *testing.T) {
	for name, test := range map[string]struct {
		color  bool
		writes []string
		want   string
	}{
		"lines stay":                 {writes: []string{"one\ntw", "o\n", "three"}, want: "one\ntwo\nthree"},
		"a character in two writes":  {writes: []string{"\xe2\x9c", "\x93 fine\n"}, want: "✓ fine\n"},
		"the cursor does not move":   {writes: []string{"safe\x1b[2Aevil\r\n"}, want: `safe\x1b[2Aevil\r` + "\n"},
		"no colors":                  {writes: []string{"\x1b[1;31m✗\x1b[m bad\n"}, want: `\x1b[1;31m✗\x1b[m bad` + "\n"},
		"our colors":                 {color: true, writes: []string{"\x1b[1;31m✗\x1b[m bad\n"}, want: "\x1b[1;31m✗\x1b[m bad\n"},
		"hidden text is no color":    {color: true, writes: []string{"\x1b[8mhidden\x1b[0m\n"}, want: `\x1b[8mhidden` + "\x1b[0m\n"},
		"a color in two writes":      {color: true, writes: []string{"\x1b[1;3", "2mok\x1b[m\n"}, want: "\x1b[1;32mok\x1b[m\n"},
		"JSON with an odd character": {writes: []string{"{\"name\": \"a\u202eb\"}\n"}, want: "{\"name\": \"a\\u202eb\"}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			w := Foreign(&out, test.color)
			for _, text := range test.writes {
				if n, err := w.Write([]byte(text)); err != nil || n != len(text) {
					t.Fatalf("wrote %d of %d bytes: %v", n, len(text), err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if out.String() != test.want {
				t.Errorf("got %q, want %q", out.String(), test.want)
			}
		})
	}
}
