// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package picture_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/picture"
)

// drawn is a text of a picture, with what a reader sees of its style.
type drawn struct {
	Text   string `xml:",chardata"`
	X      string `xml:"x,attr"`
	Y      string `xml:"y,attr"`
	Fill   string `xml:"fill,attr"`
	Weight string `xml:"font-weight,attr"`
}

func texts(t *testing.T, svg string) []drawn {
	t.Helper()
	var out []drawn
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("the picture is not XML: %v\n%s", err, svg)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "text" {
			var text drawn
			if err := decoder.DecodeElement(&text, &start); err != nil {
				t.Fatal(err)
			}
			out = append(out, text)
		}
	}
}

func TestSVG(t *testing.T) {
	tests := map[string]struct {
		command, screen string
		light           bool
		want            []drawn
	}{
		"columns stay": {
			screen: "NAME   FREE\nä  1",
			want: []drawn{
				{Text: "NAME", X: "16.0", Y: "30", Fill: "#e6edf3"},
				{Text: "FREE", X: "74.8", Y: "30", Fill: "#e6edf3"},
				{Text: "ä", X: "16.0", Y: "48", Fill: "#e6edf3"},
				{Text: "1", X: "41.2", Y: "48", Fill: "#e6edf3"},
			},
		},
		"words of one text stay together": {
			screen: "no device there",
			want:   []drawn{{Text: "no device there", X: "16.0", Y: "30", Fill: "#e6edf3"}},
		},
		"colours end where they end, also across lines": {
			screen: "\x1b[31mbad\x1b[39m ok\x1b[1m\nbold\x1b[m",
			want: []drawn{
				{Text: "bad", X: "16.0", Y: "30", Fill: "#ff7b72"},
				{Text: "ok", X: "49.6", Y: "30", Fill: "#e6edf3"},
				{Text: "bold", X: "16.0", Y: "48", Fill: "#e6edf3", Weight: "bold"},
			},
		},
		"reverse": {
			screen: "\x1b[7mrow\x1b[m",
			want:   []drawn{{Text: "row", X: "16.0", Y: "30", Fill: "#0d1117"}},
		},
		"a light background": {
			screen: "\x1b[31mbad\x1b[39m \x1b[7mrow\x1b[m",
			light:  true,
			want: []drawn{
				{Text: "bad", X: "16.0", Y: "30", Fill: "#b31d28"},
				{Text: "row", X: "49.6", Y: "30", Fill: "#ffffff"},
			},
		},
		"markup is text": {
			screen: `<b> & "c"`,
			want:   []drawn{{Text: `<b> & "c"`, X: "16.0", Y: "30", Fill: "#e6edf3"}},
		},
		"a command": {
			command: "kubectl dra top",
			screen:  "up",
			want: []drawn{
				{Text: "$ kubectl dra top", X: "16.0", Y: "30", Fill: "#e6edf3", Weight: "bold"},
				{Text: "up", X: "16.0", Y: "66", Fill: "#e6edf3"},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := texts(t, picture.SVG(test.command, test.screen, test.light))
			if len(got) != len(test.want) {
				t.Fatalf("got %+v\nwant %+v", got, test.want)
			}
			for i, want := range test.want {
				if got[i] != want {
					t.Errorf("got %+v\nwant %+v", got[i], want)
				}
			}
		})
	}
}
