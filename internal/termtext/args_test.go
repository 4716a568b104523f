package termtext_test

import (
	"encoding/json"
	"testing"

	"lashd/internal/termtext"
)

func TestArgs(t *testing.T) {
	for raw, want := range map[string]string{
		`{"command":"go test ./..."}`:                     "go test ./...",
		`{"timeout":5,"command":"ls","outside":true}`:     "ls timeout=5 outside=true",
		`{"path":"a.txt","old":"hello","new":"one\ntwo"}`: "a.txt old=hello new=…",
		`{"path":"a.txt","content":"` + long + `"}`:       "a.txt content=…",
		`{"text":"a & <b>"}`:                              "a & <b>",
		`{"first":1,"second":["a","b"]}`:                  `first=1 second=["a","b"]`,
		`{"id":"","n":null}`:                              `"" n=null`,
		``:                                                "",
		`{"path":"a <b>","n":"\u003c"}`:                   "a <b> n=<",
		`{}`:                                              "",
		`null`:                                            "null",
		`["a"]`:                                           `["a"]`,
		`{"broken`:                                        `{"broken`,
		`{"n":12345678901234567890}`:                      "12345678901234567890",
	} {
		if got := termtext.Args(json.RawMessage(raw)); got != want {
			t.Errorf("Args(%s) is %q, want %q", raw, got, want)
		}
	}
}

// long has more characters than an argument may have.
const long = "0123456789012345678901234567890123456789x"
