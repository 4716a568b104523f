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

	texts   map[string][]byte // by base name
	mutants []mutant
	work    string // a directory for what is built
}

// campaign runs the mutants of a package and reports them. It returns how many survived.
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

func (t *target) overlay() string { return filepath.Join(t.work, "overlay.json") }

// write makes the overlay that has go build the mutated files in the place of the files of the tree.
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

var compileError = regexp.MustCompile(`(?m)([^/\s]+\.go):(\d+):\d+: .*$`)

// compile leaves out the mutants of lines that the compiler refuses, until it accepts the rest.
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

// run runs mutants, a few at the same time, and returns how many survived.
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

// command is one whose output a person does not see.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = os.Environ()
	return cmd
}
