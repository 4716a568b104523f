package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/cmd/internal/console"
	"lashd/rpc/protocol"
)

// threeTurns runs three turns in a session, of which the second one writes a file of two lines, and returns the session and the file.
func threeTurns(t *testing.T) (p *place, id, file string) {
	t.Helper()
	p = newPlace(t)
	p.write("script.json", `{"turns": [{"match": {"lastUserContains": "change"}, "replies": [
		{"toolCalls": [{"name": "shell", "args": {"command": "printf 'a\\nb\\n' > new.txt"}}]}, {"text": "done"}]},
		{"match": {"lastUserContains": "fail"}, "replies": [{"error": {"kind": "validation", "code": "refused", "message": "the model refused"}}]}],
		"otherwise": {"replies": [{"text": "hello"}]}}`)
	id = p.session()
	p.want(0, "done\n", "", "run", "--session", id, "change a file\nwith two lines")
	p.want(console.ExitFailed, "", "the model refused", "run", "--session", id, "fail now")
	return p, id, filepath.Join(p.work, "new.txt")
}

// turnsOf returns what session turns --json prints.
func (p *place) turnsOf(id string) (all []listedTurn) {
	p.t.Helper()
	if r := p.want(0, "", "", "session", "turns", id, "--json"); json.Unmarshal([]byte(r.out), &all) != nil {
		p.t.Fatalf("session turns --json: %q", r.out)
	}
	return all
}

// numbered returns the turns as lines of number, input, state, outcome and files.
func numbered(all []listedTurn) (lines []string) {
	for _, t := range all {
		line, _ := json.Marshal([]any{t.Number, t.Input, t.State, t.Outcome, t.Files, t.Added, t.Removed, t.Undone})
		lines = append(lines, string(line))
	}
	return lines
}

func TestSessionTurns(t *testing.T) {
	p, id, file := threeTurns(t)
	t.Run("issue/21-2 session turns lists number, input, result and file changes", func(t *testing.T) {
		want := []string{
			`[1,"hi","completed","assistantMessage",0,0,0,false]`,
			`[2,"change a file\nwith two lines","completed","assistantMessage",1,2,0,false]`,
			`[3,"fail now","failed","providerError",0,0,0,false]`,
		}
		if got := numbered(p.turnsOf(id)); !cmp.Equal(got, want) {
			t.Error(cmp.Diff(want, got))
		}
		r := p.want(0, "TURN", "", "session", "turns")
		for _, words := range []string{"RESULT  FILES    TOKENS  INPUT", "done    1 +2 -0", "  change a file\n", "failed  -"} {
			if !strings.Contains(r.out, words) {
				t.Errorf("the table lacks %q:\n%s", words, r.out)
			}
		}
	})
	t.Run("issue/21-2 session fork takes the number of a turn, and the copy has its results", func(t *testing.T) {
		part := strings.TrimSpace(p.want(0, "ses_", "", "session", "fork", id, "--at", "2").out)
		want := []string{`[1,"hi","completed","assistantMessage",0,0,0,false]`, `[2,"change a file\nwith two lines","completed","assistantMessage",0,0,0,false]`}
		if got := numbered(p.turnsOf(part)); !cmp.Equal(got, want) {
			t.Error(cmp.Diff(want, got))
		}
		p.want(console.ExitUsage, "", "there is no turn 9; the turns of session "+id+" are 1 to 3", "session", "fork", id, "--at", "9")
		p.want(console.ExitFailed, "", "that this session can restore; use --conversation", "session", "rewind", part, "--to", "2", "--files")
		again := strings.TrimSpace(p.want(0, "ses_", "", "session", "fork", part).out)
		if got := numbered(p.turnsOf(again)); !cmp.Equal(got, want) {
			t.Error(cmp.Diff(want, got))
		}
		p.want(0, "", "The conversation is empty now.", "session", "rewind", part, "--to", "1")
		p.want(0, "", "", "session", "delete", part, "--yes")
		if got := numbered(p.turnsOf(again)); len(got) != 2 || !strings.Contains(got[0], `[1,"hi","",""`) {
			t.Errorf("without its original, a fork has the turns %v", got)
		}
	})
	t.Run("issue/21-2 session rewind shows first, then takes files or the conversation back, and says where the session is", func(t *testing.T) {
		p.want(0, "deleted", "would take back turns 2 to 3 of session "+id+": the conversation and the files", "session", "rewind", id, "--to", "2", "--dry-run")
		if _, err := os.Stat(file); err != nil || len(p.turnsOf(id)) != 3 {
			t.Fatal("a dry run changes something: ", err)
		}
		if err := os.WriteFile(file, []byte("mine\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p.want(console.ExitFailed, "conflict: changedSince", "repeat it with --force", "session", "rewind", id, "--to", "2")
		p.want(0, "", "to revert this: lash session undo "+id+" fpt_", "session", "rewind", id, "--to", "2", "--files", "--force")
		if _, err := os.Stat(file); err == nil || len(p.turnsOf(id)) != 3 {
			t.Errorf("after --files the file is there, or turns are gone: %v", err)
		}
		r := p.want(0, "", `The conversation now ends after turn 1: "hi".`, "session", "rewind", id, "--to", "2", "--conversation")
		if len(p.turnsOf(id)) != 1 {
			t.Error("turns 2 and 3 are still there")
		}
		_, node, _ := strings.Cut(r.err, "a copy with turns 2 to 3: lash session fork "+id+" --at ")
		again := strings.TrimSpace(p.want(0, "ses_", "", "session", "fork", id, "--at", strings.TrimSpace(node)).out)
		if got := p.turnsOf(again); len(got) != 3 || got[2].State != protocol.TurnFailed {
			t.Errorf("the copy has %v", numbered(got))
		}
	})
}
