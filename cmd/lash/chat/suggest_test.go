package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/rpc/protocol"
)

// png is the beginning of an image of one pixel.
const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01"

// inWorkspace returns an idle chat in a directory with files.
func inWorkspace(t *testing.T, paths ...string) (*ui, *calls) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		at := filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		text := "text"
		if strings.HasSuffix(p, ".png") {
			text = png
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &calls{}
	u := &ui{ctx: t.Context(), session: s, talk: newTranscript(), width: 60, height: 24, connected: true, used: true}
	u.talk.session.ID, u.talk.session.Cwd = "ses_1", dir
	return u, s
}

// below returns what is shown from the prompt on, without styles.
func below(u *ui) string {
	lines, _, y := live(u)
	return ansi.Strip(strings.Join(lines[y:], "\n"))
}

func TestMenuOfCommands(t *testing.T) {
	for _, c := range []struct {
		name  string
		keys  []string
		shows string
		made  string
	}{
		{"a letter shows the commands that begin with it, then others with it", []string{"/lo"}, "› /lo\n▸ /login [PROVIDER]   set up the API key of a provider\n  /logout [PROVIDER]  delete a stored API key", ""},
		{"Tab completes the marked one", []string{"/lo", "down", "tab"}, "› /logout ", ""},
		{"Enter runs a command that needs no argument", []string{"/comp", "enter"}, "› Ask lashd", "session/compact"},
		{"Enter waits for an argument that the command needs", []string{"/queu", "enter"}, "› /queue ", ""},
		{"an exact name comes first", []string{"/id"}, "› /id\n▸ /id  show the session id", ""},
		{"the words that a command takes are shown", []string{"/appr", "enter"}, "› /approve \n▸ ask\n  allow\n  deny", ""},
		{"a word is completed, and Enter then runs the command", []string{"/appr", "enter", "d", "enter", "enter"}, "› Ask lashd", `"mode":"deny"`},
		{"Esc closes the menu, and Enter still takes the beginning of a name", []string{"/comp", "esc", "enter"}, "› Ask lashd", "session/compact"},
		{"a closed menu stays closed while the name grows", []string{"/co", "esc", "m"}, "› /com", ""},
		{"a path that begins with a slash has no menu", []string{"/etc/h"}, "› /etc/h", ""},
		{"an escaped slash has no menu", []string{"//co"}, "› //co", ""},
		{"a slash inside a message has no menu", []string{"a /co"}, "› a /co", ""},
		{"a command from the history has no menu, so that Up goes on", []string{"/help", "enter", "one", "enter", "up", "up"}, "› /help", `"one"`},
		{"commands of plugins are there, too", []string{"/gi"}, "› /gi\n▸ /git:review <commit>  Review a change\n  /login [PROVIDER]     set up the API key of a provider", ""},
		{"a command of a plugin is completed", []string{"/git", "enter"}, "› /git:review ", ""},
		{"unknown names have no menu", []string{"/xyz"}, "› /xyz", ""},
	} {
		t.Run("part/12 commands: "+c.name, func(t *testing.T) {
			u, s := inWorkspace(t)
			u.talk.session.Title = "named"
			press(u, c.keys...)
			if got := below(u); !strings.HasPrefix(got, c.shows) || strings.Count(c.shows, "\n") == 0 && strings.Contains(got, "\n") {
				t.Errorf("it shows\n%s\nwant\n%s", got, c.shows)
			}
			if made := strings.Join(s.made, "\n"); !strings.Contains(made, c.made) || c.made == "" && made != "" {
				t.Errorf("it calls %q", made)
			}
		})
	}
}

func TestMenuOfPaths(t *testing.T) {
	paths := []string{".gitignore", "main.go", "cmd/lash/main.go", "cmd/lash/chat.go", "my notes/a b.txt", "my notes/c.txt", "images/a.png"}
	for _, c := range []struct {
		name  string
		keys  []string
		shows string
	}{
		{"an @ shows the top of the workspace", []string{"see @"}, "› see @\n▸ cmd/\n  images/\n  main.go\n  my notes/\n  .gitignore"},
		{"letters find paths", []string{"@main"}, "› @main\n▸ main.go\n  cmd/lash/main.go"},
		{"Tab takes a file", []string{"@lamai", "tab"}, "› @cmd/lash/main.go "},
		{"Enter takes a file and sends nothing", []string{"@lamai", "enter"}, "› @cmd/lash/main.go "},
		{"Tab goes into a directory", []string{"@cm", "tab", "tab"}, "› @cmd/lash/\n  cmd/lash/chat.go\n  cmd/lash/main.go"},
		{"Enter takes a directory", []string{"@cm", "enter"}, "› @cmd/ "},
		{"a path with spaces is quoted", []string{"@notesab", "tab"}, `› @"my notes/a b.txt" `},
		{"a quoted path can have spaces", []string{`@"my notes/`, "tab"}, `› @"my notes/a b.txt" `},
		{"a directory with spaces is left open", []string{"@myn", "tab", "tab", "tab"}, `› @"my notes/a b.txt" `},
		{"an image is attached, and its path stays", []string{"@png", "tab"}, "› @images/a.png [image a.png 1 KB] "},
		{"an address of mail is no path", []string{"me@main"}, "› me@main"},
		{"Esc closes the menu", []string{"@ma", "esc", "i"}, "› @mai"},
		{"another word has a menu again", []string{"@ma", "esc", " @chat.g"}, "› @ma @chat.g\n▸ cmd/lash/chat.go"},
		{"inside a word, the rest of the word goes too", []string{"see @chat.go now", "ctrl+b", "ctrl+b", "ctrl+b", "ctrl+b", "ctrl+b", "ctrl+b", "ctrl+b", "tab"}, "› see @cmd/lash/chat.go now"},
		{"nothing leads out of the workspace", []string{"@../"}, "› @../"},
	} {
		t.Run("part/12 paths: "+c.name, func(t *testing.T) {
			u, s := inWorkspace(t, paths...)
			press(u, c.keys...)
			if got := below(u); got != c.shows {
				t.Errorf("it shows\n%s\nwant\n%s", got, c.shows)
			}
			if len(s.made) > 0 {
				t.Errorf("it calls %q", s.made)
			}
		})
	}
	t.Run("part/12 paths: Enter sends a message that ends with a whole path, as it is written", func(t *testing.T) {
		u, s := inWorkspace(t, paths...)
		press(u, "explain @main.go", "enter")
		if len(s.made) == 0 || !strings.Contains(s.made[0], `"input":[{"type":"text","text":"explain @main.go"}]`) {
			t.Errorf("it calls %q", s.made)
		}
	})
	t.Run("part/12 paths: while a large workspace is listed, the menu says so", func(t *testing.T) {
		u, _ := inWorkspace(t, paths...)
		u.suggest.resources = resources{session: "ses_1", read: time.Now()}
		list := u.Update(tea.KeyPressMsg{Code: '@', Text: "@"})
		if got := below(u); got != "› @\n  listing the files of the workspace…" {
			t.Errorf("it shows\n%s", got)
		}
		if u.Update(list()); strings.Contains(below(u), "listing") || !strings.Contains(below(u), "▸ cmd/") {
			t.Errorf("then it shows\n%s", below(u))
		}
	})
	t.Run("part/12 paths: without its workspace the chat has no menu", func(t *testing.T) {
		u, _ := inWorkspace(t, paths...)
		u.talk.session.Cwd += "/none"
		if press(u, "@m"); below(u) != "› @m" {
			t.Errorf("it shows\n%s", below(u))
		}
	})
	t.Run("part/12 paths: an image that has become a link is not attached", func(t *testing.T) {
		u, _ := inWorkspace(t, paths...)
		press(u, "@png")
		outside := filepath.Join(t.TempDir(), "secret.png")
		image := filepath.Join(u.talk.session.Cwd, "images/a.png")
		for _, err := range []error{os.WriteFile(outside, []byte(png), 0o600), os.Remove(image), os.Symlink(outside, image)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if press(u, "tab"); len(u.in.Files()) > 0 {
			t.Error("it is attached")
		}
	})
}

func TestMenuFitsTheTerminal(t *testing.T) {
	t.Run("part/12 the menu has at most 6 lines and fits a narrow terminal", func(t *testing.T) {
		var paths []string
		for n := range strings.FieldsSeq("a b c d e f g h") {
			paths = append(paths, "a/directory/with/a/very/long/name/that/does/not/fit/file-"+n+".txt")
		}
		u, _ := inWorkspace(t, paths...)
		u.width, u.height = 40, 24
		press(u, "@file")
		got := strings.Split(below(u), "\n")
		if len(got) != 7 || got[1] != "▸ …ong/name/that/does/not/fit/file-a.txt" || got[6] != "  … 3 more" {
			t.Errorf("it shows\n%s", strings.Join(got, "\n"))
		}
		press(u, "up")
		got = strings.Split(below(u), "\n")
		if len(got) != 7 || got[5] != "▸ …ong/name/that/does/not/fit/file-h.txt" {
			t.Errorf("after Up it shows\n%s", strings.Join(got, "\n"))
		}
		for _, l := range got {
			if ansi.StringWidth(l) > 40 {
				t.Errorf("a line is %d columns wide: %q", ansi.StringWidth(l), l)
			}
		}
	})
	t.Run("part/12 the menu fits a terminal of 40 by 10", func(t *testing.T) {
		u, _ := inWorkspace(t)
		u.width, u.height = 40, 10
		press(u, "/s")
		lines, _, _ := live(u)
		if got := ansi.Strip(strings.Join(lines, "\n")); got != "› /s\n▸ /stop                 stop the turn\n  /sandbox readOnly|w…  set the sandbox…" {
			t.Errorf("it shows\n%s", got)
		}
	})
}

func TestTheMenuWhileAQuestionIsOpen(t *testing.T) {
	ask := []protocol.Decision{{ID: "dec_1", Kind: protocol.DecisionApproval, Choices: []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseReject}}}
	t.Run("part/12 keys that answer a question open no menu", func(t *testing.T) {
		u, _ := inWorkspace(t, "main.go")
		u.talk.decisions = ask
		if press(u, "@", "tab"); strings.Contains(below(u), "main.go") {
			t.Errorf("it shows\n%s", below(u))
		}
	})
	t.Run("part/12 Tab completes a message to the agent that was begun before the question", func(t *testing.T) {
		u, _ := inWorkspace(t, "main.go")
		press(u, "@ma")
		u.talk.decisions = ask
		press(u, "i", "tab")
		if got := below(u); got != "› @main.go " {
			t.Errorf("it shows\n%s", got)
		}
	})
}
