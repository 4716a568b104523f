package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lashd/test/bench"
	"lashd/test/fakemodel"
)

// TestMain lets the test binary be the daemon.
func TestMain(m *testing.M) {
	if os.Getenv("FLOOR_MAIN") != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, model *fakemodel.Server, db string) *bench.Peer {
	t.Helper()
	p, err := bench.Start(bench.Config{
		Protocol: bench.Floor,
		Args:     []string{os.Args[0]},
		Env: []string{
			"FLOOR_MAIN=1", "FLOOR_BASE=" + model.URL, "FLOOR_DB=" + db,
			"GORACE=atexit_sleep_ms=0", // the race detector holds each exit for a second
		},
		Dir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func startModel(t *testing.T) *fakemodel.Server {
	t.Helper()
	m, err := fakemodel.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func create(t *testing.T, p *bench.Peer) string {
	t.Helper()
	sid, err := p.Create()
	if err != nil {
		t.Fatal(err)
	}
	return sid
}

func turn(t *testing.T, p *bench.Peer, sid, prompt string) bench.Turn {
	t.Helper()
	got, err := p.Turn(sid, prompt)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// items attaches to a session and returns its items as "role: content".
func items(t *testing.T, p *bench.Peer, sid string) []string {
	t.Helper()
	res, err := p.Attach(sid)
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Items []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"items"`
	}
	if err := json.Unmarshal(res, &r); err != nil {
		t.Fatalf("%v in %s", err, res)
	}
	var list []string
	for _, it := range r.Items {
		list = append(list, it.Role+": "+it.Content)
	}
	return list
}

func TestTurnsSurviveKill(t *testing.T) {
	model := startModel(t)
	model.Push(fakemodel.Say("Hello", " there."), fakemodel.Say("Still here."))
	db := filepath.Join(t.TempDir(), "floor.db")
	p := start(t, model, db)
	sid := create(t, p)
	if got := turn(t, p, sid, "first"); got.Deltas != 2 {
		t.Errorf("first turn had %d deltas, want 2", got.Deltas)
	}
	turn(t, p, sid, "second")
	if err := p.Kill(); err != nil { // SIGKILL, right after turn/completed
		t.Fatal(err)
	}

	p = start(t, model, db)
	got := items(t, p, sid)
	want := []string{"user: first", "assistant: Hello there.", "user: second", "assistant: Still here."}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("items after kill = %q, want %q", got, want)
	}
	turn(t, p, sid, "third [[fake]]")
	reqs := model.Requests()
	if n := len(reqs[len(reqs)-1].Chat.Messages); n != 5 {
		t.Errorf("the model was sent %d messages after resume, want 5", n)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestInputIsDurableBeforeModelIsAsked(t *testing.T) {
	model := startModel(t)
	model.Push(fakemodel.Step{Parts: []fakemodel.Part{{Stall: true}}})
	db := filepath.Join(t.TempDir(), "floor.db")
	p := start(t, model, db)
	sid := create(t, p)
	turned := make(chan error, 1)
	go func() {
		_, err := p.Turn(sid, "lost?")
		turned <- err
	}()
	if err := model.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}

	// A second process reads what a crash now would leave.
	other := start(t, model, db)
	if got := items(t, other, sid); len(got) != 1 || got[0] != "user: lost?" {
		t.Errorf("items while the model thinks = %q, want the input", got)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	model.Release()
	if err := <-turned; err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestTools(t *testing.T) {
	model := startModel(t)
	file := filepath.Join(t.TempDir(), "note")
	if err := os.WriteFile(file, []byte("from the file"), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := json.Marshal(map[string]string{"path": file})
	if err != nil {
		t.Fatal(err)
	}
	model.Push(
		fakemodel.Use(fakemodel.Call{Name: "shell", Args: `{"command":"echo from the shell; exit 3"}`}, fakemodel.Call{Name: "read", Args: string(path)}),
		fakemodel.Step{When: fakemodel.When{Results: new(2)}, Parts: []fakemodel.Part{{Text: "done"}}},
	)
	p := start(t, model, filepath.Join(t.TempDir(), "floor.db"))
	sid := create(t, p)
	turn(t, p, sid, "use both")
	got := items(t, p, sid)
	want := []string{"user: use both", "assistant: ", "tool: from the shell\nexit status 3", "tool: from the file", "assistant: done"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("items = %q, want %q", got, want)
	}
	if err := model.Check(); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestLoneDeltaIsNotHeld(t *testing.T) {
	model := startModel(t)
	p := start(t, model, filepath.Join(t.TempDir(), "floor.db"))
	sid := create(t, p)
	got := turn(t, p, sid, fakemodel.Marker(20, 6, 5*time.Millisecond))
	sent := model.Requests()[0].Sent
	if len(got.At) != 20 || len(sent) != 20 {
		t.Fatalf("%d deltas arrived of %d, want 20", len(got.At), len(sent))
	}
	held := 0
	for i := range sent[:19] {
		if got.At[i].After(sent[i+1]) {
			held++
		}
	}
	if held > 5 { // a busy machine delays some
		t.Errorf("%d of 19 deltas arrived after the next was sent", held)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestFailureOfModelEndsProcess(t *testing.T) {
	model := startModel(t)
	model.Push(fakemodel.Fail(500))
	p := start(t, model, filepath.Join(t.TempDir(), "floor.db"))
	sid := create(t, p)
	if _, err := p.Turn(sid, "hi"); err == nil || !strings.Contains(err.Error(), "EOF") {
		t.Errorf("Turn = %v, want the end of the process", err)
	}
	if err := p.Close(); err == nil || !strings.Contains(err.Error(), "500") {
		t.Errorf("Close = %v, want the model's status", err)
	}
}
