package cli

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/test/wait"
)

func TestStatusAndStop(t *testing.T) {
	p := newPlace(t)
	t.Run("issue/21-3 status and stop without a daemon say so and start none", func(t *testing.T) {
		p.want(console.ExitNoDaemon, "lashd      not running", "", "status")
		p.want(console.ExitNoDaemon, `"running":false`, "", "status", "--json")
		p.want(0, "", "lash: lashd is not running\n", "stop")
		if p.holder() != 0 {
			t.Error("a daemon runs")
		}
	})
	t.Run("issue/21-3 status shows what the daemon does", func(t *testing.T) {
		p.session()
		r := p.want(0, p.home, "", "status", "--json")
		var got shownStatus
		if err := json.Unmarshal([]byte(r.out), &got); err != nil || !got.Running || got.MemoryBytes == 0 || got.Status == nil || got.Status.Pid != p.holder() || got.Status.Sessions != 1 {
			t.Errorf("%v: %s", err, r.out)
		}
		p.want(0, "1 stored", "", "status")
	})
	t.Run("issue/21-3 stop waits until the daemon has exited, and says what the next start continues", func(t *testing.T) {
		id := p.session()
		p.want(0, "", "", "call", "turn/start", `{"idempotencyKey":"s","sessionId":"`+id+`","input":[{"type":"text","text":"story"}]}`)
		pid := p.holder()
		p.want(0, "", "lash: stopped lashd "+daemon.Version, "stop")
		if !hasEnded(pid) || isHeld(p.home) {
			t.Error("the daemon still runs")
		}
		p.want(0, "", "", "call", "session/wait", `{"sessionId":"`+id+`"}`)
		p.want(0, story, "", "session", "show", id)
		p.stop()
	})
}

func TestContinuesLater(t *testing.T) {
	p := newPlace(t)
	id := p.session()
	p.want(0, "", "", "call", "session/configure", `{"sessionId":"`+id+`","approval":{"sandbox":"fullAccess"}}`)
	p.want(0, "", "", "call", "turn/start", `{"idempotencyKey":"touch","sessionId":"`+id+`","input":[{"type":"text","text":"touch it"}]}`)
	wait.Until(t, "it asks", func() bool { return strings.Contains(p.run("session").out, "waiting for you") })
	p.want(0, "", "1 turn continues at the next start, and 1 question waits\n", "stop")
}

func TestLogs(t *testing.T) {
	p := newPlace(t)
	p.want(console.ExitFailed, "", "there is no log yet", "logs")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(p.home, "lashd.log"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Repeat(strings.Repeat("x", 99)+"\n", 3000)
	write(lines + "one\ntwo\x1b[31m\n")
	t.Run("issue/21-3 logs prints the newest lines, without control characters", func(t *testing.T) {
		for n, want := range map[string]string{"0": "", "1": "two\\u001b[31m\n", "2": "one\ntwo\\u001b[31m\n", "3": strings.Repeat("x", 99) + "\none\ntwo\\u001b[31m\n"} {
			if r := p.run("logs", "-n", n); r.out != want {
				t.Errorf("-n %s prints %q, want %q", n, r.out, want)
			}
		}
		if r := p.run("logs", "-n", "5000"); len(r.out) != len(lines)+len("one\ntwo\\u001b[31m\n") {
			t.Errorf("all lines have %d bytes", len(r.out))
		}
	})
	t.Run("issue/21-3 logs -f prints what is added, also after the log begins again, until Ctrl-C", func(t *testing.T) {
		cmd, out, _ := p.start("logs", "-f", "-n", "1")
		next := func(want string) {
			t.Helper()
			if line, err := out.ReadString('\n'); line != want {
				t.Fatalf("got %q, %v, want %q", line, err, want)
			}
		}
		next("two\\u001b[31m\n")
		f, err := os.OpenFile(filepath.Join(p.home, "lashd.log"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(f, "three\n")
		f.Close()
		next("three\n")
		write("four\n")
		next("four\n")
		cmd.Process.Signal(os.Interrupt)
		io.Copy(io.Discard, out)
		if code := exitCode(t, cmd.Wait()); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

func TestStopNamesEndedCommands(t *testing.T) {
	t.Run("issue/21-3 lash stop names the background commands that end with the daemon", func(t *testing.T) {
		p := newPlace(t)
		id := p.session()
		p.want(0, "", "", "call", "tool/call", `{"sessionId":"`+id+`","name":"start_command","args":{"command":"sleep 1000"}}`)
		p.want(0, "", "no turn was running; 1 background command was ended: sleep 1000", "stop")
	})
	t.Run("issue/21-3 lash rules and lash service need no further word", func(t *testing.T) {
		p := newPlace(t)
		p.want(0, "", "", "rules")
		p.want(0, "", "", "service", "--help")
	})
}
