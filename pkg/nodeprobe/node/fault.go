// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// JSONFault returns an error of package json without the content of the file, which may be
// secret.
func JSONFault(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it is not JSON: it ends too early")
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON from byte %d on", syntax.Offset)
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("field %s has another type than expected, at byte %d", kind.Field, kind.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("a value has another type than expected, at byte %d", kind.Offset)
	default:
		return errors.New("it is not JSON")
	}
}

var (
	errNotSocket = errors.New("is no socket")
	errTooLong   = errors.New("the path is longer than this system can connect to")
)

// ErrNotRead means that something was not read, so that nothing is known of it.
var ErrNotRead = errors.New("was not read")
