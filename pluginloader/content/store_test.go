//go:build unix

package content_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/pluginloader/content"
	"lashd/rpc/protocol"
)

func TestACopyIsPrivateAndReadOnly(t *testing.T) {
	s, home := store(t)
	dir := reviewer(t)
	for _, name := range []string{"plugin.json", "lib/deep/a"} {
		check(t, os.Chmod(filepath.Join(dir, name), 0o666))
	}
	check(t, os.Chmod(filepath.Join(dir, "lib"), 0o777))
	c := put(t, s, dir)
	t.Run("issue/4-6 a copy has the same contents and read-only modes", func(t *testing.T) {
		want := map[string]string{
			".": "dr-x------", "plugin.json": "-r-------- " + named, "bin": "dr-x------", "bin/run": "-r-x------ #!/bin/sh\n", "bin/lib": "link ../lib",
			"lib": "dr-x------", "lib/b": "-r-------- b", "lib/deep": "dr-x------", "lib/deep/a": "-r-------- a",
		}
		if diff := cmp.Diff(want, tree(t, c.Root)); diff != "" {
			t.Error(diff)
		}
		if c.Plugin.Name != "reviewer" || c.Beyond.Name != "reviewer" || c.Root != filepath.Join(home, string(c.Digest), "reviewer") {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("issue/4-6 only the user can enter the store", func(t *testing.T) {
		info, err := os.Stat(home)
		check(t, err)
		if info.Mode().Perm() != 0o700 {
			t.Errorf("its mode is %v", info.Mode())
		}
	})
	after := reopen(t, home)
	t.Run("issue/4-6 a copy survives a restart", func(t *testing.T) {
		again, err := after.Open(t.Context(), c.Digest)
		check(t, err)
		if again.Root != c.Root || again.Plugin.Name != "reviewer" {
			t.Errorf("got %+v", again)
		}
	})
	t.Run("issue/4-6 equal contents share one copy", func(t *testing.T) {
		before, err := os.Stat(c.Root)
		check(t, err)
		again := put(t, s, reviewer(t))
		after, err := os.Stat(again.Root)
		check(t, err)
		if again.Digest != c.Digest || !os.SameFile(before, after) {
			t.Errorf("%s and then %s", c.Root, again.Root)
		}
		if got := entries(t, home); len(got) != 1 {
			t.Errorf("the store has %q", got)
		}
	})
}

func TestOtherContentIsAnotherCopy(t *testing.T) {
	s, _ := store(t)
	seen := map[protocol.Digest]string{put(t, s, reviewer(t)).Digest: "nothing"}
	for name, change := range map[string]func(dir string) error{
		"a byte": func(dir string) error { return os.WriteFile(filepath.Join(dir, "lib/b"), []byte("c"), 0o644) },
		"a new file": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "lib/.hidden"), nil, 0o644)
		},
		"what may be executed": func(dir string) error { return os.Chmod(filepath.Join(dir, "lib/b"), 0o755) },
		"a link": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "bin/lib")), os.Symlink("../lib/deep", filepath.Join(dir, "bin/lib")))
		},
		"a file behind a link": func(dir string) error { return os.WriteFile(filepath.Join(dir, "lib/deep/a"), []byte("A"), 0o644) },
	} {
		t.Run("reliability/T6 "+name, func(t *testing.T) {
			dir := reviewer(t)
			check(t, change(dir))
			d := put(t, s, dir).Digest
			if other, same := seen[d]; same {
				t.Errorf("it has the digest of a change of %s", other)
			}
			seen[d] = name
		})
	}
	t.Run("reliability/T6 the name of a directory that names the plugin", func(t *testing.T) {
		dir := t.TempDir()
		hooks := files{"hooks/hooks.json": `{"hooks": {}}`}
		one, two := put(t, s, hooks.in(t, filepath.Join(dir, "one"))), put(t, s, hooks.in(t, filepath.Join(dir, "two")))
		if one.Plugin.Name != "one" || two.Plugin.Name != "two" || one.Digest == two.Digest {
			t.Errorf("%s is %s, %s is %s", one.Plugin.Name, one.Digest, two.Plugin.Name, two.Digest)
		}
		if c, err := s.Open(t.Context(), one.Digest); err != nil || c.Plugin.Name != "one" {
			t.Errorf("one is opened as %+v, %v", c.Plugin, err)
		}
	})
}

func TestADamagedCopyIsNotRun(t *testing.T) {
	beyond := func(c content.Copy) string { return filepath.Join(filepath.Dir(c.Root), ".beyond.json") }
	for name, damage := range map[string]func(t *testing.T, c content.Copy){
		"a byte": func(t *testing.T, c content.Copy) { rewrite(t, filepath.Join(c.Root, "lib/b"), "x", 0o400) },
		"a mode": func(t *testing.T, c content.Copy) { check(t, os.Chmod(filepath.Join(c.Root, "lib/b"), 0o500)) },
		"a directory more": func(t *testing.T, c content.Copy) {
			check(t, os.Chmod(c.Root, 0o700), os.Mkdir(filepath.Join(c.Root, "new"), 0o500), os.Chmod(c.Root, 0o500))
		},
		"a file less": func(t *testing.T, c content.Copy) {
			check(t, os.Chmod(filepath.Join(c.Root, "lib"), 0o700), os.Remove(filepath.Join(c.Root, "lib/b")), os.Chmod(filepath.Join(c.Root, "lib"), 0o500))
		},
		"no manifest": func(t *testing.T, c content.Copy) { rewrite(t, filepath.Join(c.Root, "plugin.json"), "", 0o400) },
		"a link that leads out": func(t *testing.T, c content.Copy) {
			check(t, os.Chmod(c.Root, 0o700), os.Symlink("/etc/passwd", filepath.Join(c.Root, "l")), os.Chmod(c.Root, 0o500))
		},
		"what it reaches": func(t *testing.T, c content.Copy) {
			text, err := os.ReadFile(beyond(c))
			check(t, err)
			rewrite(t, beyond(c), strings.Replace(string(text), `"environment":null`, `"environment":["SECRET"]`, 1), 0o400)
		},
		"another name":            func(t *testing.T, c content.Copy) { check(t, os.Rename(c.Root, filepath.Dir(c.Root)+"/other")) },
		"what it reaches is gone": func(t *testing.T, c content.Copy) { check(t, os.Remove(beyond(c))) },
		"what it reaches is cut":  func(t *testing.T, c content.Copy) { rewrite(t, beyond(c), `{"name":"r`, 0o400) },
		"missing copy": func(t *testing.T, c content.Copy) {
			writable(filepath.Dir(c.Root))
			check(t, os.RemoveAll(filepath.Dir(c.Root)), os.Mkdir(filepath.Dir(c.Root), 0o700))
		},
	} {
		t.Run("reliability/T6 "+name, func(t *testing.T) {
			s, home := store(t)
			dir := reviewer(t)
			c := put(t, s, dir)
			c.Close()
			damage(t, c)
			if err := open(s, c.Digest); !errors.Is(err, content.ErrDamaged) {
				t.Errorf("got %v", err)
			}
			if got := entries(t, home); len(got) != 0 {
				t.Errorf("the store still has %q", got)
			}
			if err := open(s, c.Digest); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("and then %v", err)
			}
			c = put(t, s, dir)
			damage(t, c)
			if again := put(t, s, dir); again.Digest != c.Digest || open(s, c.Digest) != nil {
				t.Error("a damaged copy is not replaced")
			}
		})
	}
	t.Run("reliability/T6 an invalid digest", func(t *testing.T) {
		s, _ := store(t)
		for _, d := range []protocol.Digest{"", ".", "../plugins", protocol.Digest(strings.Repeat("A", 64)), protocol.Digest(strings.Repeat("/", 64))} {
			if err := open(s, d); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, content.ErrDamaged) {
				t.Errorf("%q: %v", d, err)
			}
		}
	})
}

func rewrite(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	check(t, os.Chmod(path, 0o600), os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode))
}

func TestKeep(t *testing.T) {
	s, home := store(t)
	var all []content.Copy
	for _, text := range []string{"1", "2", "3"} {
		all = append(all, put(t, s, files{"plugin.json": named, "f": text}.in(t, filepath.Join(t.TempDir(), "p"))))
	}
	left := func(want ...content.Copy) {
		t.Helper()
		got := map[string]bool{}
		for _, name := range entries(t, home) {
			got[name] = true
		}
		expected := map[string]bool{}
		for _, c := range want {
			expected[string(c.Digest)] = true
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Error(diff)
		}
	}
	t.Run("issue/4-6 a copy in use stays", func(t *testing.T) {
		again, err := s.Open(t.Context(), all[1].Digest)
		check(t, err)
		again.Close()
		again.Close()
		check(t, s.Keep(keep()))
		left(all...)
	})
	t.Run("issue/4-6 kept copies stay and all others are removed", func(t *testing.T) {
		all[0].Close()
		all[1].Close()
		check(t, s.Keep(keep(all[0].Digest)))
		left(all[0], all[2])
	})
}

func TestWhatWasLeftUnfinishedIsRemoved(t *testing.T) {
	t.Run("issue/4-6 at the next start", func(t *testing.T) {
		s, home := store(t)
		c := put(t, s, reviewer(t))
		files{"p/f": "x"}.in(t, filepath.Join(home, ".new-1"))
		files{"p/f": "x"}.in(t, filepath.Join(home, ".old-1"))
		check(t, os.Chmod(filepath.Join(home, ".new-1/p"), 0o500), os.Chmod(filepath.Join(home, ".old-1/p"), 0))
		if got := entries(t, home); len(got) != 3 {
			t.Fatalf("the store has %q", got)
		}
		s = reopen(t, home)
		if got := entries(t, home); len(got) != 1 || got[0] != string(c.Digest) {
			t.Errorf("the store has %q", got)
		}
		check(t, open(s, c.Digest))
	})
}

// keep says that copies are kept.
func keep(all ...protocol.Digest) func() map[protocol.Digest]bool {
	return func() map[protocol.Digest]bool {
		kept := map[protocol.Digest]bool{}
		for _, d := range all {
			kept[d] = true
		}
		return kept
	}
}
