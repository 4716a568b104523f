// Package foreign converts session files of Claude Code and Codex into documents for session/import. The formats are not documented by
// their makers; this package reads what it knows and skips the rest. Conversion is pure; only Find reads directories.
package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lashd/rpc/protocol"
)

// Agent is the program that wrote a file.
type Agent string

// The agents whose files are known. The first one means a document of session/export, which needs no conversion.
const (
	Lashd  Agent = "lashd"
	Claude Agent = "Claude Code"
	Codex  Agent = "Codex"
)

// Session is a converted file.
type Session struct {
	Agent   Agent
	ID      string // in that agent
	Version string // of the agent, newest in the file
	Cwd     string
	Title   string // "": the file has none
	Nodes   []protocol.Node
}

// ErrUnknown means that a file is of no known format.
var ErrUnknown = errors.New("it is not a session that lash session export --format json, Claude Code or Codex has written")

// sniffed is the number of lines by which a format is recognized.
const sniffed = 50

// Recognize returns the agent that wrote a file, by its first lines.
func Recognize(text []byte) (Agent, error) {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte(`{"format":`)) {
		return Lashd, nil
	}
	seen := 0
	for line := range bytes.Lines(text) {
		var l struct {
			Type      string          `json:"type"`
			SessionID string          `json:"sessionId"`
			Payload   json.RawMessage `json:"payload"`
			Summary   string          `json:"summary"`
			ID        string          `json:"id"`
			Timestamp string          `json:"timestamp"`
			LeafUUID  string          `json:"leafUuid"`
		}
		if seen++; seen > sniffed || json.Unmarshal(line, &l) != nil {
			break
		}
		switch {
		case l.Type == "session_meta" && l.Payload != nil, l.Type == "" && l.ID != "" && l.Timestamp != "" && seen == 1:
			return Codex, nil
		case l.SessionID != "" && l.Type != "", l.Type == "summary" && l.LeafUUID != "":
			return Claude, nil
		}
	}
	return "", ErrUnknown
}

// Convert converts a file of Claude Code or Codex. An error names the line.
func Convert(text []byte) (*Session, error) {
	agent, err := Recognize(text)
	if err != nil {
		return nil, err
	}
	var s *Session
	switch agent {
	case Claude:
		s, err = convertClaude(text)
	case Codex:
		s, err = convertCodex(text)
	default:
		return nil, errors.New("a document of lash session export needs no conversion")
	}
	if err != nil {
		return nil, err
	}
	if s.Agent = agent; len(s.Nodes) == 0 {
		return nil, fmt.Errorf("this %s session has no messages", agent)
	}
	return s, nil
}

// Document returns the document to import.
func (s *Session) Document() ([]byte, error) {
	source, err := json.Marshal(map[string]string{"title": s.Title})
	if err != nil {
		return nil, err
	}
	return json.Marshal(protocol.SessionDocument{Format: protocol.DocumentFormat, Version: protocol.DocumentVersion, Session: source, Nodes: s.Nodes})
}

// FirstInput returns the first text that a person sent; "": there is none.
func (s *Session) FirstInput() string {
	for i := range s.Nodes {
		if m := s.Nodes[i].Message; m != nil && m.Role == protocol.RoleUser && m.Parts[0].Kind == protocol.PartText {
			return m.Parts[0].Text
		}
	}
	return ""
}

// eachLine decodes the lines of a file in order. A last line that is not complete, because the agent is writing it or died, is skipped.
func eachLine[T any](text []byte, do func(*T) error) error {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var l T
		err := json.Unmarshal(line, &l)
		if err != nil && line[len(line)-1] != '\n' {
			return nil
		}
		if err == nil {
			err = do(&l)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return nil
}

// milliseconds converts a timestamp; 0 if it cannot be read.
func milliseconds(timestamp string) int64 {
	at, err := time.Parse(time.RFC3339Nano, timestamp)
	if err != nil {
		return 0
	}
	return max(at.UnixMilli(), 0)
}
