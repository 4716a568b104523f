// Package bench drives an agent daemon over stdio and times it from outside, so
// that lashd and the floor are measured by the same code in the same way. It
// speaks newline JSON-RPC and reads without a goroutine of its own: the driver
// must cost less than what it measures. A Peer belongs to one goroutine.
package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Protocol has the method names and line patterns of a peer. Parameters are the same for all peers.
type Protocol struct {
	Create string // method that creates a session
	Attach string // method that loads a session of an earlier process
	Turn   string // method that starts a turn
	Delta  string // text that occurs in each line with a delta, and in no other line
	End    string // text that occurs in the line that ends a turn
}

// The protocols of the known peers.
var (
	Lashd = Protocol{
		Create: "session/new",
		Attach: "session/attach",
		Turn:   "turn/start",
		Delta:  `"type":"item/delta"`,
		End:    `"type":"turn/completed"`,
	}
	Floor = Protocol{
		Create: "session/new",
		Attach: "session/resume",
		Turn:   "turn/start",
		Delta:  `"method":"item/delta"`,
		End:    `"method":"turn/completed"`,
	}
)

// Config is what Start needs.
type Config struct {
	Protocol Protocol
	Args     []string      // the command
	Env      []string      // added to the driver's own
	Dir      string        // working directory of the process and of its sessions; absolute
	Limit    time.Duration // for each call; default a minute
}

// Peer is a running daemon.
type Peer struct {
	Ready time.Duration // from the start of the process to its answer to initialize

	proto  Protocol
	dir    string
	limit  time.Duration
	cmd    *exec.Cmd
	in     *os.File
	out    *os.File
	lines  *bufio.Reader
	stderr *tail
	lastID int64
}

// Start runs a daemon and initializes it.
func Start(c Config) (*Peer, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.WaitDelay = time.Second // a tool that outlives the daemon may hold stderr open
	p := &Peer{proto: c.Protocol, dir: c.Dir, limit: cmp.Or(c.Limit, time.Minute), cmd: cmd, stderr: &tail{}}
	cmd.Stderr = p.stderr

	// Our own pipes, because those of exec.Cmd cannot be given a deadline through their interfaces.
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, childIn.Close(), in.Close())
	}
	cmd.Stdin, cmd.Stdout = childIn, childOut
	p.in, p.out, p.lines = in, out, bufio.NewReaderSize(out, 1<<20)

	begin := time.Now()
	err = cmd.Start()
	childIn.Close()
	childOut.Close()
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	type clientInfo struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	params := struct {
		ClientInfo clientInfo `json:"clientInfo"`
	}{clientInfo{"bench", "1"}}
	if _, err := p.call("initialize", params); err != nil {
		killed := p.Kill() // waits, so that all of stderr has been read
		return nil, errors.Join(fmt.Errorf("%w%s", err, p.stderr), killed)
	}
	p.Ready = time.Since(begin)
	return p, nil
}

type sessionParams struct {
	SessionID string `json:"sessionId"`
}

// Create makes a session and returns its id.
func (p *Peer) Create() (string, error) { return p.CreateIn(p.dir) }

// CreateIn makes a session with a working directory of its own and returns its id.
func (p *Peer) CreateIn(dir string) (string, error) {
	res, err := p.call(p.proto.Create, struct {
		Cwd string `json:"cwd"`
	}{dir})
	if err != nil {
		return "", err
	}
	var s sessionParams
	if err := json.Unmarshal(res, &s); err != nil {
		return "", fmt.Errorf("%s: result: %w", p.proto.Create, err)
	}
	return s.SessionID, nil
}

// Attach loads a session that an earlier process made and returns the result undecoded.
func (p *Peer) Attach(sid string) (json.RawMessage, error) {
	return p.call(p.proto.Attach, sessionParams{sid})
}

// Turn has the figures of one turn. Times count from just before the request was written.
type Turn struct {
	Total  time.Duration // to the line that ends the turn
	First  time.Duration // to the first delta
	Last   time.Duration // to the last delta
	Deltas int           // lines with a delta: a peer may put several of the model's into one
	Bytes  int           // of lines with deltas
	At     []time.Time   // when each delta was read
	Answer string        // text of the outcome; only lashd reports it
}

type textInput struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type turnParams struct {
	SessionID string      `json:"sessionId"`
	Input     []textInput `json:"input"`
}

// Turn runs one turn to its end and returns its figures.
func (p *Peer) Turn(sid, prompt string) (Turn, error) {
	id, begin, err := p.send(p.proto.Turn, turnParams{sid, []textInput{{"text", prompt}}})
	if err != nil {
		return Turn{}, err
	}
	var (
		t        Turn
		isDelta  = []byte(p.proto.Delta)
		isEnd    = []byte(p.proto.End)
		accepted *message // the answer to the request
		end      *message
	)
	for accepted == nil || end == nil {
		line, err := p.line()
		if err != nil {
			return t, fmt.Errorf("%s: after %d deltas: %w", p.proto.Turn, t.Deltas, err)
		}
		if bytes.Contains(line, isDelta) {
			t.At = append(t.At, time.Now())
			t.Deltas++
			t.Bytes += len(line)
			continue
		}
		now := time.Now()
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return t, fmt.Errorf("%s: peer wrote %.200q: %w", p.proto.Turn, line, err)
		}
		switch {
		case bytes.Contains(line, isEnd):
			end = &m
			t.Total = now.Sub(begin)
		case m.answers(id):
			if m.Error != nil {
				return t, fmt.Errorf("%s: %w", p.proto.Turn, m.Error)
			}
			accepted = &m
		default:
			if err := p.decline(m); err != nil {
				return t, err
			}
		}
		// an attached client gets the events of earlier turns first
		if accepted != nil && end != nil && end.Params.Seq > 0 && end.Params.Seq < accepted.resultSeq() {
			end = nil
		}
	}
	t.Answer = end.Params.Outcome.Text
	if t.Deltas > 0 {
		t.First = t.At[0].Sub(begin)
		t.Last = t.At[t.Deltas-1].Sub(begin)
	}
	return t, nil
}

// Close closes the daemon's stdin and waits until it has exited. It kills the daemon after five
// seconds.
func (p *Peer) Close() error {
	p.in.Close()
	kill := time.AfterFunc(5*time.Second, func() { p.cmd.Process.Kill() })
	defer kill.Stop()
	p.out.SetReadDeadline(time.Now().Add(6 * time.Second)) // a process it started may hold the pipe open
	io.Copy(io.Discard, p.lines)                           // keeps reading until the exit, so that the daemon does not block on a full pipe
	return p.wait()
}

// Terminate ends the daemon with SIGTERM and then closes its stdin, as the exit of a parent would. It
// waits until the daemon has exited and kills it after five seconds.
func (p *Peer) Terminate() error {
	p.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has exited already
	p.in.Close()
	kill := time.AfterFunc(5*time.Second, func() { p.cmd.Process.Kill() })
	defer kill.Stop()
	return p.wait()
}

// Kill ends the daemon as a crash would.
func (p *Peer) Kill() error {
	p.cmd.Process.Kill() // fails only if it has exited already
	p.wait()             // returns "signal: killed"
	return p.in.Close()
}

func (p *Peer) wait() error {
	err := p.cmd.Wait()
	p.out.Close()
	if err != nil {
		return fmt.Errorf("%s: %w%s", filepath.Base(p.cmd.Path), err, p.stderr)
	}
	return nil
}
