// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// Correct corrects an expression that reads values which no device has: names, domains and
// drivers with a typo, capacities taken for attributes and the reverse, values compared
// with literals of another type, and operators and quotes of other languages. The
// expression need not compile. It is not ok if there is nothing to correct, if the result
// does not compile, or if the API server would not accept it. It does not check whether any
// device matches then.
func (v *Evaluator) Correct(sel *Selector, words *Vocabulary) (Correction, bool) {
	env := v.environment()
	if env == nil || len(sel.Expression) > resourceapi.CELSelectorExpressionMaxLength {
		return Correction{}, false
	}
	text, spelling := sel.Expression, []Change(nil)
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		if text, spelling = respelled(text); len(spelling) == 0 {
			return Correction{}, false
		}
		if parsed, issues = env.Parse(text); issues.Err() != nil {
			return Correction{}, false
		}
	}
	root, info := withoutBinds(parsed.NativeRep())
	c := &correcting{whole: ast.NewAST(root, info), words: words, factory: ast.NewExprFactory(), original: map[int64]written{}, at: map[int64]Change{}}
	everywhere(c.whole, c.remember)
	if sel.Err != nil {
		c.functions = functionNames(env)
		everywhere(c.whole, c.identifiers)
	}
	everywhere(c.whole, c.names)
	everywhere(c.whole, c.types)
	c.flags(root)
	if len(c.at) > 0 {
		var err error
		if text, err = unparse(c.whole.Expr(), c.whole.SourceInfo()); err != nil {
			return Correction{}, false
		}
	}
	if text == sel.Expression || len(text) > resourceapi.CELSelectorExpressionMaxLength || !v.accepts(text) {
		return Correction{}, false
	}
	return Correction{Expression: text, Changes: append(spelling, c.changes()...)}, true
}

// accepts reports whether the API server accepts an expression.
func (v *Evaluator) accepts(expression string) bool {
	compiled := dracel.GetCompiler(v.features).CompileCELExpression(expression, dracel.Options{})
	return compiled.Error == nil && compiled.MaxCost <= resourceapi.CELSelectorExpressionMaxCost
}

// environment returns the environment for parsing expressions, with macros remembered as
// they were written; nil if there is none.
func (v *Evaluator) environment() *cel.Env {
	anything := v.cache.GetOrCompile("true")
	if anything.Error != nil {
		return nil
	}
	env, err := anything.Environment.Extend(cel.EnableMacroCallTracking())
	if err != nil {
		return nil
	}
	return env
}

// functionNames lists the functions and macros that can be called by a name.
func functionNames(env *cel.Env) []string {
	names := slices.DeleteFunc(slices.Collect(maps.Keys(env.Functions())), func(name string) bool { return !isIdentifier(name) })
	for _, macro := range env.Macros() {
		names = append(names, macro.Function())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// identifiers corrects "device", its fields, and functions, whose typos keep an expression
// from being compiled. It reports whether to visit the operands of e.
func (c *correcting) identifiers(e ast.Expr) bool {
	switch e.Kind() {
	case ast.IdentKind:
		if name := e.AsIdent(); name != deviceVariable && c.words.Nearest(name, []string{deviceVariable}) != "" && !c.isVariable(name) {
			c.replace(e, c.factory.NewIdent(0, deviceVariable), Change{name, deviceVariable})
		}
	case ast.SelectKind:
		sel := e.AsSelect()
		c.identifiers(sel.Operand())
		fields := []string{KindDriver, KindAttributes, KindCapacity, KindSharing}
		if name := sel.FieldName(); isDevice(sel.Operand()) && !slices.Contains(fields, name) {
			if near := c.words.Nearest(name, fields); near != "" {
				c.replace(e, c.selected(e, sel.Operand(), near), Change{"device." + name, "device." + near})
			}
		}
	case ast.CallKind:
		call := e.AsCall()
		name := call.FunctionName()
		if !isIdentifier(name) || slices.Contains(c.functions, name) {
			return true
		}
		near := c.words.Nearest(name, c.functions)
		switch {
		case near == "":
		case call.IsMemberFunction():
			c.replace(e, c.factory.NewMemberCall(0, near, call.Target(), call.Args()...), Change{name, near})
		default:
			c.replace(e, c.factory.NewCall(0, near, call.Args()...), Change{name, near})
		}
	default:
	}
	return true
}

// isVariable reports whether a macro anywhere in the expression gives a name a meaning.
func (c *correcting) isVariable(name string) bool { return shadows(c.whole.Expr(), name) }

// selected returns the selection of a field in the form of another one: with or without
// has().
func (c *correcting) selected(like, operand ast.Expr, field string) ast.Expr {
	if like.AsSelect().IsTestOnly() {
		return c.factory.NewPresenceTest(0, operand, field)
	}
	return c.factory.NewSelect(0, operand, field)
}

// names corrects the names of readings, and the compared driver. It reports whether to
// visit the operands of e.
func (c *correcting) names(e ast.Expr) bool {
	if r, value, ok := equality(e); ok && r.Kind == KindDriver && !slices.Contains(c.words.Drivers(), value) {
		if near := c.words.Nearest(value, c.words.Drivers()); near != "" {
			left, right := e.AsCall().Args()[0], e.AsCall().Args()[1]
			if _, isText := literalText(left); isText {
				left = literalExpr(near, "")
			} else {
				right = literalExpr(near, "")
			}
			c.replace(e, c.factory.NewCall(0, operators.Equals, left, right), Change{value, near})
		}
		return false
	}
	if r, ok := c.unqualified(e); ok {
		c.replace(e, c.reading(r), Change{c.text(e), r.String()})
		return false
	}
	r, ok := readingOf(e)
	if !ok {
		return true
	}
	nearest, ok := c.words.NearestReading(r)
	if !ok || nearest.Name != "" && !isIdentifier(nearest.Name) {
		return false
	}
	change := Change{r.String(), nearest.String()}
	switch {
	case r.Kind == nearest.Kind && r.Domain == nearest.Domain:
		change = Change{r.Name, nearest.Name}
	case r.Kind == nearest.Kind && r.Name == nearest.Name:
		change = Change{r.Domain, nearest.Domain}
	}
	c.replace(e, c.renamed(e, nearest), change)
	return false
}

// reading writes device.kind["domain"].name.
func (c *correcting) reading(r Reading) ast.Expr {
	return c.factory.NewSelect(0, c.domain(operators.Index, r), r.Name)
}

func (c *correcting) domain(index string, r Reading) ast.Expr {
	return c.factory.NewCall(0, index, c.kind(r.Kind), c.factory.NewLiteral(0, types.String(r.Domain)))
}

func (c *correcting) kind(name string) ast.Expr {
	return c.factory.NewSelect(0, c.factory.NewIdent(0, deviceVariable), name)
}

// renamed writes another reading in a form that [readingOf] knows.
func (c *correcting) renamed(e ast.Expr, to Reading) ast.Expr {
	index := func(domain ast.Expr) string { return domain.AsCall().FunctionName() }
	name := c.factory.NewLiteral(0, types.String(to.Name))
	if e.Kind() == ast.SelectKind {
		return c.selected(e, c.domain(index(e.AsSelect().Operand()), to), to.Name)
	}
	call := e.AsCall()
	first, second := call.Args()[0], call.Args()[1]
	switch {
	case call.FunctionName() != operators.In:
		return c.factory.NewCall(0, call.FunctionName(), c.domain(index(first), to), name)
	case to.Name == "":
		return c.factory.NewCall(0, operators.In, c.factory.NewLiteral(0, types.String(to.Domain)), c.kind(to.Kind))
	default:
		return c.factory.NewCall(0, operators.In, name, c.domain(index(second), to))
	}
}

// unqualified recognizes readings whose domain was written as a part of the name:
// device.attributes["domain/name"], device.attributes["name"] and device.attributes.name.
func (c *correcting) unqualified(e ast.Expr) (Reading, bool) {
	kind, key, ok := domainOf(e)
	if !ok && e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly() {
		kind, ok = kindOf(e.AsSelect().Operand())
		key = e.AsSelect().FieldName()
	}
	if !ok || c.words.HasDomain(key) {
		return Reading{}, false
	}
	if domain, name, qualified := strings.Cut(key, "/"); qualified {
		r := Reading{Kind: kind, Domain: domain, Name: name}
		return r, c.words.Count(r) > 0 && isIdentifier(name)
	}
	var found []Reading
	for _, have := range c.words.Readings(kind) {
		if have.Name == key {
			found = append(found, have)
		}
	}
	if len(found) != 1 || !isIdentifier(key) {
		return Reading{}, false
	}
	return found[0], true
}

// spellings returns operators and quotes of other languages and word processors, with their
// CEL equivalents. Longer ones come first.
func spellings() []Change {
	return []Change{
		{"===", "=="},
		{"!==", "!="},
		{"==", "=="},
		{"!=", "!="},
		{"<=", "<="},
		{">=", ">="},
		{"&&", "&&"},
		{"||", "||"},
		{"=>", ">="},
		{"=<", "<="},
		{"<>", "!="},
		{"=", "=="},
		{"&", "&&"},
		{"|", "||"},
		{"“", `"`},
		{"”", `"`},
		{"„", `"`},
		{"‘", "'"},
		{"’", "'"},
	}
}

// respelled writes the operators and quotes of other languages as CEL does, outside of
// texts. There are no changes if it finds none.
func respelled(expression string) (string, []Change) {
	var out strings.Builder
	var changes []Change
	for rest := expression; rest != ""; {
		if n := textLength(rest); n > 0 {
			out.WriteString(rest[:n])
			rest = rest[n:]
			continue
		}
		at := slices.IndexFunc(spellings(), func(c Change) bool { return strings.HasPrefix(rest, c.From) })
		if at < 0 {
			out.WriteByte(rest[0])
			rest = rest[1:]
			continue
		}
		c := spellings()[at]
		if c.From != c.To && !slices.Contains(changes, c) {
			changes = append(changes, c)
		}
		out.WriteString(c.To)
		rest = rest[len(c.From):]
	}
	return out.String(), changes
}

// textLength returns the length of the string literal at the beginning of an expression, 0
// if there is none.
func textLength(expression string) int {
	quote := expression[:1]
	if quote != `"` && quote != "'" {
		return 0
	}
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(expression, triple) {
		quote = triple
	}
	for i := len(quote); i < len(expression); i++ {
		switch {
		case expression[i] == '\\':
			i++
		case strings.HasPrefix(expression[i:], quote):
			return i + len(quote)
		}
	}
	return len(expression)
}
