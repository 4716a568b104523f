package termtext_test

import (
	"encoding/json"
	"testing"

	"lashd/internal/termtext"
)

func TestPrintable(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"plain text", "a\tb\nc €𝄞 👩‍💻 \uFFFD", "a\tb\nc €𝄞 👩‍💻 \uFFFD"},
		{"colour", "\x1b[31mred", `\u001b[31mred`},
		{"clipboard by OSC 52", "\x1b]52;c;aGk=\a", `\u001b]52;c;aGk=\u0007`},
		{"C1 as a rune", "\u009b31m \u009d0;t\u009c", `\u009b31m \u009d0;t\u009c`},
		{"C1 as a byte", "\x9b31m", `\x9b31m`},
		{"overwriting", "rm\rls\b\x7f\x00", `rm\u000dls\u0008\u007f\u0000`},
		{"direction", "\u202e\u2066\u2069\u200f\u061c", `\u202e\u2066\u2069\u200f\u061c`},
		{"separators", "\u2028\u2029", `\u2028\u2029`},
		{"tags", "\U000e0041", `\udb40\udc41`},
	} {
		if got := termtext.Printable(test.in); got != test.want {
			t.Errorf("%s: printable(%q) = %q, want %q", test.name, test.in, got, test.want)
		}
	}
}

func TestPrintableJSONMeansTheSame(t *testing.T) {
	text := "\u009b \u202e \U000e0041 \x7f"
	raw := `"` + text + `"`
	var got string
	if err := json.Unmarshal([]byte(termtext.Printable(raw)), &got); err != nil || got != text {
		t.Errorf("printable(%q) means %q, %v; want %q", raw, got, err, text)
	}
}

func TestBriefIsTheSameAfterEncoding(t *testing.T) {
	for args, want := range map[string]string{
		`{"b": "1 && <2>", "a": [1, 2]}`: `{"b":"1 && <2>","a":[1,2]}`,
		`{"a":"\\u003c"}`:                `{"a":"\\u003c"}`,
		`no JSON`:                        `no JSON`,
	} {
		sent, err := json.Marshal(json.RawMessage(args))
		if err != nil {
			sent = json.RawMessage(args)
		}
		if got, again := termtext.Brief(json.RawMessage(args)), termtext.Brief(sent); got != want || again != want {
			t.Errorf("Brief(%s) = %q, and %q as it was sent; want %q", args, got, again, want)
		}
	}
}
