package starlark

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// source has the texts of the functions of a cell. Functions are saved by source: a restored function is compiled
// again, with the values that it had captured and the defaults of its parameters.
type source struct {
	functions map[spot]string
}

// spot is a place in a cell.
type spot struct{ line, column int32 }

// newSource cuts the functions out of the text of a cell that starts at line 1 and column 1.
func newSource(content string, functions []syntax.Node) *source {
	return newSourceAt(content, spot{1, 1}, functions)
}

// newSourceAt is newSource for a text that starts at the given place of its cell.
// Functions that are restored come from a part of a cell. Their places must stay those of the cell, because errors show its lines.
func newSourceAt(content string, from spot, functions []syntax.Node) *source {
	s := &source{functions: map[spot]string{}}
	lines := strings.SplitAfter(content, "\n")
	starts := make([]int, len(lines)+1)
	for i, line := range lines {
		starts[i+1] = starts[i] + len(line)
	}
	offset := func(p spot) int {
		row, column := int(p.line-from.line), p.column-1
		if row == 0 {
			column = p.column - from.column
		}
		if row < 0 || row >= len(lines) {
			return len(content)
		}
		return starts[row] + runes(lines[row], int(column))
	}
	for _, f := range functions {
		begin := syntax.Start(f)
		at := spot{begin.Line, begin.Col}
		var end int
		switch f := f.(type) {
		case *syntax.DefStmt: // to the end of its last line
			last := syntax.End(f)
			end = offset(spot{last.Line, 1 << 30})
		case *syntax.LambdaExpr:
			end = offset(ending(f.Body))
		}
		if start := offset(at); start <= end {
			s.functions[at] = content[start:end]
		}
	}
	return s
}

// runes returns the number of bytes of the first n runes of a line, without its end.
// The parser counts columns in runes, and the text is cut in bytes.
func runes(line string, n int) int {
	line = strings.TrimRight(line, "\r\n")
	at := 0
	for ; n > 0 && at < len(line); n-- {
		_, size := utf8.DecodeRuneInString(line[at:])
		at += size
	}
	return at
}

// ending returns the place after an expression. Some spans of the syntax package lack the closing bracket.
//
// A lambda must end exactly, because the text behind it belongs to something else. The result was checked with each kind
// of expression that can end a lambda.
func ending(e syntax.Expr) spot {
	switch e := e.(type) {
	case *syntax.BinaryExpr:
		return ending(e.Y)
	case *syntax.UnaryExpr:
		return ending(e.X)
	case *syntax.CondExpr:
		return ending(e.False)
	case *syntax.LambdaExpr:
		return ending(e.Body)
	case *syntax.IndexExpr:
		return spot{e.Rbrack.Line, e.Rbrack.Col + 1}
	case *syntax.SliceExpr:
		return spot{e.Rbrack.Line, e.Rbrack.Col + 1}
	case *syntax.TupleExpr:
		if e.Rparen.IsValid() {
			return spot{e.Rparen.Line, e.Rparen.Col + 1}
		}
	}
	end := syntax.End(e)
	return spot{end.Line, end.Col}
}

// function appends a function: the cell and place of its source, its source, captured values and defaults.
// Globals that the function uses are not part of it: it finds them by name when it is called, so a later assignment takes effect
// as it does without a restart.
func (e *encoder) function(f *starlark.Function) error {
	pos := f.Position()
	src := e.in.sources[pos.Filename()]
	if src == nil || src.functions[spot{pos.Line, pos.Col}] == "" {
		return fmt.Errorf("the source of the function %s is not known; define it again", f.Name())
	}
	cell, _, _ := strings.Cut(pos.Filename(), "#")
	e.text(tagFunction, cell)
	e.out = binary.AppendUvarint(e.out, uint64(pos.Line))
	e.out = binary.AppendUvarint(e.out, uint64(pos.Col))
	e.out = appendText(e.out, src.functions[spot{pos.Line, pos.Col}])
	e.out = binary.AppendUvarint(e.out, uint64(f.NumFreeVars()))
	for i := range f.NumFreeVars() {
		b, v := f.FreeVar(i)
		if v == nil {
			return fmt.Errorf("the function %s uses the variable %s, which has no value", f.Name(), b.Name)
		}
		e.out = appendText(e.out, b.Name)
		if err := e.value(v); err != nil {
			return fmt.Errorf("the function %s uses the variable %s: %w", f.Name(), b.Name, err)
		}
	}
	return e.defaults(f)
}

// defaults appends the defaults of the parameters of a function, in order.
func (e *encoder) defaults(f *starlark.Function) error {
	var values []starlark.Value
	for i := range f.NumParams() {
		if v := f.ParamDefault(i); v != nil {
			values = append(values, v)
		}
	}
	e.out = binary.AppendUvarint(e.out, uint64(len(values)))
	for _, v := range values {
		if err := e.value(v); err != nil {
			return fmt.Errorf("a default of the function %s: %w", f.Name(), err)
		}
	}
	return nil
}

// function reads a function and compiles it.
// The source may be damaged too. It is parsed and compiled like the code of a cell and not run, except for the maker, which only
// returns the function.
func (d *decoder) function() starlark.Value {
	cell := d.text()
	at := spot{int32(d.uvarint()), int32(d.uvarint())}
	src := d.text()
	names, values := make([]string, d.length()), starlark.Tuple{}
	for i := range names {
		names[i] = d.text()
		values = append(values, d.value())
	}
	defaults := d.elements()
	if d.err != nil {
		return nil
	}
	f, err := d.in.rebuild(cell, at, src, names, append(values, defaults...), len(defaults))
	if err != nil {
		d.err = fmt.Errorf("a function of %s: %w", cell, err)
		return nil
	}
	return f
}

// makerName is the function that makes a restored function from the values that it had captured.
const makerName = "$make"

// rebuild compiles a function of an earlier cell. It is wrapped in another function, whose parameters are the captured
// variables and the defaults; its code keeps its place in the cell.
//
// A captured variable cannot change after its function has returned, because Starlark has no nonlocal statement. So passing the
// values as arguments gives the same function. Variables of the top level are not captured: they are globals.
func (in *Interpreter) rebuild(cell string, at spot, src string, captured []string, values starlark.Tuple, defaults int) (starlark.Value, error) {
	in.serial++
	name := fmt.Sprintf("%s#%d", cell, in.serial)
	def, result, err := parseFunction(name, at, src)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	params := make([]syntax.Expr, 0, len(values))
	param := func(name string) *syntax.Ident {
		names[name] = true
		id := &syntax.Ident{NamePos: syntax.Start(result), Name: name}
		params = append(params, id)
		return &syntax.Ident{NamePos: id.NamePos, Name: name}
	}
	for _, name := range captured {
		param(name)
	}
	if err := replaceDefaults(def, result, defaults, param); err != nil {
		return nil, err
	}
	w := &rewriter{known: func(string) bool { return true }, suggest: func(string) string { return "" }, scopes: []map[string]bool{names}}
	var body []syntax.Stmt
	if def != nil { // its own name is a global in its body, so that it does not capture itself
		w.stmt(def)
		body = append(body, def)
	} else {
		result = w.expr(result)
	}
	if w.err != nil {
		return nil, w.err
	}
	body = append(body, &syntax.ReturnStmt{Result: result})
	maker := &syntax.DefStmt{Def: syntax.Start(result), Name: &syntax.Ident{NamePos: syntax.Start(result), Name: makerName}, Params: params, Body: body}
	program, err := starlark.FileProgram(&syntax.File{Path: name, Stmts: []syntax.Stmt{maker}, Options: options}, in.space.predeclared.Has)
	if err != nil {
		return nil, err
	}
	in.sources[name] = newSourceAt(src, at, w.functions)
	thread := &starlark.Thread{}
	made, err := program.Init(thread, in.space.predeclared)
	if err != nil {
		return nil, err
	}
	return starlark.Call(thread, made[makerName], values, nil)
}

// errNoFunction means that the source of a function is something else.
var errNoFunction = errors.New("the source is not a function")

// parseFunction parses a def statement or a lambda. It returns the statement, if it is one, and the expression for the
// function.
// The text comes from a stored encoding, so anything else than exactly one function is an error and not a crash.
func parseFunction(name string, at spot, src string) (*syntax.DefStmt, syntax.Expr, error) {
	if strings.HasPrefix(src, "def") {
		file, err := options.Parse(name, syntax.FilePortion{Content: []byte(src), FirstLine: at.line, FirstCol: at.column}, 0)
		if err != nil {
			return nil, nil, err
		}
		if len(file.Stmts) == 1 {
			if def, ok := file.Stmts[0].(*syntax.DefStmt); ok {
				return def, &syntax.Ident{NamePos: def.Def, Name: def.Name.Name}, nil
			}
		}
		return nil, nil, errNoFunction
	}
	// The parentheses let the lambda span lines, as those around it did.
	e, err := options.ParseExpr(name, syntax.FilePortion{Content: []byte("(" + src + "\n)"), FirstLine: at.line, FirstCol: at.column - 1}, 0)
	if err != nil {
		return nil, nil, err
	}
	if p, ok := e.(*syntax.ParenExpr); ok {
		if lambda, ok := p.X.(*syntax.LambdaExpr); ok {
			return nil, lambda, nil
		}
	}
	return nil, nil, errNoFunction
}

// replaceDefaults replaces the defaults of the function's parameters by parameters of the maker.
//
// Evaluating the expressions of the defaults again could give other values, and a list that is a default would lose what
// earlier calls have added to it.
func replaceDefaults(def *syntax.DefStmt, lambda syntax.Expr, n int, param func(name string) *syntax.Ident) error {
	var params []syntax.Expr
	if def != nil {
		params = def.Params
	} else {
		params = lambda.(*syntax.LambdaExpr).Params
	}
	found := 0
	for _, p := range params {
		if p, ok := p.(*syntax.BinaryExpr); ok {
			p.Y = param(fmt.Sprintf("$default%d", found))
			found++
		}
	}
	if found != n {
		return errNoFunction
	}
	return nil
}
