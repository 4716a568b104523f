package rlm

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

func TestOptions(t *testing.T) {
	for payload, want := range map[string]string{
		`{}`:   "",
		`null`: "",
		`{"termination":{"kind":"finish","schema":{"type":"object"}},"answer":"value","contextAdvice":5}`: "",
		`{"termination":{"kind":"never"}}`:                             "termination.kind is \"never\"",
		`{"termination":{"kind":"natural","schema":{}}}`:               "termination.schema needs termination.kind finish",
		`{"termination":{"kind":"finish","schema":{"type":"strung"}}}`: "termination.schema: ",
		`{"terminations":{"kind":"finish"}}`:                           "unknown field",
		`{"answer":"html"}`:                                            "answer is \"html\"",
		`{"contextAdvice":-1}`:                                         "contextAdvice is -1",
		`{"contextAdvice":"many"}`:                                     "contextAdvice",
	} {
		t.Run("runtime/R04 turn options are checked: "+payload, func(t *testing.T) {
			err := validate(t.Context(), &protocol.TurnOptions{SchemaVersion: 1, Payload: json.RawMessage(payload)})
			switch {
			case want == "" && err != nil:
				t.Error(err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, new(*plugin.OptionsError))):
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
	t.Run("runtime/R04 turn options of another version are rejected", func(t *testing.T) {
		if err := validate(t.Context(), &protocol.TurnOptions{SchemaVersion: 2, Payload: json.RawMessage(`{}`)}); err == nil {
			t.Error("accepted")
		}
		if err := validate(t.Context(), nil); err != nil {
			t.Errorf("without options: %v", err)
		}
	})
	for name, c := range map[string]struct {
		options, recorded string
		root              bool
		want              string
	}{
		"a session of a person":                {root: true, want: `{"answer":"markdown"}`},
		"a session of another one":             {want: `{"answer":"value"}`},
		"options of the settings":              {options: `{"answer":"markdown","contextAdvice":9}`, want: `{"answer":"markdown","contextAdvice":9}`},
		"recorded termination":                 {recorded: `{"termination":{"kind":"finish"},"answer":"value","contextAdvice":7}`, root: true, want: `{"termination":{"kind":"finish"},"answer":"markdown","contextAdvice":7}`},
		"settings before recorded termination": {options: `{"termination":{"kind":"natural"}}`, recorded: mustFinish, root: true, want: `{"termination":{"kind":"natural"},"answer":"markdown"}`},
	} {
		t.Run("runtime/R04 the form of the answer is recorded for all frames: "+name, func(t *testing.T) {
			m := &plugin.Materialization{Root: c.root, Options: json.RawMessage(c.options)}
			if c.recorded != "" {
				m.Recorded = &protocol.TurnOptions{SchemaVersion: 1, Payload: json.RawMessage(c.recorded)}
			}
			got, err := materialize(t.Context(), m)
			if err != nil || string(got.Options.Payload) != c.want || got.Options.SchemaVersion != 1 || !got.AllFrames {
				t.Errorf("recorded %+v, %v", got, err)
			}
		})
	}
	t.Run("runtime/R04 wrong settings of the plugin fail the session", func(t *testing.T) {
		if _, err := materialize(t.Context(), &plugin.Materialization{Options: json.RawMessage(`{"answer":1}`)}); err == nil {
			t.Error("accepted")
		}
	})
}

func TestPreamble(t *testing.T) {
	t.Run("runtime/R02 the preamble shows a cell with the tags of the executor, and then the executor's guide", func(t *testing.T) {
		got := Driver{Child: true}.Preamble(plugin.PreambleInput{Code: &plugin.CodeDescription{Language: "python", Guide: "\nThe guide.\n"}})
		if !strings.Contains(got, "\n<python>\ntotal = 2 + 3\nprint(total)\n</python>\n") || !strings.HasSuffix(got, "submit_error(value) ends the turn if you cannot do the task. The value says why.\n\nThe guide.") {
			t.Errorf("the preamble is %s", got)
		}
		if strings.Contains(Driver{}.Preamble(plugin.PreambleInput{Code: &plugin.CodeDescription{Language: "python"}}), "submit_error") {
			t.Error("a session of a person reads about submit_error")
		}
		if got := (Driver{}).Preamble(plugin.PreambleInput{}); got != "" {
			t.Errorf("without an executor the preamble is %q", got)
		}
	})
	t.Run("runtime/R02 the example of the preamble is a valid cell", func(t *testing.T) {
		text := Driver{}.Preamble(plugin.PreambleInput{Code: &plugin.CodeDescription{Language: "python"}})
		s := newSplitter("python")
		pieces := append(s.Write(text), s.Break()...)
		if code, seen := joined(pieces, protocol.PartCode); !s.Done() || seen != "total = 2 + 3\nprint(total)" {
			t.Errorf("the cell is %q", code)
		}
	})
	t.Run("runtime/R02 people do not see cells in other text", func(t *testing.T) {
		if got := (Driver{}).Visible("a\n<starlark>\nx\n</starlark>\nb\n<result>\n3\n</result>\n"); got != "a\nb\n<result>\n3\n</result>\n" {
			t.Errorf("they see %q", got)
		}
	})
}
