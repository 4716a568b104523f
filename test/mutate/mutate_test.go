package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sample = `package sample

import "errors"

const limit = 2 + 1

func f(n int, all []string) (int, error) {
	defer done()
	for i := 0; i < n; i++ {
		if all[i] == "" && n > limit {
			continue
		}
		all[i] = "x"
	}
	switch {
	case n == 1 || !ok(n):
		return n + 1, errors.New("no")
	}
	g := func() bool { return true }
	_ = g
	return 0, nil
}
`

func TestMutants(t *testing.T) {
	n := 0
	mutants, err := mutantsOf("sample.go", []byte(sample), func() int { n++; return n })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range mutants {
		got = append(got, strings.TrimPrefix(m.place(), "sample.go:")+" "+m.what)
	}
	slices.Sort(got)
	want := []string{
		`10 always true: all[i] == ""`, `10 always true: n > limit`, `10 always false: all[i] == "" && n > limit`, `10 always true: all[i] == "" && n > limit`,
		`10 negated: all[i] == ""`, `10 with the other bound: n > limit`, `11 leave the statement out`, `13 leave the statement out`,
		`16 always false: !ok(n)`, `16 always false: n == 1`, `16 always false: n == 1 || !ok(n)`, `16 always true: n == 1 || !ok(n)`, `16 negated: n == 1`,
		`17 lose the error: return n + 1, errors.New("no")`, `17 without its second operand: n + 1`, `19 not true`,
		`8 leave the statement out`, `9 always false: i < n`, `9 with the other bound: i < n`,
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	text := rewrite([]byte(sample), mutants)
	if _, err := parser.ParseFile(token.NewFileSet(), "sample.go", text, 0); err != nil {
		t.Errorf("the mutated code is wrong: %v\n%s", err, text)
	}
	if strings.Count(string(text), "\n") != strings.Count(sample, "\n") {
		t.Errorf("line numbers have changed:\n%s", text)
	}
}

// TestCampaign mutates a package whose one test detects half of the changes.
func TestCampaign(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "go.mod", "module sample\n\ngo 1.24\n")
	put(t, dir, "a.go", "package sample\n\nfunc Seen(n int) bool { return n == 1 }\n\nfunc Unseen(n int) bool { return n == 1 }\n")
	put(t, dir, "a_test.go", "package sample\n\nimport \"testing\"\n\nfunc TestSeen(t *testing.T) {\n\tif !Seen(1) {\n\t\tt.Error()\n\t}\n}\n")
	t.Chdir(dir)
	o, packages, err := parse([]string{"-j", "1", "."})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := campaign(t.Context(), o, packages[0]); n != 1 || err != nil {
		t.Errorf("%d mutants survived, want 1: %v", n, err)
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
