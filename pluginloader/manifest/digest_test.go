package manifest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

func digest(t *testing.T, root *os.Root, b manifest.Beyond) protocol.Digest {
	t.Helper()
	d, err := manifest.Digest(t.Context(), root, b)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// tree is a directory with one of everything that a plugin may be.
func tree(t *testing.T) *os.Root {
	root := files{"plugin.json": "{}", "bin/run.sh": "echo", "bin/deep/a": "a", "empty/keep": ""}.root(t)
	at := func(name string) string { return filepath.Join(root.Name(), name) }
	if err := errors.Join(os.Symlink("bin/run.sh", at("link")), os.Symlink("../bin", at("bin/self")), os.Remove(at("empty/keep"))); err != nil {
		t.Fatal(err)
	}
	return root
}

// changes are each a single change of the tree, which no other part of it shows.
var changes = map[string]func(at func(string) string) error{
	"a byte": func(at func(string) string) error {
		before, err := os.Stat(at("bin/run.sh"))
		return errors.Join(err, os.WriteFile(at("bin/run.sh"), []byte("ecko"), 0), os.Chtimes(at("bin/run.sh"), before.ModTime(), before.ModTime()))
	},
	"a name":  func(at func(string) string) error { return os.Rename(at("bin/deep/a"), at("bin/deep/b")) },
	"a place": func(at func(string) string) error { return os.Rename(at("bin/deep/a"), at("empty/a")) },
	"a mode":  func(at func(string) string) error { return os.Chmod(at("bin/run.sh"), 0o755) },
	"a link": func(at func(string) string) error {
		return errors.Join(os.Remove(at("link")), os.Symlink("./bin/run.sh", at("link")))
	},
	"a link in place of its file": func(at func(string) string) error {
		return errors.Join(os.Rename(at("bin/deep/a"), at("bin/deep/b")), os.Symlink("b", at("bin/deep/a")))
	},
	"a new file":         func(at func(string) string) error { return os.WriteFile(at("bin/new"), nil, 0o644) },
	"a hidden directory": func(at func(string) string) error { return os.Mkdir(at(".git"), 0o755) },
	"a file less":        func(at func(string) string) error { return os.Remove(at("bin/deep/a")) },
	"an end that moves": func(at func(string) string) error {
		return errors.Join(os.WriteFile(at("plugin.json"), []byte("{"), 0), os.WriteFile(at("bin/deep/a"), []byte("}a"), 0))
	},
}

func TestDigestStandsForEverythingInTheDirectory(t *testing.T) {
	root := tree(t)
	first := digest(t, root, manifest.Beyond{})
	t.Run("reliability/T6 equal directories have equal digests", func(t *testing.T) {
		if again := digest(t, tree(t), manifest.Beyond{}); again != first || len(first) != 64 {
			t.Errorf("%s and then %s", first, again)
		}
	})
	t.Run("reliability/T6 read permissions are not part of the digest, because a copy has others", func(t *testing.T) {
		root := tree(t)
		for name, mode := range map[string]os.FileMode{"empty": 0o500, "plugin.json": 0o400} {
			if err := os.Chmod(filepath.Join(root.Name(), name), mode); err != nil {
				t.Fatal(err)
			}
		}
		if d := digest(t, root, manifest.Beyond{}); d != first {
			t.Errorf("%s and then %s", first, d)
		}
	})
	seen := map[protocol.Digest]string{first: "nothing"}
	for name, change := range changes {
		t.Run("reliability/T6 a change of "+name, func(t *testing.T) {
			root := tree(t)
			if err := change(func(name string) string { return filepath.Join(root.Name(), name) }); err != nil {
				t.Fatal(err)
			}
			d := digest(t, root, manifest.Beyond{})
			if other, same := seen[d]; same {
				t.Errorf("it has the digest of a change of %s", other)
			}
			seen[d] = name
		})
	}
}

func TestDigestStandsForWhatAPluginReaches(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "python3")
	write := func(text string) {
		if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	look := func(name string) (string, error) { return filepath.Join(dir, name), nil }
	const base = `{"name":"p","lashd":{"process":{"command":["python3","a b"],"passEnv":["A"]},"capabilities":["graph","state"],"mcpServers":{"m":{"url":"https://x"}}}}`
	seen := map[protocol.Digest]string{}
	root := files{}.root(t) // the digest of the directory stays the same
	see := func(text string, distinct bool) {
		p, err := manifest.Load(files{"plugin.json": text, ".mcp.json": `{"t":{"url":"https://y","headers":{"B":"${TOKEN}"}}}`}.root(t))
		if err != nil {
			t.Fatal(err)
		}
		b, err := p.Beyond(t.Context(), manifest.Finder{Look: look})
		if err != nil {
			t.Fatal(err)
		}
		d := digest(t, root, b)
		if other, same := seen[d]; same == distinct {
			t.Errorf("%s: the digest of %q", text, other)
		}
		seen[d] = text
	}
	write("one")
	see(base, true)
	see(strings.Replace(base, `"graph","state"`, `"state","graph"`, 1), false)
	see(strings.Replace(base, `"a b"`, `"a","b"`, 1), true)
	see(strings.Replace(base, `["A"]`, `["B"]`, 1), true)
	see(strings.Replace(base, `"graph",`, ``, 1), true)
	see(strings.Replace(base, `https://x`, `https://z`, 1), true)
	write("two")
	see(base, true)
	t.Run("a missing program is an error", func(t *testing.T) {
		p, err := manifest.Load(files{"plugin.json": `{"name":"p","lashd":{"process":{"command":["none"]}}}`}.root(t))
		if err == nil {
			_, err = p.Beyond(t.Context(), manifest.Finder{Look: look})
		}
		if err == nil || !strings.Contains(err.Error(), `the program "none": `) {
			t.Errorf("got %v", err)
		}
	})
}

func TestDirectoriesThatHaveNoDigest(t *testing.T) {
	link := func(to string) func(dir string) error {
		return func(dir string) error { return os.Symlink(to, filepath.Join(dir, "l")) }
	}
	for name, c := range map[string]struct {
		make func(dir string) error
		want string
	}{
		"reliability/T6 a link to a file outside":          {link("../../../etc/passwd"), "the link l to ../../../etc/passwd must lead"},
		"reliability/T6 a link to an absolute path":        {link("/etc/passwd"), "the link l to /etc/passwd must lead"},
		"reliability/T6 a link to nothing":                 {link("none"), "the link l to none must lead"},
		"reliability/T6 a link to itself":                  {link("l"), "the link l to l must lead"},
		"reliability/T6 a link that leaves and comes back": {link("../unnamed/a"), "the link l to ../unnamed/a must lead"},
		"reliability/T6 links in a circle": {func(dir string) error {
			return errors.Join(os.Symlink("y", filepath.Join(dir, "x")), os.Symlink("x", filepath.Join(dir, "y")))
		}, "the link x to y must lead"},
		"reliability/T6 a link through a link that leaves": {func(dir string) error {
			return errors.Join(os.Symlink("..", filepath.Join(dir, "up")), os.Symlink("up/unnamed/a", filepath.Join(dir, "l")))
		}, "the link l to up/unnamed/a must lead"},
		"too deep": {func(dir string) error { return os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", 40)), 0o755) }, "there are more than 32 directories inside one another"},
		"too large": {func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "big"), nil, 0o644), os.Truncate(filepath.Join(dir, "big"), manifest.MaxContent+1))
		}, "big: a file has at most 67108864 bytes"},
		"100,000 files": {func(dir string) error {
			var err error
			for i := range 100_000 {
				err = errors.Join(err, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, fmt.Sprint(i))))
				if i%20_000 == 0 { // a file has a limited number of links
					err = errors.Join(err, os.Remove(filepath.Join(dir, "a")), os.WriteFile(filepath.Join(dir, "a"), nil, 0o644))
				}
			}
			return err
		}, "the directory has more than 10000 files"},
	} {
		t.Run(name, func(t *testing.T) {
			root := files{"a": ""}.root(t)
			if err := c.make(root.Name()); err != nil {
				t.Fatal(err)
			}
			_, err := manifest.Digest(t.Context(), root, manifest.Beyond{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestDigestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	if _, err := manifest.Digest(ctx, tree(t), manifest.Beyond{}); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
