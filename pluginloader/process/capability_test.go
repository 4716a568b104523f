//go:build unix

package process_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/provider/scripted"
	"lashd/pluginloader/child"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

// probes are all requests that a plugin can send. If granted, each fails for a reason of its own or does no harm.
var probes = map[string]string{
	"host/snapshotCurrent": `{}`, "host/snapshotSession": `{}`, "host/toolCatalog": `{}`, "host/toolState": `{}`,
	"host/applyToolState":    `{"state":{"generation":-1,"tools":{}}}`,
	"host/setToolMembership": `{"names":["none"],"member":true}`,
	"host/createSession":     `{"session":{"cwd":"not absolute"}}`, "host/takeFirstTurnInput": `{"sessionId":"ses_none"}`,
	"host/closeSession": `{"sessionId":"ses_none"}`, "host/startTurn": `{"turnId":"trn_x","sessionId":"ses_none","input":[]}`,
	"host/awaitTurn": `{"turnId":"trn_none"}`, "host/cancelTurn": `{"turnId":"trn_none"}`,
	"host/appendNodes": `{"sessionId":"OWN","nodes":[]}`, "host/complete": `{"model":"none","messages":[]}`,
	"host/emitTrace": `{"name":"probe"}`, "host/callTool": `{"calls":[]}`,
	"host/artifactWrite": `{"name":"probe","type":"text/plain","data":"aGVsbG8="}`, "host/artifactRead": `{"name":"none"}`,
	"host/setToolAvailability": `{"names":["none"],"availability":"off"}`, "host/injectTurnInput": `{"turnId":"trn_none","input":[]}`,
	"host/ask": `{"prompt":"Who?","deadlineMs":1}`, "host/taskStart": `{"spec":{"kind":"none","recovery":"external"}}`, "host/taskRegister": `{"spec":{"kind":"none","recovery":"external"}}`,
	"host/taskComplete": `{"taskId":"none","outcome":{"kind":"completed"}}`, "host/taskTransition": `{"taskId":"none","state":"idle"}`,
	"host/taskTell": `{"taskId":"none","name":"none"}`, "host/taskAwait": `{"taskIds":["none"]}`, "host/taskSignal": `{"taskId":"none","name":"none"}`,
	"host/taskList": `{}`, "host/taskRead": `{"taskId":"none"}`, "host/taskOutput": `{"taskId":"none"}`, "host/taskCancel": `{"taskId":"none"}`,
	"host/taskCancelAll": `{"keep":[]}`, "host/validateHandles": `{"taskIds":["none"]}`, "host/transferHandles": `{"taskIds":["none"],"to":"OWN"}`,
	"host/monitorSnapshot": `{}`, "host/monitorUpdates": `{}`, "host/monitorStart": `{"spec":{"monitorId":"no such id","command":"true"}}`, "host/monitorStop": `{"monitorId":"none"}`,
}

// probe asks for all of it in a call, and writes down where it was asked and what was not refused.
func (g *guest) probe(f frame) {
	var p struct {
		Grant     string `json:"grant"`
		SessionID string `json:"sessionId"`
		Context   struct {
			Kind string `json:"kind"`
		} `json:"context"`
	}
	_ = json.Unmarshal(f.Params, &p)
	at, given := f.Method, []string{}
	if f.Method == "hook/event" {
		at += " " + p.Context.Kind
	}
	for _, method := range slices.Sorted(maps.Keys(probes)) {
		got := g.back(method, p.Grant, json.RawMessage(strings.ReplaceAll(probes[method], "OWN", p.SessionID)))
		if (!strings.Contains(got, `"kind":"denied"`) || strings.Contains(got, "out of reach")) && !strings.Contains(got, `"kind":"unavailable"`) {
			given = append(given, strings.TrimPrefix(method, "host/"))
		}
		if strings.Contains(got, `"kind":"invalidParams"`) {
			given = append(given, got)
		}
	}
	out, err := os.OpenFile(filepath.Join(os.Getenv("PLUGIN_DATA"), "given"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer out.Close()
	fmt.Fprintf(out, "%s: %s\n", at, strings.Join(given, " "))
}

// The groups of the table of capabilities in docs/plugin-reference.md, by the methods that they have on the wire.
const (
	look       = "snapshotCurrent snapshotSession toolCatalog toolState"
	allState   = look + " applyToolState setToolMembership setToolAvailability"
	toolsOnly  = "snapshotCurrent snapshotSession setToolMembership"
	asking     = " ask"
	lifecycle  = " createSession takeFirstTurnInput closeSession startTurn awaitTurn cancelTurn injectTurnInput"
	graph      = " appendNodes"
	completion = " complete"
	trace      = " emitTrace"
	seeTasks   = " taskList taskRead taskOutput"
	allTasks   = seeTasks + " taskStart taskRegister taskComplete taskTransition taskTell taskAwait taskSignal taskCancel taskCancelAll transferHandles"
	monitors   = " monitorSnapshot monitorUpdates monitorStart monitorStop"
	letGo      = " validateHandles" // without tasks there is nothing to refuse
)

// granted is what each call of a plugin is given. One that is not named is given nothing.
var granted = map[string]string{
	"hook/prompt": allState + letGo + trace, "hook/beforeTurn": allState + letGo + trace, "hook/afterTurn": allState + letGo + trace,
	"hook/configChanged": allState + letGo + trace, "hook/event sessionConfigChanged": allState + letGo + trace,
	"hook/beforeToolCall": toolsOnly + letGo + trace, "hook/afterToolCall": toolsOnly + letGo + trace,
	"hook/checkpoint": allState + lifecycle + graph + letGo + trace, "hook/compact": allState + lifecycle + graph + letGo + trace,
	"hook/transformContext": allState + lifecycle + graph + completion + letGo + trace, "hook/event turnPersisted": allState + graph + completion + letGo + trace,
	"tool/execute":    allState + lifecycle + completion + asking + " callTool artifactWrite" + allTasks + monitors + letGo + trace,
	"operation/query": look + seeTasks + letGo + trace, "operation/command": allState + lifecycle + graph + allTasks + monitors + letGo + trace, "operation/task": allState + lifecycle + graph + allTasks + monitors + letGo + trace,
	// These are about the plugin's own state, and need no capability.
	"snapshot/write": "artifactWrite emitTrace validateHandles", "snapshot/restore": "artifactRead emitTrace validateHandles",
}

// ungranted are the other calls that there are.
var ungranted = []string{
	"initialize", "session/open", "hook/assistantStream", "hook/assistantResponse", "hook/streamFinished", "hook/projectToolResult",
	"hook/catalog", "hook/projectProse",
	"hook/event turnFinalized", "hook/event sessionRestored", "tool/prepare",
}

// declared are the methods of each capability.
var declared = map[process.Capability]string{
	process.UsesState: allState, process.UsesLifecycle: lifecycle, process.UsesGraph: graph, process.UsesCompletions: completion,
	process.UsesTools: "callTool", process.UsesArtifacts: "artifactWrite", process.UsesDecisions: asking, process.UsesTasks: allTasks + letGo, process.UsesMonitors: monitors,
}

// probed calls a plugin with some capabilities everywhere and returns which requests were granted where.
func probed(t *testing.T, uses []process.Capability) (map[string][]string, string) {
	t.Helper()
	var log bytes.Buffer
	all := everything()
	all.Preparing = true
	c := config(t, "probes", all)
	c.Uses, c.Deadlines.Hook, c.Log = uses, patience, slog.New(slog.NewTextHandler(&log, nil))
	c.Output = child.NewLog(slog.New(slog.DiscardHandler))
	dir := t.TempDir()
	f := begin(t, c)
	model := builtintest.Calling(scripted.Call{ID: "c1", Name: "note", Args: json.RawMessage(`{"text":"milk"}`)})
	d := builtintest.Start(t, dir, 0, model, f)
	id := d.Session(t, nil)
	if r := d.Turn(t, id, "note milk"); r.Outcome.Text != "DONE" {
		t.Errorf("the turn ends with %+v %+v", r.Outcome, r.Issues)
	}
	notes(t, d, id)
	op := protocol.OperationParams{SessionID: id, Name: "notes.add", Args: json.RawMessage(`{}`)}
	builtintest.Must(d.Operations.Command(t.Context(), &op))(t)
	op.Name = "notes.work"
	builtintest.Must(d.Operations.Task(t.Context(), &op))(t)
	builtintest.Must(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Prompt: new("other")}))(t)
	_, _ = d.Sessions.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id}) // it makes no summary
	d.Stop()
	c.Nonce += "-again"
	d = builtintest.Start(t, dir, 0, model, begin(t, c))
	notes(t, d, id)
	d.Stop()
	text, err := os.ReadFile(filepath.Join(c.DataDir, "given"))
	if err != nil {
		t.Fatal(err)
	}
	given := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		at, methods, _ := strings.Cut(strings.TrimSpace(line), ":")
		if before, ok := given[at]; ok && !slices.Equal(before, strings.Fields(methods)) {
			t.Errorf("%s is given %q, and another time%s", at, before, methods)
		}
		given[at] = strings.Fields(methods)
	}
	return given, log.String()
}

func TestCapabilities(t *testing.T) {
	sets := [][]process.Capability{nil, everyCapability}
	for _, c := range everyCapability {
		sets = append(sets, []process.Capability{c})
	}
	for _, uses := range sets {
		t.Run(fmt.Sprintf("issue/4-8 every call requests everything, declared is %q", uses), func(t *testing.T) {
			may := []string{"emitTrace"}
			for _, c := range uses {
				may = append(may, strings.Fields(declared[c])...)
			}
			given, log := probed(t, uses)
			for _, at := range ungranted {
				if got, ok := given[at]; !ok || len(got) > 0 {
					t.Errorf("%s was asked: %t, and is given %q, want nothing", at, ok, got)
				}
			}
			for at, granted := range granted {
				var want []string
				for method := range strings.FieldsSeq(granted) {
					if slices.Contains(may, method) || strings.HasPrefix(at, "snapshot/") {
						want = append(want, method)
					}
				}
				slices.Sort(want)
				got, ok := given[at]
				if slices.Sort(got); !ok || !slices.Equal(got, want) {
					t.Errorf("%s was asked: %t, and is given %q, want %q", at, ok, got, want)
				}
			}
			if n := strings.Count(log, "rejected a request of the plugin"); n < 100 {
				t.Errorf("%d refusals are logged", n)
			}
		})
	}
}
