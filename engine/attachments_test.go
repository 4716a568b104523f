package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"lashd/engine"
	"lashd/engine/attachment"
	"lashd/engine/models"
	"lashd/engine/param"
	"lashd/engine/provider"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// png is the beginning of a PNG image, long enough to be recognized.
const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01"

// attached is an input with a text and attachments.
func attached(files ...*protocol.Attachment) []protocol.InputPart {
	parts := text("look")
	for _, a := range files {
		parts = append(parts, protocol.InputPart{Type: protocol.InputAttachment, Attachment: a})
	}
	return parts
}

// TestAttachments sends inputs with attachments that lashd accepts or refuses.
func TestAttachments(t *testing.T) {
	calls := 0
	model := modelFunc(func(_ context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
		calls++
		yield(provider.Chunk{Text: "ok", Stop: protocol.StopEnd}, nil)
	})
	spec := protocol.ModelSpec{Provider: "p", ID: "sees", Inputs: []protocol.Modality{protocol.ModalityImage}}
	d := start(t, setup{config: func(c *engine.Config) {
		c.Models = models.Fixed{{Name: "sees", Spec: spec, Provider: model}}
	}})
	id, other := d.session(t), d.session(t)
	begin := func(id protocol.SessionID, in []protocol.InputPart) error {
		r, err := d.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: id, Input: in})
		if err == nil {
			d.wait(t, r.TurnID)
		}
		return err
	}
	big := &protocol.Attachment{Name: "big", Type: "image/png", Data: []byte(png + strings.Repeat("x", 5000))}
	if err := begin(id, attached(big)); err != nil {
		t.Fatal(err)
	}
	stored := protocol.DigestOf(big.Data)
	calls = 0
	image := func(n int) *protocol.Attachment {
		return &protocol.Attachment{Type: "image/png", Data: append([]byte(png), make([]byte, n)...)}
	}
	var many []*protocol.Attachment
	for range 21 {
		many = append(many, image(1))
	}
	for _, c := range []struct {
		name string
		in   []*protocol.Attachment
		id   protocol.SessionID
		want string
	}{
		{"a digest of another session", []*protocol.Attachment{{Type: "image/png", Digest: stored}}, other, "there is no artifact " + string(stored)},
		{"a digest that does not exist", []*protocol.Attachment{{Type: "image/png", Digest: protocol.Digest(strings.Repeat("a", 64))}}, id, "there is no artifact"},
		{"a document for a model without documents", []*protocol.Attachment{{Type: "application/pdf", Data: []byte("%PDF-1.7")}}, id, "does not take PDF documents"},
		{"a document that claims to be an image", []*protocol.Attachment{{Type: "image/png", Data: []byte("%PDF-1.7")}}, id, "does not take PDF documents"},
		{"text that claims to be an image", []*protocol.Attachment{{Type: "image/png", Data: []byte("hello")}}, id, "is declared as image/png but contains text"},
		{"a program", []*protocol.Attachment{{Type: "image/png", Data: []byte("\x7fELF\x00\xff")}}, id, "has contents that models cannot read"},
		{"a large image", []*protocol.Attachment{image(5<<20 - 23)}, id, "has 5242881 bytes; the limit for image/png is 5242880"},
		{"too many", many, id, "has more than 20 attachments"},
		{"no contents", []*protocol.Attachment{{Type: "image/png"}}, id, "must have data, a digest or a url"},
		{"two sources", []*protocol.Attachment{{Type: "image/png", Digest: stored, URL: "https://x/y.png"}}, id, "must have only one of data, digest and url"},
		{"a file URL", []*protocol.Attachment{{Type: "image/png", URL: "file:///etc/passwd"}}, id, "must begin with https:// or http://"},
		{"a URL of a text", []*protocol.Attachment{{Type: "text/html", URL: "https://x/y"}}, id, "is for images and PDF documents only"},
	} {
		t.Run("runtime/S15 refused: "+c.name, func(t *testing.T) {
			if c.name == "a large image" {
				c.in[0] = &protocol.Attachment{Type: "image/png", Digest: d.artifact(t, c.id, c.in[0].Data)}
			}
			if err := begin(c.id, attached(c.in...)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
	if calls != 0 {
		t.Errorf("runtime/S15 the model was called %d times with refused attachments", calls)
	}
	t.Run("runtime/S15 refusals have types that clients can tell apart", func(t *testing.T) {
		unsupported, bad := new(*attachment.UnsupportedError), new(*param.Error)
		if err := begin(id, attached(&protocol.Attachment{Type: "application/pdf", Data: []byte("%PDF-1.7")})); !errors.As(err, unsupported) || (*unsupported).Pointer != "/input/1/attachment" {
			t.Errorf("a document: %v", err)
		}
		if err := begin(id, attached(&protocol.Attachment{Type: "image/png", Data: []byte("hello")})); !errors.As(err, bad) || (*bad).Pointer != "/input/1/attachment" {
			t.Errorf("a text: %v", err)
		}
		if err := begin(other, attached(&protocol.Attachment{Type: "image/png", Digest: stored})); !errors.Is(err, persistence.ErrNotFound) {
			t.Errorf("a digest of another session: %v", err)
		}
	})
}

// artifact uploads contents and returns their digest.
func (d *daemon) artifact(t *testing.T, id protocol.SessionID, data []byte) protocol.Digest {
	t.Helper()
	for at := 0; ; {
		n := min(1<<20, len(data)-at)
		r, err := d.Artifacts.Write(t.Context(), &protocol.ArtifactWriteParams{SessionID: id, UploadID: "u", Offset: int64(at), Bytes: data[at : at+n], Done: at+n == len(data)})
		if err != nil {
			t.Fatal(err)
		}
		if at += n; at == len(data) {
			return r.Digest
		}
	}
}

// TestAttachmentURLs sends a URL to a daemon that denies them, and to one that does not.
func TestAttachmentURLs(t *testing.T) {
	for _, deny := range []bool{false, true} {
		t.Run(fmt.Sprintf("runtime/S15 a URL goes to the model unless the configuration denies it (denied: %v)", deny), func(t *testing.T) {
			d := start(t, setup{model: replies(), config: func(c *engine.Config) { c.DenyURLs = deny }})
			_, err := d.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: d.session(t), Input: attached(&protocol.Attachment{Type: "image/png", URL: "https://x.example/y.png"})})
			if denied := errors.As(err, new(*attachment.URLsDeniedError)); denied != deny || !deny && err != nil {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestAttachmentContents reads attachments as a model call does.
func TestAttachmentContents(t *testing.T) {
	t.Run("runtime/S15 a model call reads the contents that the session stores by digest", func(t *testing.T) {
		var got []byte
		var sent protocol.Attachment
		d := start(t, setup{model: modelFunc(func(_ context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
			sent = *req.Messages[0].Parts[1].Attachment
			got, _ = req.Contents(sent.Digest)
			yield(provider.Chunk{Text: "ok", Stop: protocol.StopEnd}, nil)
		})})
		want := []byte(png + strings.Repeat("y", 3<<20))
		in := attached(&protocol.Attachment{Name: "a.jpg", Type: "image/jpeg", Data: want})
		r, err := d.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: d.session(t), Input: in})
		if err != nil {
			t.Fatal(err)
		}
		d.wait(t, r.TurnID)
		if !bytes.Equal(got, want) || sent.Data != nil || sent.Type != "image/png" || sent.Name != "a.jpg" {
			t.Errorf("%d bytes were read; the message has %d bytes, type %s, name %s", len(got), len(sent.Data), sent.Type, sent.Name)
		}
		if in[1].Attachment.Type != "image/jpeg" || len(in[1].Attachment.Data) != len(want) {
			t.Error("the caller's input was changed")
		}
	})
}
