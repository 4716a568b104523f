package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// postProgram is a plugin whose tool creates a file, waits for another one, and returns the intents in
// its arguments.
const postProgram = `
import os, time

def execute(name, args):
    with open(args["dir"] + "/ran", "a") as f: f.write("x")
    while not os.path.exists(args["dir"] + "/go"): time.sleep(0.01)
    return {"output": {"status": "success", "text": "posted"}, "intents": args["intents"]}
` + plainProgram

// post is the plugin, which also declares an event type. replay says whether its tool may be repeated.
func (h *home) post(replay string) {
	h.t.Helper()
	h.has("python")
	h.plugin("post", map[string]string{"main.py": postProgram, "plugin.json": fmt.Sprintf(`{"name":"post","lashd":{
  "process":{"command":["python3","${PLUGIN_ROOT}/main.py"]}, "tools":[{"name":"post","description":"d","replay":%q}],
  "triggers":[{"resourceType":"mailbox","alias":"mail","event":"new","payload":{"type":"object","required":["from"]}}]}}`, replay)})
}

// waitsForMail adds a trigger that wakes a session for mail.
func (h *home) waitsForMail(id protocol.SessionID) {
	h.t.Helper()
	h.lashd("trigger", "add", "mail", "--on", "mail.new", "--wake", string(id), "--text", "tell of mail")
}

// mailScene is a session that waits for an event that a plugin declares.
type mailScene struct {
	*world
	daemon  *daemon
	peer    *peer
	session protocol.SessionID
	unlock  func()
}

// emits emits a mail event, as a script does. A repetition has no further effect.
func (s *mailScene) emits() (r protocol.TriggerEmitResult) {
	s.t.Helper()
	out := s.lashd("trigger", "emit", "mail.new", `{"from":"ada"}`, "--once", "letter-1", "--json")
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Occurrence.Deliveries) != 1 {
		s.t.Fatalf("runtime/B14 emit returned %s, %v", out, err)
	}
	return r
}

func (s *mailScene) unstored() {
	p := s.dial("")
	s.unlock = s.unanswered(func() error {
		_, err := try[protocol.TriggerEmitResult](p, "trigger/emit", protocol.TriggerEmitParams{
			Type: "mail.new", Cwd: s.work, OccurrenceKey: "letter-1", Payload: json.RawMessage(`{"from":"ada"}`),
		})
		return err
	})
}

func (s *mailScene) answered() { s.emits() }

func (s *mailScene) asksTheModel() {
	s.emits()
	s.asked(1)
}

// mailMoments are the moments of the kill, and whether the daemon has stored the event before it.
var mailMoments = []struct {
	name  string
	reach func(*mailScene)
	knows bool
}{
	{"before it is stored", (*mailScene).unstored, false},
	{"once it is answered", (*mailScene).answered, true},
	{"in the turn that it causes", (*mailScene).asksTheModel, true},
}

// TestMailOfAPlugin emits an event that a plugin declares, and kills the daemon.
func TestMailOfAPlugin(t *testing.T) {
	for _, m := range mailMoments {
		t.Run("runtime/B14 an event of a plugin wakes a session once, killed "+m.name, func(t *testing.T) {
			t.Parallel()
			s := newMailScene(t)
			m.reach(s)
			s.daemon.kill()
			s.unlock()
			s.daemon = s.serve()
			s.peer = s.dial("the-client")
			s.peer.attach(s.session, 0)
			if r := s.emits(); r.Duplicate != m.knows {
				t.Errorf("runtime/B14 emitting it again returned %+v", r)
			}
			s.came()
			s.daemon.stop()
		})
	}
}

func newMailScene(t *testing.T) *mailScene {
	t.Helper()
	s := &mailScene{world: newWorld(t, "allow"), unlock: func() {}}
	for range 3 { // one start is needed, and others may hit a kill
		s.model.Push(to("tell of mail", 0, step(says("noted"))))
	}
	s.post("never")
	s.daemon = s.serve()
	s.peer = s.dial("the-client")
	s.peer.loads("post", nil)
	s.session = s.peer.session(s.home)
	s.refuses("is not a declared event type", "trigger", "add", "mail", "--on", "mail.old", "--wake", string(s.session), "--text", "x")
	s.waitsForMail(s.session)
	s.refuses("does not match the schema of the event type", "trigger", "emit", "mail.new", `{"to":"ada"}`)
	s.refuses("is not a declared event type", "trigger", "emit", "mail.old")
	return s
}

// refuses checks that a command fails with these words.
func (h *home) refuses(words string, args ...string) {
	h.t.Helper()
	cmd := h.command(args...)
	cmd.Stderr = nil
	_, err := cmd.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 1 || !strings.Contains(string(e.Stderr), words) {
		h.t.Errorf("lashd %q: %v, want %q", args, err, words)
	}
}

// came checks that the session was woken once, and that the delivery says so.
func (s *mailScene) came() {
	s.t.Helper()
	s.peer.wokenBy(s.session, "mail", 1)
	ask[protocol.SessionWaitResult](s.peer, "session/wait", protocol.SessionWaitParams{SessionID: s.session})
	r := s.emits()
	if d := r.Occurrence.Deliveries[0]; !r.Duplicate || d.State != protocol.DeliveryDelivered || d.SessionID != s.session || d.TurnID == "" {
		s.t.Errorf("runtime/B14 at the end it is %+v", r)
	}
	if all := ask[protocol.TriggerHistoryResult](s.peer, "trigger/history", protocol.TriggerHistoryParams{Type: "mail.new"}).Data; len(all) != 1 {
		s.t.Errorf("runtime/B14 it is stored %d times: %+v", len(all), all)
	}
	if n := len(s.peer.turns(s.session, 1)); n != 1 {
		s.t.Errorf("runtime/B14 runtime/B06 %d turns, want 1", n)
	}
}
