//go:build unix

package promptcontext_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestUnreadFiles(t *testing.T) {
	cases := map[string]func(b *bench) error{
		"a symbolic link":                 func(b *bench) error { return os.Symlink(b.path("out"), b.path("repo/AGENTS.md")) },
		"one of lashd's files, by a link": func(b *bench) error { return os.Link(b.path("state/lashd.db"), b.path("repo/AGENTS.md")) },
		"a pipe":                          func(b *bench) error { return syscall.Mkfifo(b.path("repo/AGENTS.md"), 0o644) },
		"a directory":                     func(b *bench) error { return os.Mkdir(b.path("repo/AGENTS.md"), 0o755) },
		"above where everybody may write": func(b *bench) error { return os.Chmod(b.path("repo"), 0o777) },
	}
	if os.Geteuid() != 0 { // root can read everything
		cases["an unreadable file"] = func(b *bench) error { return os.WriteFile(b.path("repo/AGENTS.md"), []byte("secret"), 0) }
	}
	for name, plant := range cases {
		t.Run("reliability/T5 "+name, func(t *testing.T) {
			b := work(t, "repo/a", map[string]string{"out": "secret", "repo/.git/HEAD": "ref: refs/heads/main", "repo/CLAUDE.md": "fallback", "repo/a/AGENTS.md": "mine"})
			if err := plant(b); err != nil {
				t.Fatal(err)
			}
			text := b.says(t, "t")
			lacks(t, text, "secret")
			order(t, text, "mine")
			if strings.Contains(text, "fallback") == strings.Contains(name, "above") {
				t.Errorf("the file beside it:\n%s", text)
			}
		})
	}
}

func TestGroupWritableRepository(t *testing.T) {
	b := work(t, "repo/a", map[string]string{"repo/.git/HEAD": "ref: refs/heads/main", "repo/AGENTS.md": "ours"})
	if err := os.Chmod(b.path("repo/.git"), 0o775|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	order(t, b.says(t, "t"), "- Git: branch main", file("AGENTS.md", "ours"))
}
