package rpc_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// crowdVariable makes the test's program a client with many connections: it names the socket, how many, and what each sends.
const crowdVariable = "LASHD_TEST_CROWD"

// crowd opens connections, sends a request on each, and holds them until stdin ends. It prints the responses.
func crowd(words string) {
	parts := strings.SplitN(words, " ", 3)
	n, _ := strconv.Atoi(parts[1])
	refused := 0
	for range n {
		nc, err := net.Dial("unix", parts[0])
		if err != nil {
			refused++
			continue
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintln(nc, parts[2])
		if line, err := bufio.NewReader(nc).ReadString('\n'); err != nil || strings.Contains(line, `"error"`) {
			refused++
		}
	}
	fmt.Println(refused)
	io.Copy(io.Discard, os.Stdin)
}

// crowds starts a process with n connections, and returns how many were rejected.
func (f *fixture) crowds(t *testing.T, n int, line string) (refused int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", crowdVariable, f.socket, n, line))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	if _, err := fmt.Fscanln(out, &refused); err != nil {
		t.Fatal(err)
	}
	return refused
}

// lost reads the rest of a connection, which must have ended.
func (w *wire) lost(t *testing.T) (last string) {
	t.Helper()
	w.SetDeadline(time.Now().Add(time.Minute))
	for {
		line, err := w.next()
		if err == io.EOF {
			return last
		}
		if err != nil {
			t.Fatalf("the connection goes on: %v", err)
		}
		last = string(line)
	}
}

const attachServer = `{"jsonrpc":"2.0","id":1,"method":"server/attach"}`

func TestConnections(t *testing.T) {
	const told = `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,`
	t.Run("outside/11 a process with 200 idle connections does not lock out other clients", func(t *testing.T) {
		f := newFixture(t)
		if refused := f.crowds(t, 200, strings.TrimSpace(ping)); refused != 0 {
			t.Errorf("%d idle connections were refused, want each to take the place of an older one", refused)
		}
		for range 3 {
			w := f.dialSocket(t)
			defer w.Close()
			w.usable(t)
		}
	})
	t.Run("outside/11 a process with 200 subscriptions does not lock out other clients", func(t *testing.T) {
		f := newFixture(t)
		if refused := f.crowds(t, 200, attachServer); refused < 200-64 || refused > 200-60 {
			t.Errorf("%d connections with a subscription were refused, want all but 64", refused)
		}
		f.dialSocket(t).usable(t)
	})
	t.Run("outside/11 many connections of several processes drop idle clients, never one with a turn or a subscription", func(t *testing.T) {
		f := newFixture(t)
		following, waiting, idle := f.dialSocket(t), f.dialSocket(t), f.dialSocket(t)
		following.do(t, "session/attach", `{"sessionId":%q}`, f.words.Replace("$busy"))
		waiting.send(f.words.Replace(call("turn/wait", `{"turnId":"$running"}`)))
		waiting.usable(t)
		idle.usable(t)
		for range 2 {
			f.crowds(t, 200, attachServer)
		}
		if last := idle.lost(t); !strings.HasPrefix(last, told) {
			t.Errorf("the idle client was last told %q", last)
		}
		following.usable(t)
		waiting.usable(t)
		full := f.dialSocket(t)
		full.send(ping + "\n")
		var a answer
		if err := json.Unmarshal(full.frame(t), &a); err != nil || a.Error == nil || a.Error.Data.Kind != protocol.KindOverloaded {
			t.Errorf("a client without a place was answered %+v, %v", a, err)
		}
		full.lost(t)
	})
	t.Run("outside/11 idle clients make room for others, those of the process with most connections first", func(t *testing.T) {
		f := newFixture(t)
		honest := f.dialSocket(t)
		honest.usable(t) // used before all others
		for range 5 {
			f.crowds(t, 60, strings.TrimSpace(ping))
		}
		honest.usable(t)
	})
	t.Run("outside/11 a request that arrives while its connection is dropped does not run", func(t *testing.T) {
		f := newFixture(t)
		var all []*wire
		for range 64 {
			w := f.dialSocket(t)
			w.usable(t)
			all = append(all, w)
		}
		newest := f.dialSocket(t)
		newest.usable(t)
		all[0].send(call("session/setTitle", `{"sessionId":"$idle","title":"late"}`))
		if last := all[0].lost(t); !strings.HasPrefix(last, told) || !strings.Contains(last, `"outcome":"none"`) {
			t.Errorf("the oldest client was last told %q", last)
		}
		f.unchanged(t)
	})
}
