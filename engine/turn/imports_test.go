package turn

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pure lists the packages that the machine may import. They do no IO, read no clock and draw no randomness, except where
// noted; the test looks for those uses.
var pure = []string{
	"bytes", "cmp", "encoding", "encoding/json", "errors", "fmt", "math", "reflect", "slices", "strings", "unicode/utf8",
	"sync",                  // for what is known of types
	"lashd/engine/provider", // for Reply and its parts: plain data, and what can be kept of it
	"lashd/rpc/protocol",    // New...ID draws randomness
}

func TestImports(t *testing.T) {
	t.Run("runtime/T01 the machine imports nothing that does IO", func(t *testing.T) {
		files, err := filepath.Glob("*.go")
		if err != nil {
			t.Fatal(err)
		}
		looked := 0
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			looked++
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, imp := range f.Imports {
				if path, _ := strconv.Unquote(imp.Path.Value); !slices.Contains(pure, path) {
					t.Errorf("%s imports %s", name, path)
				}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if what := impure(n); what != "" {
					t.Errorf("%s: %s", set.Position(n.Pos()), what)
				}
				return true
			})
		}
		if looked < 4 {
			t.Errorf("only %d files looked at", looked)
		}
	})
}

// impure returns why a piece of code depends on more than its arguments.
func impure(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
		return "concurrency"
	case *ast.MapType:
		return "a map, whose order is random"
	case *ast.SelectorExpr:
		pkg, ok := n.X.(*ast.Ident)
		if !ok {
			return ""
		}
		switch {
		case pkg.Name == "protocol" && strings.HasPrefix(n.Sel.Name, "New"):
			return "a random id"
		case pkg.Name == "provider" && !slices.Contains([]string{"Reply", "Arguments", "ToolChoice", "ToolsNone", "OutputSpec"}, n.Sel.Name):
			return "provider." + n.Sel.Name
		case pkg.Name == "fmt" && !slices.Contains([]string{"Sprintf", "Errorf"}, n.Sel.Name):
			return "output"
		}
	}
	return ""
}
