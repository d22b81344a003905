// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"html"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// isPage reports whether a text is a page of HTML, as 'kubectl dra report' writes it.
func isPage(data []byte) bool {
	const start = "<!doctype html>"
	return len(data) >= len(start) && bytes.EqualFold(data[:len(start)], []byte(start))
}

// fromPage returns the snapshot in a page, as gzipped JSON.
func fromPage(page []byte) ([]byte, error) {
	_, after, found := bytes.Cut(page, []byte(`href="`+snapshot.DataPrefix))
	text, _, ends := bytes.Cut(after, []byte(`"`))
	switch {
	case !found:
		return nil, errors.New("it is a page of HTML without a snapshot; 'kubectl dra report --with-snapshot' puts it in")
	case !ends:
		return nil, errors.New("the page ends within the snapshot: it seems to be cut off")
	}
	packed, err := base64.StdEncoding.DecodeString(html.UnescapeString(string(text)))
	if err == nil && !bytes.HasPrefix(packed, gzipMagic()) {
		err = errors.New("expected gzip data")
	}
	if err != nil {
		return nil, fmt.Errorf("the snapshot in the page is damaged: %w", err)
	}
	return packed, nil
}
