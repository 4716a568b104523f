//go:build unix

package socket

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// layout builds what script says below base, step by step: "dir NAME MODE", "link NAME TARGET", "file NAME".
func layout(t *testing.T, base, script string) {
	t.Helper()
	for line := range strings.SplitSeq(script, ";") {
		f := strings.Fields(line)
		path := filepath.Join(base, f[1])
		var err error
		switch f[0] {
		case "dir":
			err = errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, modes[f[2]]))
		case "link":
			err = os.Symlink(f[2], path)
		case "file":
			err = os.WriteFile(path, nil, 0o600)
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

var modes = map[string]fs.FileMode{
	"0700": 0o700, "0701": 0o701, "0710": 0o710, "0720": 0o720, "0740": 0o740, "0755": 0o755, "0770": 0o770, "0777": 0o777,
	"1770": 0o770 | fs.ModeSticky, "1777": 0o777 | fs.ModeSticky,
}

var badLayouts = []struct{ name, script, dir, complaint string }{
	{"search bit for others", "dir d 0701", "d", "other users can access"},
	{"search bit for the group", "dir d 0710", "d", "other users can access"},
	{"read bit for the group", "dir d 0740", "d", "other users can access"},
	{"the usual mode", "dir d 0755", "d", "other users can access"},
	{"group-writable", "dir d 0770", "d", "other users can access"},
	{"world-writable", "dir d 0777", "d", "other users can access"},
	{"sticky", "dir d 1777", "d", "(dtrwxrwxrwx); use a private directory"},
	{"group-writable parent", "dir p 0770; dir p/d 0700", "p/d", "other users can write"},
	{"group may write but not read parent", "dir p 0720; dir p/d 0700", "p/d", "other users can write"},
	{"world-writable parent", "dir p 0777; dir p/d 0700", "p/d", "other users can write"},
	{"world-writable grandparent", "dir g 0777; dir g/p 0700; dir g/p/d 0700", "g/p/d", "other users can write"},
	{"is a link", "dir real 0700; link d real", "d", "symbolic link"},
	{"is a link to a link", "dir real 0700; link l real; link d l", "d", "symbolic link"},
	{"dangling link", "link d nowhere", "d", "symbolic link"},
	{"link through a bad parent", "dir p 0777; dir p/q 0700; dir p/q/d 0700; link l p/q", "l/d", "other users can write"},
	{"link out of a bad parent", "dir r 0700; dir r/d 0700; dir p 0777; link p/l ../r", "p/l/d", "other users can write"},
	{"links in a circle", "link a b; link b a", "a/d", "too many levels"},
	{"is a file", "file d", "d", "not a directory"},
	{"parent is a file", "file p", "p/d", "not a directory"},
}

func TestBadDirectories(t *testing.T) {
	lock := mustAcquire(t, home(t))
	for _, test := range badLayouts {
		base := home(t)
		layout(t, base, test.script)
		dir := filepath.Join(base, test.dir)
		_, acquireErr := Acquire(dir)
		_, listenErr := Listen(lock, filepath.Join(dir, "s"), slog.New(slog.DiscardHandler))
		_, dialErr := Dial(t.Context(), filepath.Join(dir, "s"))
		for call, err := range map[string]error{"Acquire": acquireErr, "Listen": listenErr, "Dial": dialErr} {
			if err == nil || !strings.Contains(err.Error(), test.complaint) {
				t.Errorf("%s: %s: %v, want a complaint of %q", test.name, call, err, test.complaint)
			}
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 0 {
			t.Errorf("%s: a refused directory now contains %v", test.name, entries)
		}
	}
}

func TestGoodDirectories(t *testing.T) {
	for _, test := range []struct{ name, script, dir string }{
		{"missing", "dir p 0700", "p/a/b"},
		{"parent open for reading", "dir p 0755; dir p/d 0700", "p/d"},
		{"sticky parent", "dir p 1777; dir p/d 0700", "p/d"},
		{"sticky group-writable parent", "dir p 1770; dir p/d 0700", "p/d"},
		{"through links of ours", "dir r 0755; dir r/d 0700; link l r; link k l", "k/d"},
	} {
		base := home(t)
		layout(t, base, test.script)
		lock, err := Acquire(filepath.Join(base, test.dir))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		lock.Release()
	}
}

func TestRefusedParentIsNotWrittenTo(t *testing.T) {
	base := home(t)
	layout(t, base, "dir p 0777")
	if _, err := Acquire(filepath.Join(base, "p", "new")); err == nil {
		t.Error("Acquire below a world-writable directory succeeds, want an error")
	}
	if entries, err := os.ReadDir(filepath.Join(base, "p")); err != nil || len(entries) != 0 {
		t.Errorf("the refused parent contains %v, %v; want nothing", entries, err)
	}
}

func TestLocalFilesystem(t *testing.T) {
	dir := home(t)
	if name, err := NetworkFilesystem(dir); name != "" || err != nil {
		t.Errorf("NetworkFilesystem(%s) = %q, %v; want a local one", dir, name, err)
	}
	if _, err := NetworkFilesystem(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("NetworkFilesystem of a missing directory: %v, want ErrNotExist", err)
	}
}
