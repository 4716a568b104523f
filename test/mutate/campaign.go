package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
)

// target is a package whose code is mutated.
type target struct {
	Dir, Name, ImportPath string
	GoFiles               []string

	texts   map[string][]byte // source text by base name
	mutants []mutant
	work    string // directory for build output
}

// campaign mutates one package, runs the mutants and reports them. It returns the
// number of survivors.
func campaign(ctx context.Context, o options, pkg string) (int, error) {
	t, err := load(ctx, o, pkg)
	if err != nil {
		return 0, err
	}
	if t.work, err = os.MkdirTemp("", "mutate-*"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(t.work)
	if err := t.compile(ctx); err != nil {
		return 0, err
	}
	suites := append([]suite{{pkg: pkg, pattern: o.tests}}, o.suites...)
	for i := range suites {
		if err := suites[i].prepare(ctx, t, i); err != nil {
			return 0, fmt.Errorf("tests of %s: %w", suites[i].pkg, err)
		}
	}
	chosen := choose(o, t.mutants)
	fmt.Printf("%s: %d of %d mutants\n", t.ImportPath, len(chosen), len(t.mutants))
	return run(ctx, o, t, suites, chosen), ctx.Err()
}

// load reads the files of a package that match the options and lists their
// mutants.
func load(ctx context.Context, o options, pkg string) (*target, error) {
	out, err := command(ctx, "go", "list", "-json=Dir,Name,ImportPath,GoFiles", pkg).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	t := &target{texts: map[string][]byte{}}
	if err := json.Unmarshal(out, t); err != nil {
		return nil, err
	}
	number := 0
	next := func() int { number++; return number }
	for _, name := range t.GoFiles {
		if !o.file.MatchString(name) {
			continue
		}
		if t.texts[name], err = os.ReadFile(filepath.Join(t.Dir, name)); err != nil {
			return nil, err
		}
		found, err := mutantsOf(name, t.texts[name], next)
		if err != nil {
			return nil, err
		}
		t.mutants = append(t.mutants, found...)
	}
	return t, nil
}

// choose returns a random sample of the mutants. The same seed gives the same
// sample.
func choose(o options, all []mutant) (chosen []mutant) {
	for _, m := range all {
		if o.only == nil || o.only[m.place()] {
			chosen = append(chosen, m)
		}
	}
	r := rand.New(rand.NewPCG(o.seed, 0))
	r.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	if o.count > 0 && len(chosen) > o.count {
		chosen = chosen[:o.count]
	}
	return chosen
}

// overlay is the path of the overlay file for go build.
func (t *target) overlay() string { return filepath.Join(t.work, "overlay.json") }

// write writes the mutated files and the overlay that makes go build use them in
// place of the originals.
func (t *target) write() error {
	added := filepath.Join(t.work, "support.go")
	replace := map[string]string{filepath.Join(t.Dir, "zz_mutated.go"): added}
	if err := os.WriteFile(added, fmt.Appendf(nil, support, t.Name), 0o600); err != nil {
		return err
	}
	for name, text := range t.texts {
		mine := slices.DeleteFunc(slices.Clone(t.mutants), func(m mutant) bool { return m.file != name })
		path := filepath.Join(t.work, name)
		if err := os.WriteFile(path, rewrite(text, mine), 0o600); err != nil {
			return err
		}
		replace[filepath.Join(t.Dir, name)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(t.overlay(), overlay, 0o600)
}

// compileError matches the file and line of a compiler error.
var compileError = regexp.MustCompile(`(?m)([^/\s]+\.go):(\d+):\d+: .*$`)

// compile removes the mutants on lines that the compiler rejects, until the rest compiles.
func (t *target) compile(ctx context.Context) error {
	for range 10 {
		if err := t.write(); err != nil {
			return err
		}
		out, err := command(ctx, "go", "build", "-overlay", t.overlay(), "-gcflags=-e", t.ImportPath).CombinedOutput()
		if err == nil {
			return nil
		}
		if !t.drop(out) {
			return fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	return fmt.Errorf("the mutated code of %s does not compile", t.ImportPath)
}

// drop removes the mutants on lines with compiler errors, and reports whether
// there were any.
func (t *target) drop(output []byte) bool {
	wrong := map[string]bool{}
	for _, found := range compileError.FindAllSubmatch(output, -1) {
		wrong[string(bytes.Join(found[1:3], []byte(":")))] = true
	}
	before := len(t.mutants)
	t.mutants = slices.DeleteFunc(t.mutants, func(m mutant) bool { return wrong[m.place()] })
	fmt.Printf("%s: %d mutants do not compile\n", t.ImportPath, before-len(t.mutants))
	return len(t.mutants) < before
}

// run runs mutants, several at a time, and returns the number of survivors.
func run(ctx context.Context, o options, t *target, suites []suite, chosen []mutant) int {
	var mu sync.Mutex
	count := map[verdict]int{}
	next := make(chan mutant)
	var wg sync.WaitGroup
	for range o.workers {
		wg.Go(func() {
			for m := range next {
				v := judge(ctx, suites, m)
				mu.Lock()
				if count[v]++; v != killed {
					fmt.Printf("%s\t%s\t%s\n\t%s\n", v, m.place(), m.what, m.code)
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range chosen {
		if ctx.Err() != nil {
			break
		}
		next <- m
	}
	close(next)
	wg.Wait()
	fmt.Printf("%s: %d killed, %d timed out, %d survived, %d not reached\n", t.ImportPath, count[killed], count[timedOut], count[survived], count[notReached])
	return count[survived] + count[notReached]
}

// command is a command whose output is captured.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = os.Environ()
	return cmd
}
