package attachment_test

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"lashd/engine/attachment"
)

// encoded returns a picture of this size as each encoder of the standard library writes it.
func encoded(t *testing.T, width, height int) map[string][]byte {
	t.Helper()
	picture := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.White, color.Black})
	all := map[string][]byte{}
	for kind, write := range map[string]func(*bytes.Buffer) error{
		"image/png":  func(b *bytes.Buffer) error { return png.Encode(b, picture) },
		"image/jpeg": func(b *bytes.Buffer) error { return jpeg.Encode(b, picture, nil) },
		"image/gif":  func(b *bytes.Buffer) error { return gif.Encode(b, picture, nil) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		all[kind] = b.Bytes()
	}
	return all
}

// webp returns the headers of WebP images of 9 by 7 pixels, as the specification of the format has them.
var webp = map[string]string{
	"lossy":    "RIFF\x00\x00\x00\x00WEBPVP8 \x00\x00\x00\x00\x30\x01\x00\x9d\x01\x2a\x09\x00\x07\x00",
	"lossless": "RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00\x2f\x08\x80\x01\x00\x00\x00\x00\x00\x00",
	"extended": "RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x06\x00\x00",
}

func TestChecked(t *testing.T) {
	t.Run("runtime/S15 an image that an encoder wrote is accepted, with its dimensions", func(t *testing.T) {
		for kind, data := range encoded(t, 300, 200) {
			if got, err := attachment.Checked(kind, data); got != kind || err != nil {
				t.Errorf("%s: %s, %v", kind, got, err)
			}
			if n := attachment.Tokens(kind, data); n != 85 {
				t.Errorf("%s of 300 x 200 pixels: %d tokens, want 85", kind, n)
			}
		}
		for kind, data := range encoded(t, 1000, 900) {
			if n := attachment.Tokens(kind, data); n != 1200 {
				t.Errorf("%s of 1000 x 900 pixels: %d tokens, want 1200", kind, n)
			}
		}
		for name, text := range webp {
			if got, err := attachment.Checked("image/webp", []byte(text)); got != "image/webp" || err != nil {
				t.Errorf("%s: %s, %v", name, got, err)
			}
		}
	})
	t.Run("runtime/S15 an image with a side over 8000 pixels is refused", func(t *testing.T) {
		for kind, data := range encoded(t, 8001, 1) {
			if _, err := attachment.Checked(kind, data); err == nil || err.Error() != "has 8001 x 1 pixels; the limit is 8000 on each side" {
				t.Errorf("%s: %v", kind, err)
			}
		}
	})
	t.Run("runtime/S15 a file that only begins like an image, and one that lies about its type, is refused", func(t *testing.T) {
		for text, want := range map[string]string{
			"\x89PNG\r\n\x1a\nrubbish that is no header at all":               "is damaged",
			"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00":                     "is damaged",
			"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + strings.Repeat("\x00", 9): "is damaged",
			"\xff\xd8\xff\xe0\x00\x00\xff\xff\xff\xff\xff\xff\xff":            "is damaged",
			"\xff\xd8\xff\xe0\xff\xff" + strings.Repeat("x", 50):              "is damaged",
			"GIF89a": "is damaged",
			"RIFF....WEBPVP8 rubbish rubbish rubbish":                 "is damaged",
			`<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>`: "is declared as image/png but contains text",
			"MZ\x90\x00\x03": "has contents that models cannot read",
		} {
			if _, err := attachment.Checked("image/png", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.30q: %v, want %s", text, err, want)
			}
		}
		if kind, err := attachment.Checked("image/svg+xml", []byte("<svg/>")); err == nil {
			t.Errorf("an SVG image counts as %s", kind)
		}
	})
	t.Run("runtime/S15 the tokens of a document are those of its pages, whatever its size claims", func(t *testing.T) {
		three := "%PDF-1.7 <</Type/Pages/Count 3>> <</Type /Page>> <</Type/Page/Parent 1 0 R>> <</Type /Page>>"
		for text, want := range map[string]int64{
			three: 6000, "%PDF-1.7": 2000, "%PDF-1.7" + strings.Repeat("x", 1<<20): 22_000,
			"%PDF-1.7" + strings.Repeat("/Type/Page ", 1<<20): 1_200_000,
		} {
			if n := attachment.Tokens("application/pdf", []byte(text)); n != want {
				t.Errorf("%.30q of %d bytes: %d tokens, want %d", text, len(text), n, want)
			}
		}
	})
}

// FuzzChecked looks for contents that make the check panic, or that it accepts although they are no image of a known size.
func FuzzChecked(f *testing.F) {
	for _, text := range webp {
		f.Add([]byte(text))
	}
	f.Add([]byte("\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x0b\x08\x00\x01\x00\x01\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		kind, err := attachment.Checked("image/png", data)
		if err == nil && strings.HasPrefix(kind, "image/") && attachment.Tokens(kind, data) < 85 {
			t.Errorf("%q counts as %s", data, kind)
		}
	})
}
