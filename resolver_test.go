package lashd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// walkers are what follows links, or opens names one by one, in code that is not a test.
var walkers = []string{
	"filepath.EvalSymlinks", "os.Readlink", "syscall.Readlink", "unix.Readlink", "unix.Readlinkat", "unix.Openat", "unix.Openat2",
}

// ownWalkers are the files that do so beside the resolver, and why.
var ownWalkers = map[string]string{
	"engine/proc/confine_linux.go":  "the program that a sandbox is to run, which is in no workspace",
	"engine/proc/landlock_linux.go": "what a sandbox is to open, of which no part may be a link",
	"rpc/socket/directory_unix.go":  "checks the owner of each directory on the way, and makes those that are missing",
	"test/tree/tree.go":             "says where links lead, and follows none",
}

func TestOneResolver(t *testing.T) {
	t.Run("outside/7 only one package follows links", func(t *testing.T) {
		var found []string
		err := filepath.WalkDir(".", func(file string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && (strings.HasPrefix(file, "internal/pathresolve") || e.Name() == "testdata" || e.Name() == "node_modules"):
				return fs.SkipDir
			case strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go"):
				found = append(found, walkersIn(t, file)...)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if file, call, _ := strings.Cut(f, " "); ownWalkers[filepath.ToSlash(file)] == "" {
				t.Errorf("%s calls %s: lashd/internal/pathresolve has what finds out where a path leads", file, call)
			}
		}
	})
}

func walkersIn(t *testing.T, file string) (found []string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := s.X.(*ast.Ident); ok && slices.Contains(walkers, pkg.Name+"."+s.Sel.Name) {
				found = append(found, file+" "+pkg.Name+"."+s.Sel.Name)
			}
		}
		return true
	})
	return found
}
