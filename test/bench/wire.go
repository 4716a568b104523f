package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// message is any line of a peer except a delta.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Seq     int64 `json:"seq"`
		Outcome struct {
			Text string `json:"text"`
		} `json:"outcome"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

func (m message) answers(id string) bool { return m.Method == "" && string(m.ID) == id }

// resultSeq returns the sequence number in a result, or 0.
func (m message) resultSeq() int64 {
	var s struct {
		Seq int64 `json:"seq"`
	}
	json.Unmarshal(m.Result, &s) // a result without a number leaves 0
	return s.Seq
}

type rpcError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

func (p *Peer) call(method string, params any) (json.RawMessage, error) {
	id, _, err := p.send(method, params)
	if err != nil {
		return nil, err
	}
	for {
		line, err := p.line()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("%s: peer wrote %.200q: %w", method, line, err)
		}
		if !m.answers(id) {
			if err := p.decline(m); err != nil {
				return nil, err
			}
			continue
		}
		if m.Error != nil {
			return nil, fmt.Errorf("%s: %w", method, m.Error)
		}
		return m.Result, nil
	}
}

// decline rejects a request of the peer, which would otherwise wait for an answer. Notifications are
// ignored.
func (p *Peer) decline(m message) error {
	if m.Method == "" || len(m.ID) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"not in a benchmark"}}`+"\n", m.ID)
	return err
}

// send writes a request and returns its id and the moment before the write.
func (p *Peer) send(method string, params any) (string, time.Time, error) {
	p.lastID++
	b, err := json.Marshal(struct {
		Version string `json:"jsonrpc"`
		ID      int64  `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", p.lastID, method, params})
	if err != nil {
		return "", time.Time{}, err
	}
	deadline := time.Now().Add(p.limit)
	p.in.SetWriteDeadline(deadline) // without deadlines on pipes, the limit of go test applies
	p.out.SetReadDeadline(deadline)
	begin := time.Now()
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		return "", begin, fmt.Errorf("%s: %w%s", method, err, p.stderr)
	}
	return fmt.Sprint(p.lastID), begin, nil
}

// line reads one line, valid until the next call.
func (p *Peer) line() ([]byte, error) {
	line, err := p.lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := bytes.Clone(line)
		line, err = p.lines.ReadBytes('\n')
		line = append(long, line...)
	}
	if err != nil {
		return nil, fmt.Errorf("read from %s: %w%s", filepath.Base(p.cmd.Path), err, p.stderr)
	}
	return line, nil
}
