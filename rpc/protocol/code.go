package protocol

import (
	"encoding/json"
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
}

// maxTagLine is the length of the longest line that can be a tag, in bytes. It bounds what a reader of a stream must hold
// back before it knows.
const maxTagLine = 256

// IsTag reports whether a line, without its line break, is a tag of a code cell: the tag alone, with blanks around it.
func IsTag(line, tag string) bool {
	return len(line) <= maxTagLine && strings.Trim(line, " \t\r\v\f") == tag
}

// SplitCell returns the language and the source of the text of a code part, which begins with the line <language>
// and ends with the line </language>. A cell that was cut off lacks its end. Without the first line the language is
// empty, and all of the text is source.
func SplitCell(text string) (language, source string) {
	first, rest, _ := strings.Cut(text, "\n")
	language, opens := strings.CutPrefix(strings.Trim(first, " \t\r\v\f"), "<")
	language, closes := strings.CutSuffix(language, ">")
	if !opens || !closes || language == "" || strings.ContainsAny(language, "</ ") {
		return "", text
	}
	if end := strings.LastIndexByte(rest, '\n') + 1; IsTag(rest[end:], "</"+language+">") {
		rest = rest[:end]
	}
	return language, strings.TrimSuffix(strings.TrimSuffix(rest, "\n"), "\r")
}
