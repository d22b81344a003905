// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package save

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v2"
)

// MarshalYAML writes an object as YAML, whatever its strings have. It exists
// beside sigs.k8s.io/yaml since that one reads the JSON of an object as YAML,
// which fails for characters and for long field names that JSON and the API
// server allow.
func MarshalYAML(object any) ([]byte, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode as JSON: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	if value, err = withNumbers(value); err != nil {
		return nil, err
	}
	return yaml.Marshal(value)
}

// withNumbers replaces, in place, numbers as JSON has them by those that Go
// has: integers as long as they fit.
func withNumbers(value any) (_ any, err error) {
	switch value := value.(type) {
	case json.Number:
		return toNumber(value)
	case []any:
		for i := range value {
			if value[i], err = withNumbers(value[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range value {
			if value[key], err = withNumbers(value[key]); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

func toNumber(number json.Number) (any, error) {
	if integer, err := number.Int64(); err == nil {
		return integer, nil
	}
	float, err := number.Float64()
	if err != nil {
		return nil, fmt.Errorf("the number %s is too large", number)
	}
	return float, nil
}
