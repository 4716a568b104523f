package lashd_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Size limits that keep types and packages readable.
const (
	mostMethods = 60     // methods of a type
	mostFields  = 30     // fields of a struct
	mostLines   = 11_000 // lines of a package, without its tests, comments and blank lines
)

// larger lists the types and packages that exceed these limits, with their size.
// They may shrink but not grow: enter a smaller size here when they do. Commit and
// Event are plain values that are stored or sent as a whole.
var larger = map[string]size{
	"lashd/engine":             {lines: 14_930},
	"lashd/persistence.Commit": {fields: 36},
	"lashd/rpc/protocol.Event": {fields: 43},
}

type size struct{ methods, fields, lines int }

// TestSizes compares the sizes of all types and packages with the limits.
func TestSizes(t *testing.T) {
	sizes := map[string]*size{}
	of := func(name string) *size {
		if sizes[name] == nil {
			sizes[name] = &size{}
		}
		return sizes[name]
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".cache" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := strings.TrimSuffix("lashd/"+filepath.ToSlash(filepath.Dir(path)), "/.")
		of(pkg).lines += codeLines(src)
		for _, decl := range file.Decls {
			count(decl, func(name string) *size { return of(pkg + "." + name) })
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range sizes {
		known := larger[name]
		if s.methods > max(mostMethods, known.methods) || s.fields > max(mostFields, known.fields) || s.lines > max(mostLines, known.lines) {
			t.Errorf("%s has %d methods, %d fields, %d lines; at most %d, %d, %d, or its listed size (%+v)", name, s.methods, s.fields, s.lines, mostMethods, mostFields, mostLines, known)
		}
	}
	for name := range larger {
		if sizes[name] == nil {
			t.Errorf("%s is listed but does not exist", name)
		}
	}
}

// codeLines counts the lines of a file without blank lines and lines that hold only a comment.
func codeLines(src []byte) int {
	n := 0
	for line := range bytes.Lines(src) {
		if text := bytes.TrimSpace(line); len(text) > 0 && !bytes.HasPrefix(text, []byte("//")) {
			n++
		}
	}
	return n
}

// count adds the methods or fields of a declaration to the size of their type.
func count(decl ast.Decl, of func(string) *size) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			of(receiver(d.Recv.List[0].Type)).methods++
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok {
				if body, ok := s.Type.(*ast.StructType); ok {
					of(s.Name.Name).fields += body.Fields.NumFields()
				}
			}
		}
	}
}

// receiver returns the name of the type that a method belongs to.
func receiver(e ast.Expr) string {
	for {
		switch t := e.(type) {
		case *ast.StarExpr:
			e = t.X
		case *ast.IndexExpr:
			e = t.X
		case *ast.IndexListExpr:
			e = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}
