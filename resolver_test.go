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

// walkers are the functions that follow links, or that open the elements of a path
// one by one.
var walkers = []string{
	"filepath.EvalSymlinks", "os.Readlink", "syscall.Readlink", "unix.Readlink", "unix.Readlinkat", "unix.Openat", "unix.Openat2",
}

// ownWalkers are the files outside the resolver that may call them, with the
// reason.
var ownWalkers = map[string]string{
	"engine/proc/beside_linux.go":    "opens the entries beside hidden paths, and follows no links",
	"engine/proc/broker_linux.go":    "opens the file of a socket as the program would find it, and connects only to what the kernel lists",
	"engine/proc/confine_linux.go":   "opens the program of a sandbox, which is not in a workspace",
	"engine/proc/landlock_linux.go":  "opens the paths of a sandbox, which must not contain links",
	"engine/proc/terminals_linux.go": "reads which terminal it has as its input",
	"engine/proc/view_linux.go":      "opens the paths of a sandbox, which must not contain links",
	"engine/sandbox/changes.go":      "compares the targets of links with earlier ones, and follows none",
	"rpc/socket/directory_unix.go":   "checks the owner of each directory of a path, and creates missing ones",
	"test/tree/tree.go":              "reports the targets of links and follows none",
}

func TestOneResolver(t *testing.T) {
	t.Run("outside/7 only lashd/internal/pathresolve follows links", func(t *testing.T) {
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
				t.Errorf("%s calls %s; use lashd/internal/pathresolve to resolve paths", file, call)
			}
		}
	})
}

// walkersIn returns the calls of walkers in a file, each as the file and the
// function.
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
