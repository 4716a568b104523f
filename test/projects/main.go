// Command projects runs the everyday commands of real projects as an agent would, in the default sandbox mode, and says which of them
// worked without a question.
//
//	go run ./test/projects [-keep DIR] [NAME ...]
//
// It needs the tools of the projects, and gets the projects with them: modules of Go, packages of npm and source packages of Debian.
// Without names it runs all. It fails if more than two of twenty projects do not work.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// allowed is the share of projects that may fail: one in ten.
const allowed = 10

func main() {
	keep := flag.String("keep", "", "directory for the projects, which stays")
	flag.Parse()
	if err := run(*keep, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "projects:", err)
		os.Exit(1)
	}
}

// run runs the named projects, or all.
func run(keep string, names []string) error {
	base, end, err := place(keep)
	if err != nil {
		return err
	}
	defer end()
	lash := filepath.Join(base, "lash")
	if out, err := exec.Command("go", "build", "-o", base, "./cmd/lash", "./cmd/lashd").CombinedOutput(); err != nil {
		return fmt.Errorf("build lash and lashd: %w: %s", err, out)
	}
	tried, failed := 0, 0
	for _, p := range projects {
		if len(names) > 0 && !slices.Contains(names, p.name) {
			continue
		}
		tried++
		if !report(p, base, lash) {
			failed++
		}
	}
	fmt.Printf("%d passed, %d failed\n", tried-failed, failed)
	if tried == 0 || failed*allowed > tried {
		return fmt.Errorf("%d of %d projects do not work in the sandbox", failed, tried)
	}
	return nil
}

// place returns a directory for the projects and a function that removes it. It is not in /tmp, of which commands in the sandbox have their own.
func place(keep string) (string, func(), error) {
	if keep != "" {
		keep, err := filepath.Abs(keep)
		if err != nil {
			return "", nil, err
		}
		return keep, func() {}, os.MkdirAll(keep, 0o700)
	}
	base, err := os.MkdirTemp("/var/tmp", "lashd-projects-")
	return base, func() { os.RemoveAll(base) }, err
}

// report runs a project and prints a line about it, and about each command that did not work.
func report(p project, base, lashd string) bool {
	began := time.Now()
	work := filepath.Join(base, p.name)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := p.fetch(ctx, work); err != nil {
		fmt.Printf("%-14s not fetched: %v\n", p.name, err)
		return false
	}
	results, err := p.agent(ctx, lashd, filepath.Join(base, "home-"+p.name), work)
	if err != nil {
		fmt.Printf("%-14s %v\n", p.name, err)
		return false
	}
	bad := slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.code == 0 && !r.asked })
	fmt.Printf("%-14s %d of %d commands without a question, %.0f s\n", p.name, len(results)-len(bad), len(p.commands), time.Since(began).Seconds())
	for _, r := range bad {
		fmt.Printf("    %s\n    asked: %t, exit code %d: %s\n", r.command, r.asked, r.code, r.output)
	}
	return len(bad) == 0 && len(results) == len(p.commands)
}
