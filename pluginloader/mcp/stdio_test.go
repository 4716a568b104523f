//go:build unix

package mcp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lashd/engine/tool"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
	"lashd/rpc/protocol"
	"lashd/test/wait"
)

var goodNames = []string{"mcp__x__again", "mcp__x__asks", "mcp__x__dies", "mcp__x__echo", "mcp__x__env", "mcp__x__fails", "mcp__x__grows", "mcp__x__pid", "mcp__x__shows", "mcp__x__slow", "mcp__x__steps"}

// host is a tool's host that keeps what it is given.
type host struct {
	tool.Host // what is not here is not called

	mu    sync.Mutex
	steps []string
	kept  map[string]string
}

func (h *host) Progress(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.steps = append(h.steps, text)
}

func (h *host) WriteArtifact(_ context.Context, mediaType string, data []byte) (protocol.ArtifactRef, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept == nil {
		h.kept = map[string]string{}
	}
	h.kept[mediaType] = string(data)
	return protocol.ArtifactRef{Digest: protocol.DigestOf(data), Size: int64(len(data)), Type: mediaType}, nil
}

func TestTools(t *testing.T) {
	t.Run("runtime/K05 issue/4-2 tools of a server become callable tools of the plugin", func(t *testing.T) {
		p := one(t, guest("good"))
		if got := names(p); !slices.Equal(got, goodNames) {
			t.Fatalf("tools %q", got)
		}
		out, err := call(t.Context(), p, "mcp__x__echo", `{"text":"hello"}`, nil)
		if err != nil || out.Status != protocol.OutputSuccess || out.Text != "you said hello" {
			t.Errorf("%+v %v", out, err)
		}
		want := []mcp.ServerStatus{{Name: "x", State: mcp.Ready, Transport: manifest.TransportStdio, Tools: 11, Server: "good", Version: "1.2.3"}}
		got := p.Status()
		got[0].Sandbox = "" // depends on the system
		if !slices.Equal(got, want) {
			t.Errorf("status %+v", got)
		}
	})
	t.Run("runtime/K05 the server's annotations decide whether a call may be repeated", func(t *testing.T) {
		p := one(t, guest("good"))
		for _, x := range p.Tools() {
			want, kind := protocol.ReplayNever, protocol.ToolKindOther
			switch x.Manifest.Name {
			case "mcp__x__echo":
				want, kind = protocol.ReplaySafe, protocol.ToolKindRead
			case "mcp__x__again":
				want = protocol.ReplayIdempotent
			}
			if x.Contract.Replay != want || x.Manifest.Kind != kind {
				t.Errorf("%s: replay %s, kind %s", x.Manifest.Name, x.Contract.Replay, x.Manifest.Kind)
			}
			if err := tool.CheckSchema(x.Contract.Input); err != nil || !strings.Contains(string(x.Contract.Input), `"text"`) {
				t.Errorf("%s: schema %s %v", x.Manifest.Name, x.Contract.Input, err)
			}
		}
	})
	t.Run("runtime/K05 images, audio and files are stored as artifacts", func(t *testing.T) {
		p, h := one(t, guest("good")), &host{}
		out, err := call(t.Context(), p, "mcp__x__shows", `{"text":""}`, h)
		if err != nil || string(out.Value) != `{"n":1}` || out.Artifact == nil || out.Artifact.Type != "image/png" {
			t.Fatalf("%+v %v", out, err)
		}
		for _, want := range []string{"look\n[image, image/png, 9 bytes, artifact " + string(out.Artifact.Digest), "\n[audio, audio/wav, 7 bytes, artifact ", "\n[resource file:///a]\na text\n[resource file:///b b]"} {
			if !strings.Contains(out.Text, want) {
				t.Errorf("%q is not in %q", want, out.Text)
			}
		}
		if h.kept["image/png"] != "a picture" || h.kept["audio/wav"] != "a sound" {
			t.Errorf("kept %q", h.kept)
		}
		if a := out.Attachments; len(a) != 1 || a[0].Name != "image" || a[0].Type != "image/png" || a[0].Digest != protocol.DigestOf([]byte(dot)) {
			t.Errorf("runtime/S15 the model gets %+v", a)
		}
	})
	t.Run("runtime/K05 the model sees a failure of the tool", func(t *testing.T) {
		out, err := call(t.Context(), one(t, guest("good")), "mcp__x__fails", `{"text":""}`, nil)
		if err != nil || code(out) != "mcp_tool_error" || out.Text != "there is no such page" || out.Failure.Class != protocol.FailExecution {
			t.Errorf("%+v %v", out, err)
		}
	})
	t.Run("runtime/K05 an error of the server fails the call", func(t *testing.T) {
		out, err := call(t.Context(), one(t, guest("good")), "mcp__x__echo", `{"text":1}`, nil)
		if err != nil || out.Status != protocol.OutputFailure || !strings.Contains(out.Text, "text") {
			t.Errorf("%+v %v", out, err)
		}
	})
	t.Run("runtime/K05 progress of a call is shown", func(t *testing.T) {
		p, h := one(t, guest("good")), &host{}
		if out, err := call(t.Context(), p, "mcp__x__steps", `{"text":""}`, h); err != nil || out.Text != "done" {
			t.Fatalf("%+v %v", out, err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if want := []string{"step (1/3)", "step (2/3)", "step (3/3)"}; !slices.Equal(h.steps, want) {
			t.Errorf("progress %q", h.steps)
		}
	})
	t.Run("runtime/K05 a cancelled call returns at once, and the server is notified", func(t *testing.T) {
		count := filepath.Join(t.TempDir(), "calls")
		p := one(t, guest("good", countVariable, count))
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			wait.Until(t, "the call", func() bool { return counted(count) == "slow\n" })
			cancel(stop)
		}()
		if _, err := call(ctx, p, "mcp__x__slow", `{"text":""}`, nil); !errors.Is(err, stop) {
			t.Errorf("%v", err)
		}
		wait.Until(t, "the server to hear", func() bool { return counted(count) == "slow\ncancelled\n" })
		if out, err := call(t.Context(), p, "mcp__x__echo", `{"text":"on"}`, nil); err != nil || out.Text != "you said on" {
			t.Errorf("afterwards %+v %v", out, err)
		}
	})
	t.Run("runtime/K05 issue/4-7 a call beyond the server's time limit fails", func(t *testing.T) {
		s := guest("good")
		s.TimeoutMs = 100
		out, err := call(t.Context(), one(t, s), "mcp__x__slow", `{"text":""}`, nil)
		if err != nil || code(out) != "plugin_timeout" || out.Failure.Class != protocol.FailTimeout {
			t.Errorf("%+v %v", out, err)
		}
	})
	t.Run("runtime/K05 after a change of its tools, a server is asked again and the plugin is notified", func(t *testing.T) {
		told := make(chan struct{}, 8)
		c := config(t, map[string]manifest.Server{"x": guest("good")})
		c.Changed = func(context.Context) { told <- struct{}{} }
		p := begin(t, pooled(t), c)
		if out, err := call(t.Context(), p, "mcp__x__grows", `{"text":""}`, nil); err != nil || out.Text != "grown" {
			t.Fatalf("%+v %v", out, err)
		}
		soon(t, told)
		wait.Until(t, "the new list", func() bool {
			return slices.Contains(names(p), "mcp__x__new") && !slices.Contains(names(p), "mcp__x__again")
		})
		if _, err := call(t.Context(), p, "mcp__x__again", `{}`, nil); err == nil {
			t.Error("a tool that is gone can be called")
		}
	})
	t.Run("runtime/K05 names are adapted, unusable tools are skipped, and the log says so", func(t *testing.T) {
		c := config(t, map[string]manifest.Server{"x.y": guest("odd")})
		p := begin(t, pooled(t), c)
		got := names(p)
		if len(got) != 2 || got[0] != "mcp__x_y__a_b" || len(got[1]) != 64 || !strings.HasPrefix(got[1], "mcp__x_y__averyveryvery") {
			t.Errorf("tools %q", got)
		}
		for _, want := range []string{`skipped the tool "a_b": the name mcp__x_y__a_b belongs to "a.b"`, `skipped the tool "schema"`, "without a name"} {
			if !strings.Contains(said(c), want) {
				t.Errorf("%q is not in the log: %s", want, said(c))
			}
		}
	})
}

// soon waits for a notification.
func soon(t testing.TB, told <-chan struct{}) {
	t.Helper()
	select {
	case <-told:
	case <-time.After(patience):
		t.Fatal("nothing was reported")
	}
}

func counted(file string) string {
	data, _ := os.ReadFile(file)
	return string(data)
}
