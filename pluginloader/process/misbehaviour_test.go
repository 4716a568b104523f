//go:build unix

package process_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
	"lashd/test/wait"
)

// session opens a session with a plugin.
func session(t testing.TB, id protocol.SessionID, factories ...plugin.Factory) *plugin.Session {
	t.Helper()
	h, err := plugin.NewHost([]plugin.Factory{standard.Factory{}}, factories)
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Open(t.Context(), standard.ID, nil, plugin.BuildContext{SessionID: id, Cwd: t.TempDir(), StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// turnHook asks the hook before a turn.
func turnHook(ctx context.Context, s *plugin.Session) error {
	_, err := s.BeforeTurn(ctx, &plugin.TurnContext{TurnID: "trn_1", View: &plugin.View{}})
	return err
}

// manifests are tools that a plugin may leave out.
func manifests(names ...string) (all []protocol.ToolManifest) {
	for _, name := range names {
		all = append(all, protocol.ToolManifest{Name: name})
	}
	return all
}

func catalogHook(ctx context.Context, s *plugin.Session) error {
	_, err := s.Contribute(ctx, plugin.CatalogContext{SessionID: s.ID(), Manifests: manifests("hidden", "shown")})
	return err
}

func proseHook(ctx context.Context, s *plugin.Session) error {
	text, err := s.Prose(ctx, "a<CODE>b")
	if want := map[bool]string{true: "ab", false: "a<CODE>b"}[err == nil]; text != want {
		return fmt.Errorf("the text is %q: %v", text, err)
	}
	return err
}

func toolHook(ctx context.Context, s *plugin.Session) error {
	v, err := s.BeforeToolCall(ctx, &plugin.ToolCallContext{TurnID: "trn_1", CallID: "c1", Tool: "note", Args: []byte(`{}`)})
	if err != nil {
		return err
	}
	if v.Output == nil {
		return nil
	}
	return errors.New(v.Output.Failure.Code)
}

func toolCall(ctx context.Context, s *plugin.Session) error {
	r, err := s.Sources()[0].Provider.Execute(ctx, tool.Invocation{CallID: "c1", ToolID: "note", Name: "note", Args: []byte(`{"text":"x"}`)})
	if err != nil {
		return err
	}
	if r.Output.Failure == nil {
		return nil
	}
	return errors.New(r.Output.Failure.Code)
}

func capture(ctx context.Context, s *plugin.Session) error {
	if err := turnHook(ctx, s); err != nil {
		return err
	}
	_, err := s.Capture(ctx)
	return err
}

// bound is how long it may take until misbehaviour is over: much less than patience, and more than the deadlines of those who keep
// the daemon waiting, also on a machine that has much else to do.
const bound = 30 * time.Second

// misbehaviours are roles of the test plugin, with what a call of it then fails with.
var misbehaviours = []struct {
	row  string
	role string
	want process.Code
	use  func(context.Context, *plugin.Session) error
}{
	{"1 exits at once", "exit0", process.Crashed, turnHook},
	{"1 exits at once with an error", "exit3", process.Crashed, turnHook},
	{"2 exits in the handshake", "initialize:exit", process.Crashed, turnHook},
	{"2 exits when a session is opened", "session/open:exit", process.Crashed, turnHook},
	{"2 exits in a hook", "hook/beforeTurn:exit", process.Crashed, turnHook},
	{"2 exits in a hook before a call", "hook/beforeToolCall:exit", process.Crashed, toolHook},
	{"2 exits in a call of a tool", "tool/execute:exit", process.Crashed, toolCall},
	{"2 exits while it writes its state", "snapshot/write:exit", process.Crashed, capture},
	{"3 is killed in a hook", "hook/beforeTurn:kill", process.Crashed, turnHook},
	{"3 is killed in the handshake", "initialize:kill", process.Crashed, turnHook},
	{"4 never shakes hands", "mute", process.TimedOut, turnHook},
	{"4 hangs in the handshake", "initialize:hang", process.TimedOut, turnHook},
	{"4 hangs in the handshake and ignores SIGTERM", "deafToTermHang", "", turnHook},
	{"5 speaks another version", "version", process.Protocol, turnHook},
	{"6 answers with another nonce", "nonce", process.Protocol, turnHook},
	{"6 is another plugin", "identity", process.Protocol, turnHook},
	{"6 contributes more than was declared", "more", process.Protocol, turnHook},
	{"6 answers with a field that there is not", "field", process.Protocol, turnHook},
	{"7 prints a banner", "banner", "", turnHook},
	{"7 prints without end", "mumbles", process.Protocol, turnHook},
	{"8 stops in the middle of a message", "hook/beforeTurn:partial", process.TimedOut, turnHook},
	{"10 a line without an end", "hook/beforeTurn:endless", process.Protocol, turnHook},
	{"10 an answer of more than 100 MB", "hook/beforeTurn:endlessJSON", process.Protocol, turnHook},
	{"10 no JSON", "hook/beforeTurn:invalid", process.Protocol, turnHook},
	{"11 no UTF-8", "hook/beforeTurn:utf8", process.Protocol, turnHook},
	{"12 deep JSON", "hook/beforeTurn:deep", process.Protocol, turnHook},
	{"12 an answer of another shape to a hook", "hook/beforeTurn:strange", process.Protocol, turnHook},
	{"12 an answer of another shape to a hook before a call", "hook/beforeToolCall:strange", process.Protocol, toolHook},
	{"12 an answer of another shape to a call", "tool/execute:strange", process.Protocol, toolCall},
	{"12 a field twice", "hook/beforeTurn:twoFields", process.Protocol, turnHook},
	{"12 a field twice in the answer", "hook/beforeTurn:twoFieldsInside", process.Protocol, turnHook},
	{"12 a field in other letters", "hook/beforeTurn:otherLetters", process.Protocol, turnHook},
	{"12 a field in other letters in the answer", "hook/beforeTurn:otherLettersInside", process.Protocol, turnHook},
	{"13 answers a huge id", "hook/beforeTurn:hugeID", process.TimedOut, turnHook},
	{"13 calls with a huge id", "hook/beforeTurn:hugeCall", process.Protocol, turnHook},
	{"13 answers an unknown request", "hook/beforeTurn:foreign", process.Protocol, turnHook},
	{"14 answers many times", "hook/beforeTurn:twice", "", turnHook},
	{"16 never answers a hook", "hook/beforeTurn:hang", process.TimedOut, turnHook},
	{"16 never answers a hook before a call", "hook/beforeToolCall:hang", process.TimedOut, toolHook},
	{"16 never answers a call", "tool/execute:hang", process.TimedOut, toolCall},
	{"16 never opens a session", "session/open:hang", process.TimedOut, turnHook},
	{"16 never writes its state", "snapshot/write:hang", process.TimedOut, capture},
	{"17 answers a byte at a time", "hook/beforeTurn:slowly", process.TimedOut, turnHook},
	{"19 closes its stdout", "hook/beforeTurn:closeStdout", process.Protocol, turnHook},
	{"19 closes its stdin", "session/open:closeStdin", process.TimedOut, turnHook},
	{"20 notifies without end", "hook/beforeTurn:notices", process.Protocol, turnHook},
	{"20 notifies of what there is not", "hook/beforeTurn:unknownNotice", process.Protocol, turnHook},
	{"21 floods stderr", "hook/beforeTurn:stderr", "", turnHook},
	{"22 leaves children that hold its pipes", "hook/beforeTurn:fork", process.Crashed, turnHook},
	{"23 leaves children in a session of their own", "hook/beforeTurn:setsid", process.Crashed, turnHook},
	{"24 ignores SIGTERM and the end of its stdin", "deafToTerm", "", turnHook},
	{"24 ignores the end of its stdin", "stays", "", turnHook},
	{"25 stops itself", "hook/beforeTurn:stop", process.TimedOut, turnHook},
}

// TestMisbehaviour has plugins misbehave beside one that does not. Their calls fail in time with the right error, and
// nothing else does; nothing is left of them.
func TestMisbehaviour(t *testing.T) {
	for n, c := range misbehaviours {
		t.Run("reliability/P14 3.4-"+c.row, func(t *testing.T) {
			t.Parallel()
			with := only(process.Hook{Name: process.BeforeTurn}, process.Hook{Name: process.BeforeToolCall})
			with.State = "1"
			cfg := config(t, c.role, with)
			cfg.ID = fmt.Sprint("bad", n)
			limit := patience
			if c.want == process.TimedOut {
				limit = time.Second
			}
			cfg.Deadlines.Hook, cfg.Deadlines.State, cfg.Deadlines.Tool = limit, limit, limit
			if strings.Contains(c.row, "handshake") || c.role == "mute" {
				cfg.Deadlines.Start = limit
			}
			cfg.Limits.Notices = 1000
			bad := begin(t, cfg)
			good := config(t, "good", process.Contributions{Hooks: []process.Hook{{Name: process.Checkpoint}}})
			good.ID = fmt.Sprint("bystander", n)
			s := session(t, "ses_1", bad, begin(t, good))
			bystands(t, s)
			check(t, s, c.use, c.want)
			bystands(t, s)
		})
	}
}

func TestCancelledCalls(t *testing.T) {
	t.Run("issue/4-7 reliability/P14 a process that continues a cancelled call is ended, reported and replaced", func(t *testing.T) {
		c := config(t, "tool/execute:hang", only(process.Hook{Name: process.BeforeTurn}))
		c.Deadlines.Cancel = 300 * time.Millisecond
		c.Output = child.NewLog(slog.New(slog.DiscardHandler))
		s := session(t, "ses_1", begin(t, c))
		if err := turnHook(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		first := pids(t, c.ID)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		if err := toolCall(ctx, s); err == nil {
			t.Error("the call came to something")
		}
		wait.Until(t, "the end of the process", func() bool { return !slices.Contains(pids(t, c.ID), first[0]) })
		if err := turnHook(t.Context(), s); err != nil {
			t.Error(err)
		}
		said := fmt.Sprint(c.Output.Newest())
		for _, want := range []string{"tool/execute continues although it was cancelled", "continued a cancelled call and sent nothing"} {
			if !strings.Contains(said, want) {
				t.Errorf("the log says %v, want %q", said, want)
			}
		}
	})
	t.Run("issue/4-7 a process that serves other calls does not count as hanging", func(t *testing.T) {
		c := config(t, "tool/execute:hang", only(process.Hook{Name: process.BeforeTurn}))
		c.Deadlines.Cancel = 500 * time.Millisecond
		s := session(t, "ses_1", begin(t, c))
		if err := turnHook(t.Context(), s); err != nil { // starts the process
			t.Fatal(err)
		}
		first := pids(t, c.ID)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		if err := toolCall(ctx, s); err == nil {
			t.Error("the call came to something")
		}
		for began := time.Now(); time.Since(began) < 4*c.Deadlines.Cancel; time.Sleep(10 * time.Millisecond) {
			if err := turnHook(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		if now := pids(t, c.ID); !slices.Equal(now, first) {
			t.Errorf("processes %v, before %v", now, first)
		}
	})
}

func check(t *testing.T, s *plugin.Session, use func(context.Context, *plugin.Session) error, want process.Code) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := time.Now()
	err := use(ctx, s)
	if took := time.Since(began); took > bound {
		t.Errorf("it took %v", took)
	}
	got := ""
	if err != nil {
		got = err.Error()
	}
	if want == "" && err != nil || want != "" && !strings.Contains(got, string(want)) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// bystands fails unless the other plugin of the session answers.
func bystands(t *testing.T, s *plugin.Session) {
	t.Helper()
	began := time.Now()
	_, err := s.Checkpoint(t.Context(), &plugin.CheckpointContext{TurnID: "trn_1", View: &plugin.View{}})
	if took := time.Since(began); err != nil || took > bound {
		t.Errorf("the plugin beside it takes %v: %v", took, err)
	}
}
