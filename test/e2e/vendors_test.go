package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// vendorKey is the environment variable with the key of the fake vendors.
const vendorKey = "LASHD_E2E_KEY"

// newVendors creates a world whose model server has one model of each API, with the name of the API. All but that of Chat Completions
// read images. The server checks requests as the vendors do. Files of the workspace are read without a question.
func newVendors(t *testing.T, steps ...fakemodel.Step) *world {
	t.Helper()
	model, d := serveModel(t, steps...)
	model.Strict("e2e-key-of-vendors")
	var config strings.Builder
	config.WriteString("trace = true\nsandbox = \"fullAccess\"\n")
	for _, api := range fakemodel.APIs() {
		inputs := "image"
		if api == fakemodel.ChatAPI {
			inputs = "text"
		}
		config.WriteString(fmt.Sprintf("[[models]]\nname = %q\nprovider = \"v-%[1]s\"\nid = \"m-%[1]s\"\nefforts = [\"low\"]\neffort = \"low\"\ninputs = [%q]\n", api, inputs))
	}
	for _, api := range fakemodel.APIs() {
		base := fakemodel.Base("http://"+d.Addr().String(), api)
		config.WriteString(fmt.Sprintf("[providers.v-%s]\napi = %[1]q\nbase_url = %q\nkey = {env = %q}\n", api, base, vendorKey))
	}
	w := &world{newHome(t, map[string]string{"config.toml": config.String()}), model, d}
	w.env = []string{vendorKey + "=e2e-key-of-vendors"}
	w.write(filepath.Join(w.work, "greeting.txt"), "Hello from the file.\n")
	return w
}

// uses makes a session use a model from its next turn on.
func (p *peer) uses(id protocol.SessionID, model string) {
	p.t.Helper()
	ask[protocol.HeadResult](p, "session/configure", protocol.SessionConfigureParams{SessionID: id, Model: model})
}

// thinks is reasoning that the API signs.
func thinks(text, signature string) fakemodel.Part {
	return fakemodel.Part{Reasoning: text, Signature: signature}
}

// both calls two tools at once: one that only reads, and one that a person must approve.
func both() fakemodel.Part {
	p := uses("read", map[string]string{"path": "greeting.txt"})
	p.Calls = append(p.Calls, shell(once).Calls...)
	return p
}

// TestConversationOnEachAPI has one conversation with a model of each API. The model server rejects what the vendor would reject, so
// each turn also checks all requests before it.
func TestConversationOnEachAPI(t *testing.T) {
	for _, api := range fakemodel.APIs() {
		t.Run("part9/conversation tools, approval, kill, steering and an interrupt on "+api, func(t *testing.T) {
			t.Parallel()
			s := &scene{world: newVendors(t)}
			s.begin()
			s.peer.uses(s.session, api)
			s.toolsAndKill()
			s.steering()
			s.interrupting()
			s.model.Push(to("and now", 0, step(says("Still here."))))
			if r := s.peer.turn(s.session, "and now?"); r.Output.Safe != "Still here." {
				t.Errorf("the last turn says %q", r.Output.Safe)
			}
			s.sentBack(api)
			if err := s.model.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// toolsAndKill has a turn with two calls, one of them approved, whose daemon is killed while the model reads the results.
func (s *scene) toolsAndKill() {
	s.t.Helper()
	s.model.Push(
		to("look", 0, step(thinks("Two ", ""), thinks("things.", "signed-1"), says("I look."), both())),
		to("look", 2, step(stalls)),
		to("look", 2, step(says("Seen "), says("both."))),
	)
	turn := s.peer.start(s.session, "look around").TurnID
	d := s.peer.event("the question", opened).Decision
	if d.Call == nil || d.Call.Name != "shell" {
		s.t.Errorf("a person is asked about %+v, want the shell", d.Call)
	}
	s.peer.allow(*d)
	s.asked(2)
	s.daemon.kill()
	s.restart()
	r := s.peer.wait(turn)
	if r.State != protocol.TurnCompleted || r.Output.Safe != "Seen both." {
		s.t.Fatalf("the turn is %s: %+v, output %+v", r.State, r.Outcome, r.Output)
	}
	if s.size("ran") != 1 || len(r.ToolCalls) != 2 {
		s.t.Fatalf("the command ran %d times in %d calls, want once in 2", s.size("ran"), len(r.ToolCalls))
	}
	if out := r.ToolCalls[0].Output; !strings.Contains(out.Text, "Hello from the file.") {
		s.t.Errorf("read returned %+v", out)
	}
	if n := len(s.model.Requests()); n != 3 {
		s.t.Errorf("the model was called %d times, want 3", n)
	}
}

// steering sends an input to a turn while the model thinks.
func (s *scene) steering() {
	s.t.Helper()
	s.model.Push(
		to("go on", 0, step(stalls, thinks("Once more.", "signed-2"), uses("read", map[string]string{"path": "greeting.txt"}))),
		to("mind the gap", 0, step(says("I mind."))),
	)
	turn := s.peer.start(s.session, "go on").TurnID
	s.asked(4)
	ask[protocol.TurnSteerResult](s.peer, "turn/steer", protocol.TurnSteerParams{TurnID: turn, Input: text("and mind the gap")})
	s.model.Release()
	if r := s.peer.wait(turn); r.State != protocol.TurnCompleted || r.Output.Safe != "I mind." {
		s.t.Errorf("the steered turn is %s: %+v, output %+v", r.State, r.Outcome, r.Output)
	}
}

// interrupting stops a turn in the middle of a reply.
func (s *scene) interrupting() {
	s.t.Helper()
	s.model.Push(to("story", 0, step(thinks("A story.", "signed-3"), says("Once upon"), stalls)))
	turn := s.peer.start(s.session, "tell a story").TurnID
	s.peer.event("the beginning of the story", func(e protocol.Event) bool {
		return e.Type == protocol.EventItemDelta && e.TurnID == turn && strings.Contains(e.Text, "Once")
	})
	ask[protocol.TurnInterruptResult](s.peer, "turn/interrupt", protocol.TurnInterruptParams{TurnID: turn})
	if r := s.peer.wait(turn); r.State != protocol.TurnCancelled {
		s.t.Errorf("the interrupted turn is %s: %+v", r.State, r.Outcome)
	}
}

// sentBack checks what the last request has of the whole conversation.
func (s *scene) sentBack(api string) {
	s.t.Helper()
	all := s.model.Requests()
	last := all[len(all)-1]
	var users, signatures []string
	calls, results := 0, 0
	for _, m := range last.Chat.Messages {
		signatures = append(signatures, m.Signatures...)
		calls += len(m.ToolCalls)
		switch m.Role {
		case "user":
			users = append(users, string(m.Content))
		case "tool":
			results++
		}
	}
	if want := []string{"look around", "go on", "and mind the gap", "tell a story", "and now?"}; !slices.Equal(users, want) {
		s.t.Errorf("the model reads the inputs %q, want %q", users, want)
	}
	if calls != 3 || results != 3 {
		s.t.Errorf("the model reads %d calls and %d results, want 3 and 3", calls, results)
	}
	want := map[string][]string{
		fakemodel.AnthropicAPI: {"signed-1", "signed-2", "signed-3"},
		fakemodel.ResponsesAPI: {"signed-1", "signed-2", "signed-3"},
		fakemodel.GeminiAPI:    {"signed-1", "signed-2"}, // the third one would have come with the end of the story
	}[api]
	if !slices.Equal(signatures, want) {
		s.t.Errorf("the signatures %q come back, want %q", signatures, want)
	}
	if last.API != api || last.Chat.Model != "m-"+api || !last.Authorized {
		s.t.Errorf("the request is for %s of %s, authorized %v", last.Chat.Model, last.API, last.Authorized)
	}
}
