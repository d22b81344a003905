// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apiservercel "k8s.io/apiserver/pkg/cel"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// evaluationLimit limits the time of an expression that computes quantities from texts, for
// one device. Others do not need a limit: CEL counts their work.
const evaluationLimit = time.Second

// UnendingError means that an evaluation was not made, or was abandoned, because it does
// not end.
type UnendingError struct {
	Expression string
}

func (e *UnendingError) Error() string {
	return fmt.Sprintf("evaluating %s does not end, and a scheduler that evaluates it may not come back either", strings.Join(strings.Fields(e.Expression), " "))
}

// errUnending returns the error with which evaluations that would not end are cancelled.
func errUnending() error {
	return interpreter.EvalCancelledError{Cause: interpreter.ContextCancelled, Message: unendingMessage}
}

const unendingMessage = "operation cancelled: a quantity has an exponent out of bounds"

// unending turns an error into an UnendingError for the expression if that is why it
// failed.
func unending(expression string, err error) error {
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Message == unendingMessage || errors.Is(err, errNotInTime) {
		return &UnendingError{Expression: expression}
	}
	return err
}

var (
	errNotInTime = errors.New("the evaluation does not end in time")

	// quantityCall matches a call that turns a text into a quantity; literalCall the same
	// with a literal text.
	literalCall = regexp.MustCompile(`^` + quantityCall + `\s*\(\s*(?:"([^"\\]*)"|'([^'\\]*)')\s*\)`)
)

// quantityCall is common to the names of the functions that parse quantities.
const quantityCall = "uantity"

// Bounded reports whether all quantities that an expression parses from texts are literals,
// with exponents that CEL can work with. Others are to be evaluated by an [Evaluator]
// before anything else does it: neither the limit of CEL for the cost nor a cancelled
// context ends the computation with a number that has too many digits.
func Bounded(expression string) bool {
	for rest := expression; ; rest = rest[len(quantityCall):] {
		at := strings.Index(rest, quantityCall)
		if at < 0 {
			return true
		}
		rest = rest[at:]
		literal := literalCall.FindStringSubmatch(rest)
		if literal == nil || hasLongExponent(literal[1]) || hasLongExponent(literal[2]) {
			return false
		}
	}
}

// boundedQuantities returns the functions that parse a quantity from a text. They cancel
// the whole evaluation if that text has a long exponent.
func boundedQuantities() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Function("quantity", cel.Overload("string_to_quantity", []*cel.Type{cel.StringType}, apiservercel.QuantityType, cel.UnaryBinding(func(text ref.Val) ref.Val {
			quantity, err := readQuantity(text)
			if err != nil {
				return types.WrapErr(err)
			}
			return apiservercel.Quantity{Quantity: &quantity}
		}))),
		cel.Function("isQuantity", cel.Overload("is_quantity_string", []*cel.Type{cel.StringType}, cel.BoolType, cel.UnaryBinding(func(text ref.Val) ref.Val {
			_, err := readQuantity(text)
			return types.Bool(err == nil)
		}))),
	}
}

func readQuantity(value ref.Val) (resource.Quantity, error) {
	text, ok := value.Value().(string)
	if !ok {
		return resource.Quantity{}, fmt.Errorf("expected a text, found %s", value.Type().TypeName())
	}
	if hasLongExponent(text) {
		// The other operand of || would mask an error; a panic ends the evaluation.
		panic(errUnending())
	}
	return resource.ParseQuantity(text)
}

// boundedProgram returns a compiled expression with bounded quantities, if it uses
// quantities.
func boundedProgram(compiled dracel.CompilationResult) dracel.CompilationResult {
	if compiled.Error != nil || Bounded(compiled.Expression) {
		return compiled
	}
	env, err := compiled.Environment.Extend(boundedQuantities()...)
	if err == nil {
		parsed, issues := env.Compile(compiled.Expression)
		if err = issues.Err(); err == nil {
			compiled.Program, err = env.Program(parsed, cel.CostLimit(resourceapi.CELSelectorExpressionMaxCost), cel.InterruptCheckFrequency(checkFrequency))
		}
	}
	if err != nil {
		compiled.Error = &apiservercel.Error{Type: apiservercel.ErrorTypeInternal, Detail: "bound the quantities: " + err.Error()}
	}
	return compiled
}

// within waits for an evaluation, but not longer than a limit. An unending evaluation goes
// on in the background.
func within[T any](ctx context.Context, limit time.Duration, evaluate func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		value, err := evaluate(limited)
		answers <- answer{value, err}
	}()
	var none T
	select {
	case found := <-answers:
		if found.err != nil && limited.Err() != nil && ctx.Err() == nil {
			return none, errNotInTime
		}
		return found.value, found.err
	case <-limited.Done():
		if err := ctx.Err(); err != nil {
			return none, fmt.Errorf("evaluate: %w", err)
		}
		return none, errNotInTime
	}
}
