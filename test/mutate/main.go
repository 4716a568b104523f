// Command mutate measures tests by mutation: it makes small changes for the worse in the code of packages, one at a time, and lists
// those that no test notices. Run it in the root of the module:
//
//	go run ./test/mutate -n 80 ./engine/plugin
//	go run ./test/mutate -file 'approve|verdict' -tests 'TestApprov' -n 60 ./engine
//	go run ./test/mutate -also './engine=TestHook|TestCapab' ./engine/plugin
//
// All mutants of a package are compiled into one test binary, in which an environment variable switches one of them on. A mutant is
// run with the tests that reach it, the fastest first. The exit code is 1 if a mutant survives.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
)

// options are the values of the command line.
type options struct {
	count   int    // mutants to run in each package; 0 means all
	seed    uint64 // seed of the sample
	workers int    // mutants that run at the same time
	file    *regexp.Regexp
	only    map[string]bool // if set, only mutants of these lines, as file:line
	suites  []suite         // suites in addition to the package's own tests
	tests   string          // pattern for the package's own tests, as for go test -run
}

func main() {
	o, packages, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	survived := 0
	for _, p := range packages {
		n, err := campaign(ctx, o, p)
		if err != nil {
			fmt.Fprintf(os.Stderr, "mutate: %s: %v\n", p, err)
			os.Exit(2)
		}
		survived += n
	}
	stop()
	if survived > 0 {
		os.Exit(1)
	}
}

func parse(args []string) (o options, packages []string, err error) {
	flags := flag.NewFlagSet("mutate", flag.ExitOnError)
	flags.IntVar(&o.count, "n", 0, "run a sample of `N` mutants of each package (default all)")
	flags.Uint64Var(&o.seed, "seed", 1, "choose another sample")
	flags.IntVar(&o.workers, "j", 2, "run `N` mutants at the same time")
	file := flags.String("file", "", "mutate only files whose names match `REGEXP`")
	only := flags.String("only", "", "run only the mutants at these places: `FILE:LINE,...`")
	flags.StringVar(&o.tests, "tests", ".", "run only the package's own tests that match `REGEXP`")
	flags.Func("also", "run tests of another package, too: `PACKAGE=REGEXP`; may be repeated", func(v string) error {
		pkg, run, ok := strings.Cut(v, "=")
		if !ok {
			return errors.New("want PACKAGE=REGEXP")
		}
		o.suites = append(o.suites, suite{pkg: pkg, pattern: run})
		return nil
	})
	_ = flags.Parse(args) // exits
	if o.file, err = regexp.Compile(*file); err != nil {
		return o, nil, err
	}
	if *only != "" {
		o.only = map[string]bool{}
		for place := range strings.SplitSeq(*only, ",") {
			o.only[place] = true
		}
	}
	if flags.NArg() == 0 {
		return o, nil, errors.New("name at least one package, such as ./engine/turn")
	}
	return o, flags.Args(), nil
}
