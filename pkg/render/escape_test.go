// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
)

func TestEscape(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"plain":                 {"gpu-0.example.com", "gpu-0.example.com"},
		"empty":                 {"", ""},
		"other scripts":         {"größe 設備", "größe 設備"},
		"escape sequence":       {"\x1b[31mred", `\x1b[31mred`},
		"8-bit control":         {"\u009b31m", `\x9b31m`},
		"newline":               {"a\nb\r\tc", `a\nb\r\tc`},
		"bell and delete":       {"\a\x7f", `\x07\x7f`},
		"right to left":         {"\u202egnp.exe", `\u202egnp.exe`},
		"isolates":              {"\u2066a\u2069", `\u2066a\u2069`},
		"zero width":            {"a\u200bb\ufeff", `a\u200bb\ufeff`},
		"no-break space":        {"a\u00a0b", `a\xa0b`},
		"line separator":        {"a\u2028b", `a\u2028b`},
		"invalid UTF-8":         {"a\xffb\xc3", `a\xffb\xc3`},
		"replacement is a rune": {"\ufffd", "\ufffd"},
		"tag characters":        {"\U000e0041", `\U000e0041`},
		"nul":                   {"\x00", `\x00`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Escape(test.in); got != test.want {
				t.Errorf("Escape(%q) = %q, want %q", test.in, got, test.want)
			}
		})
	}
}

// TestEscapeJSON covers the same values afterwards, and nothing that a terminal obeys.
func TestEscapeJSON(t *testing.T) {
	for r := range rune(0x110000) {
		if r >= 0xd800 && r < 0xe000 || r > 0x3100 && r < 0xe0000 && r%0x101 != 0 {
			continue
		}
		want := map[string]string{fmt.Sprintf("k%c\"\\", r): fmt.Sprintf("%cb\\u007f", r)}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		escaped := EscapeJSON(text)
		if err := json.Unmarshal(escaped, &got); err != nil || !maps.Equal(want, got) {
			t.Fatalf("%q: got %q, %v", want, got, err)
		}
		if r <= 0xffff && Escape(string(escaped)) != string(escaped) {
			t.Fatalf("%U is left in %q", r, escaped)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("plain")
	f.Add("\x1b]0;title\a\u202e\xff\u009b")
	f.Fuzz(func(t *testing.T, s string) {
		got := Escape(s)
		if strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e }) {
			t.Errorf("Escape(%q) = %q", s, got)
		}
		if Escape(got) != got {
			t.Errorf("escaping %q twice changes it", s)
		}
	})
}

func TestWrap(t *testing.T) {
	tests := map[string]struct {
		in    string
		width int
		want  string
	}{
		"empty":                {"", 10, ""},
		"fits exactly":         {"one two", 7, "one two"},
		"breaks at blanks":     {"one two three", 8, "one two|three"},
		"long word stays":      {"a resource.kubernetes.io/pcieRoot b", 8, "a|resource.kubernetes.io/pcieRoot|b"},
		"hyphens do not break": {"gpu-node-23 gpu-node-24", 12, "gpu-node-23|gpu-node-24"},
		"wide characters":      {"設備 設備 設備", 9, "設備 設備|設備"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(wrap(test.in, test.width, test.width), "|"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

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
