package protocol

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// CodeGlobal describes a global variable that code cells of a session have set.
type CodeGlobal struct {
	Name string `json:"name"`
	Type string `json:"type"`           // as the language names it
	Size int64  `json:"size,omitempty"` // of the stored value, in bytes; absent: unknown
}

// CodePosition is a place in the source of a code cell.
type CodePosition struct {
	Line   int `json:"line"`             // from 1
	Column int `json:"column,omitempty"` // from 1; absent: unknown
}

// UnsavedGlobal is a global variable that is not stored with the session. It is lost when the session is unloaded.
type UnsavedGlobal struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// CodeResult is the result of a code cell, for people. The model reads the text of the part that has it.
type CodeResult struct {
	CellID   CallID          `json:"cellId,omitempty"`  // parent of the calls that the cell made
	Printed  string          `json:"printed,omitempty"` // at most 64 KiB of it
	Value    json.RawMessage `json:"value,omitempty"`   // of the last expression, or the final value of the turn; absent if over 64 KiB
	Error    string          `json:"error,omitempty"`   // absent: the code ran without an error
	Position *CodePosition   `json:"position,omitempty"`
	Final    bool            `json:"final,omitempty"`   // the cell ended the turn
	Changed  []string        `json:"changed,omitempty"` // globals that the cell set or removed
	Unsaved  []UnsavedGlobal `json:"unsaved,omitempty"`

	DurationMs int64      `json:"durationMs,omitempty"` // of the run that gave this result, with its calls and the waits for people
	Calls      []CellCall `json:"calls,omitempty"`      // the first calls that the code made, in order, at most 128
	MoreCalls  int        `json:"moreCalls,omitempty"`  // number of calls after these
}

// CellCall is a tool call that a code cell made, for people. Long texts in it are cut. It has what the caller asked for and saw: the
// arguments before hooks changed them, and no more of the output than the code got.
type CellCall struct {
	CallID     CallID          `json:"callId"`
	Index      int             `json:"index"` // position among the calls of the cell, from 1
	Tool       string          `json:"tool"`
	Args       json.RawMessage `json:"args,omitempty"` // absent if large
	Status     ItemStatus      `json:"status"`
	Decision   *CallDecision   `json:"decision,omitempty"` // absent until it is decided
	DurationMs int64           `json:"durationMs"`
	Summary    string          `json:"summary,omitempty"` // of the result: one line of its text, its change of a file, or its error
}

// MaxCellCalls is the number of calls that a CodeResult lists.
const MaxCellCalls = 128

// liveCalls is the number of calls that AddCall keeps.
const liveCalls = 16

// AddCall adds a call of a running cell, or replaces the call with the same index. The newest calls are kept and MoreCalls counts
// the ones before them, so that a client can show a cell that makes thousands of calls.
func (r *CodeResult) AddCall(c CellCall) {
	at, known := slices.BinarySearchFunc(r.Calls, c, func(a, b CellCall) int { return cmp.Compare(a.Index, b.Index) })
	switch {
	case known:
		r.Calls[at] = c
	case at > 0 || c.Index > r.MoreCalls:
		r.Calls = slices.Insert(r.Calls, at, c)
	}
	if over := len(r.Calls) - liveCalls; over > 0 {
		r.Calls = slices.Delete(r.Calls, 0, over)
	}
	if len(r.Calls) > 0 {
		r.MoreCalls = r.Calls[0].Index - 1
	}
}

// Text returns the result as text: what the code printed, its value and its error, each on lines of its own. It is empty for code
// that printed nothing and has neither a value nor an error.
func (r *CodeResult) Text() string {
	var sections []string
	if printed := strings.TrimRight(r.Printed, "\r\n"); printed != "" {
		sections = append(sections, printed)
	}
	if len(r.Value) > 0 && !bytes.Equal(r.Value, []byte("null")) {
		sections = append(sections, "Value: "+string(r.Value))
	}
	if text := r.ErrorText(); text != "" {
		sections = append(sections, text)
	}
	return strings.Join(sections, "\n")
}

// ErrorText returns the error with its place in the code; "" without an error.
func (r *CodeResult) ErrorText() string {
	switch p := r.Position; {
	case r.Error == "":
		return ""
	case p == nil:
		return "Error: " + r.Error
	case p.Column == 0:
		return fmt.Sprintf("Error in line %d: %s", p.Line, r.Error)
	default:
		return fmt.Sprintf("Error in line %d, column %d: %s", p.Line, p.Column, r.Error)
	}
}

// maxTagLine is the length of the longest line that can be a tag, in bytes. It bounds what a reader of a stream must hold
// back before it knows.
const maxTagLine = 256

// IsTag reports whether a line, without its line break, is a tag of a code cell: the tag alone, with blanks around it.
func IsTag(line, tag string) bool {
	return len(line) <= maxTagLine && strings.Trim(line, " \t\r\v\f") == tag
}

// SplitCell returns the language and the source of the text of a code part, which begins with the line <language>
// and ends with the line </language>. A cell that was cut off lacks its end and is not closed. Without the first line the
// language is empty, all of the text is source, and the cell counts as closed.
func SplitCell(text string) (language, source string, closed bool) {
	first, rest, _ := strings.Cut(text, "\n")
	language, opens := strings.CutPrefix(strings.Trim(first, " \t\r\v\f"), "<")
	language, closes := strings.CutSuffix(language, ">")
	if !opens || !closes || language == "" || strings.ContainsAny(language, "</ ") {
		return "", text, true
	}
	end := strings.LastIndexByte(rest, '\n') + 1
	if closed = IsTag(rest[end:], "</"+language+">"); closed {
		rest = rest[:end]
	}
	return language, strings.TrimSuffix(strings.TrimSuffix(rest, "\n"), "\r"), closed
}
