package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lashd/rpc/client"
	"lashd/rpc/protocol"
)

// home is a data directory with a scripted model whose turn runs a command that adds one byte to a file.
type home struct {
	dir, socket, work string
}

func newHome(t *testing.T) *home {
	t.Helper()
	dir := t.TempDir()
	h := &home{dir: filepath.Join(dir, "data"), socket: filepath.Join(dir, "run", "s"), work: filepath.Join(dir, "work")}
	for _, d := range []string{h.dir, h.work, filepath.Dir(h.socket)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	script := `{"otherwise": {"replies": [
		{"text": "Let me see what there is to do here.", "chunkSize": 4, "delayMs": 1, "toolCalls": [{"name": "shell", "args": {"command": "printf x >> $(pwd)/ran"}}]},
		{"text": "That is done, and here is what I have to say about it.", "chunkSize": 4, "delayMs": 1}]}}`
	for name, text := range map[string]string{"config.toml": "script = \"script.json\"\napproval = \"allow\"\n", "script.json": script} {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h *home) command(args ...string) *exec.Cmd {
	return exec.Command(filepath.Join(bin, "lashd"), append([]string{"--home", h.dir, "--socket", h.socket, "--log", "error"}, args...)...)
}

func (h *home) serve(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := h.command("serve")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func (h *home) dial(t *testing.T) *client.Client {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		conn, err := net.Dial("unix", h.socket)
		if err == nil {
			return client.New(t.Context(), conn, nil)
		}
		if time.Now().After(deadline) {
			t.Fatalf("no daemon after ten seconds: %v", err)
		}
		time.Sleep(2 * time.Millisecond) // the socket of a process that starts: there is nothing else to wait for
	}
}

func TestSIGKILLUnderLoad(t *testing.T) {
	cycles := 8
	if os.Getenv("LASHD_LONG") != "" {
		cycles = 500
	}
	h := newHome(t)
	var accepted []protocol.TurnID
	sessions := map[protocol.TurnID]protocol.SessionID{}
	for cycle := range cycles {
		daemon := h.serve(t)
		ids, of := h.load(t, time.Duration(5+cycle*13%170)*time.Millisecond, daemon)
		accepted = append(accepted, ids...)
		for id, s := range of {
			sessions[id] = s
		}
	}
	daemon := h.serve(t)
	defer func() { daemon.Process.Signal(syscall.SIGTERM); daemon.Wait() }()
	c := h.dial(t)
	defer c.Close()
	for _, id := range accepted {
		var r protocol.TurnReport
		if err := c.Call(t.Context(), "turn/wait", protocol.TurnWaitParams{TurnID: id, TimeoutMs: 30_000}, &r); err != nil {
			t.Errorf("reliability/I1 accepted turn %s of %s: %v", id, sessions[id], err)
		} else if r.State != protocol.TurnCompleted {
			t.Errorf("reliability/I3 turn %s ended as %s: %+v", id, r.State, r.Outcome)
		}
	}
	t.Logf("%d cycles, %d accepted turns", cycles, len(accepted))
	if len(accepted) == 0 {
		t.Error("no turn was accepted in any cycle")
	}
	ran := 0
	filepath.WalkDir(h.work, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "ran" {
			info, _ := d.Info()
			ran += int(info.Size())
		}
		return nil
	})
	started := len(accepted) + cycles*4 // at most one turn a client was accepted without its answer being seen
	if ran > started {
		t.Errorf("reliability/I4 the command ran %d times for at most %d turns", ran, started)
	}
	h.verify(t)
}

// load lets four clients start turns until the daemon is killed, and returns the turns that were acknowledged.
func (h *home) load(t *testing.T, after time.Duration, daemon *exec.Cmd) ([]protocol.TurnID, map[protocol.TurnID]protocol.SessionID) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var ids []protocol.TurnID
	of := map[protocol.TurnID]protocol.SessionID{}
	var wg sync.WaitGroup
	for i := range 4 {
		c := h.dial(t)
		defer c.Close()
		cwd := filepath.Join(h.work, fmt.Sprint(i))
		os.MkdirAll(cwd, 0o700)
		wg.Go(func() {
			var s protocol.SessionNewResult
			if c.Call(ctx, "session/new", protocol.SessionNewParams{Cwd: cwd, Unknown: protocol.UnknownOutcomeRule{DeadlineMs: new(int64)}}, &s) != nil {
				return
			}
			for {
				var r protocol.TurnStartResult
				err := c.Call(ctx, "turn/start", protocol.TurnStartParams{SessionID: s.SessionID, Input: []protocol.InputPart{{Type: "text", Text: "go"}}}, &r)
				if err != nil {
					return
				}
				mu.Lock()
				ids, of[r.TurnID] = append(ids, r.TurnID), s.SessionID
				mu.Unlock()
				if c.Call(ctx, "turn/wait", protocol.TurnWaitParams{TurnID: r.TurnID}, nil) != nil {
					return
				}
			}
		})
	}
	time.Sleep(after) // when the kill comes is the point of the test
	daemon.Process.Signal(syscall.SIGKILL)
	daemon.Wait()
	cancel()
	wg.Wait()
	return ids, of
}

// verify has the doctor look at the chains, the heads and the structure, beside the daemon that runs.
func (h *home) verify(t *testing.T) {
	t.Helper()
	out, err := h.command("doctor").Output()
	if err != nil || !strings.Contains(string(out), `"store":"ok"`) {
		t.Errorf("doctor: %s, %v", out, err)
	}
}

func TestFiftyClientsStartOneDaemon(t *testing.T) {
	h := newHome(t)
	var wg sync.WaitGroup
	pids := make([]int, 50)
	for i := range pids {
		wg.Go(func() {
			out, err := h.command("call", "server/status").Output()
			var r protocol.StatusResult
			if err == nil {
				err = json.Unmarshal(out, &r)
			}
			if err != nil {
				t.Errorf("reliability/P20 client %d: %v", i, err)
			}
			pids[i] = r.Pid
		})
	}
	wg.Wait()
	for i, pid := range pids {
		if pid != pids[0] {
			t.Errorf("reliability/P20 client %d was served by %d, client 0 by %d", i, pid, pids[0])
		}
	}
	if err := h.command("call", "shutdown", `{"daemon":true}`).Run(); err != nil {
		t.Error(err)
	}
}
