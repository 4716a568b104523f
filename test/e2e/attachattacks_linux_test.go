package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// TestHostileFiles runs lash run with files that must not be read, or not as a whole.
func TestHostileFiles(t *testing.T) {
	w := newWorld(t, "allow")
	defer w.shutdown()
	in := func(name string) string { return filepath.Join(w.work, name) }
	w.write(in("image.png"), string(pngOf(50)))
	w.write(in("broken.png"), "\x89PNG\r\n\x1a\nrubbish that is no header")
	huge, err := os.Create(in("huge.png"))
	if err == nil {
		err = errors.Join(huge.Truncate(10<<30), huge.Close(), syscall.Mkfifo(in("pipe.png"), 0o600), os.Symlink("/dev/zero", in("zero.png")), os.Symlink("loop.png", in("loop.png")))
	}
	if err != nil {
		t.Fatal(err)
	}
	many := slices.Repeat([]string{in("image.png")}, 21)
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"a sparse file of 10 GiB":   {[]string{in("huge.png")}, "has 10737418240 bytes; at most 33554432 are sent"},
		"a pipe without a writer":   {[]string{in("pipe.png")}, "is not a regular file"},
		"/dev/zero":                 {[]string{"/dev/zero"}, "is not a regular file"},
		"a link to /dev/zero":       {[]string{in("zero.png")}, "is not a regular file"},
		"a link to itself":          {[]string{in("loop.png")}, "too many levels of symbolic links"},
		"a directory":               {[]string{w.work}, "is not a regular file"},
		"a PNG header with rubbish": {[]string{in("broken.png")}, "is damaged"},
		"21 images":                 {many, "cannot attach 21 files; the limit is 20"},
	} {
		args := []string{"run", "--cwd", w.work}
		for _, f := range c.files {
			args = append(args, "--attach", f)
		}
		began := time.Now()
		code, out := w.outcome(append(args, "look")...)
		if code != 2 || !strings.Contains(out, c.want) || time.Since(began) > patience {
			t.Errorf("runtime/S15 lash run --attach of %s ended with %d after %v:\n%s\nwant %s", name, code, time.Since(began), out, c.want)
		}
	}
	if n := len(w.model.Requests()); n != 0 {
		t.Errorf("runtime/S15 the model was called %d times", n)
	}
}

// TestHostileAttachments sends attachments over the socket that must not reach the model.
func TestHostileAttachments(t *testing.T) {
	w := newWorld(t, "allow")
	d := w.serve()
	defer d.stop()
	p := w.dial("")
	id := p.session(w.home)
	one := func(a protocol.Attachment) []protocol.InputPart { return showing("look", a) }
	thousand := text("look")
	for range 1000 {
		thousand = append(thousand, protocol.InputPart{Type: protocol.InputAttachment, Attachment: &protocol.Attachment{Type: "image/png", Data: pngOf(5)}})
	}
	for name, in := range map[string][]protocol.InputPart{
		"1,000 images":                       thousand,
		"a URL with a password":              one(protocol.Attachment{Type: "image/png", URL: "https://me:secret@x.example/a.png"}),
		"a file URL":                         one(protocol.Attachment{Type: "image/png", URL: "file:///etc/passwd"}),
		"a URL without a host":               one(protocol.Attachment{Type: "image/png", URL: "https:///a.png"}),
		"a program that says it is an image": one(protocol.Attachment{Type: "image/png", Data: []byte("\x7fELF\x00\xff")}),
		"an SVG image":                       one(protocol.Attachment{Type: "image/svg+xml", Data: []byte("<svg><script/></svg>")}),
		"a PNG header with rubbish":          one(protocol.Attachment{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\nrubbish")}),
		"an image that says it is text":      one(protocol.Attachment{Type: "text/plain", Data: pngOf(5)}),
		"a digest that is a path":            one(protocol.Attachment{Type: "image/png", Digest: "../../../../etc/passwd"}),
	} {
		_, err := try[protocol.TurnStartResult](p, "turn/start", protocol.TurnStartParams{SessionID: id, Input: in})
		if _, kind := refusal(err); kind != protocol.KindInvalidParams {
			t.Errorf("runtime/S15 %s is refused with %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("runtime/S15 the refusal of %s shows the password: %v", name, err)
		}
	}
	if n := len(w.model.Requests()); n != 0 {
		t.Errorf("runtime/S15 the model was called %d times", n)
	}
}

// TestReadOfLinks has the model read links of the workspace that lead to an image elsewhere.
func TestReadOfLinks(t *testing.T) {
	w := newWorld(t, "allow",
		to("look", 0, step(uses("read", map[string]string{"path": "link.png"}))),
		to("look", 1, step(says("no"))),
	)
	d := w.serve()
	defer d.stop()
	secret := pngOf(3000)
	w.write(filepath.Join(w.dir, "secret.png"), string(secret))
	if err := os.Symlink(filepath.Join(w.dir, "secret.png"), filepath.Join(w.work, "link.png")); err != nil {
		t.Fatal(err)
	}
	p := w.dial("")
	report := p.turn(p.session(w.home), "look")
	if out := report.ToolCalls[0].Output; out.Failure == nil || len(out.Attachments) > 0 {
		t.Errorf("runtime/S15 read of a link out of the workspace returned %+v", out)
	}
	if n := w.saw(secret); n != 0 {
		t.Errorf("runtime/S15 the model got the image outside of the workspace %d times", n)
	}
}
