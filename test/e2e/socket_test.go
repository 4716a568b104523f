package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// script exchanges lines through the socket, as a shell script does.
type script struct {
	*world
	conn interface {
		io.ReadWriteCloser
		CloseWrite() error
		SetDeadline(time.Time) error
	}
	lines *bufio.Scanner
}

// line is a message as a script reads it.
type line struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code int `json:"code"`
	} `json:"error"`
}

func newScript(t *testing.T, w *world) *script {
	conn := w.connect()
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 16<<20)
	return &script{w, conn, lines}
}

// send writes all lines at once.
func (s *script) send(lines ...string) {
	s.t.Helper()
	if _, err := io.WriteString(s.conn, strings.Join(lines, "\n")+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

// answer returns the next response and skips notifications.
func (s *script) answer() (l line, ok bool) {
	s.t.Helper()
	for s.lines.Scan() {
		l = line{}
		if err := json.Unmarshal(s.lines.Bytes(), &l); err != nil {
			s.t.Fatalf("%v in the line %q", err, s.lines.Text())
		}
		if l.Method == "" {
			return l, true
		}
	}
	return l, false
}

// answered returns the ids of all responses until the daemon closes the connection.
func (s *script) answered() (ids []int) {
	s.t.Helper()
	for l, ok := s.answer(); ok; l, ok = s.answer() {
		if l.Error != nil {
			s.t.Errorf("request %d failed with %d", l.ID, l.Error.Code)
		}
		ids = append(ids, l.ID)
	}
	if err := s.lines.Err(); err != nil {
		s.t.Errorf("the connection ended with %v", err)
	}
	return ids
}

const (
	newSession = `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"sessionId":"ses_script","cwd":"WORK"}}`
	runTurn    = `{"jsonrpc":"2.0","id":2,"method":"turn/run","params":{"sessionId":"ses_script","input":[{"type":"text","text":"go"}]}}`
	getStatus  = `{"jsonrpc":"2.0","id":3,"method":"server/status"}`
	sayExit    = `{"jsonrpc":"2.0","method":"exit"}`
)

func TestRawLines(t *testing.T) {
	setup := func(t *testing.T, reply ...string) (*script, string) {
		w := newWorld(t, "allow")
		for _, r := range reply {
			w.model.Push(step(says(r)))
		}
		w.serve()
		return newScript(t, w), strings.ReplaceAll(newSession, "WORK", w.work)
	}
	t.Run("one line at a time", func(t *testing.T) {
		s, session := setup(t, "hello")
		s.send(session)
		if l, _ := s.answer(); l.ID != 1 || l.Error != nil {
			t.Fatalf("session/new was answered %+v", l)
		}
		s.send(runTurn)
		l, _ := s.answer()
		var report protocol.TurnReport
		if err := json.Unmarshal(l.Result, &report); err != nil || report.Outcome.Text != "hello" {
			t.Errorf("turn/run was answered %s", l.Result)
		}
		s.send(sayExit)
		if left := s.answered(); len(left) != 0 {
			t.Errorf("after exit, these were answered: %v", left)
		}
	})
	t.Run("all lines in one write; later answers overtake a waiting one", func(t *testing.T) {
		s, session := setup(t)
		s.model.Push(step(stalls, says("hello")))
		s.send(session, runTurn, getStatus)
		order := []int{}
		for range 2 {
			l, _ := s.answer()
			order = append(order, l.ID)
		}
		s.model.Release()
		l, _ := s.answer()
		if order = append(order, l.ID); !slices.Equal(order, []int{1, 3, 2}) {
			t.Errorf("order of the answers: %v", order)
		}
	})
	t.Run("a peer that has finished writing still gets its answers", func(t *testing.T) {
		s, session := setup(t, "hello")
		s.send(session, runTurn, getStatus)
		if err := s.conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		got := s.answered()
		slices.Sort(got)
		if !slices.Equal(got, []int{1, 2, 3}) {
			t.Errorf("answers: %v", got)
		}
	})
	t.Run("a peer that has finished writing gets the answer of a turn that takes a second", func(t *testing.T) {
		s, session := setup(t)
		s.model.Push(step(says("slow"), fakemodel.Part{PauseMS: 1000}, says("ly")))
		s.send(session, runTurn)
		if err := s.conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got := s.answered(); !slices.Equal(got, []int{1, 2}) {
			t.Errorf("answers: %v", got)
		}
	})
}
