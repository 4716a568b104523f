package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"lashd/engine/provider"
	"lashd/internal/termtext"
)

// Provider is a provider of models that can have an API key.
type Provider struct {
	Name   string // in the configuration and in names of models, such as "anthropic"
	Title  string // for people, such as "Anthropic"
	State  string // where its key is, such as "no key" or "stored key"
	KeysAt string // web page where a person gets a key; "": unknown
}

// Keys sets up API keys. Its methods may block and may run beside those of Session. Errors and texts never contain a key.
type Keys interface {
	// Providers lists the providers that can have a key.
	Providers() ([]Provider, error)
	// Find returns the provider of a name, if it can have a key, and otherwise an error that says what to do.
	Find(ctx context.Context, name string) (Provider, error)
	// Login tests a key and stores it. It returns a text for the person who entered the key.
	Login(ctx context.Context, name string, entered provider.Secret) ([]string, error)
	// Logout deletes the stored key of a provider; "" means the only one.
	Logout(ctx context.Context, name string) ([]string, error)
}

// form asks for a provider and its API key. While it is open it gets all key presses, so a key never reaches the editor, its history or
// the scrollback; the screen shows a dot for each character. Only the event loop uses it.
type form struct {
	choices []Provider // to choose from; nil once the provider is chosen
	at      int        // the selected one
	of      Provider   // whose key it asks for

	key   []rune             // as entered so far; cleared when the test begins
	fault string             // why the last key was not stored; "": there was none
	stop  context.CancelFunc // ends the test of a key; nil: none runs
	since time.Time          // when the test began
}

// The messages of the form.
type (
	// formMsg opens a form.
	formMsg struct{ form *form }
	// storedMsg is the outcome of a login. err is nil if the key was stored.
	storedMsg struct {
		of    *form
		lines []string
		err   error
	}
)

// login opens the form. rest is the name of a provider, "" to choose one from a list.
func (u *ui) login(rest string) tea.Cmd {
	if strings.ContainsAny(rest, " \t\n") || LooksLikeKey(rest) {
		u.in.Forget() // it may contain a key
		return say("Usage: /login PROVIDER. Do not enter the key here: the chat asks for it, and then shows and keeps nothing of it.")
	}
	return func() tea.Msg {
		if rest != "" {
			p, err := u.keys.Find(u.ctx, rest)
			if err != nil {
				return saidMsg(err.Error())
			}
			return formMsg{&form{of: p}}
		}
		all, err := u.keys.Providers()
		if err != nil {
			return saidMsg(err.Error())
		}
		return formMsg{&form{choices: all}}
	}
}

// LooksLikeKey reports whether a word is too long for the name of a provider, or begins as keys do. Such a word is not repeated in
// messages.
func LooksLikeKey(word string) bool {
	return len(word) > 40 || strings.HasPrefix(word, "sk-") || strings.HasPrefix(word, "AIza")
}

// logout deletes the stored key of a provider.
func (u *ui) logout(name string) tea.Cmd {
	return func() tea.Msg {
		lines, err := u.keys.Logout(u.ctx, name)
		if err != nil {
			return saidMsg(err.Error())
		}
		return notesMsg(lines)
	}
}

// notesMsg are notes to show, one below the other.
type notesMsg []string

// filled handles a key press while the form is open.
func (u *ui) filled(m tea.KeyPressMsg) tea.Cmd {
	f, name := u.form, m.String()
	switch {
	case name == "esc", name == "ctrl+c", name == "ctrl+d" && len(f.key) == 0:
		return u.closeForm()
	case f.stop != nil: // the test runs
	case f.choices != nil:
		f.choose(name)
	case name == "enter":
		return u.submit()
	case name == "backspace":
		f.key = f.key[:max(0, len(f.key)-1)]
	case name == "ctrl+u":
		f.key = nil
	default:
		f.key = append(f.key, []rune(m.Text)...)
	}
	return nil
}

// choose handles a key press in the list of providers: the arrows and digits select, Enter takes.
func (f *form) choose(name string) {
	switch {
	case name == "up":
		f.at = max(0, f.at-1)
	case name == "down":
		f.at = min(len(f.choices)-1, f.at+1)
	case name == "enter":
		f.of, f.choices = f.choices[f.at], nil
	case len(name) == 1 && name[0] >= '1' && int(name[0]-'1') < len(f.choices):
		f.at = int(name[0] - '1')
	}
}

// paste adds pasted text to the key. The white space around it does not count.
func (f *form) paste(text string) {
	if f.choices == nil && f.stop == nil {
		f.key = append(f.key, []rune(strings.TrimSpace(text))...)
	}
}

// closeForm closes the form or, while a key is tested, ends the test; its outcome then closes the form.
func (u *ui) closeForm() tea.Cmd {
	if u.form.stop != nil {
		u.form.stop()
		return nil
	}
	u.form = nil
	return say("No key was stored.")
}

// submit tests and stores the key. The form forgets it.
func (u *ui) submit() tea.Cmd {
	f := u.form
	if len(f.key) == 0 {
		f.fault = "Enter the key first."
		return nil
	}
	key := provider.NewSecret(string(f.key))
	ctx, stop := context.WithCancel(u.ctx)
	f.key, f.fault, f.stop, f.since = nil, "", stop, time.Now()
	return func() tea.Msg {
		defer stop()
		lines, err := u.keys.Login(ctx, f.of.Name, key)
		return storedMsg{f, lines, err}
	}
}

// keyStored handles the outcome of a login. After a failure the form stays open, unless the user ended the test.
func (u *ui) keyStored(m storedMsg) tea.Cmd {
	m.of.stop = nil
	switch {
	case m.err == nil:
		u.form = nil
		told := u.notes(m.lines)
		if u.lacking {
			return tea.Sequence(told, u.tryAgain())
		}
		return told
	case errors.Is(m.err, context.Canceled):
		return u.closeForm()
	}
	m.of.fault = m.err.Error()
	return nil
}

// notes prints notes into the scrollback.
func (u *ui) notes(lines []string) tea.Cmd {
	var shown []string
	for _, l := range lines {
		shown = append(shown, entry{note: l}.shown(u.style))
	}
	return u.println(strings.Join(shown, "\n"))
}

// mostDots bounds how many dots stand for the characters of a key.
const mostDots = 40

// lines renders the form, and returns the column and row of the cursor.
func (f *form) lines(width int) (all []string, x, y int) {
	if f.choices != nil {
		return f.list(), 0, 1 + f.at
	}
	if f.stop != nil {
		return []string{fmt.Sprintf("  Testing the key of %s with one small request… %s", f.of.Title, time.Since(f.since).Round(time.Second)), faint.Render("  Esc cancels.")}, 0, 0
	}
	if f.fault != "" {
		all = strings.Split(fit(bad.Render("✗ ")+termtext.OneLine(f.fault, 800), width), "\n")
	}
	y = len(all)
	ask, dots := "API key of "+f.of.Title+": ", strings.Repeat("•", min(len(f.key), mostDots))
	all = append(all, mine.Render("› ")+ask+dots)
	if f.of.KeysAt != "" {
		all = append(all, faint.Render("  Get a key at "+f.of.KeysAt))
	}
	return append(all, faint.Render("  Enter tests and stores the key · Esc cancels · the screen shows a dot for each character")), len([]rune(ask)) + min(len(f.key), mostDots) + 2, y
}

// list renders the choice of a provider.
func (f *form) list() []string {
	lines := []string{strong.Render("  Provider") + faint.Render("  arrows or digits select · Enter continues · Esc cancels")}
	for i, p := range f.choices {
		mark := "  "
		if i == f.at {
			mark = mine.Render("› ")
		}
		lines = append(lines, fmt.Sprintf("%s%d  %-20s %s", mark, i+1, termtext.OneLine(p.Title, 20), faint.Render(p.State)))
	}
	return lines
}

// NoModelError is the error of Session.Open for a new session if no provider has a key. The chat stays open and shows the ways to go on.
type NoModelError struct{ Ways []string }

// Error implements error.
func (e *NoModelError) Error() string { return strings.Join(e.Ways, "; ") }

// early are the commands that need no session.
var early = []string{"help", "login", "logout", "model", "quit"}

// lacks handles a session that could not be created: it shows the ways to a model, and the chat waits for one of them.
func (u *ui) lacks(m *NoModelError) tea.Cmd {
	u.lacking = true
	return u.notes(m.Ways)
}

// tryAgain opens the session again, unless that is already under way.
func (u *ui) tryAgain() tea.Cmd {
	if u.trying {
		return nil
	}
	u.trying = true
	return u.open
}

// tooEarly reports whether a command has to wait until there is a session.
func (u *ui) tooEarly(name string) bool { return u.lacking && !slices.Contains(early, name) }
