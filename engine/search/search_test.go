package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/param"
	"lashd/persistence"
	"lashd/persistence/textindex"
	"lashd/rpc/protocol"
)

// searches returns searches that run until the test ends or stop is called.
func searches(t testing.TB, s *persistence.Store) (all *Searches, stop func()) {
	t.Helper()
	all = New(s, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		all.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return all, stop
}

// said is a node of a message. Its id is the text without spaces.
func said(role protocol.Role, kind protocol.PartKind, text string) protocol.Node {
	made++
	return protocol.Node{
		ID: protocol.NodeID(fmt.Sprint("nod_", made)), TurnID: "trn", AtMs: int64(made),
		Message: &protocol.Message{Role: role, Parts: []protocol.Part{{Kind: kind, Text: text}}},
	}
}

func user(text string) protocol.Node { return said(protocol.RoleUser, protocol.PartText, text) }
func agent(text string) protocol.Node {
	return said(protocol.RoleAssistant, protocol.PartProse, text)
}

// say appends messages to a session and returns their nodes.
func say(t testing.TB, s *persistence.Store, id protocol.SessionID, nodes ...protocol.Node) []protocol.Node {
	t.Helper()
	commit(t, s, &persistence.Commit{Session: id, Nodes: nodes})
	return nodes
}

// opened creates a session in /w whose history begins with a frame.
func opened(t testing.TB, s *persistence.Store, id protocol.SessionID, title string) {
	t.Helper()
	session(t, s, id, "/w", title, "")
	made++
	say(t, s, id, protocol.Node{ID: protocol.NodeID(fmt.Sprint("nod_", made)), FrameOpen: &protocol.FrameOpen{Key: "initial", Reason: "initial"}})
}

func fork(t testing.TB, s *persistence.Store, id, from protocol.SessionID, at protocol.NodeID) {
	t.Helper()
	source := &protocol.ForkSource{SessionID: from, Node: at}
	commit(t, s, &persistence.Commit{Session: id, Create: &persistence.NewSession{
		Cwd: "/w", Relation: protocol.Relation{Kind: protocol.RelationFork, Source: source}, Source: source,
	}})
}

// ask searches all pages. Each match is "session: snippet", with a ! before one that a rewind has
// removed and a * before a title.
func ask(t testing.TB, s *Searches, p protocol.SessionSearchParams) string {
	t.Helper()
	var all []string
	for more := true; more; more = p.Cursor != "" {
		r, err := s.Search(t.Context(), &p)
		if err != nil {
			t.Fatalf("search %q: %v", p.Query, err)
		}
		if r.Pending > 0 {
			t.Fatalf("search %q: %d nodes are not indexed", p.Query, r.Pending)
		}
		for _, m := range r.Data {
			mark := ""
			if m.Left {
				mark = "!"
			}
			if m.NodeID == "" {
				mark = "*"
			}
			all = append(all, mark+strings.TrimPrefix(string(m.SessionID), "ses_")+": "+m.Snippet)
		}
		p.Cursor = r.NextCursor
	}
	return strings.Join(all, " | ")
}

func find(t testing.TB, s *Searches, query string) string {
	t.Helper()
	return ask(t, s, protocol.SessionSearchParams{Query: query})
}

func TestSearch(t *testing.T) {
	t.Run("issue/21-3 messages and titles are found by their words, titles first and then the newest", func(t *testing.T) {
		s := open(t)
		opened(t, s, "ses_a", "Parser of dates")
		opened(t, s, "ses_b", "")
		say(t, s, "ses_a", user("Fix the parser"), agent("The Parser is fixed."))
		say(t, s, "ses_b", user("what does\nthe café cost? see foo_bar"), agent("Nothing"))
		say(t, s, "ses_a", user("the parsed date"))
		all, _ := searches(t, s)
		for query, want := range map[string]string{
			"parser":              "*a: Parser of dates | a: The Parser is fixed. | a: Fix the parser",
			"parse":               "*a: Parser of dates | a: the parsed date | a: The Parser is fixed. | a: Fix the parser",
			"fix PARSER":          "a: The Parser is fixed. | a: Fix the parser",
			`"the parser"`:        "a: The Parser is fixed. | a: Fix the parser",
			`fix "the parser"`:    "a: The Parser is fixed. | a: Fix the parser",
			`"fix the"`:           "a: Fix the parser",
			`"parser the`:         "",
			"cafe":                "b: what does the café cost? see foo_bar",
			"CAFÉ":                "b: what does the café cost? see foo_bar",
			"foo_bar":             "b: what does the café cost? see foo_bar",
			"cost? -- !!":         "b: what does the café cost? see foo_bar",
			"nothing parser":      "",
			"arser":               "",
			"dates":               "*a: Parser of dates",
			"date":                "*a: Parser of dates | a: the parsed date",
			"nothing OR parser":   "",
			"NEAR(fix parser, 5)": "",
		} {
			if got := find(t, all, query); got != want {
				t.Errorf("%s\n got %s\nwant %s", query, got, want)
			}
		}
	})
	t.Run("issue/21-3 no query is a syntax error", func(t *testing.T) {
		s := open(t)
		opened(t, s, "ses_a", "x")
		all, _ := searches(t, s)
		for _, query := range []string{`"`, `""`, "", " ", "-", "(", "*", `"*"`, "é\u0301\x00", "\xff", "🙂", strings.Repeat("a", maxQuery+1), strings.Repeat("a ", maxQuery/2)} {
			_, err := all.Search(t.Context(), &protocol.SessionSearchParams{Query: query})
			if e, ok := errors.AsType[*param.Error](err); err != nil && (!ok || e.Pointer != "/query") {
				t.Errorf("%.20q: %v", query, err)
			}
		}
		for _, query := range []string{"a AND", "OR", "NOT x", "a OR NOT", "title:x", "{a b}:c", "^a", "a+b", "a*b*", `a"b`, `a"b"c"`, "a^2", "NEAR(", "text : x", "-a", "a\x00b", `'; DROP TABLE titles; --`} {
			if got := find(t, all, query); got != "" {
				t.Errorf("%q found %s", query, got)
			}
		}
	})
	t.Run("runtime/S11 a message that a compaction kept is found once", func(t *testing.T) {
		s := open(t)
		opened(t, s, "ses_a", "")
		repeated := user("needle")
		repeated.Kept = true
		say(t, s, "ses_a", user("needle"), repeated, user("needle summary"))
		all, _ := searches(t, s)
		if got := find(t, all, "needle"); got != "a: needle summary | a: needle" {
			t.Errorf("found %s", got)
		}
	})
	t.Run("issue/21-3 tool calls, results, reasoning, wakes and system messages are not searched", func(t *testing.T) {
		s := open(t)
		opened(t, s, "ses_a", "")
		wake := said(protocol.RoleUser, protocol.PartText, "needle wake")
		wake.Message.Origin = &protocol.Origin{Kind: protocol.OriginProcess, Cause: &protocol.TurnCause{}}
		result := said(protocol.RoleUser, protocol.PartToolResult, "")
		result.Message.Parts[0].Result = &protocol.ToolResult{Output: protocol.ToolOutput{Text: `needle "kind":"text"`}}
		call := said(protocol.RoleAssistant, protocol.PartToolCall, "")
		call.Message.Parts[0].Call = &protocol.ToolCall{Name: "needle", Args: []byte(`{"needle":"needle"}`)}
		mixed := agent("needle answer")
		mixed.Message.Parts = append(mixed.Message.Parts, protocol.Part{Kind: protocol.PartReasoning, Text: "needle reasoning"})
		say(t, s, "ses_a", wake, result, call, mixed, said(protocol.RoleSystem, protocol.PartText, "needle system"),
			said(protocol.RoleEvent, protocol.PartText, "needle event"), said(protocol.RoleAssistant, protocol.PartCommentary, "needle comment"))
		all, _ := searches(t, s)
		if got := find(t, all, "needle"); got != "a: needle comment | a: needle answer" {
			t.Error(got)
		}
	})
	t.Run("issue/21-3 a directory, the archive and sessions of subagents are selected", func(t *testing.T) {
		s := open(t)
		session(t, s, "ses_a", "/w", "needle", "")
		session(t, s, "ses_b", "/other", "needle", "")
		session(t, s, "ses_c", "/w", "needle", "")
		session(t, s, "ses_child", "/w", "needle", "ses_a")
		for _, id := range []protocol.SessionID{"ses_a", "ses_b", "ses_c", "ses_child"} {
			say(t, s, id, user("needle in "+string(id)))
		}
		archived := true
		commit(t, s, &persistence.Commit{Session: "ses_c", Meta: &persistence.Meta{Archived: &archived}})
		all, _ := searches(t, s)
		for _, c := range []struct {
			params protocol.SessionSearchParams
			want   string
		}{
			{protocol.SessionSearchParams{Cwd: "/w"}, "*a: needle | a: needle in ses_a"},
			{protocol.SessionSearchParams{}, "*b: needle | *a: needle | b: needle in ses_b | a: needle in ses_a"},
			{protocol.SessionSearchParams{Archived: true}, "*c: needle | c: needle in ses_c"},
			{protocol.SessionSearchParams{Cwd: "/w", Children: true}, "*child: needle | *a: needle | child: needle in ses_child | a: needle in ses_a"},
			{protocol.SessionSearchParams{Distinct: true}, "*b: needle | *a: needle"},
		} {
			c.params.Query = "needle"
			if got := ask(t, all, c.params); got != c.want {
				t.Errorf("%+v\n got %s\nwant %s", c.params, got, c.want)
			}
		}
	})
	t.Run("issue/21-3 pages have each match once, and each session once if asked", func(t *testing.T) {
		s := open(t)
		for i := range 7 {
			id := protocol.SessionID(fmt.Sprint("ses_", i))
			opened(t, s, id, fmt.Sprint("title ", strings.Repeat("needle", i%2)))
			for j := range 5 {
				say(t, s, id, user(fmt.Sprint("needle ", i, j)))
			}
		}
		all, _ := searches(t, s)
		for _, distinct := range []bool{false, true} {
			p := protocol.SessionSearchParams{Query: "needle", Distinct: distinct, Limit: 100}
			want := ask(t, all, p)
			if n := strings.Count(want, "|") + 1; n != map[bool]int{false: 38, true: 7}[distinct] {
				t.Errorf("distinct %v: %d matches: %s", distinct, n, want)
			}
			for limit := 1; limit < 9; limit++ {
				p.Limit = limit
				if got := ask(t, all, p); got != want {
					t.Errorf("distinct %v, pages of %d\n got %s\nwant %s", distinct, limit, got, want)
				}
			}
		}
	})
}

func TestSharedHistory(t *testing.T) {
	t.Run("issue/21-3 a message that forks share is found once, in the session it was written in", func(t *testing.T) {
		s := open(t)
		opened(t, s, "ses_a", "")
		first := say(t, s, "ses_a", user("needle one"))[0]
		fork(t, s, "ses_b", "ses_a", first.ID)
		fork(t, s, "ses_c", "ses_b", first.ID)
		say(t, s, "ses_b", user("needle two"))
		all, _ := searches(t, s)
		if got := find(t, all, "needle"); got != "b: needle two | a: needle one" {
			t.Error(got)
		}
		commit(t, s, &persistence.Commit{Session: "ses_a", Delete: true})
		if got := find(t, all, "needle"); got != "b: needle two | c: needle one" {
			t.Errorf("after the first session was deleted, it should be found in its newest fork: %s", got)
		}
		commit(t, s, &persistence.Commit{Session: "ses_c", Delete: true})
		commit(t, s, &persistence.Commit{Session: "ses_b", Delete: true})
		if got := find(t, all, "needle"); got != "" {
			t.Errorf("after all were deleted: %s", got)
		}
	})
	t.Run("issue/21-3 messages that a rewind removed are marked, unless a fork still has them", func(t *testing.T) {
		s := open(t)
		opened(t, s, "ses_a", "")
		nodes := say(t, s, "ses_a", user("needle one"), user("needle two"), user("needle three"))
		all, _ := searches(t, s)
		commit(t, s, &persistence.Commit{Session: "ses_a", Rewind: nodes[0].ID, Pins: []persistence.Pin{{Node: nodes[2].ID, Reason: "rewind"}}})
		say(t, s, "ses_a", user("needle four"))
		if got := find(t, all, "needle"); got != "a: needle four | !a: needle three | !a: needle two | a: needle one" {
			t.Error(got)
		}
		fork(t, s, "ses_b", "ses_a", nodes[2].ID)
		if got := find(t, all, "needle"); got != "a: needle four | b: needle three | b: needle two | a: needle one" {
			t.Error(got)
		}
	})
	t.Run("issue/21-3 deleted text leaves the files of the index", func(t *testing.T) {
		s := open(t)
		opened(t, s, "ses_a", "titlesecret")
		opened(t, s, "ses_b", "")
		say(t, s, "ses_a", user("xylophone "+strings.Repeat("padding ", 2000)))
		say(t, s, "ses_b", user("kept"))
		all, _ := searches(t, s)
		if find(t, all, "xylophone") == "" || !inIndex(t, s, "xylophone") || !inIndex(t, s, "titlesecret") {
			t.Fatal("the text is not in the index")
		}
		commit(t, s, &persistence.Commit{Session: "ses_a", Delete: true})
		if find(t, all, "kept") == "" || inIndex(t, s, "xylophone") || inIndex(t, s, "titlesecret") {
			t.Error("deleted text is in the index")
		}
	})
}

// inIndex reports whether the files of the index contain a text.
func inIndex(t testing.TB, s *persistence.Store, text string) bool {
	t.Helper()
	found := false
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(filepath.Join(s.Dir(), textindex.FileName+suffix))
		if err != nil {
			t.Fatal(err)
		}
		found = found || bytes.Contains(data, []byte(text))
	}
	return found
}

func TestIndex(t *testing.T) {
	t.Run("issue/21-3 the first search makes the index, and a later daemon continues it", func(t *testing.T) {
		s := open(t)
		opened(t, s, "ses_a", "")
		say(t, s, "ses_a", user("needle one"))
		_, stop := searches(t, s)
		stop()
		if textindex.Exists(s.Dir()) {
			t.Error("there is an index before the first search")
		}
		all, stop := searches(t, s)
		if got := find(t, all, "needle"); got != "a: needle one" {
			t.Error(got)
		}
		stop()
		say(t, s, "ses_a", user("needle two"))
		opened(t, s, "ses_b", "needle three")
		all, _ = searches(t, s)
		if got := find(t, all, "needle"); got != "*b: needle three | a: needle two | a: needle one" {
			t.Error(got)
		}
	})
	t.Run("issue/21-3 later messages and titles are found", func(t *testing.T) {
		s := open(t)
		opened(t, s, "ses_a", "old")
		all, _ := searches(t, s)
		for i := range 20 {
			word := fmt.Sprint("needle", i)
			say(t, s, "ses_a", user(word))
			commit(t, s, &persistence.Commit{Session: "ses_a", Meta: &persistence.Meta{Title: &word}})
			if got := find(t, all, `"`+word+`"`); got != "*a: "+word+" | a: "+word {
				t.Error(got)
			}
		}
		if got := find(t, all, `old`) + find(t, all, `"needle3" "needle4"`); got != "" {
			t.Errorf("an old title was found: %s", got)
		}
	})
	t.Run("issue/21-3 an index continues without a search, ten seconds after the start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t)
			opened(t, s, "ses_a", "")
			all, stop := searches(t, s)
			find(t, all, "x")
			stop()
			say(t, s, "ses_a", user("needle"))
			searches(t, s)
			time.Sleep(firstUpdate + time.Second)
			synctest.Wait()
			if !inIndex(t, s, "needle") {
				t.Error("a message is not in the index")
			}
			commit(t, s, &persistence.Commit{Session: "ses_a", Delete: true})
			time.Sleep(settle + time.Second)
			synctest.Wait()
			if inIndex(t, s, "needle") {
				t.Error("a deleted message is in the index")
			}
		})
	})
	t.Run("issue/21-3 a damaged index is made again, whether it is open or not", func(t *testing.T) {
		for _, damage := range []func(data []byte) []byte{
			func([]byte) []byte { return []byte(strings.Repeat("no database ", 1000)) },
			func(data []byte) []byte { return data[:len(data)/2] },
			func([]byte) []byte { return nil },
			func(data []byte) []byte {
				for i := 4096; i < len(data); i++ {
					data[i] ^= 0x55
				}
				return data
			},
		} {
			s := open(t)
			opened(t, s, "ses_a", "needle")
			say(t, s, "ses_a", user("needle"))
			path := filepath.Join(s.Dir(), textindex.FileName)
			spoil := func() {
				data, err := os.ReadFile(path)
				if err == nil {
					err = os.WriteFile(path, damage(data), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			all, stop := searches(t, s)
			find(t, all, "needle")
			stop()
			spoil()
			all, _ = searches(t, s)
			if got := find(t, all, "needle"); got != "*a: needle | a: needle" {
				t.Errorf("damaged while closed: %s", got)
			}
			spoil()
			say(t, s, "ses_a", user("needle two"))
			if got := find(t, all, "needle"); got != "*a: needle | a: needle two | a: needle" {
				t.Errorf("damaged while open: %s", got)
			}
		}
	})
	t.Run("issue/21-3 damage that only a search or an update meets is repaired too", func(t *testing.T) {
		for _, more := range []bool{false, true} {
			s := open(t)
			opened(t, s, "ses_a", "")
			var nodes []protocol.Node
			for i := range 300 {
				nodes = append(nodes, user(fmt.Sprint("needle ", i, " ", rand.Uint64(), " ", rand.Uint64(), strings.Repeat(" word", 100))))
			}
			say(t, s, "ses_a", nodes...)
			all, stop := searches(t, s)
			want := len(find(t, all, "needle"))
			stop()
			path := filepath.Join(s.Dir(), textindex.FileName)
			data, err := os.ReadFile(path)
			for i := len(data) / 2 &^ 4095; i < len(data); i++ { // pages of texts
				data[i] ^= 0x55
			}
			if err := errors.Join(err, os.WriteFile(path, data, 0o600)); err != nil {
				t.Fatal(err)
			}
			all, _ = searches(t, s)
			if more {
				say(t, s, "ses_a", user("new word"))
				if got := find(t, all, `"new word"`); got != "a: new word" {
					t.Errorf("found %s", got)
				}
			}
			if got := len(find(t, all, "needle")); got != want {
				t.Errorf("more %v: found %d bytes, want %d", more, got, want)
			}
		}
	})
	t.Run("issue/21-3 an index of another store is made again", func(t *testing.T) {
		a, b := open(t), open(t)
		opened(t, a, "ses_a", "title")
		opened(t, b, "ses_b", "title")
		say(t, a, "ses_a", user("other"))
		say(t, b, "ses_b", user("needle"))
		all, stop := searches(t, a)
		find(t, all, "needle")
		stop()
		data, err := os.ReadFile(filepath.Join(a.Dir(), textindex.FileName))
		if err == nil {
			err = os.WriteFile(filepath.Join(b.Dir(), textindex.FileName), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		all, _ = searches(t, b)
		if got := find(t, all, "needle"); got != "b: needle" {
			t.Error(got)
		}
	})
	t.Run("issue/21-3 a file that cannot be an index is an error of searches only", func(t *testing.T) {
		s := open(t)
		opened(t, s, "ses_a", "needle")
		if err := os.MkdirAll(filepath.Join(s.Dir(), textindex.FileName, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		all, _ := searches(t, s)
		if _, err := all.Search(t.Context(), &protocol.SessionSearchParams{Query: "needle"}); err == nil || !strings.Contains(err.Error(), textindex.FileName) {
			t.Errorf("search: %v", err)
		}
		say(t, s, "ses_a", user("still works"))
		if err := os.RemoveAll(filepath.Join(s.Dir(), textindex.FileName)); err != nil {
			t.Fatal(err)
		}
		if got := find(t, all, "needle"); got != "*a: needle" {
			t.Error(got)
		}
	})
	t.Run("issue/21-3 random changes leave the index equal to the store", func(t *testing.T) {
		for seed := range uint64(8) {
			randomly(t, rand.New(rand.NewPCG(seed, 1)))
		}
	})
}

// randomly changes a store with up to five sessions, and compares each search with the messages that
// are in it. Restarts, searches and changes come in any order.
func randomly(t *testing.T, r *rand.Rand) {
	s := open(t)
	all, stop := searches(t, s)
	paths := map[protocol.SessionID][]string{} // active messages of each session
	ids := map[string]protocol.NodeID{}        // nodes of the messages
	next := 0
	pick := func() protocol.SessionID {
		var names []protocol.SessionID
		for id := range paths {
			names = append(names, id)
		}
		slices.Sort(names)
		return names[r.IntN(len(names))]
	}
	for range 120 {
		next++
		word := fmt.Sprint("word", next)
		switch do := r.IntN(10); {
		case len(paths) == 0 || do == 0 && len(paths) < 5:
			id := protocol.SessionID(fmt.Sprint("ses_", next))
			opened(t, s, id, "")
			ids[word] = say(t, s, id, user(word))[0].ID
			paths[id] = []string{word}
		case do < 5:
			id := pick()
			ids[word] = say(t, s, id, user(word))[0].ID
			paths[id] = append(paths[id], word)
		case do == 5 && len(paths) < 5:
			from, id := pick(), protocol.SessionID(fmt.Sprint("ses_", next))
			n := 1 + r.IntN(len(paths[from]))
			fork(t, s, id, from, ids[paths[from][n-1]])
			paths[id] = slices.Clone(paths[from][:n])
		case do == 6:
			id := pick()
			n := 1 + r.IntN(len(paths[id]))
			commit(t, s, &persistence.Commit{Session: id, Rewind: ids[paths[id][n-1]]})
			paths[id] = slices.Clip(paths[id][:n])
		case do == 7 && len(paths) > 1:
			id := pick()
			commit(t, s, &persistence.Commit{Session: id, Delete: true})
			delete(paths, id)
		case do == 8:
			stop()
			all, stop = searches(t, s)
		case do == 9:
			compare(t, all, paths, next)
		}
	}
	compare(t, all, paths, next)
}

// compare searches for each of the words up to word n.
func compare(t *testing.T, all *Searches, paths map[protocol.SessionID][]string, n int) {
	t.Helper()
	for i := range n {
		word := fmt.Sprint("word", i+1)
		var holders []protocol.SessionID
		for id, path := range paths {
			if slices.Contains(path, word) {
				holders = append(holders, id)
			}
		}
		r, err := all.Search(t.Context(), &protocol.SessionSearchParams{Query: `"` + word + `"`})
		switch {
		case err != nil:
			t.Fatal(err)
		case len(r.Data) > 1:
			t.Fatalf("%s was found %d times", word, len(r.Data))
		case len(holders) == 0 && (len(r.Data) == 0 || r.Data[0].Left): // nobody has it any more
		case len(holders) == 0 || len(r.Data) == 0 || !slices.Contains(holders, r.Data[0].SessionID) || r.Data[0].Left:
			t.Fatalf("%s is in %v, found %+v", word, holders, r.Data)
		}
	}
}
