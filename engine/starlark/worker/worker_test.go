package worker_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"lashd/engine/starlark/worker"
	"lashd/rpc/protocol"
)

// roleVariable makes the test program a worker.
const roleVariable = "LASHD_TEST_STARLARK_WORKER"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "1":
		os.Exit(worker.Main())
	case "allocate":
		allocate()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// daemon is the other side of a worker: it sends calls and answers requests.
type daemon struct {
	t      testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *strings.Builder
	calls  int
	serve  func(method string, params json.RawMessage) any // answers requests of cells; nil: there are none
}

// answer is a message of the worker.
type answer struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct{ Message string }
}

// reply is the result of code/execute.
type reply struct {
	Printed  string
	Value    json.RawMessage
	Error    string
	Position *struct{ Line, Column int }
	Changed  []string
	Unsaved  []struct{ Name, Reason string }
}

// starts starts a worker process, shakes hands and opens the instance i.
func starts(t testing.TB, config string) *daemon {
	t.Helper()
	d := &daemon{t: t, cmd: exec.Command(os.Args[0]), stderr: &strings.Builder{}}
	d.cmd.Env = append(os.Environ(), roleVariable+"=1")
	d.cmd.Stderr = d.stderr
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.out = bufio.NewReaderSize(out, 1<<20)
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.in.Close()
		_ = d.cmd.Wait() // its exit code is checked where it matters
	})
	d.call("initialize", `{"protocolVersion":1,"pluginId":"starlark","nonce":"n","config":`+config+`,"dataDir":"/d","contributes":{"executor":true}}`)
	d.call("session/open", `{"instance":"i","sessionId":"s","deadlineMs":1000}`)
	return d
}

// send writes a message.
func (d *daemon) send(line string) {
	d.t.Helper()
	if _, err := io.WriteString(d.in, line+"\n"); err != nil {
		d.t.Fatalf("send: %v; stderr %s", err, d.stderr)
	}
}

// begin sends a call and returns its id.
func (d *daemon) begin(method, params string) string {
	d.t.Helper()
	d.calls++
	d.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, d.calls, method, params))
	return fmt.Sprint(d.calls)
}

// await answers requests until the call has its result.
func (d *daemon) await(id string) (answer, error) {
	for {
		line, err := d.out.ReadBytes('\n')
		if err != nil {
			return answer{}, err
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			return a, err
		}
		if a.Method == "" && string(a.ID) == id {
			return a, nil
		}
		result, err := json.Marshal(d.serve(a.Method, a.Params))
		if err != nil {
			return a, err
		}
		d.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, a.ID, result))
	}
}

// call makes a call that must succeed and returns its result.
func (d *daemon) call(method, params string) json.RawMessage {
	d.t.Helper()
	a, err := d.await(d.begin(method, params))
	if err != nil || a.Error != nil {
		d.t.Fatalf("%s: %v, %+v; stderr %s", method, err, a.Error, d.stderr)
	}
	return a.Result
}

// cellParams returns the parameters of code/execute.
func cellParams(source, more string) string {
	text, _ := json.Marshal(source) // strings always encode
	return `{"instance":"i","sessionId":"s","deadlineMs":60000,"grant":"g","turnId":"t","cellId":"c","language":"starlark","source":` + string(text) + more + `}`
}

// cell runs a cell.
func (d *daemon) cell(source string) reply {
	d.t.Helper()
	return decoded[reply](d.t, d.call("code/execute", cellParams(source, "")))
}

func decoded[T any](t testing.TB, data json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestWorker(t *testing.T) {
	t.Run("runtime/R04 the handshake repeats what the daemon offered", func(t *testing.T) {
		d := starts(t, `null`)
		got := d.call("initialize", `{"protocolVersion":1,"pluginId":"p","nonce":"x","config":{},"contributes":{"executor":true,"replay":true}}`)
		if want := `{"contributes":{"executor":true,"replay":true},"nonce":"x","pluginId":"p","protocolVersion":1}`; string(got) != want {
			t.Errorf("result %s, want %s", got, want)
		}
	})
	t.Run("runtime/R04 a cell makes calls of the daemon under its grant", func(t *testing.T) {
		d := starts(t, `{}`)
		var asked []string
		d.serve = func(method string, params json.RawMessage) any {
			asked = append(asked, method+" "+string(params))
			switch method {
			case "host/now":
				return map[string]any{"unixNs": int64(1_700_000_000_000_000_000)}
			case "host/random":
				return map[string]any{"bytes": make([]byte, 32)}
			case "host/history":
				return map[string]any{"data": []string{"hello"}}
			}
			return map[string]any{"data": []protocol.ToolOutput{protocol.Succeed("one"), protocol.Fail(protocol.FailIO, "none", "no file", protocol.FromTool)}}
		}
		tools := `,"tools":[{"name":"read","description":"Read.","input":{"type":"object","properties":{"p":{"type":"string"}}}}]`
		got := decoded[reply](t, d.call("code/execute", cellParams("a, b = parallel([tools.read.later('x'), tools.read.later('y')])\n[a.value, b.error.message, time.now(), random.randint(1, 1), history]", tools)))
		if want := `["one","tools.read failed: no file",1.7e+09,1,["hello"]]`; string(got.Value) != want || got.Error != "" {
			t.Errorf("value %s, want %s; error %s", got.Value, want, got.Error)
		}
		want := []string{
			`host/callTool {"calls":[{"name":"read","args":{"p":"x"}},{"name":"read","args":{"p":"y"}}],"grant":"g"}`,
			`host/now {"grant":"g"}`, `host/random {"grant":"g"}`, `host/history {"grant":"g"}`,
		}
		if fmt.Sprint(asked) != fmt.Sprint(want) {
			t.Errorf("asked %q, want %q", asked, want)
		}
	})
	t.Run("runtime/R04 describe returns the language and a guide with the tools", func(t *testing.T) {
		d := starts(t, `{}`)
		got := decoded[struct{ Language, Guide string }](t, d.call("code/describe", `{"instance":"i","tools":[{"name":"fs.read","description":"Read a file."}]}`))
		if got.Language != "starlark" || !strings.Contains(got.Guide, "fs.read(**kwargs)  # Read a file.") {
			t.Errorf("language %q, guide %s", got.Language, got.Guide)
		}
	})
	t.Run("runtime/R11 the state moves to another process", func(t *testing.T) {
		d := starts(t, `{}`)
		if r := d.cell("x = [1]\ny = {'x': x}\ndef f(): return len(y['x'])"); fmt.Sprint(r.Changed) != "[f x y]" {
			t.Errorf("changed %q, error %s", r.Changed, r.Error)
		}
		s := decoded[snapshot](t, d.call("code/snapshot", `{"instance":"i"}`))
		if len(s.Changed) != 3 || len(s.Globals) != 3 || s.Globals[0].Name != "f" || s.Globals[0].Type != "function" || s.More || s.Partial {
			t.Errorf("snapshot %+v", s)
		}
		if again := decoded[snapshot](t, d.call("code/snapshot", `{"instance":"i"}`)); len(again.Changed) != 0 || len(again.Globals) != 0 || !again.Partial {
			t.Errorf("a second snapshot has %+v", again)
		}
		other := starts(t, `{}`)
		other.call("code/snapshot", `{"instance":"i"}`)
		values, _ := json.Marshal(s.Changed) // bytes always encode
		other.call("code/restore", `{"instance":"i","values":`+string(values)+`}`)
		if r := other.cell("x.append(2)\nf()"); string(r.Value) != "2" || fmt.Sprint(r.Changed) != "[x]" {
			t.Errorf("value %s, changed %q, error %s", r.Value, r.Changed, r.Error)
		}
		if s := decoded[snapshot](t, other.call("code/snapshot", `{"instance":"i"}`)); len(s.Changed) != 1 || len(s.Globals) != 3 || s.Partial {
			t.Errorf("the first snapshot after a restore has %+v", s)
		}
		other.call("code/restore", `{"instance":"i"}`)
		if r := other.cell("x"); !strings.Contains(r.Error, "undefined: x") {
			t.Errorf("error %q", r.Error)
		}
	})
	t.Run("runtime/R11 a large state moves in parts", func(t *testing.T) {
		d := starts(t, `{}`)
		d.cell("a, b, c = 'a' * 3000000, 'b' * 3000000, 'c' * 3000000")
		other, parts := starts(t, `{}`), 0
		for more := true; more; parts++ {
			line := d.call("code/snapshot", `{"instance":"i"}`)
			if len(line) > 8<<20 {
				t.Errorf("a message of %d bytes", len(line))
			}
			s := decoded[snapshot](t, line)
			values, _ := json.Marshal(s.Changed) // bytes always encode
			more = s.More
			other.call("code/restore", fmt.Sprintf(`{"instance":"i","values":%s,"more":%v}`, values, more))
		}
		if r := other.cell("[len(a), b[0], c[-1]]"); string(r.Value) != `[3000000,"b","c"]` || parts != 3 {
			t.Errorf("value %s after %d parts, error %s", r.Value, parts, r.Error)
		}
	})
	t.Run("runtime/R04 sessions do not see each other's globals", func(t *testing.T) {
		d := starts(t, `{}`)
		d.call("session/open", `{"instance":"j"}`)
		d.cell("x = 1")
		r := decoded[reply](t, d.call("code/execute", strings.Replace(cellParams("x", ""), `"instance":"i"`, `"instance":"j"`, 1)))
		if !strings.Contains(r.Error, "undefined: x") {
			t.Errorf("error %q", r.Error)
		}
	})
	t.Run("runtime/R07 a cancelled cell ends, also while it waits for a call", func(t *testing.T) {
		d := starts(t, `{}`)
		d.cell("x = 1")
		d.serve = func(string, json.RawMessage) any {
			d.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":` + fmt.Sprint(d.calls) + `}}`)
			time.Sleep(50 * time.Millisecond) // the answer comes too late
			return nil
		}
		for _, source := range []string{"x = 2\ntime.now()"} {
			if r := d.cell(source); !strings.Contains(r.Error, "the cell was cancelled") {
				t.Errorf("error %q", r.Error)
			}
		}
		id := d.begin("code/execute", cellParams("x = 2\nwhile True: pass", ""))
		d.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":` + id + `}}`)
		a, err := d.await(id)
		if err != nil || !strings.Contains(string(a.Result), "the cell was cancelled") {
			t.Errorf("result %s, %v", a.Result, err)
		}
		if r := d.cell("x"); string(r.Value) != "1" {
			t.Errorf("value %s, error %s", r.Value, r.Error)
		}
	})
	t.Run("runtime/R04 a session runs one cell at a time", func(t *testing.T) {
		d := starts(t, `{}`)
		first := d.begin("code/execute", cellParams("x = 1\nwhile True: pass", ""))
		for _, method := range []string{"code/execute", "code/snapshot", "code/restore"} {
			if a, err := d.await(d.begin(method, cellParams("x", ""))); err != nil || a.Error == nil || !strings.Contains(a.Error.Message, "a cell is running") {
				t.Errorf("%s during a cell: %+v, %v", method, a.Error, err)
			}
		}
		d.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":` + first + `}}`)
		if _, err := d.await(first); err != nil {
			t.Error(err)
		}
	})
	t.Run("runtime/R11 a global that fits into no message is not saved, whatever the limit", func(t *testing.T) {
		d := starts(t, `{"value":100000000}`)
		if r := d.cell("x = 'x' * 6000000"); len(r.Unsaved) != 1 || r.Unsaved[0].Reason != "it is larger than 5 MiB" {
			t.Errorf("unsaved %+v, error %s", r.Unsaved, r.Error)
		}
	})
	t.Run("runtime/R04 wrong calls are errors, and the worker continues", func(t *testing.T) {
		d := starts(t, `{}`)
		for _, c := range [][3]string{
			{"code/execute", `{"instance":"none"}`, `there is no instance "none"`},
			{"code/execute", `{"instance":"i","language":"python","source":""}`, `the language is "python"`},
			{"code/execute", `{"instance":"i","source":"","tools":5}`, "the tools are invalid"},
			{"code/restore", `{"instance":"i","values":{"x":"CQ=="}}`, "restore the global x: the encoding is damaged"},
			{"code/restore", `{"instance":"i","values":{"x":"?"}}`, "illegal base64"},
			{"code/other", `{"instance":"i"}`, "there is no method code/other"},
			{"code/snapshot", `7`, "it is not a JSON object"},
		} {
			a, err := d.await(d.begin(c[0], c[1]))
			if err != nil || a.Error == nil || !strings.Contains(a.Error.Message, c[2]) {
				t.Errorf("%s %s: %+v, %v; want %q", c[0], c[1], a.Error, err, c[2])
			}
		}
		if r := d.cell("1"); string(r.Value) != "1" {
			t.Errorf("value %s", r.Value)
		}
	})
	t.Run("runtime/R04 the worker ends with its input", func(t *testing.T) {
		d := starts(t, `{}`)
		d.begin("code/execute", cellParams("while True: pass", ""))
		d.in.Close()
		if err := d.cmd.Wait(); err != nil {
			t.Errorf("%v; stderr %s", err, d.stderr)
		}
	})
}

// snapshot is the result of code/snapshot.
type snapshot struct {
	Changed map[string][]byte
	Removed []string
	Globals []protocol.CodeGlobal
	Partial bool
	More    bool
}
