// Command systems checks the code for operating systems on which no tests run. It type-checks all
// packages, tests included, and runs checks of go vet. It compiles nothing, which would take most of
// the time: all packages are read from source.
package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/passes/assign"
	"golang.org/x/tools/go/analysis/passes/atomic"
	"golang.org/x/tools/go/analysis/passes/bools"
	"golang.org/x/tools/go/analysis/passes/copylock"
	"golang.org/x/tools/go/analysis/passes/errorsas"
	"golang.org/x/tools/go/analysis/passes/httpresponse"
	"golang.org/x/tools/go/analysis/passes/ifaceassert"
	"golang.org/x/tools/go/analysis/passes/lostcancel"
	"golang.org/x/tools/go/analysis/passes/nilfunc"
	"golang.org/x/tools/go/analysis/passes/printf"
	"golang.org/x/tools/go/analysis/passes/shift"
	"golang.org/x/tools/go/analysis/passes/stdmethods"
	"golang.org/x/tools/go/analysis/passes/unmarshal"
	"golang.org/x/tools/go/analysis/passes/unreachable"
	"golang.org/x/tools/go/analysis/passes/unsafeptr"
	"golang.org/x/tools/go/analysis/passes/unusedresult"
	"golang.org/x/tools/go/packages"
)

// vet are the checks of go vet that work on one package at a time.
var vet = []*analysis.Analyzer{
	assign.Analyzer, atomic.Analyzer, bools.Analyzer, copylock.Analyzer, errorsas.Analyzer, httpresponse.Analyzer, ifaceassert.Analyzer,
	lostcancel.Analyzer, nilfunc.Analyzer, printf.Analyzer, shift.Analyzer, stdmethods.Analyzer, unmarshal.Analyzer, unreachable.Analyzer,
	unsafeptr.Analyzer, unusedresult.Analyzer,
}

// main checks the systems that the arguments name, such as windows. The exit code
// is 1 if a problem was found.
func main() {
	wrong := 0
	for _, system := range os.Args[1:] {
		n, err := check(system)
		if err != nil {
			fmt.Fprintln(os.Stderr, "systems:", err)
			os.Exit(1)
		}
		wrong += n
	}
	if wrong > 0 {
		os.Exit(1)
	}
}

// check type-checks and vets all packages for one system, and prints the problems and the number of
// packages.
func check(system string) (wrong int, err error) {
	all, err := packages.Load(&packages.Config{
		Mode: packages.LoadAllSyntax, Tests: true, Env: append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
	}, "./...")
	if err != nil {
		return 0, err
	}
	say := func(format string, args ...any) {
		fmt.Printf(system+": "+format+"\n", args...)
		wrong++
	}
	packages.Visit(all, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			if strings.HasPrefix(p.PkgPath, "lashd") {
				say("%v", e)
			}
		}
	})
	if wrong > 0 {
		return wrong, nil
	}
	graph, err := checker.Analyze(vet, all, nil)
	if err != nil {
		return 0, err
	}
	for _, root := range graph.Roots {
		if root.Err != nil {
			say("%s of %s: %v", root.Analyzer.Name, root.Package.PkgPath, root.Err)
		}
		for _, d := range root.Diagnostics {
			say("%s: %s", root.Package.Fset.Position(d.Pos), d.Message)
		}
	}
	return wrong, nil
}
