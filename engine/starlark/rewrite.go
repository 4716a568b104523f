package starlark

import (
	"fmt"

	"go.starlark.net/syntax"
)

// spaceName is the hidden name of the namespace in rewritten code. Source text cannot contain it.
const spaceName = "$g"

// Hidden members of the namespace and hidden functions.
const (
	valueName = "$value" // receives the value of the last expression
	guardName = "$guard" // wraps the right operand of + and *
	growName  = "$grow"  // is guard for += and *=
	modName   = "$mod"   // is the operator %
	attrName  = "$attr"  // is the selector of a method that could use much memory
)

// rewriter changes the syntax tree of a cell before it is resolved: each name that is not local to a function becomes an
// attribute of the namespace. So all cells, and functions of earlier cells, see the same globals, and the namespace
// learns which of them a cell uses. Operators and methods whose result can be much larger than their operands are
// replaced by functions that check the memory first.
type rewriter struct {
	known   func(name string) bool // whether a global or a builtin exists
	suggest func(name string) string

	bound     map[string]bool   // globals that the cell assigns
	scopes    []map[string]bool // names of the enclosing functions and comprehensions
	functions []syntax.Node     // DefStmts and LambdaExprs
	depth     int
	err       error // the first one
}

// maxDepth bounds the depth of a syntax tree. The parser has a limit for nesting, but not for long chains of operators.
const maxDepth = 4000

// file rewrites a cell. The value of a last statement that is an expression is assigned to a hidden name.
func (w *rewriter) file(f *syntax.File) error {
	w.bound = map[string]bool{}
	bindings(f.Stmts, w.bound)
	if n := len(f.Stmts); n > 0 {
		if last, ok := f.Stmts[n-1].(*syntax.ExprStmt); ok {
			start := syntax.Start(last)
			value := w.expr(last.X)
			f.Stmts = append(w.block(f.Stmts[:n-1]), &syntax.AssignStmt{OpPos: start, Op: syntax.EQ, LHS: global(valueName, start), RHS: value})
			return w.err
		}
	}
	f.Stmts = w.block(f.Stmts)
	return w.err
}

// bindings adds the names that statements bind to into. Bodies of functions are scopes of their own.
// Names are collected before anything is rewritten, since a function may use a global that is assigned further down.
func bindings(stmts []syntax.Stmt, into map[string]bool) {
	for _, s := range stmts {
		switch s := s.(type) {
		case *syntax.AssignStmt:
			targets(s.LHS, into)
		case *syntax.DefStmt:
			into[s.Name.Name] = true
		case *syntax.ForStmt:
			targets(s.Vars, into)
			bindings(s.Body, into)
		case *syntax.WhileStmt:
			bindings(s.Body, into)
		case *syntax.IfStmt:
			bindings(s.True, into)
			bindings(s.False, into)
		}
	}
}

// targets adds the names on the left side of an assignment.
// An element or a field on the left side, as in x[0] = 1, binds no name: it changes a value that exists.
func targets(e syntax.Expr, into map[string]bool) {
	switch e := e.(type) {
	case *syntax.Ident:
		into[e.Name] = true
	case *syntax.ParenExpr:
		targets(e.X, into)
	case *syntax.TupleExpr:
		for _, x := range e.List {
			targets(x, into)
		}
	case *syntax.ListExpr:
		for _, x := range e.List {
			targets(x, into)
		}
	}
}

// parameters adds the names of the parameters of a function.
func parameters(params []syntax.Expr, into map[string]bool) {
	for _, p := range params {
		switch p := p.(type) {
		case *syntax.Ident:
			into[p.Name] = true
		case *syntax.BinaryExpr: // name=default
			targets(p.X, into)
		case *syntax.UnaryExpr: // *args, **kwargs, *
			if p.X != nil {
				targets(p.X, into)
			}
		}
	}
}

// local reports whether a name belongs to an enclosing function or comprehension.
func (w *rewriter) local(name string) bool {
	for _, s := range w.scopes {
		if s[name] {
			return true
		}
	}
	return false
}

// scope runs f with additional local names.
func (w *rewriter) scope(names map[string]bool, f func()) {
	w.scopes = append(w.scopes, names)
	f()
	w.scopes = w.scopes[:len(w.scopes)-1]
}

// codeError is an error at a place of the code that is found before the code runs.
// It stops the cell before its first call, so a misspelled name near the end has no effects.
type codeError struct {
	pos     syntax.Position
	message string
}

func (e codeError) Error() string { return e.message }

// fail keeps the first error, which is the first one in the order of the text for most mistakes.
func (w *rewriter) fail(pos syntax.Position, format string, args ...any) {
	if w.err == nil {
		w.err = codeError{pos, fmt.Sprintf(format, args...)}
	}
}

// global returns the expression for a global at a position.
// Every part of it has the position of the name, so that errors point at the name and not at hidden code.
func global(name string, pos syntax.Position) *syntax.DotExpr {
	return &syntax.DotExpr{X: &syntax.Ident{NamePos: pos, Name: spaceName}, Dot: pos, NamePos: pos, Name: &syntax.Ident{NamePos: pos, Name: name}}
}

// hidden returns a call of a hidden function.
func hidden(name string, pos syntax.Position, args ...syntax.Expr) *syntax.CallExpr {
	return &syntax.CallExpr{Fn: &syntax.Ident{NamePos: pos, Name: name}, Lparen: pos, Args: args, Rparen: pos}
}

// block rewrites statements. A function of the top level is assigned to its global after its definition.
// The definition itself stays local to the cell. Only the assignment makes the function visible to later cells.
func (w *rewriter) block(stmts []syntax.Stmt) []syntax.Stmt {
	out := make([]syntax.Stmt, 0, len(stmts))
	for _, s := range stmts {
		w.stmt(s)
		out = append(out, s)
		if def, ok := s.(*syntax.DefStmt); ok && len(w.scopes) == 0 {
			at := def.Name.NamePos
			name := &syntax.Ident{NamePos: at, Name: def.Name.Name}
			out = append(out, &syntax.AssignStmt{OpPos: at, Op: syntax.EQ, LHS: global(name.Name, at), RHS: name})
		}
	}
	return out
}

func (w *rewriter) stmt(s syntax.Stmt) {
	switch s := s.(type) {
	case *syntax.AssignStmt:
		w.assign(s)
	case *syntax.ExprStmt:
		s.X = w.expr(s.X)
	case *syntax.DefStmt:
		w.functions = append(w.functions, s)
		w.function(s.Params, func(names map[string]bool) {
			bindings(s.Body, names)
			w.scope(names, func() { s.Body = w.block(s.Body) })
		})
	case *syntax.IfStmt:
		s.Cond, s.True = w.expr(s.Cond), w.block(s.True)
		if len(s.False) > 0 {
			s.False = w.block(s.False)
		}
	case *syntax.ForStmt:
		s.X, s.Vars = w.expr(s.X), w.target(s.Vars)
		s.Body = w.block(s.Body)
	case *syntax.WhileStmt:
		s.Cond, s.Body = w.expr(s.Cond), w.block(s.Body)
	case *syntax.ReturnStmt:
		if s.Result != nil {
			s.Result = w.expr(s.Result)
		}
	case *syntax.LoadStmt:
		w.fail(s.Load, "load is not available: everything is already loaded; call the functions of the tools")
	}
}

// assign rewrites an assignment. The operand of an assignment such as += is checked like that of the operator.
func (w *rewriter) assign(s *syntax.AssignStmt) {
	s.LHS, s.RHS = w.target(s.LHS), w.expr(s.RHS)
	if s.Op == syntax.PLUS_EQ && !literal(s.RHS) || s.Op == syntax.STAR_EQ {
		s.RHS = hidden(growName, s.OpPos, s.RHS)
	}
}

// target rewrites the left side of an assignment.
// Names in it become attributes of the namespace, as on the right side: the namespace then sees the assignment in SetField.
func (w *rewriter) target(e syntax.Expr) syntax.Expr {
	switch e := e.(type) {
	case *syntax.DotExpr:
		e.X = w.expr(e.X)
		return e
	case *syntax.ParenExpr:
		e.X = w.target(e.X)
		return e
	case *syntax.TupleExpr:
		w.targets(e.List)
		return e
	case *syntax.ListExpr:
		w.targets(e.List)
		return e
	}
	return w.expr(e)
}

func (w *rewriter) targets(list []syntax.Expr) {
	for i, e := range list {
		list[i] = w.target(e)
	}
}

// literal reports whether an expression is a literal, whose addition cannot double anything.
// Adding a literal in a loop still grows a text. It grows by a constant in each step, which the watchdog notices in time.
func literal(e syntax.Expr) bool {
	_, ok := e.(*syntax.Literal)
	return ok
}

// function rewrites the defaults of parameters and then calls body with the set of their names.
// Defaults are evaluated outside of the function, so they are rewritten before its names count as local.
func (w *rewriter) function(params []syntax.Expr, body func(names map[string]bool)) {
	names := map[string]bool{}
	parameters(params, names)
	for _, p := range params {
		if p, ok := p.(*syntax.BinaryExpr); ok {
			p.Y = w.expr(p.Y)
		}
	}
	body(names)
}

// exprs rewrites expressions in place.
func (w *rewriter) exprs(list []syntax.Expr) {
	for i, e := range list {
		list[i] = w.expr(e)
	}
}

// expr returns the rewritten form of an expression; nil for nil.
// It changes the tree in place. The caller must use the returned expression, which is another one for names and guarded operators.
func (w *rewriter) expr(e syntax.Expr) syntax.Expr {
	if e == nil {
		return nil
	}
	if w.depth++; w.depth > maxDepth {
		w.fail(syntax.Position{}, "an expression is too long or nested too deeply")
		return e
	}
	defer func() { w.depth-- }()
	switch e := e.(type) {
	case *syntax.Ident:
		return w.name(e)
	case *syntax.BinaryExpr:
		return w.binary(e)
	case *syntax.DotExpr:
		return w.dot(e)
	case *syntax.CallExpr:
		w.call(e)
	case *syntax.Comprehension:
		w.comprehension(e)
	case *syntax.LambdaExpr:
		w.functions = append(w.functions, e)
		w.function(e.Params, func(names map[string]bool) {
			w.scope(names, func() { e.Body = w.expr(e.Body) })
		})
	case *syntax.CondExpr:
		e.Cond, e.True, e.False = w.expr(e.Cond), w.expr(e.True), w.expr(e.False)
	case *syntax.DictEntry:
		e.Key, e.Value = w.expr(e.Key), w.expr(e.Value)
	case *syntax.DictExpr:
		w.exprs(e.List)
	case *syntax.ListExpr:
		w.exprs(e.List)
	case *syntax.TupleExpr:
		w.exprs(e.List)
	case *syntax.IndexExpr:
		e.X, e.Y = w.expr(e.X), w.expr(e.Y)
	case *syntax.SliceExpr:
		e.X, e.Lo, e.Hi, e.Step = w.expr(e.X), w.expr(e.Lo), w.expr(e.Hi), w.expr(e.Step)
	case *syntax.ParenExpr:
		e.X = w.expr(e.X)
	case *syntax.UnaryExpr:
		e.X = w.expr(e.X)
	}
	return e
}

// name rewrites an identifier that is used or assigned.
// The check for unknown names replaces that of the resolver, which knows only the hidden ones after the rewriting.
func (w *rewriter) name(e *syntax.Ident) syntax.Expr {
	switch {
	case e.Name == "None" || e.Name == "True" || e.Name == "False" || w.local(e.Name):
		return e
	case w.bound[e.Name] || w.known(e.Name):
		return global(e.Name, e.NamePos)
	}
	hint := ""
	if near := w.suggest(e.Name); near != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", near)
	}
	w.fail(e.NamePos, "undefined: %s%s", e.Name, hint)
	return e
}

// binary rewrites an operator. Named arguments and parameters are not operators; call and function handle them.
func (w *rewriter) binary(e *syntax.BinaryExpr) syntax.Expr {
	e.X, e.Y = w.expr(e.X), w.expr(e.Y)
	switch {
	case e.Op == syntax.STAR || e.Op == syntax.PLUS && !literal(e.X) && !literal(e.Y):
		e.Y = hidden(guardName, e.OpPos, e.Y)
	case e.Op == syntax.PERCENT:
		return hidden(modName, e.OpPos, e.X, e.Y)
	}
	return e
}

// dot rewrites a selector.
// Only the name of the method is known here, not the type of its value; attr looks at the type when the code runs.
func (w *rewriter) dot(e *syntax.DotExpr) syntax.Expr {
	e.X = w.expr(e.X)
	if guarded[e.Name.Name] != nil {
		return hidden(attrName, e.Dot, e.X, &syntax.Literal{Token: syntax.STRING, TokenPos: e.NamePos, Raw: `""`, Value: e.Name.Name})
	}
	return e
}

// call rewrites a call. The names of named arguments stay.
func (w *rewriter) call(e *syntax.CallExpr) {
	e.Fn = w.expr(e.Fn)
	for i, arg := range e.Args {
		if named, ok := arg.(*syntax.BinaryExpr); ok && named.Op == syntax.EQ {
			named.Y = w.expr(named.Y)
			continue
		}
		e.Args[i] = w.expr(arg)
	}
}

// comprehension rewrites a comprehension, whose variables are its own. The operand of the first for is outside.
func (w *rewriter) comprehension(e *syntax.Comprehension) {
	first := e.Clauses[0].(*syntax.ForClause)
	first.X = w.expr(first.X)
	names := map[string]bool{}
	for _, c := range e.Clauses {
		if c, ok := c.(*syntax.ForClause); ok {
			targets(c.Vars, names)
		}
	}
	w.scope(names, func() {
		for i, c := range e.Clauses {
			switch c := c.(type) {
			case *syntax.ForClause:
				if i > 0 {
					c.X = w.expr(c.X)
				}
				c.Vars = w.target(c.Vars)
			case *syntax.IfClause:
				c.Cond = w.expr(c.Cond)
			}
		}
		e.Body = w.expr(e.Body)
	})
}
