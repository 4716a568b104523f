package command

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"lashd/rpc/protocol"
)

// transcript is the file with the conversation of one session for the plugin's hooks: a JSON object per line, as Claude Code writes it. It
// exists from the first hook until the session leaves memory. Its methods are safe for concurrent use.
type transcript struct {
	path string // empty: the plugin has no directory for its files

	mu      sync.Mutex
	size    int
	written [sha256.Size]byte // hash of the first size bytes, which are in the file
}

// transcripts is the directory for transcripts in the plugin's own.
const transcripts = "transcripts"

// newTranscript returns the transcript of a session. It writes nothing.
func newTranscript(data string, id protocol.SessionID) *transcript {
	if data == "" || id == "" {
		return &transcript{}
	}
	return &transcript{path: filepath.Join(data, transcripts, string(id)+".jsonl")}
}

// write brings the file up to date, and returns its path. Without messages the file stays as it is. It appends what is new; if history has
// changed, for example by a rewind, it writes a new file. A hook that reads the file never sees a part of a line of a new file.
func (t *transcript) write(id protocol.SessionID, cwd string, messages []protocol.Message) (string, error) {
	if t.path == "" {
		return "", nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if messages == nil {
		return t.path, nil
	}
	text, err := lines(id, cwd, messages)
	if err != nil {
		return "", err
	}
	if err := t.put(text); err != nil {
		return "", fmt.Errorf("write the transcript for hooks: %w", err)
	}
	t.size, t.written = len(text), sha256.Sum256(text)
	return t.path, nil
}

// put writes a text of which the file may have the beginning.
func (t *transcript) put(text []byte) error {
	if info, err := os.Lstat(t.path); err == nil && info.Mode().IsRegular() && info.Size() == int64(t.size) && t.size <= len(text) && sha256.Sum256(text[:t.size]) == t.written {
		f, err := os.OpenFile(t.path, os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		if _, err := f.Write(text[t.size:]); err != nil {
			f.Close()
			return err
		}
		return f.Close()
	}
	if err := os.MkdirAll(filepath.Dir(t.path), 0o700); err != nil {
		return err
	}
	next := t.path + ".new"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, t.path)
}

// remove removes the file. The next hook would write it again.
func (t *transcript) remove() error {
	if t.path == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.size = 0
	return os.RemoveAll(t.path)
}

// line is a line of a transcript.
type line struct {
	Type      string             `json:"type"` // user or assistant
	SessionID protocol.SessionID `json:"sessionId"`
	Cwd       string             `json:"cwd"`
	Message   said               `json:"message"`
}

// said is the message of a line.
type said struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is a part of a message in the format of Claude Code.
type block struct {
	Type      string          `json:"type"` // text, tool_use or tool_result
	Text      string          `json:"text,omitempty"`
	ID        protocol.CallID `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID protocol.CallID `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

// lines returns a conversation as lines of JSON.
func lines(id protocol.SessionID, cwd string, messages []protocol.Message) ([]byte, error) {
	var out bytes.Buffer
	for _, m := range messages {
		l := line{Type: "user", SessionID: id, Cwd: cwd, Message: said{Role: "user", Content: blocks(m.Parts)}}
		if m.Role == protocol.RoleAssistant {
			l.Type, l.Message.Role = "assistant", "assistant"
		}
		if len(l.Message.Content) == 0 || m.Role == protocol.RoleSystem {
			continue
		}
		data, err := encode(l)
		if err != nil {
			return nil, err
		}
		out.Write(data)
		out.WriteByte('\n')
	}
	return out.Bytes(), nil
}

// blocks returns the parts of a message that have text, calls or results.
func blocks(parts []protocol.Part) (all []block) {
	for _, p := range parts {
		switch {
		case p.Call != nil:
			all = append(all, block{Type: "tool_use", ID: p.Call.CallID, Name: p.Call.Name, Input: p.Call.Args})
		case p.Result != nil:
			failed := p.Result.Output.Status != "" && p.Result.Output.Status != protocol.OutputSuccess
			all = append(all, block{Type: "tool_result", ToolUseID: p.Result.CallID, Content: p.Result.Output.Text, IsError: failed})
		case p.Kind != protocol.PartReasoning && strings.TrimSpace(p.Text) != "":
			all = append(all, block{Type: "text", Text: p.Text})
		}
	}
	return all
}
