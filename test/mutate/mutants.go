package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
)

// mutant is one change that makes the code worse. It is active when its number is selected.
type mutant struct {
	number int
	file   string // base name
	line   int
	what   string // description of the change
	code   string // the original line
	edits  []edit
}

// place is the position of a mutant, as options.only and compiler errors name it.
func (m mutant) place() string { return fmt.Sprintf("%s:%d", m.file, m.line) }

// edit replaces the bytes from start to end. The edits of two mutants never
// overlap partly: one encloses the other, or they are apart.
type edit struct {
	start, end int
	text       string
	opens      int // end of the region that the edit opens; 0 if it closes or replaces
	closes     int // start of the region that the edit closes
}

// source is a file that is being mutated. It is not safe for concurrent use.
type source struct {
	name    string
	text    []byte
	fset    *token.FileSet
	next    func() int
	mutants []mutant
	results *ast.FieldList // results of the function that is being walked
}

// mutantsOf returns the mutants of a file, numbered from next.
func mutantsOf(name string, text []byte, next func() int) ([]mutant, error) {
	s := &source{name: name, text: text, fset: token.NewFileSet(), next: next}
	file, err := parser.ParseFile(s.fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			s.function(f.Type, f.Body)
		}
	}
	return s.mutants, nil
}

// function walks the body of a function. Function literals inside it are walked
// with their own results.
func (s *source) function(t *ast.FuncType, body *ast.BlockStmt) {
	outer := s.results
	s.results = t.Results
	ast.Inspect(body, s.node)
	s.results = outer
}

// node adds the mutants of one syntax node. It returns false for nodes whose
// children are not walked: constants cannot contain calls.
func (s *source) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		s.function(n.Type, n.Body)
		return false
	case *ast.GenDecl:
		return n.Tok != token.CONST
	case *ast.BlockStmt:
		s.statements(n.List)
	case *ast.CaseClause:
		s.statements(n.Body)
	case *ast.CommClause:
		s.statements(n.Body)
	case *ast.IfStmt:
		s.always(n.Cond)
		s.never(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			s.never(n.Cond)
		}
	case *ast.SwitchStmt:
		s.cases(n)
	case *ast.BinaryExpr:
		s.binary(n)
	case *ast.ReturnStmt:
		s.returned(n)
	}
	return true
}

// cases adds mutants of the conditions of a switch without a tag.
func (s *source) cases(n *ast.SwitchStmt) {
	if n.Tag != nil {
		return
	}
	for _, c := range n.Body.List {
		for _, cond := range c.(*ast.CaseClause).List {
			s.always(cond)
			s.never(cond)
		}
	}
}

// statements adds a mutant for each statement that can be left out: calls,
// assignments, increments, sends, defers and jumps.
func (s *source) statements(list []ast.Stmt) {
	for _, stmt := range list {
		switch stmt := stmt.(type) {
		case *ast.ExprStmt:
			if call, ok := stmt.X.(*ast.CallExpr); ok && isName(call.Fun, "panic") {
				continue // the mutated function would lack a return
			}
		case *ast.AssignStmt:
			if stmt.Tok == token.DEFINE || len(stmt.Lhs) == 1 && isName(stmt.Lhs[0], "_") {
				continue
			}
		case *ast.BranchStmt:
			if stmt.Tok == token.GOTO || stmt.Tok == token.FALLTHROUGH {
				continue
			}
		case *ast.IncDecStmt, *ast.DeferStmt, *ast.SendStmt:
		default:
			continue
		}
		s.wrap(stmt, "leave the statement out", "if !mutated_(%d) { ", " }")
	}
}

// always and never add mutants that fix a condition. The condition is not
// evaluated then.
func (s *source) always(x ast.Expr) { s.wrap(x, "always true: "+s.at(x), "(mutated_(%d) || (", "))") }
func (s *source) never(x ast.Expr)  { s.wrap(x, "always false: "+s.at(x), "(!mutated_(%d) && (", "))") }

// binary adds the mutants of an operator: parts of a condition, negated
// comparisons, other bounds, and sums without their second operand.
func (s *source) binary(x *ast.BinaryExpr) {
	switch x.Op {
	case token.LAND:
		s.always(x.X)
		s.always(x.Y)
	case token.LOR:
		s.never(x.X)
		s.never(x.Y)
	case token.EQL, token.NEQ:
		s.wrap(x, "negated: "+s.at(x), "(mutated_(%d) != (", "))")
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		s.call(x, "with the other bound: ", helpers[x.Op])
	case token.ADD, token.SUB:
		if isNumber(x.X) || isNumber(x.Y) {
			s.call(x, "without its second operand: ", helpers[x.Op])
		}
	}
}

// helpers are the functions that are added to every mutated package.
var helpers = map[token.Token]string{
	token.LSS: "mutatedLess_", token.LEQ: "mutatedLessEqual_", token.GTR: "mutatedGreater_", token.GEQ: "mutatedGreaterEqual_",
	token.ADD: "mutatedPlus_", token.SUB: "mutatedMinus_",
}

// call adds a mutant that replaces an operator by a call of a helper, which
// applies either form.
func (s *source) call(x *ast.BinaryExpr, what, helper string) {
	m := s.mutant(x, what+s.at(x))
	start, end := s.offset(x.Pos()), s.offset(x.End())
	op := s.offset(x.OpPos)
	m.edits = []edit{
		{start: start, end: start, text: fmt.Sprintf("%s(%d, ", helper, m.number), opens: end},
		{start: op, end: op + len(x.Op.String()), text: ","},
		{start: end, end: end, text: ")", closes: start},
	}
	s.mutants = append(s.mutants, m)
}

// returned adds mutants that drop an error or invert a returned boolean.
func (s *source) returned(n *ast.ReturnStmt) {
	for _, x := range n.Results {
		switch {
		case isName(x, "true"):
			s.swap(x, "!mutated_(%d)")
		case isName(x, "false"):
			s.swap(x, "mutated_(%d)")
		}
	}
	if !s.returnsError() || len(n.Results) != s.results.NumFields() {
		return
	}
	last := n.Results[len(n.Results)-1]
	if isName(last, "nil") {
		return
	}
	before := string(s.text[s.offset(n.Results[0].Pos()):s.offset(last.Pos())])
	m := s.mutant(n, "lose the error: "+s.at(n))
	start := s.offset(n.Pos())
	text := fmt.Sprintf("if mutated_(%d) { _ = %s; return %snil }; ", m.number, s.at(last), before)
	m.edits = []edit{{start: start, end: start, text: text, opens: s.offset(n.End())}}
	s.mutants = append(s.mutants, m)
}

// returnsError reports whether the last result of the current function is an
// error.
func (s *source) returnsError() bool {
	return s.results.NumFields() > 0 && isName(s.results.List[len(s.results.List)-1].Type, "error")
}

// swap adds a mutant that replaces an expression.
func (s *source) swap(x ast.Expr, text string) {
	m := s.mutant(x, "not "+s.at(x))
	m.edits = []edit{{start: s.offset(x.Pos()), end: s.offset(x.End()), text: fmt.Sprintf(text, m.number)}}
	s.mutants = append(s.mutants, m)
}

// wrap adds a mutant that surrounds a node with text. %d in before is the number
// of the mutant.
func (s *source) wrap(n ast.Node, what, before, after string) {
	m := s.mutant(n, what)
	start, end := s.offset(n.Pos()), s.offset(n.End())
	m.edits = []edit{
		{start: start, end: start, text: fmt.Sprintf(before, m.number), opens: end},
		{start: end, end: end, text: after, closes: start},
	}
	s.mutants = append(s.mutants, m)
}

// mutant returns a mutant at a node with the next number and no edits.
func (s *source) mutant(n ast.Node, what string) mutant {
	pos := s.fset.Position(n.Pos())
	return mutant{number: s.next(), file: s.name, line: pos.Line, what: what, code: lineAt(s.text, pos.Offset)}
}

func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }
func (s *source) at(n ast.Node) string   { return string(s.text[s.offset(n.Pos()):s.offset(n.End())]) }

func isName(x ast.Expr, name string) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == name
}

func isNumber(x ast.Expr) bool {
	lit, ok := x.(*ast.BasicLit)
	return ok && lit.Kind == token.INT
}
