package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// pngOf returns contents that count as a PNG image, with a size in bytes.
func pngOf(size int) []byte {
	return append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01"), bytes.Repeat([]byte("pixel"), size/5)...)
}

// showing is an input with a text and one attachment.
func showing(said string, a protocol.Attachment) []protocol.InputPart {
	return append(text(said), protocol.InputPart{Type: protocol.InputAttachment, Attachment: &a})
}

// shows starts a turn with an input and waits for its end.
func (p *peer) shows(id protocol.SessionID, in []protocol.InputPart) protocol.TurnReport {
	r := ask[protocol.TurnStartResult](p, "turn/start", protocol.TurnStartParams{SessionID: id, Input: in})
	return p.wait(r.TurnID)
}

// uploads stores contents as an artifact, in parts of 512 KiB.
func (p *peer) uploads(id protocol.SessionID, data []byte) protocol.Digest {
	for at := 0; ; {
		n := min(512<<10, len(data)-at)
		r := ask[protocol.ArtifactWriteResult](p, "artifact/write", protocol.ArtifactWriteParams{
			SessionID: id, UploadID: "image", Offset: int64(at), Bytes: data[at : at+n], Done: at+n == len(data)})
		if at += n; at == len(data) {
			return r.Digest
		}
	}
}

// saw reports how often the newest request to the model has an image.
func (w *world) saw(data []byte) int {
	requests := w.model.Requests()
	url := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + base64.StdEncoding.EncodeToString(data) + `"}}`
	return strings.Count(string(requests[len(requests)-1].Body), url)
}

// contents lists the stored contents by digest, and the files that hold some of them.
func (w *world) contents() string {
	var all []string
	db := w.database("ro")
	defer db.Close()
	rows, err := db.Query("SELECT digest FROM blobs ORDER BY digest")
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var digest string
		if err := rows.Scan(&digest); err != nil {
			w.t.Fatal(err)
		}
		all = append(all, digest)
	}
	err = filepath.Walk(filepath.Join(w.dir, "blobs"), func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && info.Size() > 1<<20 {
			all = append(all, "file")
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// TestImages sends images of three sizes, which lashd keeps in the input, in a row and in a file. It kills the
// daemon after each turn.
func TestImages(t *testing.T) {
	for name, size := range map[string]int{"in its input": 100, "in a row": 50_000, "in a file": 3 << 20} {
		t.Run("runtime/S15 the model gets an image that lashd stores "+name+", also in later turns after kill -9", func(t *testing.T) {
			w := newWorld(t, "allow")
			d := w.serve()
			p := w.dial("")
			id := p.session(w.home)
			image := pngOf(size)
			p.shows(id, showing("what is it?", protocol.Attachment{Name: "a.png", Type: "image/png", Data: image}))
			if n := w.saw(image); n != 1 {
				t.Fatalf("the model got the image %d times in the first turn", n)
			}
			p.turn(id, "and now?")
			if n := w.saw(image); n != 1 {
				t.Errorf("the model got the image %d times in the second turn", n)
			}
			d.kill()
			d = w.serve()
			defer d.stop()
			w.dial("").turn(id, "and after the crash?")
			if n := w.saw(image); n != 1 {
				t.Errorf("the model got the image %d times after the crash", n)
			}
		})
	}
}

// TestImageBeforeTurn kills the daemon after it has stored an image and before the turn that uses it.
func TestImageBeforeTurn(t *testing.T) {
	w := newWorld(t, "allow")
	d := w.serve()
	p := w.dial("")
	id := p.session(w.home)
	image := pngOf(4_900_000)
	digest := p.uploads(id, image)
	d.kill()
	d = w.serve()
	defer d.stop()
	p = w.dial("")
	p.shows(id, showing("look", protocol.Attachment{Type: "image/png", Digest: digest}))
	if n := w.saw(image); n != 1 {
		t.Errorf("runtime/S15 an image that was stored before kill -9 reached the model %d times", n)
	}
	stranger := p.session(w.home)
	_, err := try[protocol.TurnStartResult](p, "turn/start", protocol.TurnStartParams{SessionID: stranger, Input: showing("look", protocol.Attachment{Type: "image/png", Digest: digest})})
	if _, kind := refusal(err); kind != protocol.KindArtifactNotFound {
		t.Errorf("runtime/S15 another session's image is refused with %v", err)
	}
}

// TestImagesAreShared forks a session with an image, and deletes first the session and then the fork.
func TestImagesAreShared(t *testing.T) {
	w := newWorld(t, "allow")
	d := w.serve()
	defer d.stop()
	p := w.dial("")
	id := p.session(w.home)
	image := pngOf(2 << 20)
	p.shows(id, showing("look", protocol.Attachment{Type: "image/png", Data: image}))
	fork := ask[protocol.SessionNewResult](p, "session/fork", protocol.SessionForkParams{SessionID: id}).SessionID
	ask[protocol.SeqResult](p, "session/delete", protocol.SessionMutationParams{SessionID: id})
	p.turn(fork, "still there?")
	if n := w.saw(image); n != 1 {
		t.Errorf("runtime/S15 a fork's model got the image %d times after the source was deleted", n)
	}
	want := string(protocol.DigestOf(image)) + " file"
	if got := w.contents(); got != want {
		t.Errorf("runtime/S15 with the fork the store has %q, want %q", got, want)
	}
	ask[protocol.SeqResult](p, "session/delete", protocol.SessionMutationParams{SessionID: fork})
	eventually(t, "runtime/S15 the image goes with the last session", func() error {
		if got := w.contents(); got != "" {
			return fmt.Errorf("the store has %q", got)
		}
		return nil
	})
}

// TestRunAttaches runs lash run with files.
func TestRunAttaches(t *testing.T) {
	w := newWorld(t, "allow")
	defer w.shutdown()
	image := pngOf(2_500_000)
	for name, text := range map[string]string{"big.jpg": string(image), "small.png": string(pngOf(50)), "program": "\x7fELF\x00\xff"} {
		w.write(filepath.Join(w.work, name), text)
	}
	code, out := w.outcome("run", "--cwd", w.work, "--image", filepath.Join(w.work, "big.jpg"), "--attach", filepath.Join(w.work, "small.png"), "look")
	if code != 0 || w.saw(image) != 1 || w.saw(pngOf(50)) != 1 {
		t.Fatalf("runtime/S15 lash run ended with %d; the model got the images %d and %d times:\n%s", code, w.saw(image), w.saw(pngOf(50)), out)
	}
	for file, want := range map[string]string{"program": "has contents that models cannot read", "missing.png": "no such file"} {
		if code, out := w.outcome("run", "--image", filepath.Join(w.work, file), "look"); code != 2 || !strings.Contains(out, want) {
			t.Errorf("runtime/S15 lash run --image %s ended with %d:\n%s", file, code, out)
		}
	}
	if n := len(w.model.Requests()); n != 1 {
		t.Errorf("runtime/S15 the model was called %d times, want 1", n)
	}
}

// TestAttachmentsDenied configures a model that reads only text, and a daemon that denies attachments by URL.
func TestAttachmentsDenied(t *testing.T) {
	w := newWorld(t, "allow")
	base := w.text("../data/config.toml")
	w.write(filepath.Join(w.dir, "config.toml"), "deny_attachment_urls = true\n"+base+"[[models]]\nid = \"seer\"\n[[models]]\nid = \"reader\"\ninputs = [\"text\"]\n")
	defer w.shutdown()
	w.write(filepath.Join(w.work, "a.png"), string(pngOf(50)))
	if code, out := w.outcome("run", "--cwd", w.work, "--model", "reader", "--image", filepath.Join(w.work, "a.png"), "look"); code != 1 || !strings.Contains(out, "model reader does not take images") {
		t.Errorf("runtime/S15 lash run with a model that reads text ended with %d:\n%s", code, out)
	}
	p := w.dial("")
	_, err := try[protocol.TurnStartResult](p, "turn/start", protocol.TurnStartParams{SessionID: p.session(w.home), Input: showing("look", protocol.Attachment{Type: "image/png", URL: "https://x.example/a.png"})})
	if _, kind := refusal(err); kind != protocol.KindDenied {
		t.Errorf("runtime/S15 a denied URL is refused with %v", err)
	}
	if n := len(w.model.Requests()); n != 0 {
		t.Errorf("runtime/S15 the model was called %d times", n)
	}
}
