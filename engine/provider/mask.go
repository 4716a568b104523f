package provider

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"
)

// shortestKey is what a Mask looks for at least: below that it is no key, and would take words apart.
const shortestKey = 8

// Mask takes keys out of what a server said, however it spelled them: plain, escaped as in JSON, Go, HTML or a URL, or in
// base64. Letter case does not count. The zero Mask knows no key.
type Mask struct {
	pattern func() *regexp.Regexp // built for the first failure: an endpoint that works never needs it
	longest int                   // bytes that the longest key may take when each of its bytes is escaped
}

// NewMask knows these keys.
func NewMask(keys ...Secret) *Mask {
	var texts []string
	for _, k := range keys {
		if len(k.Reveal()) >= shortestKey {
			texts = append(texts, k.Reveal())
		}
	}
	if len(texts) == 0 {
		return &Mask{}
	}
	// A key may begin with another one.
	slices.SortFunc(texts, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	const widest = 6 // bytes that one is escaped in
	return &Mask{
		pattern: sync.OnceValue(func() *regexp.Regexp { return patternOf(texts) }),
		longest: widest * len(texts[0]),
	}
}

// Text is text without the keys.
func (m *Mask) Text(text string) string {
	if m.pattern == nil {
		return text
	}
	return m.pattern().ReplaceAllLiteralString(text, redacted)
}

// Cut is Text for the head of a text, of at most limit bytes. If something was cut off, what may be the beginning of a key
// before the cut goes too.
func (m *Mask) Cut(text string, limit int) string {
	if len(text) <= limit {
		return m.Text(text)
	}
	head := m.Text(strings.ToValidUTF8(text[:limit], ""))
	return head[:max(len(head)-m.longest, 0)]
}

// Error is a failure as it may be shown, logged and stored.
// The causes behind it stay reachable by errors.As; their own texts may still have a key.
func (m *Mask) Error(err error) error {
	failure, ok := errors.AsType[*Error](err)
	if !ok {
		return m.hide(err)
	}
	safe := *failure
	safe.Message, safe.Reason = m.Cut(safe.Message, messageLimit), m.Text(safe.Reason)
	safe.Raw, safe.Err = m.Text(safe.Raw), m.hide(safe.Err)
	if m.Text(safe.Code) != safe.Code {
		safe.Code = "unknown"
	}
	return &safe
}

// messageLimit bounds a message: it may quote a server that wrote without end.
const messageLimit = 8 << 10

// masked is an error whose own text holds a key, or is too long.
type masked struct {
	text string
	err  error
}

func (e *masked) Error() string { return e.text }
func (e *masked) Unwrap() error { return e.err }

// hide returns err itself if its text has no key and is short enough.
func (m *Mask) hide(err error) error {
	if err == nil {
		return nil
	}
	if text := m.Cut(err.Error(), messageLimit); text != err.Error() {
		return &masked{text, err}
	}
	return err
}

// patternOf returns a pattern that matches each of the keys in any of its spellings.
func patternOf(keys []string) *regexp.Regexp {
	var forms []string
	for _, key := range keys {
		var b strings.Builder
		for _, r := range key {
			b.WriteString(spellings(r))
		}
		forms = append(forms, b.String())
		forms = append(forms, base64Forms(key)...)
	}
	return regexp.MustCompile("(?i)" + strings.Join(forms, "|")) // of quoted parts only
}

// spellings matches a character in any of its escapes, with backslashes and percent signs escaped once more or not.
func spellings(r rune) string {
	var json, url strings.Builder
	for _, unit := range utf16.Encode([]rune{r}) {
		fmt.Fprintf(&json, `\\+u%04x`, unit)
	}
	for _, b := range []byte(string(r)) {
		fmt.Fprintf(&url, `%%(?:25)*%02x`, b)
	}
	return fmt.Sprintf(`(?:\\*%s|%s|\\+x%02x|%s|%s|&#0*%d;|&#x0*%x;)`, regexp.QuoteMeta(string(r)), json.String(), r, url.String(),
		regexp.QuoteMeta(html.EscapeString(string(r))), r, r)
}

// base64Forms are the parts of a key's base64 that do not depend on what stands around it, for each of the three ways it
// can lie in the groups of three bytes.
func base64Forms(key string) []string {
	either := strings.NewReplacer("+", `(?:[+-]|%2b)`, "/", `(?:\\*/|_|%2f)`)
	var forms []string
	for before, shared := range []int{0, 2, 3} {
		data := append(make([]byte, before), key...)
		text := base64.RawStdEncoding.EncodeToString(data)[shared:]
		if len(data)%3 != 0 {
			text = text[:len(text)-1]
		}
		forms = append(forms, either.Replace(text))
	}
	return forms
}
