package turn

import (
	"bytes"
	"encoding/json"
	"fmt"

	"lashd/rpc/protocol"
)

// Limits of what the report of a turn keeps of the calls of a code cell, which can make thousands.
const (
	maxCellCalls  = 128      // calls of one cell
	maxCellScalar = 64 << 10 // size of a text in the arguments and results of a call, in bytes
)

// recordable returns the calls of a code cell as the report keeps them. An issue says how many are left out.
func (m *Machine) recordable(calls []protocol.ToolCallRecord) []protocol.ToolCallRecord {
	if left := len(calls) - maxCellCalls; left > 0 {
		text := fmt.Sprintf("The code made %d calls. The last %d of them are not in the report, which keeps %d.", len(calls), left, maxCellCalls)
		m.issue(protocol.Issue{Kind: "runtime", Code: "cell_calls_omitted", Message: text})
	}
	return FirstCalls(calls)
}

// FirstCalls returns the calls of a code cell that are recorded: the first ones, with a note in the place of long texts.
func FirstCalls(calls []protocol.ToolCallRecord) []protocol.ToolCallRecord {
	calls = calls[:min(len(calls), maxCellCalls)]
	kept := make([]protocol.ToolCallRecord, len(calls))
	for i, c := range calls {
		c.Args, c.Output.Value, c.Output.Text = shortScalars(c.Args), shortScalars(c.Output.Value), shortText(c.Output.Text)
		kept[i] = c
	}
	return kept
}

// shortText returns a text, or a note in its place if it is too long to be kept.
func shortText(s string) string {
	if len(s) <= maxCellScalar {
		return s
	}
	return fmt.Sprintf("[text of %d bytes, not recorded]", len(s))
}

// shortScalars returns a JSON value with notes in the place of long texts and numbers.
func shortScalars(value json.RawMessage) json.RawMessage {
	if len(value) <= maxCellScalar {
		return value
	}
	var out []byte
	for rest := []byte(value); len(rest) > 0; {
		n := tokenSize(rest)
		if token := rest[:n]; n > maxCellScalar {
			note, _ := json.Marshal(shortText(string(token))) // text can be encoded
			out = append(out, note...)
		} else {
			out = append(out, token...)
		}
		rest = rest[n:]
	}
	return out
}

// tokenSize returns the length of the first token of compact JSON: a string, a character of structure, or a number or word.
func tokenSize(text []byte) int {
	if text[0] != '"' {
		if n := bytes.IndexAny(text, `"[]{}:,`); n >= 0 {
			return max(1, n)
		}
		return len(text)
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}
