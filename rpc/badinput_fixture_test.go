package rpc_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/models"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// fixture is an idle daemon with sessions in many states.
type fixture struct {
	*server
	socket string
	stored *database
	before string
	words  *strings.Replacer
	cases  int // so far
}

// asking is a model that calls the tool deploy.
const asking = `{"turns": [{"replies": [{"toolCalls": [{"id": "c1", "name": "deploy", "args": {}}]}, {"text": "Done."}]}]}`

func newFixture(t testing.TB) *fixture {
	t.Helper()
	script, err := scripted.Parse([]byte(asking))
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{server: start(t, models.Model{
		Name: "asking", Spec: protocol.ModelSpec{Provider: "p", ID: "asking"}, Provider: scripted.New(script),
	})}
	dir, err := os.MkdirTemp("", "bad") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	f.socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	f.wg.Go(func() { f.Listen(f.ctx, l) })
	f.words = strings.NewReplacer(f.populate(t)...)
	f.stored = openDatabase(t, f.store.Dir())
	f.before = f.stored.dump(t)
	return f
}

func (f *fixture) dialSocket(t testing.TB) *wire {
	t.Helper()
	nc, err := net.Dial("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return &wire{Conn: nc, in: bufio.NewReader(nc)}
}

func (f *fixture) unchanged(t testing.TB) {
	t.Helper()
	if after := f.stored.dump(t); after != f.before {
		t.Fatalf("the database changed: -before +after\n%s", cmp.Diff(strings.Split(f.before, "\n"), strings.Split(after, "\n")))
	}
}

// made has the members that the fixture needs from the results of its requests.
type made struct {
	SessionID, TurnID, InputID, NextCursor string
	NodeIDs                                []string
	Head                                   protocol.Head
	Session                                protocol.Session
	Data                                   []protocol.Decision
}

// do makes a request that must succeed.
func (w *wire) do(t testing.TB, method, format string, args ...any) made {
	t.Helper()
	w.send(call(method, fmt.Sprintf(format, args...)))
	var a answer
	var m made
	frame := w.frame(t)
	if json.Unmarshal(frame, &a) != nil || a.Error != nil || json.Unmarshal(a.Result, &m) != nil && method != "decision/list" {
		t.Fatalf("%s "+format+": %s", append(append([]any{method}, args...), frame)...)
	}
	return m
}

// call is a request with the id 1.
func call(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`+"\n", method, params)
}

// await reads events until one of a type.
func (w *wire) await(t testing.TB, kind protocol.EventType) protocol.Event {
	t.Helper()
	came := w.events
	w.events = nil
	for {
		if i := slices.IndexFunc(came, func(e protocol.Event) bool { return e.Type == kind }); i >= 0 {
			return came[i]
		}
		frame, err := w.next()
		var a answer
		if err != nil || json.Unmarshal(frame, &a) != nil {
			t.Fatalf("waiting for %s: %v, %s", kind, err, frame)
		}
		came = []protocol.Event{a.Params}
	}
}

const hello = `"input":[{"type":"text","text":"hello"}]`

// populate makes the sessions, and returns the values of the $words in test cases.
func (f *fixture) populate(t testing.TB) []string {
	w, dir := f.dialSocket(t), t.TempDir()
	open := func() string { return w.do(t, "session/new", `{"cwd":%q}`, dir).SessionID }
	w.do(t, "initialize", `{"clientInfo":{"name":"fixture"},"clientId":"cli_fixture"}`)

	idle := open()
	done := w.do(t, "turn/run", `{"sessionId":%q,`+hello+`,"idempotencyKey":"used"}`, idle).TurnID
	page := w.do(t, "session/read", `{"sessionId":%q,"limit":1}`, idle).NextCursor
	w.do(t, "turn/run", `{"sessionId":%q,`+hello+`}`, idle)
	turns := w.do(t, "turn/list", `{"sessionId":%q,"limit":1}`, idle).NextCursor

	rewound := open()
	root := w.do(t, "graph/read", `{"sessionId":%q}`, rewound).Head.Leaf
	stale := w.do(t, "graph/append", `{"sessionId":%q,"nodes":[{"plugin":{"type":"n","body":1}}],"operationId":"op"}`, rewound).NodeIDs[0]
	w.do(t, "session/rewind", `{"sessionId":%q,"toNode":%q}`, rewound, root)
	w.do(t, "graph/unpin", `{"sessionId":%q,"nodeId":%q}`, rewound, stale)

	busy := open()
	w.do(t, "session/configure", `{"sessionId":%q,"model":"stalled"}`, busy)
	running := w.do(t, "turn/start", `{"sessionId":%q,`+hello+`}`, busy).TurnID
	w.await(t, protocol.EventItemDelta)
	queued := w.do(t, "turn/start", `{"sessionId":%q,`+hello+`}`, busy).TurnID

	ask := open()
	w.do(t, "session/configure", `{"sessionId":%q,"model":"asking","approval":{"mode":"ask"}}`, ask)
	w.do(t, "session/setOverlay", `{"sessionId":%q,"tools":[{"name":"deploy","description":"Deploys."}]}`, ask)
	w.do(t, "turn/start", `{"sessionId":%q,`+hello+`}`, ask)
	decision := string(w.await(t, protocol.EventDecisionOpened).Decision.ID)

	gone, archived := open(), open()
	w.do(t, "session/delete", `{"sessionId":%q}`, gone)
	w.do(t, "session/archive", `{"sessionId":%q}`, archived)
	return append(paths(t, dir),
		"$idle", idle, "$done", done, "$page", page, "$turns", turns, "$rewound", rewound, "$root", string(root), "$stale", stale,
		"$busy", busy, "$running", running, "$queued", queued, "$ask", ask, "$decision", decision, "$gone", gone, "$archived", archived, "$digest", strings.Repeat("0a", 32))
}

// paths are paths that are not directories.
func paths(t testing.TB, dir string) []string {
	t.Helper()
	file, link, loop := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "loop")
	for _, err := range []error{os.WriteFile(file, nil, 0o600), os.Symlink(file, link), os.Symlink(loop, loop)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return []string{"$file", file, "$link", link, "$loop", loop, "$dir", dir}
}
