package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"lashd/rpc/protocol"
	"lashd/test/skip"
)

// TestClientsOfOthers has independent clients play one script. All get the same answers and events.
func TestClientsOfOthers(t *testing.T) {
	script, err := filepath.Abs("../clients/script.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile("testdata/clients.golden")
	if err != nil && !*rewrite {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "clients")
	command(t, "../clients", 8*patience, "go", "build", "-o", program, ".")
	for name, client := range map[string]func(*testing.T) (dir string, args []string){
		"vscode-jsonrpc":               func(t *testing.T) (string, []string) { return extension(t), []string{"node", "test/script.mjs"} },
		"creachadair/jrpc2 by lines":   func(*testing.T) (string, []string) { return ".", []string{program, "jrpc2-lines"} },
		"creachadair/jrpc2 by headers": func(*testing.T) (string, []string) { return ".", []string{program, "jrpc2-headers"} },
		"golang.org/x/exp/jsonrpc2":    func(*testing.T) (string, []string) { return ".", []string{program, "jsonrpc2"} },
		"a shell": func(t *testing.T) (string, []string) {
			_, err := exec.LookPath("jq")
			skip.Unless(t, "JQ", err == nil, "jq is not installed")
			return "../clients", []string{"bash", "client.sh"}
		},
	} {
		t.Run("issue/6 "+name, func(t *testing.T) {
			dir, args := client(t)
			w := newWorld(t, "ask", step(says("I "), says("run it."), shell("printf done")), step(says("Done.")))
			defer w.shutdown()
			args = append(append(args, script, w.work), w.command("stdio").Args...)
			got := w.transcript(command(t, dir, 4*patience, args[0], args[1:]...))
			if *rewrite {
				golden = []byte(got)
				w.write("testdata/clients.golden", got)
			}
			if diff := gocmp.Diff(string(golden), got); diff != "" {
				t.Errorf("differs from the other clients (-want +got):\n%s", diff)
			}
			if err := w.model.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// said is a line that a client received: an answer or an event.
type said struct {
	Call   string `json:"call,omitempty"`
	Result any    `json:"result,omitempty"`
	Error  any    `json:"error,omitempty"`
	Event  any    `json:"event,omitempty"`
}

// transcript returns the part of a client's input that is the same in each run: the answers in order,
// the durable events in order, and the streamed text. Not every library delivers notifications in
// order.
func (w *world) transcript(out []byte) string {
	w.t.Helper()
	var answers, events, pieces []told
	for line := range bytes.Lines(out) {
		var s struct{ Event json.RawMessage }
		e := told{raw: w.canonical(line)}
		if json.Unmarshal(line, &s) != nil || s.Event != nil && json.Unmarshal(s.Event, &e.Event) != nil {
			w.t.Fatalf("a client printed %s", line)
		}
		switch {
		case s.Event == nil:
			answers = append(answers, e)
		case e.Seq > 0:
			events = append(events, e)
		case e.Type == protocol.EventItemDelta:
			pieces = append(pieces, e)
		}
	}
	slices.SortFunc(events, func(a, b told) int { return cmp.Compare(a.Seq, b.Seq) })
	slices.SortFunc(pieces, func(a, b told) int { return cmp.Compare(*a.Offset, *b.Offset) })
	texts := map[protocol.ItemID]string{}
	for _, e := range pieces {
		texts[e.ItemID] += e.Text
	}
	var all strings.Builder
	for _, e := range slices.Concat(answers, events) {
		all.WriteString(e.raw + "\n")
	}
	for _, text := range slices.Sorted(maps.Values(texts)) {
		all.WriteString("streamed: " + text + "\n")
	}
	return anonymous(strings.NewReplacer(w.work, "WORK", w.dir, "HOME").Replace(all.String()))
}

// canonical returns a line of JSON with sorted names.
func (w *world) canonical(line []byte) string {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var s said
	if err := d.Decode(&s); err != nil {
		w.t.Fatalf("a client printed %s: %v", line, err)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

var (
	whens  = regexp.MustCompile(`("[A-Za-z]*Ms"|"epoch"):[0-9]+`)
	chance = regexp.MustCompile(`\b([a-z]{3})_[0-9a-f]{32}\b|\b[0-9a-f]{64}\b|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|127\.0\.0\.1:[0-9]+`)
)

// anonymous replaces the id of the first session by ses-1, and so on.
func anonymous(text string) string {
	names, count := map[string]string{}, map[string]int{}
	text = whens.ReplaceAllString(text, "$1:0")
	return chance.ReplaceAllStringFunc(text, func(id string) string {
		if names[id] == "" {
			kind := cmp.Or(chance.FindStringSubmatch(id)[1], "any")
			count[kind]++
			names[id] = fmt.Sprint(kind, "-", count[kind])
		}
		return names[id]
	})
}
