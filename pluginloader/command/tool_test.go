//go:build unix

package command

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
	"lashd/test/left"
)

// host keeps what a call gave it.
type host struct {
	tool.Host
	mu       sync.Mutex
	progress string
	artifact []byte
	seen     func() // called when there is progress
}

func (h *host) Progress(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progress += text
	if h.seen != nil {
		h.seen()
	}
}

func (h *host) WriteArtifact(_ context.Context, media string, data []byte) (protocol.ArtifactRef, error) {
	h.artifact = data
	return protocol.ArtifactRef{Digest: protocol.DigestOf(data), Size: int64(len(data)), Type: media}, nil
}

// kit is a plugin whose tools are written as in plugin.json.
func kit(t testing.TB, files map[string]string, toolsJSON string) (*Part, string) {
	t.Helper()
	c := config(t)
	write(t, c.Root, files)
	write(t, c.Root, map[string]string{"plugin.json": `{"name":"kit","lashd":{"tools":` + toolsJSON + `}}`})
	c.Tools = load(t, c.Root).Tools
	return part(t, c), t.TempDir()
}

func (p *Part) call(t testing.TB, ctx context.Context, cwd, name, args string) (protocol.ToolOutput, *host) {
	t.Helper()
	h := &host{}
	return p.callWith(t, ctx, cwd, name, args, h), h
}

func (p *Part) callWith(t testing.TB, ctx context.Context, cwd, name, args string, h *host) protocol.ToolOutput {
	t.Helper()
	res, err := (&tools{part: p, place: place{cwd: cwd}}).Execute(ctx, tool.Invocation{Name: name, Args: json.RawMessage(args), Host: h})
	if err != nil {
		t.Fatal(err)
	}
	return res.Output
}

const show = `#!/bin/sh
for a in "$@"; do printf '<%s>' "$a"; done
`

func TestArguments(t *testing.T) {
	p, cwd := kit(t, map[string]string{"show": show}, `[{
	  "name": "show", "description": "Shows its arguments.", "kind": "read", "replay": "safe", "serial": true,
	  "command": ["${PLUGIN_ROOT}/show", "--name={text}", "{text}", "-n", "{count}", "{rate}", "{on}", "{list}", "{maybe}", "--maybe={maybe}", "{{text}}", "${PLUGIN_DATA}", "{level}"],
	  "parameters": [
	    {"name":"text","type":"string","required":true,"min":1,"max":200,"description":"What to show."},
	    {"name":"count","type":"integer","min":0,"max":9007199254740993},
	    {"name":"rate","type":"number"},
	    {"name":"on","type":"boolean"},
	    {"name":"list","type":"array","pattern":"[a-z -]*","max":3},
	    {"name":"maybe","type":"string","dash":true},
	    {"name":"level","type":"string","enum":["low","high"],"default":"low"}]}]`)
	t.Run("issue/4-2 an element of a command stays one argument, whatever a value contains", func(t *testing.T) {
		for _, c := range []struct{ args, want string }{
			{`{"text":"a"}`, "<--name=a><a><-n><{text}><DATA><low>"},
			{`{"text":"a b; echo $HOME \"x\" {maybe} ${PLUGIN_ROOT}\nc"}`, "<--name=a b; echo $HOME \"x\" {maybe} ${PLUGIN_ROOT}\nc><a b; echo $HOME \"x\" {maybe} ${PLUGIN_ROOT}\nc><-n><{text}><DATA><low>"},
			{`{"text":"a","list":["x y","","z"]}`, "<--name=a><a><-n><x y><><z><{text}><DATA><low>"},
			{`{"text":"a","list":[]}`, "<--name=a><a><-n><{text}><DATA><low>"},
			{`{"text":"a","maybe":"-x","level":"high"}`, "<--name=a><a><-n><-x><--maybe=-x><{text}><DATA><high>"},
			{`{"text":"a","maybe":""}`, "<--name=a><a><-n><><--maybe=><{text}><DATA><low>"},
			{`{"text":"a","count":9007199254740993,"rate":1e-3,"on":false}`, "<--name=a><a><-n><9007199254740993><0.001><false><{text}><DATA><low>"},
			{`{"text":"a","count":2.0,"rate":-1.50}`, "<--name=a><a><-n><2><-1.5><{text}><DATA><low>"},
		} {
			out, _ := p.call(t, t.Context(), cwd, "show", c.args)
			want := strings.ReplaceAll(c.want, "DATA", p.config.Data) + "\n"
			if out.Status != protocol.OutputSuccess || out.Text != want {
				t.Errorf("%s: %+v %s, want %s", c.args, out, out.Text, want)
			}
		}
	})
	t.Run("issue/4-2 values that a command would read as an option or cut off are rejected", func(t *testing.T) {
		for _, args := range []string{`{"text":"-rf"}`, `{"text":"a\u0000b"}`, `{"text":"a","list":["-x"]}`, `{"text":"a","maybe":"\u0000"}`} {
			out, _ := p.call(t, t.Context(), cwd, "show", args)
			if out.Failure == nil || out.Failure.Code != "invalid_arguments" || out.Failure.Class != protocol.FailInvalidRequest {
				t.Errorf("%s: %+v, want a refusal", args, out)
			}
		}
	})
	t.Run("issue/4-2 the model sees the schema of the parameters", func(t *testing.T) {
		m := (&tools{part: p}).Tools()[0]
		const want = `{"type":"object","properties":{` +
			`"text":{"type":"string","description":"What to show.","minLength":1,"maxLength":200},` +
			`"count":{"type":"integer","minimum":0,"maximum":9007199254740992},"rate":{"type":"number"},"on":{"type":"boolean"},` +
			`"list":{"type":"array","items":{"type":"string","pattern":"^(?:[a-z -]*)$"},"maxItems":3},` +
			`"maybe":{"type":"string"},"level":{"type":"string","default":"low","enum":["low","high"]}},` +
			`"required":["text"],"additionalProperties":false}`
		if got, wanted := normal(t, string(m.Manifest.Input)), normal(t, want); got != wanted {
			t.Errorf("got\n%s\nwant\n%s", got, wanted)
		}
		if m.Manifest.Kind != protocol.ToolKindRead || m.Contract.Replay != protocol.ReplaySafe || !m.Contract.Serial {
			t.Errorf("got %+v", m)
		}
	})
}

// normal is JSON with its members in one order.
func normal(t testing.TB, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestToolRuns(t *testing.T) {
	p, cwd := kit(t, nil, `[
	  {"name":"script","description":"d","shell":true,"command":["printf '%s|%s|%s' \"$PARAM_who\" \"$PARAM_all\" \"${PARAM_none-unset}\""],
	   "parameters":[{"name":"who","type":"string"},{"name":"all","type":"array"},{"name":"none","type":"string"}]},
	  {"name":"where","description":"d","shell":true,"command":["pwd -P; echo $OWN $TOKEN $SECRET $PLUGIN_ROOT"],"env":{"OWN":"${PLUGIN_DATA}/x"},"passEnv":["TOKEN"]},
	  {"name":"inside","description":"d","in":"plugin","command":["pwd"]},
	  {"name":"fails","description":"d","shell":true,"command":["echo out; echo err >&2; exit 3"]},
	  {"name":"dies","description":"d","shell":true,"command":["echo out; kill -9 $$"]},
	  {"name":"missing","description":"d","command":["no-such-program-anywhere","x"]},
	  {"name":"slow","description":"d","timeoutMs":1500,"shell":true,"command":["echo before; sleep 600 & wait"]},
	  {"name":"input","description":"d","command":["cat"]},
	  {"name":"flood","description":"d","shell":true,"command":["head -c 300000 /dev/zero | tr '\\0' x; echo end"]},
	  {"name":"leaves","description":"d","shell":true,"command":["setsid sleep 600 & echo done"]}]`)
	p.config.Environ = append(os.Environ(), "TOKEN=passed", "SECRET=kept")
	real, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ show, tool, args, status, code, text string }{
		{"a script sees its parameters only in its environment", "script", `{"who":"$(touch x) 'y","all":["a","b"]}`, "success", "", "$(touch x) 'y|a\nb|unset\n"},
		{"a command runs in the workspace, with its own environment and what it names", "where", `{}`, "success", "", real + "\n" + p.config.Data + "/x passed " + p.config.Root + "\n"},
		{"or in the plugin", "inside", `{}`, "success", "", p.config.Root + "\n"},
		{"another exit code than 0 is a failure, with the output", "fails", `{}`, "failure", "exit_status", "out\nerr\n[Exit code 3.]\n"},
		{"so is a signal", "dies", `{}`, "failure", "signal", "out\n[Killed by SIGKILL.]\n"},
		{"the error for a missing program says how to fix it", "missing", `{}`, "failure", "command_unavailable",
			"the tool missing cannot run: start no-such-program-anywhere: exec: \"no-such-program-anywhere\": executable file not found in $PATH. The user must install no-such-program-anywhere or correct plugin.json of the plugin kit."},
		{"a command that takes too long is stopped with all it started", "slow", `{}`, "failure", "timeout", "before\n[Stopped after 1.5s; the output above is incomplete.]\n"},
		{"a command gets no input", "input", `{}`, "success", "", ""},
	} {
		t.Run("issue/4-2 "+c.show, func(t *testing.T) {
			out, _ := p.call(t, t.Context(), cwd, c.tool, c.args)
			code := ""
			if out.Failure != nil {
				code = out.Failure.Code
			}
			if string(out.Status) != c.status || code != c.code || out.Text != c.text {
				t.Errorf("got %s %s %q, want %s %s %q", out.Status, code, out.Text, c.status, c.code, c.text)
			}
		})
	}
	t.Run("issue/4-7 long output shows both ends, and an artifact has all of it", func(t *testing.T) {
		out, h := p.call(t, t.Context(), cwd, "flood", `{}`)
		if len(out.Text) > 52_000 || !strings.HasSuffix(out.Text, "xend\n") || !strings.Contains(out.Text, "bytes omitted") || out.Artifact == nil || len(h.artifact) != 300_004 {
			t.Errorf("%d bytes of text, %d of artifact", len(out.Text), len(h.artifact))
		}
		if !strings.HasSuffix(h.progress, "end\n") {
			t.Errorf("progress ends in %q", h.progress[max(0, len(h.progress)-20):])
		}
	})
	t.Run("reliability/T9 processes that a command leaves behind are ended", func(t *testing.T) {
		out, _ := p.call(t, t.Context(), cwd, "leaves", `{}`)
		if out.Status != protocol.OutputSuccess || strings.Contains(out.Text, "left the command's group") {
			t.Errorf("got %+v", out)
		}
		if left := left.Marked("LASHD_CHILD=" + nonce); len(left) > 0 {
			t.Errorf("processes are left: %q", left)
		}
	})
	t.Run("issue/4-7 cancelling a call ends its command at once", func(t *testing.T) {
		p.tools[slices.IndexFunc(p.tools, func(c *commandTool) bool { return c.Name == "slow" })].TimeoutMs = 60_000
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		out := p.callWith(t, ctx, cwd, "slow", `{}`, &host{seen: cancel})
		if out.Status != protocol.OutputCancelled || out.Text != "before\n[Cancelled; the output above is incomplete.]\n" {
			t.Errorf("got %+v", out)
		}
		if took := time.Since(began); took > 50*time.Second {
			t.Errorf("it took %s", took)
		}
	})
	t.Run("issue/4-7 no command starts after the shutdown of the plugin", func(t *testing.T) {
		if err := p.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if out, _ := p.call(t, t.Context(), cwd, "input", `{}`); out.Failure == nil || out.Failure.Code != "plugin_stopped" {
			t.Errorf("got %+v", out)
		}
	})
}

func TestSpecOfTools(t *testing.T) {
	t.Run("issue/4-2 tools without a command are ignored", func(t *testing.T) {
		c := config(t)
		c.Tools = []manifest.Tool{{Name: "of_the_process", Description: "d"}}
		spec, err := part(t, c).Spec(plugin.BuildContext{SessionID: "ses_1"})
		if err != nil {
			t.Fatal(err)
		}
		host, err := plugin.NewHost([]plugin.Factory{standard.Factory{}}, []plugin.Factory{plugin.Static("kit", spec)})
		if err != nil {
			t.Fatal(err)
		}
		s, err := host.Open(t.Context(), standard.ID, nil, plugin.BuildContext{SessionID: "ses_1"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if n := len(s.Sources()); n != 0 {
			t.Errorf("%d sources", n)
		}
	})
}
