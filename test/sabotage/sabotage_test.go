// Package sabotage checks that tests detect broken code. Each patch breaks a promise of lashd, and its first line names
// the test that must then fail: "# fails: PACKAGE TEST", where TEST is a pattern as for go test -run. A patch that does
// not apply any more must be recreated by hand.
package sabotage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// patch is a change that breaks something.
type patch struct{ file, pkg, test string }

func patches(t *testing.T) (all []patch) {
	t.Helper()
	files, err := filepath.Glob("*.patch")
	if err != nil || len(files) == 0 {
		t.Fatalf("patches: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		p := patch{file: file}
		if _, err := fmt.Sscanf(first, "# fails: %s %s", &p.pkg, &p.test); err != nil {
			t.Errorf("%s begins with %q: %v", file, first, err)
		}
		all = append(all, p)
	}
	return all
}

// TestEachFamilyIsSabotaged checks that there is a patch for each family of acceptance rows of plugins.
func TestEachFamilyIsSabotaged(t *testing.T) {
	t.Run("runtime/Q01 each family of acceptance rows has a test that a patch makes fail", func(t *testing.T) {
		all := patches(t)
		for _, family := range []string{"hc", "hk", "sn", "tl", "op", "ph", "pr", "mn"} {
			if !slices.ContainsFunc(all, func(p patch) bool { return strings.HasPrefix(p.file, family+"-") }) {
				t.Errorf("there is no patch against plugin/%s", strings.ToUpper(family))
			}
		}
	})
}

// TestPatchesApply checks that every patch applies to the current code.
func TestPatchesApply(t *testing.T) {
	dir := copyOfTree(t)
	for _, p := range patches(t) {
		p.apply(t, dir, "--check")
	}
}

// TestSabotage applies each patch to a copy of the tree, runs its test, and reverts the patch.
func TestSabotage(t *testing.T) {
	if os.Getenv("LASHD_LONG") == "" {
		return // it takes minutes
	}
	dir := copyOfTree(t)
	for _, p := range patches(t) {
		t.Run(p.file, func(t *testing.T) {
			p.apply(t, dir)
			if out, err := p.run(dir); err == nil || !strings.Contains(out, "--- FAIL: "+p.top()) {
				t.Errorf("%s does not fail: %v\n%s", p.test, err, out)
			}
			p.apply(t, dir, "--reverse")
			if out, err := p.run(dir); err != nil || !strings.Contains(out, "--- PASS: "+p.top()) {
				t.Errorf("%s fails without the patch: %v\n%s", p.test, err, out)
			}
		})
	}
}

// top returns the top-level test of a test name.
func (p patch) top() string {
	top, _, _ := strings.Cut(p.test, "/")
	return top
}

func (p patch) apply(t *testing.T, dir string, how ...string) {
	t.Helper()
	file, err := filepath.Abs(p.file)
	if err != nil {
		t.Fatal(err)
	}
	git := exec.Command("git", append(append([]string{"apply"}, how...), file)...)
	git.Dir, git.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("git apply %s: %v\n%s", how, err, out)
	}
}

func (p patch) run(dir string) (string, error) {
	run := strings.Split(p.test, "/")
	run[0] = "^" + run[0] + "$"
	test := exec.Command("go", "test", "-vet=off", "-count=1", "-v", "-run", strings.Join(run, "/"), p.pkg)
	test.Dir = dir
	out, err := test.CombinedOutput()
	return string(out), err
}

// copyOfTree copies the files of the module that go needs for a build.
func copyOfTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(root, path)
		if err := errors.Join(err, relErr); err != nil {
			return err
		}
		switch {
		case d.IsDir() && slices.Contains([]string{".git", ".cache", "editors/vscode/dist", "editors/vscode/bin"}, rel) || d.IsDir() && d.Name() == "node_modules":
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(dir, rel), 0o755)
		case !d.Type().IsRegular() || filepath.Ext(rel) == ".test":
			return nil
		}
		text, err := os.ReadFile(path)
		return errors.Join(err, os.WriteFile(filepath.Join(dir, rel), text, 0o600))
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
