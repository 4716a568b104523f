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

// SplitCell returns the language and the source of the text of a code part, which begins with the line <language>
// and ends with the line </language>. A cell that was cut off lacks its end. Without the first line the language is
// empty, and all of the text is source.
func SplitCell(text string) (language, source string) {
	first, rest, _ := strings.Cut(text, "\n")
	first = strings.TrimSpace(first)
	language, ok := strings.CutPrefix(first, "<")
	if language, ok = strings.CutSuffix(language, ">"); !ok || language == "" || strings.ContainsAny(language, "</ ") {
		return "", text
	}
	end := strings.LastIndexByte(rest, '\n') + 1
	if strings.TrimSpace(rest[end:]) == "</"+language+">" {
		rest = rest[:end]
	}
	return language, strings.TrimSuffix(strings.TrimSuffix(rest, "\n"), "\r")
}
