package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// suite is the tests of a package, compiled together with the mutants.
type suite struct {
	pkg, pattern string

	dir, binary string
	flags       []string
	work        string
	tests       []testCase
}

// testCase is a top-level test with the mutants that it reaches.
type testCase struct {
	name    string
	took    time.Duration
	reaches map[int]bool
}

// verdict is the result of the tests for a mutant.
type verdict string

const (
	// The mutant counts as detected if a test failed or timed out.
	killed     verdict = "killed"
	timedOut   verdict = "timed out"
	survived   verdict = "SURVIVED"
	notReached verdict = "NOT REACHED"
)

// prepare builds the tests and runs each once without an active mutant.
func (s *suite) prepare(ctx context.Context, t *target, i int) error {
	s.work, s.binary = t.work, filepath.Join(t.work, fmt.Sprintf("%d.test", i))
	build := command(ctx, "go", "test", "-c", "-vet=off", "-overlay", t.overlay(), "-o", s.binary, s.pkg)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go test -c: %w\n%s", err, out)
	}
	dir, err := command(ctx, "go", "list", "-f={{.Dir}}", s.pkg).Output()
	if err != nil {
		return err
	}
	s.dir = strings.TrimSpace(string(dir))
	names, err := s.list(ctx, s.pattern)
	if err != nil {
		return err
	}
	if _, err := s.list(ctx, "^$", noFailFile); err == nil {
		s.flags = append(s.flags, noFailFile)
	}
	for name := range strings.FieldsSeq(string(names)) {
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Example") || strings.HasPrefix(name, "Fuzz") {
			if err := s.baseline(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// noFailFile keeps rapid from writing failures into the tree, where later runs
// would start with them. Test binaries without rapid reject the flag.
const noFailFile = "-rapid.nofailfile"

// list returns the names of the tests that match a pattern. It fails if the binary
// rejects the flags.
func (s *suite) list(ctx context.Context, pattern string, flags ...string) ([]byte, error) {
	cmd := command(ctx, s.binary, append(flags, "-test.list", pattern)...)
	cmd.Dir = s.dir
	return cmd.Output()
}

// baseline runs one test without an active mutant, to measure its time and to
// record the mutants that it reaches. A failing test is skipped with a note.
func (s *suite) baseline(ctx context.Context, name string) error {
	reached := filepath.Join(s.work, "reached")
	_ = os.Remove(reached)
	begin := time.Now()
	out, err := s.run(ctx, []string{name}, 10*time.Minute, "MUTANTS_REACHED="+reached)
	if err != nil {
		fmt.Printf("skipped: %s of %s fails without a mutant: %v\n%s", name, s.pkg, err, out)
		return ctx.Err()
	}
	c := testCase{name: name, took: time.Since(begin), reaches: map[int]bool{}}
	text, err := os.ReadFile(reached)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for line := range strings.FieldsSeq(string(text)) {
		n, err := strconv.Atoi(line)
		if err != nil {
			return err
		}
		c.reaches[n] = true
	}
	s.tests = append(s.tests, c)
	return nil
}

// run runs tests in a temporary directory. The time limit of the binary is below
// the limit at which it is killed, so that it reports the test that hangs.
func (s *suite) run(ctx context.Context, names []string, limit time.Duration, env ...string) ([]byte, error) {
	tmp, err := os.MkdirTemp(s.work, "run-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	args := append(slices.Clone(s.flags), "-test.run", "^("+strings.Join(names, "|")+")$", "-test.failfast", "-test.timeout", limit.String())
	cmd := command(ctx, s.binary, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.dir, append(append(cmd.Env, "TMPDIR="+tmp), env...), time.Second
	return cmd.CombinedOutput()
}

// judge runs the tests that reach a mutant, fast ones first, until one fails.
func judge(ctx context.Context, suites []suite, m mutant) verdict {
	v := notReached
	for _, s := range suites {
		for _, names := range s.reaching(m) {
			if len(names) == 0 {
				continue
			}
			out, err := s.run(ctx, names, s.limit(names), "MUTANT="+strconv.Itoa(m.number))
			switch {
			case err != nil && strings.Contains(string(out), "panic: test timed out"):
				return timedOut
			case err != nil:
				return killed
			}
			v = survived
		}
	}
	return v
}

// slow is the duration from which on a test runs after the others.
const slow = 500 * time.Millisecond

// reaching returns the tests that reach a mutant: the fast ones, and the slow
// ones.
func (s *suite) reaching(m mutant) (groups [2][]string) {
	for _, c := range s.tests {
		if !c.reaches[m.number] {
			continue
		}
		i := 0
		if c.took > slow {
			i = 1
		}
		groups[i] = append(groups[i], c.name)
	}
	return groups
}

// limit returns ten times the normal duration of tests plus some seconds.
func (s *suite) limit(names []string) time.Duration {
	limit := 10 * time.Second
	for _, c := range s.tests {
		if slices.Contains(names, c.name) {
			limit += 10 * c.took
		}
	}
	return limit
}
