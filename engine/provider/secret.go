package provider

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a key. However it is printed, logged or encoded, only the fact that there is one shows. The text is behind
// a pointer because fmt reads a string in an unexported field without asking its methods.
type Secret struct{ text *string }

// NewSecret wraps a key; the empty text is the zero Secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal is the key itself, for the header it is sent in.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return redacted
}

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return s.String() }

// Format implements fmt.Formatter, for verbs that would pass String by.
func (s Secret) Format(f fmt.State, _ rune) {
	io.WriteString(f, s.String()) // a fmt.State keeps its own errors
}

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements encoding.TextMarshaler, which JSON and TOML use.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler: a Secret may be read from a file.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}
