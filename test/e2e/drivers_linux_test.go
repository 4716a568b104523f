package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

func TestACPDriver(t *testing.T) {
	t.Run("issue/19 outside/21 lashd acp --driver creates sessions with that driver, and the model's cells run", func(t *testing.T) {
		w := newWorld(t, "allow", step(says("I look.\n<starlark>\nprint(tools.read(\"a.txt\").text.upper())\n</starlark>\n")), step(says("Done.")))
		w.write(w.work+"/a.txt", "one\n")
		defer w.shutdown()
		e := w.editor(sdk.ClientCapabilities{}, "--driver", "rlm")
		e.open(w.work)
		if stop := e.says("look"); stop != sdk.StopReasonEndTurn {
			t.Errorf("the turn ends with %s", stop)
		}
		p := w.dial("")
		if s := ask[protocol.SessionReadResult](p, "session/read", protocol.SessionReadParams{SessionID: protocol.SessionID(e.id)}).Session; s.Config.Driver != "rlm" {
			t.Errorf("the session has the driver %q, want rlm", s.Config.Driver)
		}
		if seen := p.observed(protocol.SessionID(e.id)); !strings.Contains(seen, "ONE") {
			t.Errorf("the cell printed %q, want ONE", seen)
		}
	})

	t.Run("issue/19 the editor gets an error that lists the drivers", func(t *testing.T) {
		w := newWorld(t, "allow")
		defer w.shutdown()
		e := w.editor(sdk.ClientCapabilities{}, "--driver", "rml")
		_, err := e.NewSession(e.context(), sdk.NewSessionRequest{Cwd: w.work, McpServers: []sdk.McpServer{}})
		if err == nil || !strings.Contains(err.Error(), `unknown driver "rml"; did you mean "rlm"? (known drivers: rlm, standard)`) && !strings.Contains(err.Error(), `unknown driver \"rml\"; did you mean \"rlm\"? (known drivers: rlm, standard)`) {
			t.Errorf("%v, want the known drivers", err)
		}
	})
}

// TestCodeCellsPage runs the cell of docs/code-cells.md that shows what a model writes.
func TestCodeCellsPage(t *testing.T) {
	t.Run("issue/19 the example on docs/code-cells.md prints what it says", func(t *testing.T) {
		page, err := os.ReadFile("../../docs/code-cells.md")
		if err != nil {
			t.Fatal(err)
		}
		cell := regexp.MustCompile("(?s)```\n(<starlark>\n.*?</starlark>\n)```").FindSubmatch(page)
		if cell == nil {
			t.Fatal("docs/code-cells.md shows no cell")
		}
		w := newWorld(t, "allow", step(says(string(cell[1]))), step(says("Done.")))
		w.write(w.work+"/a.go", "package a\n")
		w.write(w.work+"/b.go", "package b\n\nvar long = 1\n")
		d := w.serve()
		p := w.dial("reader")
		id := ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: w.work, Driver: "rlm"}).SessionID
		if r := p.turn(id, "measure"); r.State != protocol.TurnCompleted {
			t.Errorf("the turn ended as %s: %+v", r.State, r.Issues)
		}
		if seen := strings.TrimSpace(p.observed(id)); seen != `(3, "b.go")` {
			t.Errorf("the model read %q", seen)
		}
		d.stop()
	})
}
