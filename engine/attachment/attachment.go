// Package attachment decides which files an input may carry. It knows media types by content, size limits, and the policy for
// URLs. The engine calls it before it stores an input; clients call it to recognize files. All functions are safe for concurrent use.
package attachment

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"lashd/rpc/protocol"
)

// Limits of the attachments of one input, in bytes where nothing else is said.
const (
	MaxImage = 5 << 20 // the smallest limit among the model APIs
	MaxPDF   = 32 << 20
	MaxText  = 4 << 20  // of a text file
	MaxTotal = 32 << 20 // of all contents together
	MaxCount = 20       // attachments
	MaxSide  = 8000     // pixels of an image's width and height; the smallest limit among the model APIs
	maxURL   = 8 << 10  // bytes
	maxName  = 256      // bytes
)

// Inline is the size in bytes up to which contents stay in their input. The engine stores larger contents by their digest.
const Inline = 4 << 10

// PDF is the media type of PDF documents.
const PDF = "application/pdf"

// magic lists how files of each type begin. A dot stands for any byte.
var magic = []struct{ prefix, mediaType string }{
	{"\x89PNG\r\n\x1a\n", "image/png"},
	{"\xff\xd8\xff", "image/jpeg"},
	{"GIF87a", "image/gif"},
	{"GIF89a", "image/gif"},
	{"RIFF....WEBP", "image/webp"},
	{"%PDF-", PDF},
}

// Type returns the media type of contents: of an image that models read, of a PDF document, or text/plain for UTF-8 text. It
// returns "" for all other contents. It ignores file names.
// Only the first bytes of images and documents are checked. Checked checks more.
func Type(data []byte) string {
	for _, m := range magic {
		if begins(data, m.prefix) {
			return m.mediaType
		}
	}
	if utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 {
		return "text/plain"
	}
	return ""
}

// begins reports whether data begins with a prefix in which a dot stands for any byte.
func begins(data []byte, prefix string) bool {
	if len(data) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if prefix[i] != '.' && data[i] != prefix[i] {
			return false
		}
	}
	return true
}

// Checked returns the media type that contents count as: the type that the content shows, or the declared text type for text. It
// fails if models cannot read such contents, or if they exceed the limit of their type.
// The error begins with a verb, so that a caller can put the name of the file or of the parameter before it.
func Checked(declared string, data []byte) (string, error) {
	found := Type(data)
	if found == "text/plain" && strings.HasPrefix(declared, "text/") {
		found = declared
	}
	limit := MaxText
	switch {
	case found == "":
		return "", fmt.Errorf("has contents that models cannot read; send a PNG, JPEG, GIF or WebP image, a PDF document, or UTF-8 text")
	case found == PDF:
		limit = MaxPDF
	case strings.HasPrefix(found, "image/"):
		limit = MaxImage
		if strings.HasPrefix(declared, "text/") {
			return "", fmt.Errorf("is declared as %.80s but contains %s", declared, found)
		}
	case !strings.HasPrefix(declared, "text/") && (strings.HasPrefix(declared, "image/") || declared == PDF):
		return "", fmt.Errorf("is declared as %.80s but contains text", declared)
	}
	if len(data) > limit {
		return "", fmt.Errorf("has %d bytes; the limit for %s is %d", len(data), found, limit)
	}
	return found, checkSide(found, data)
}

// checkSide fails for an image whose header is damaged or whose sides are too long. An API rejects such an image, and then also each
// later request of the session, which has the image in its history. Damage after the header goes unnoticed: decoding an image could
// take any amount of memory.
func checkSide(mediaType string, data []byte) error {
	if !strings.HasPrefix(mediaType, "image/") {
		return nil
	}
	switch w, h := dimensions(data); {
	case w == 0:
		return fmt.Errorf("is damaged: it begins like %s but has no width and height; save the image again", mediaType)
	case max(w, h) > MaxSide:
		return fmt.Errorf("has %d x %d pixels; the limit is %d on each side", w, h, MaxSide)
	}
	return nil
}

// CheckURL validates an attachment by URL. lashd never fetches it: the model's server does.
// The URL must be absolute, without a user or password, and of an image or a PDF document. A URL with a password would be stored and
// shown with it.
func CheckURL(a *protocol.Attachment) error {
	if len(a.URL) > maxURL {
		return fmt.Errorf("has %d bytes, at most %d", len(a.URL), maxURL)
	}
	u, err := url.Parse(a.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return fmt.Errorf("must begin with https:// or http:// and name a host")
	}
	if u.User != nil {
		return fmt.Errorf("must not contain a user name or password")
	}
	if a.Type != PDF && !strings.HasPrefix(a.Type, "image/") {
		return fmt.Errorf("is for images and PDF documents only; send the contents of other files")
	}
	return nil
}

// CheckForm validates the members of an attachment without its contents: it has data, a digest or a URL, and a short name.
// An empty text file has none of the three.
func CheckForm(a *protocol.Attachment) error {
	sources := 0
	for _, has := range []bool{len(a.Data) > 0, a.Digest != "", a.URL != ""} {
		if has {
			sources++
		}
	}
	switch {
	case sources > 1:
		return fmt.Errorf("must have only one of data, digest and url")
	case len(a.Name) > maxName:
		return fmt.Errorf("has a name of %d bytes, at most %d", len(a.Name), maxName)
	case sources == 0 && !strings.HasPrefix(a.Type, "text/"):
		return fmt.Errorf("must have data, a digest or a url")
	}
	return nil
}

// UnsupportedError means that the model of a session does not take an attachment. Nothing was stored or sent.
type UnsupportedError struct {
	Pointer string // JSON pointer of the attachment
	Type    string // media type
	Model   string // id of the model
}

// Error says what the model does not take and what to do.
func (e *UnsupportedError) Error() string {
	kind := "PDF documents"
	if strings.HasPrefix(e.Type, "image/") {
		kind = "images"
	}
	return fmt.Sprintf("model %s does not take %s (%s); remove the attachment or choose a model that takes %s", e.Model, kind, e.Type, kind)
}

// URLsDeniedError means that the configuration does not allow attachments by URL.
type URLsDeniedError struct{ Pointer string }

func (*URLsDeniedError) Error() string {
	return "this daemon does not allow attachments by URL (deny_attachment_urls in config.toml); send the contents instead"
}
