package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
	"lashd/rpc/socket"
	"lashd/test/fakemodel"
	"lashd/test/wait"
)

func TestExitCodesAndStreams(t *testing.T) {
	p := newPlace(t)
	p.want(console.ExitNoDaemon, "", "start it with lashd serve", "tail", "ses_x")
	p.want(0, "hello\n", "", "run", "hi")
	p.want(console.ExitFailed, "", "the model refused", "run", "fail")
	p.want(console.ExitUsage, "", "see lash tail --help", "tail")
	p.want(console.ExitUsage, "", "the prompt is empty", "run", " ")
	p.want(console.ExitUsage, "", "keeps its directory", "run", "--session", "ses_x", "--cwd", "/", "hi")
	for _, asks := range []string{"version", "--version", "-v"} {
		p.want(0, "lash "+daemon.Version+"\n", "", asks)
	}
	p.want(0, "Usage: lash <command>", "", "help")
	p.want(0, "Usage: lash run [<prompt> ...]", "", "help", "run")
	p.want(console.ExitFailed, "", "; lashd schema session/new describes the parameters\n", "call", "session/new", `{"cwd":"nodir"}`)
	if r := p.want(console.ExitFailed, "", "--cwd: ", "run", "--cwd", "/nodir", "hi"); strings.Contains(r.err, "lashd schema") {
		t.Errorf("an unknown method gives %q", r.err)
	}
	p.want(console.ExitUsage, "", "not valid JSON", "call", "ping", "{oops")
	p.want(console.ExitUsage, "", "must be a JSON object", "call", "ping", "3")
	p.want(console.ExitDenied, "tried\n", "a call of the tool shell was denied: lash run has no terminal on which it could ask, so it denied the call; lash audit", "run", "--sandbox", "fullAccess", "touch it")
	p.want(0, "tried\n", "[Running touch touched]", "run", "--allow", "touch it")
	p.want(console.ExitFailed, "", "lash session lists the ids", "run", "--session", "ses_x", "hi")
	p.want(console.ExitFailed, "", "lash model lists the models", "run", "--model", "none", "hi")
	p.want(console.ExitFailed, "", "model scripted does not take a reasoning effort", "run", "--effort", "high", "hi") // runtime/M08
	p.want(console.ExitFailed, "", "did you mean session/list?", "call", "session/lits")
	p.want(0, "scripted", "", "model")
	p.want(0, `\u001b]52;c;aGk=\u0007 \u009b31m \u202eevil\u2069 `+"\ttab\nend\n", "", "run", "escape")
	if r := p.run("run", "hi"); r.err != "" {
		t.Errorf("a turn without tool calls writes %q to stderr, want nothing", r.err)
	}
}

func TestRunStreamJSONPrintsOneEventPerLine(t *testing.T) {
	p := newPlace(t)
	r := p.want(0, "", "", "run", "--stream-json", "escape")
	lines := strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
	var last protocol.Event
	for _, line := range lines {
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatalf("%q is not an event: %v", line, err)
		}
	}
	if last.Type != protocol.EventTurnCompleted || last.Outcome.Text != "\x1b]52;c;aGk=\a \u009b31m \u202eevil\u2069 \ttab\nend" {
		t.Errorf("the last event is %+v, want turn/completed with the exact text", last)
	}
	if i := strings.IndexFunc(r.out, func(c rune) bool { return c != '\n' && console.Printable(string(c)) != string(c) }); i >= 0 {
		t.Errorf("the output has a raw control character at %d: %q", i, r.out)
	}
}

// start runs a command whose stdout the test reads line by line.
func (p *place) start(args ...string) (*exec.Cmd, *bufio.Reader, *strings.Builder) {
	p.t.Helper()
	cmd := p.command(args...)
	errs := new(strings.Builder)
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return cmd, bufio.NewReader(out), errs
}

func TestRunContinuesAfterSIGKILL(t *testing.T) {
	p := newPlace(t)
	cmd, out, errs := p.start("run", "story")
	begin := make([]byte, 20)
	if _, err := io.ReadFull(out, begin); err != nil {
		t.Fatal(err)
	}
	p.kill()
	rest, _ := io.ReadAll(out)
	if code, got := exitCode(t, cmd.Wait()), string(begin)+string(rest); code != 0 || got != story+"\n" {
		t.Errorf("reliability/P4 exit code %d, text %q, stderr %q; want 0 and the story once", code, got, errs)
	}
	if !strings.Contains(errs.String(), "connection to the daemon lost") {
		t.Errorf("stderr is %q, want it to report the lost connection", errs)
	}
}

func TestInterruptCancelsTheTurn(t *testing.T) {
	p := newPlace(t)
	cmd, out, errs := p.start("run", "--allow", "sleep")
	wait.Until(t, "the command begins", func() bool { _, err := os.Stat(filepath.Join(p.work, "began")); return err == nil })
	cmd.Process.Signal(os.Interrupt)
	io.Copy(io.Discard, out)
	if code := exitCode(t, cmd.Wait()); code != console.ExitCancelled || !strings.Contains(errs.String(), "cancelled") {
		t.Errorf("exit code %d, stderr %q; want %d and that it was cancelled", code, errs, console.ExitCancelled)
	}
}

// seqs reads events up to a turn's end, and returns the numbers of the durable ones.
func seqs(t *testing.T, out *bufio.Reader) (all []protocol.Seq) {
	t.Helper()
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatalf("after event %d: %v", len(all), err)
		}
		var ev protocol.Event
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if ev.Seq != 0 {
			all = append(all, ev.Seq)
		}
		if ev.Type == protocol.EventTurnCompleted {
			return all
		}
	}
}

func TestTailContinuesAfterSIGKILL(t *testing.T) {
	p := newPlace(t)
	id := p.session()
	cmd, out, _ := p.start("tail", id, "--after", "2")
	got := seqs(t, out)
	for range 2 {
		p.kill()
		p.want(0, "hello\n", "", "run", "--session", id, "again")
		got = append(got, seqs(t, out)...)
	}
	for i, seq := range got {
		if seq != protocol.Seq(3+i) {
			t.Fatalf("reliability/P11 events %v, want each once from 3 on", got)
		}
	}
	cmd.Process.Signal(os.Interrupt)
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("exit code %d after Ctrl-C, want 0", code)
	}
}

func TestStdioWhenTheDaemonDies(t *testing.T) {
	framings := map[string]func(string) string{
		"lines":   func(s string) string { return s + "\n" },
		"headers": func(s string) string { return "Content-Length: " + strconv.Itoa(len(s)) + "\r\n\r\n" + s },
	}
	for name, framed := range framings {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			id := p.session()
			cmd := p.command("stdio")
			in, out := pipes(t, cmd)
			errs := new(strings.Builder)
			cmd.Stderr = errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			io.WriteString(in, framed(`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"clientInfo":{"name":"x"}}}`))
			io.WriteString(in, framed(`{"jsonrpc":"2.0","id":7,"method":"turn/run","params":{"sessionId":"`+id+`","input":[{"type":"text","text":"story"}]}}`))
			wait.Until(t, "the turn runs", func() bool { return strings.Contains(p.run("call", "server/status").out, `"runningTurns":1`) })
			p.kill()
			got, _ := io.ReadAll(out)
			if code := exitCode(t, cmd.Wait()); code != console.ExitNoDaemon || !strings.Contains(errs.String(), "connection to the daemon was lost") {
				t.Errorf("exit code %d, stderr %q; want %d and a reason", code, errs, console.ExitNoDaemon)
			}
			checkAnswers(t, string(got), `"a"`, "7")
		})
	}
}

func pipes(t *testing.T, cmd *exec.Cmd) (io.WriteCloser, io.Reader) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return in, out
}

// frameHeader is the header of a message.
var frameHeader = regexp.MustCompile(`Content-Length: \d+\r\n\r\n`)

// checkAnswers requires a stream of whole messages with a result for the first id and an error for the
// second.
func checkAnswers(t *testing.T, stream, answered, failed string) {
	t.Helper()
	verdicts := map[string]bool{}
	for messages := json.NewDecoder(strings.NewReader(frameHeader.ReplaceAllString(stream, ""))); ; {
		var m struct {
			ID     json.RawMessage
			Result json.RawMessage
		}
		err := messages.Decode(&m)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%q is not a stream of messages: %v", stream, err)
		}
		if m.ID != nil {
			verdicts[string(m.ID)] = m.Result != nil
		}
	}
	if ok, got := verdicts[failed]; len(verdicts) != 2 || !verdicts[answered] || !got || ok {
		t.Errorf("answers %v, want a result for %s and an error for %s", verdicts, answered, failed)
	}
}

func TestIsolatedNeedsTheDataDirectory(t *testing.T) {
	p := newPlace(t)
	p.session()
	p.want(console.ExitHeld, "", "omit --isolated", "stdio", "--isolated")
}

func TestVerbose(t *testing.T) {
	p := newPlace(t)
	t.Run("issue/21-5 an error is one line; --verbose adds its kind and the log", func(t *testing.T) {
		if r := p.want(console.ExitFailed, "", "lash: session ses_x", "session", "show", "ses_x"+strings.Repeat("0", 31)); strings.Count(r.err, "\n") != 1 {
			t.Errorf("stderr is %q, want one line", r.err)
		}
		p.want(console.ExitFailed, "", "\n  kind: sessionNotFound (code ", "--verbose", "session", "show", "ses_x"+strings.Repeat("0", 31))
		p.want(console.ExitFailed, "", "\n  log: "+filepath.Join(p.home, "lashd.log")+"\n", "session", "show", "--verbose", "ses_x"+strings.Repeat("0", 31))
	})
}

func TestDaemonOfAnotherVersion(t *testing.T) {
	for _, test := range []struct{ name, runs, installed, err string }{
		{"an older daemon runs", "0.0.9", "", "lash: the running lashd 0.0.9 is older than lash " + daemon.Version + "; to replace it, run: lash stop (the next command starts lashd " + daemon.Version + ")\n"},
		{"a newer daemon runs", "0.10.0", "", "lash: the running lashd 0.10.0 is newer than lash " + daemon.Version + "; to replace it, run: lash stop"},
		{"an older lashd is installed", "0.0.9", "0.0.9", "lash: the running lashd 0.0.9 is older than lash " + daemon.Version + "; the installed lashd is 0.0.9: install lash and lashd from one release, then run: lash stop\n"},
	} {
		t.Run("issue/21-1 a note says which program is newer, and the remedy: "+test.name, func(t *testing.T) {
			p := newPlace(t)
			before := p.environ
			p.environ = append(before, asVersion+"="+test.runs)
			p.session()
			p.environ = append(before, asLashdVersion+"="+test.installed)
			if r := p.want(0, "hello", test.err, "run", "hi"); strings.Count(r.err, "\n") != 1 {
				t.Errorf("stderr is %q, want one line", r.err)
			}
			p.want(0, "", "stopped lashd "+test.runs, "stop")
		})
	}
}

func TestMovedDatabaseStopsTheDaemon(t *testing.T) {
	p := newPlace(t)
	daemon, _, errs := p.start("serve")
	p.session()
	db := filepath.Join(p.home, "lashd.db")
	if err := os.Rename(db, db+".moved"); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, daemon.Wait()); code != console.ExitIO || !strings.Contains(errs.String(), "put the old file back") {
		t.Errorf("exit code %d, stderr %q; want %d and what to do", code, errs, console.ExitIO)
	}
	if err := os.Rename(db+".moved", db); err != nil {
		t.Fatal(err)
	}
	if r := p.want(0, "hi", "", "session"); strings.Count(r.out, "\n") != 2 {
		t.Errorf("after the file was restored, the sessions are %q, want one", r.out)
	}
}

func TestSessionColumns(t *testing.T) {
	p := newPlace(t)
	p.session()
	lines := strings.Split(p.run("session", "list").out, "\n")
	for _, column := range []struct{ head, value string }{
		{"STATE", "idle"}, {"CHANGED", ""}, {"MODEL", "scripted"}, {"DIRECTORY", p.work[:20]}, {"TITLE", "hi"},
	} {
		at := strings.Index(lines[0], column.head)
		if at < 0 || at >= len(lines[1]) || column.head != "CHANGED" && !strings.HasPrefix(lines[1][at:], column.value) {
			t.Errorf("below %s at %d is %q, want %q", column.head, at, lines[1], column.value)
		}
	}
}

func TestDemoWithAModel(t *testing.T) {
	server, err := fakemodel.Start(
		fakemodel.Step{Parts: []fakemodel.Part{{Text: "I edit it."}, {Calls: []fakemodel.Call{{Name: "edit", Args: `{"path":"greeting.txt","old":"wrold","new":"world"}`}}}}},
		fakemodel.Say("Hello, world!"),
		fakemodel.Say("One piece, too quick to be killed in."),
		fakemodel.Use(fakemodel.Call{Name: "shell", Args: `{"command":"printf x >> count.txt; sleep 30"}`}),
		fakemodel.Say("I was interrupted."))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p := newPlace(t)
	p.environ = append(p.environ, "OPENAI_API_KEY=k", "TMPDIR="+t.TempDir())
	r := p.want(0, "the command ran 1 time(s)", "", "demo", "--model", "m", "--base-url", server.URL)
	if !strings.Contains(r.out, "the whole turn is stored") || !strings.Contains(r.out, "shares") || len(server.Requests()) != 5 {
		t.Errorf("%d requests, output %s; want 5, and all acts", len(server.Requests()), r.out)
	}
}

// TestStartWhileAnotherDaemonEnds runs a command while a daemon that has stopped listening still holds
// the lock.
func TestStartWhileAnotherDaemonEnds(t *testing.T) {
	p := newPlace(t)
	lock, err := socket.Acquire(p.home)
	if err != nil {
		t.Fatal(err)
	}
	released := time.AfterFunc(500*time.Millisecond, func() { lock.Release() })
	defer released.Stop()
	p.want(0, "hello\n", "", "run", "hi")
}

func TestRulesRemove(t *testing.T) {
	p := newPlace(t)
	add := func(words ...string) { p.want(0, "added", "", append([]string{"rules", "add"}, words...)...) }
	add("deny", "command", "git push")
	add("deny", "command", "git pull")
	add("ask", "path", "**/.env")
	for _, test := range []struct {
		name string
		code int
		says string
		args []string
	}{
		{"words that no other rule has", 0, "removed: deny command git push", []string{"git", "push"}},
		{"words with the quotes of a list", 0, "removed: ask path **/.env", []string{"ask path '**/.env'"}},
		{"words of no rule", console.ExitUsage, `no rule "git status"`, []string{"git", "status"}},
		{"a part of a word", console.ExitUsage, `no rule "pul"`, []string{"pul"}},
	} {
		t.Run("issue/21-5 lash rules remove takes "+test.name, func(t *testing.T) {
			if r := p.run(append([]string{"rules", "remove"}, test.args...)...); r.code != test.code || !strings.Contains(r.out+r.err, test.says) {
				t.Errorf("%+v, want %d, %q", r, test.code, test.says)
			}
		})
	}
	t.Run("issue/21-5 lash rules remove takes the beginning of an id, and names no rule of several", func(t *testing.T) {
		add("deny", "command", "git push")
		p.want(console.ExitUsage, "", `2 rules fit "deny command"`, "rules", "remove", "deny", "command")
		p.want(0, "removed: deny command git", "", "rules", "remove", p.firstField("rules", "list", "rul_")[:12])
		p.want(0, "removed: deny command git", "", "rules", "remove", "git")
	})
}

func TestTriggerFlags(t *testing.T) {
	p := newPlace(t)
	id := p.session()
	keys := 0
	add := func(args ...string) []string {
		keys++
		return append([]string{"trigger", "add", fmt.Sprint("x", keys), "--wake", id, "--text", "t"}, args...)
	}
	t.Run("issue/21-5 errors name the flag that is wrong", func(t *testing.T) {
		p.want(console.ExitFailed, "", `lash: --cron: "@every x" is not a valid schedule: "x" is not a duration; write it as 90s, 10m, 2h, 1d or 2w`, add("--cron", "@every x")...)
		p.want(console.ExitFailed, "", `lash: --zone: "Mars/X" is not the name of a time zone`, add("--cron", "@daily", "--zone", "Mars/X")...)
		p.want(console.ExitFailed, "", `lash: --on: "nope" is not a declared event type; lash call trigger/types lists them`, add("--on", "nope")...)
		p.want(console.ExitFailed, "", "lash: --effort: model scripted does not take a reasoning effort", "run", "--effort", "huge", "hi")
		p.want(console.ExitUsage, "", "--missed must be one of \"skip\"", add("--cron", "@daily", "--missed", "often")...)
		p.want(console.ExitUsage, "", `--since: "1y" is not a duration; write it as`, "audit", "--since", "1y")
	})
	t.Run("issue/21-5 a schedule makes up once for missed times by default, and trigger add says so", func(t *testing.T) {
		p.want(0, "added the trigger x5; next run: ", "", add("--cron", "@every 1d")...)
		p.want(0, "made up for once at the next start (--missed)", "", add("--cron", "@daily")...)
		p.want(0, `"missed":"runOnce"`, "", "trigger", "--json")
		p.want(0, "missed while lashd is stopped are skipped", "", add("--cron", "@daily", "--missed", "skip")...)
	})
	t.Run("issue/21-5 a trigger that exists is an error", func(t *testing.T) {
		keys--
		p.want(console.ExitFailed, "", "trigger x7 already exists with another definition; update or remove it first", add("--cron", "@weekly")...)
	})
	t.Run("issue/21-5 1d is a duration", func(t *testing.T) { p.want(0, "", "", "audit", "--since", "1d") })
}
