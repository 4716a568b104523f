package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"lashd/rpc/protocol"
)

func TestFit(t *testing.T) {
	id := func(n string) string { return "ses_01a224896c8c" + n + strings.Repeat("0", 20-len(n)) }
	rows := [][]string{{"SESSION", "STATE", "TITLE"}, {id("1"), "idle", strings.Repeat("é", 60)}, {id("22"), "running", "界界界界界界界界界界"}}
	for _, columns := range []int{200, 120, 80, 60, 40} {
		t.Run("issue/21-3 a table fits the terminal: ids are cut to a unique prefix, columns are dropped, and the widest are cut", func(t *testing.T) {
			got := fit(rows, columns, []string{"STATE"})
			if w := total(widthsOf(got), columns); w > columns {
				t.Errorf("%d columns: %d wide: %q", columns, w, got)
			}
			if got[1][0] != id("1")[:17] || got[2][0] != id("2")[:17] {
				t.Errorf("%d columns: the ids are %q and %q, want the shortest prefixes that differ", columns, got[1][0], got[2][0])
			}
			if columns <= 80 && !strings.HasSuffix(got[1][len(got[1])-1], "…") {
				t.Errorf("%d columns: the long title is %q", columns, got[1])
			}
			if state := slices.Contains(got[0], "STATE"); state != (columns > 40) {
				t.Errorf("%d columns: the column STATE is there: %t", columns, state)
			}
		})
	}
	if got := fit([][]string{{"a", strings.Repeat("b", 50)}}, 4, nil); ansi.StringWidth(got[0][1]) != leastCell {
		t.Errorf("on a tiny terminal the cell is %q, want %d wide", got[0][1], leastCell)
	}
	if got := fit([][]string{{"SESSION"}, {id("1")}, {"ses_02" + strings.Repeat("0", 30)}}, 80, nil); got[1][0] != id("1")[:leastID] {
		t.Errorf("an id that differs early is %q, want %d characters", got[1][0], leastID)
	}
}

// aTime matches a time that is not relative, because tests have no terminal.
var aTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT.*`)

// TestNarrowTables compares lists with the files in testdata, at several widths of the terminal.
func TestNarrowTables(t *testing.T) {
	id := func(kind, n string) string { return kind + "_01a22489" + n + strings.Repeat("0", 24-len(n)) }
	ago := time.Now().Add(-3 * time.Minute).UnixMilli()
	session := func(n string, state protocol.SessionState, title string) protocol.Session {
		s := protocol.Session{ID: protocol.SessionID(id("ses", n)), State: state, UpdatedAtMs: ago, TurnIndex: 12, Cwd: "/home/ann/src/parser", Title: title}
		s.Config.Model.ID, s.Config.Driver = "claude-sonnet-4-5-20250929", "standard"
		return s
	}
	exit := 2
	task := protocol.Task{ID: protocol.TaskID(id("tsk", "6")), SessionID: protocol.SessionID(id("ses", "1")), State: protocol.TaskFailed, StartedAtMs: ago,
		Spec:    protocol.TaskSpec{Kind: protocol.TaskCommand, Label: "npm run dev -- --port 8080", Recovery: protocol.RecoverOwner},
		Outcome: &protocol.TaskOutcome{Kind: protocol.TaskExited, ExitCode: &exit}}
	refused := protocol.AuditEntry{SessionID: protocol.SessionID(id("ses", "1")), AtMs: ago, AuditRecord: protocol.AuditRecord{Kind: protocol.AuditRefused, Tool: "shell",
		Subject: "git push origin main", Sandbox: protocol.SandboxWorkspace, Choice: protocol.ChooseReject, By: id("cli", "9")}}
	inside := refused
	inside.Kind, inside.Choice, inside.Granted = protocol.AuditAllowed, protocol.ChooseAllowOnce, []string{"github.com"}
	lists := []struct {
		name string
		rows [][]string
		less []string
	}{
		{"session", listRows([]protocol.Session{session("1", protocol.SessionRunning, "Fix the parser of numbers"), session("2", protocol.SessionRequiresAction, "Publish")}), lessOfSession},
		{"session search", matchRows([]protocol.SessionMatch{{SessionID: protocol.SessionID(id("ses", "1")), Role: protocol.RoleUser, AtMs: ago, Cwd: "/home/ann/src/parser", Snippet: "why does the parser of numbers fail"}}), lessOfMatch},
		{"task", taskRows([]protocol.Task{task}), lessOfTask},
		{"audit", auditRows([]protocol.AuditEntry{refused, inside}), lessOfAudit},
		{"trigger history", deliveries([]protocol.Occurrence{{AtMs: ago, Type: "cron.tick", Deliveries: []protocol.TriggerDelivery{{Key: "morning", State: "delivered", SessionID: protocol.SessionID(id("ses", "1"))}}}}), lessOfDelivery},
		{"model", modelRows([]protocol.ModelInfo{{Name: "anthropic/claude-sonnet-4-5-20250929", Default: true, Title: "Claude Sonnet 4.5", Model: protocol.ModelSpec{Provider: "anthropic", ContextWindow: 200_000}, Price: &protocol.Price{Input: 3, Output: 15}}}), lessOfModel},
	}
	for _, width := range []int{40, 60, 80, 120} {
		var text strings.Builder
		for _, l := range lists {
			for _, row := range l.rows {
				for i := range row {
					row[i] = aTime.ReplaceAllString(row[i], "3 min ago")
				}
			}
			fmt.Fprintf(&text, "$ lash %s\n%s\n", l.name, strings.Join(tableLines(l.rows, width, l.less), "\n"))
		}
		t.Run(fmt.Sprintf("issue/21-3 lists are readable in %d columns", width), func(t *testing.T) { sameAs(t, fmt.Sprintf("lists-%d.txt", width), text.String(), width) })
	}
}

// sameAs compares a text with a file in testdata, and its lines with a width. With LASHD_UPDATE=1 it writes the file.
func sameAs(t *testing.T, name, got string, width int) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("LASHD_UPDATE") != "" {
		if err := cmp.Or(os.MkdirAll("testdata", 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant, from %s,\n%s", got, path, want)
	}
	for line := range strings.Lines(got) {
		if n := ansi.StringWidth(strings.TrimSuffix(line, "\n")); n > width {
			t.Errorf("a line is %d wide, want at most %d: %q", n, width, line)
		}
	}
}
