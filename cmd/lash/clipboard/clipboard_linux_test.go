package clipboard

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// programs puts shell scripts into a directory that is the only one on PATH.
func programs(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

func TestClipboard(t *testing.T) {
	x11 := System{"linux", func(name string) string { return map[string]string{"DISPLAY": ":0"}[name] }}
	both := System{"linux", func(string) string { return ":0" }}
	mac, none := System{"darwin", nil}, System{"linux", func(string) string { return "" }}
	for _, c := range []struct {
		name    string
		system  System
		scripts map[string]string
		image   string
		text    string
		problem string
	}{
		{"an image of X11", x11, map[string]string{"xclip": `case "$*" in *"-selection clipboard -out -target TARGETS") printf 'TIMESTAMP\nimage/jpeg\nimage/png\n';; *image/png) printf PNG;; *) exit 1;; esac`}, "PNG", "", ""},
		{"a text of X11", x11, map[string]string{"xclip": `case "$*" in *TARGETS) echo UTF8_STRING;; *UTF8_STRING) printf 'some text';; *) exit 1;; esac`}, "", "some text", ""},
		{"an empty clipboard of X11", x11, map[string]string{"xclip": `echo 'Error: target TARGETS not available' >&2; exit 1`}, "", "", "the clipboard is empty"},
		{"copied files", x11, map[string]string{"xclip": `case "$*" in *TARGETS) echo text/uri-list;; *) exit 1;; esac`}, "", "", "the clipboard is empty"},
		{"Wayland comes before X11", both, map[string]string{"wl-paste": `case "$*" in --list-types) echo image/webp;; "--no-newline --type image/webp") printf WEBP;; *) exit 1;; esac`, "xclip": "printf no"}, "WEBP", "", ""},
		{"xclip is missing", x11, nil, "", "", "the program xclip is missing; install the package xclip, or use /attach FILE"},
		{"wl-paste is missing", both, map[string]string{"xclip": "printf no"}, "", "", "the program wl-paste is missing; install the package wl-clipboard, or use /attach FILE"},
		{"no desktop", none, nil, "", "", "there is no clipboard here, because neither WAYLAND_DISPLAY nor DISPLAY is set; copy the file to this machine and use /attach FILE"},
		{"too much", x11, map[string]string{"xclip": `case "$*" in *TARGETS) echo image/png;; *) while :; do echo 0123456789; done;; esac`}, "", "", "the clipboard has more than 100 bytes"},
		{"pngpaste of macOS", mac, map[string]string{"pngpaste": `[ "$*" = - ] && printf PNG`}, "PNG", "", ""},
		{"osascript of macOS", mac, map[string]string{"osascript": `[ "$*" = "-e the clipboard as «class PNGf»" ] && echo '«data PNGf504E47»'`}, "PNG", "", ""},
		{"a text of macOS", mac, map[string]string{"osascript": "exit 1", "pbpaste": "printf text"}, "", "text", ""},
		{"an empty clipboard of macOS", mac, map[string]string{"pngpaste": "exit 1", "pbpaste": ""}, "", "", "the clipboard is empty"},
		{"Windows", System{OS: "windows"}, nil, "", "", "the chat cannot read the clipboard of Windows; paste text with the terminal, and attach files with /attach FILE"},
	} {
		t.Run("part/12 clipboard: "+c.name, func(t *testing.T) {
			programs(t, c.scripts)
			got, err := Read(t.Context(), c.system, 100)
			problem := ""
			if err != nil {
				problem = err.Error()
			}
			if string(got.Image) != c.image || got.Text != c.text || problem != c.problem {
				t.Errorf("it has the image %q, the text %q and the error %q", got.Image, got.Text, problem)
			}
		})
	}
	t.Run("part/12 clipboard: a program that hangs ends with its caller", func(t *testing.T) {
		programs(t, map[string]string{"xclip": "exec /bin/sleep 60"})
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("too slow"))
		defer cancel()
		if _, err := Read(ctx, x11, 100); err == nil || !strings.Contains(err.Error(), "xclip did not answer") {
			t.Errorf("it returns %v", err)
		}
	})
}
