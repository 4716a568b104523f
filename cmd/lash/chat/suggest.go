package chat

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/files"
	"lashd/cmd/lash/prompt"
	"lashd/engine/attachment"
	"lashd/internal/pathresolve"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// suggest completes what the user types: a command after /, and a path of the
// workspace or a resource after @. Its menu is below the prompt.
type suggest struct {
	menu      prompt.Menu
	word      word
	before    string // the text before the cursor for which the menu is
	shut      int    // where the word begins whose menu the user has closed, from 1; 0: none is closed
	words     arguments
	paths     paths
	resources resources
	values    values

	offered []protocol.CommandInfo // slash commands of plugins, as of the last time
}

// word is the part of the input that can be completed.
type word struct {
	kind wordKind
	text string // without its sign
	at   int    // where it begins before the cursor, in bytes, with its sign
}

type wordKind int

const (
	noWord wordKind = iota
	commandWord
	choiceWord  // an argument of a command that takes one of several words
	mentionWord // a path or a resource
	promptWord  // an argument of a prompt of an MCP server
)

// paths lists the workspace of the session. The list is read when a mention begins, and again if
// it is older than pathsAge then.
type paths struct {
	dir     string
	finder  *files.Finder
	read    time.Time
	reading bool
}

const (
	pathsAge  = 3 * time.Second
	pathsTime = 20 * time.Second // the longest time to read a workspace
	mostPaths = 200              // in the menu
	menuLines = 6
)

// pathsMsg is a new list of a workspace.
type pathsMsg struct {
	dir  string
	list *files.List
	err  error
}

// wordOf finds the word before the cursor. alone says that there is no other text, and offered has the commands of plugins.
func wordOf(before string, alone bool, offered []protocol.CommandInfo) word {
	if name, ok := strings.CutPrefix(before, "/"); ok && alone {
		if name, text, arg := strings.Cut(name, " "); arg {
			if takesChoice(name) && !strings.Contains(text, " ") {
				return word{choiceWord, text, len(name) + 2}
			}
			return cmp.Or(mention(before), promptArgument(offered, name, text))
		}
		if !strings.ContainsAny(name, "/\x00") {
			return word{commandWord, name, 0}
		}
	}
	return mention(before)
}

// mention finds the path that the user is typing after an @: at the beginning of a word and up
// to the next white space, or in quotes.
func mention(before string) word {
	for at := strings.LastIndexByte(before, '@'); at >= 0; at = strings.LastIndexByte(before[:at], '@') {
		if at > 0 && !strings.ContainsRune(" \t([{<,;:'`", rune(before[at-1])) {
			continue
		}
		text := before[at+1:]
		if quoted, ok := strings.CutPrefix(text, `"`); ok && !strings.ContainsAny(quoted, "\"\x00") {
			return word{mentionWord, quoted, at}
		}
		if !strings.ContainsAny(text, " \t\"\x00") {
			return word{mentionWord, text, at}
		}
	}
	return word{}
}

// typed reports whether a message is a key press or a paste that writes, and not one that
// brings back an earlier input. Only what the user types is completed.
func typed(m tea.Msg) bool {
	if _, pasted := m.(tea.PasteMsg); pasted {
		return true
	}
	key, pressed := m.(tea.KeyPressMsg)
	return pressed && !slices.Contains([]string{"up", "down", "ctrl+p", "ctrl+n"}, key.String())
}

// followInput opens, changes or closes the menu after a message.
func followInput(u *ui, m tea.Msg) tea.Cmd {
	s := &u.suggest
	before, alone := u.in.Before()
	w := wordOf(before, alone, s.offered)
	if u.form != nil || u.card.lent() || u.reader != nil {
		w = word{}
	}
	if w.kind == noWord {
		*s = suggest{paths: s.paths, resources: s.resources, values: s.values, before: before, offered: s.offered}
		return nil
	}
	if before == s.before {
		return nil
	}
	began := s.word.kind != w.kind || s.word.at != w.at
	s.word, s.before = w, before
	if !typed(m) || s.shut == w.at+1 {
		s.menu, s.shut = prompt.Menu{}, w.at+1
		return nil
	}
	s.shut = 0
	var cmd tea.Cmd
	switch {
	case began && w.kind == commandWord:
		cmd = readOffered(u, "")
	case began && w.kind == mentionWord:
		cmd = tea.Batch(readPaths(u), readResources(u))
	case began && w.kind == choiceWord:
		s.words, cmd = argumentsOf(u, before[1:w.at-1])
	}
	s.fill()
	return tea.Batch(cmd, readValues(u))
}

// known takes the arguments of a command from the daemon.
func known(u *ui, m argumentsMsg) tea.Cmd {
	s := &u.suggest
	if s.words.of != m.of {
		return nil
	}
	s.words = m.arguments
	if s.word.kind == choiceWord && s.shut == 0 {
		s.fill()
	}
	return nil
}

// fill opens the menu for the word.
func (s *suggest) fill() {
	switch s.word.kind {
	case commandWord:
		s.menu = prompt.MenuOf(allCommands(s.offered, s.word.text), 0)
	case choiceWord:
		s.menu = s.words.menu(s.word.text)
	case mentionWord:
		s.menu = s.mentioned()
	case promptWord:
		s.menu = prompt.MenuOf(s.valueChoices(), -1)
	}
}

// choices returns the paths that match a text.
func (p *paths) choices(text string) (all []prompt.Choice) {
	if p.finder == nil {
		return nil
	}
	for _, path := range p.finder.Find(text, mostPaths) {
		all = append(all, prompt.Choice{Text: path, Path: true})
	}
	return all
}

// readPaths returns a command that lists the workspace, unless there is a new list.
func readPaths(u *ui) tea.Cmd {
	p, dir := &u.suggest.paths, u.talk.session.Cwd
	if p.dir != dir {
		*p = paths{dir: dir}
	}
	if dir == "" || p.reading || time.Since(p.read) < pathsAge {
		return nil
	}
	p.reading = true
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(u.ctx, pathsTime)
		defer stop()
		list, err := files.Read(ctx, dir)
		return pathsMsg{dir, list, err}
	}
}

// listed takes a new list of the workspace. If it could not be read, there is
// nothing to complete.
func listed(u *ui, m pathsMsg) tea.Cmd {
	s := &u.suggest
	if m.dir != s.paths.dir {
		return nil
	}
	s.paths.reading, s.paths.read = false, time.Now()
	if m.err != nil {
		s.paths.finder = nil
		return say("The files of the workspace cannot be listed: %v", m.err)
	}
	s.paths.finder = files.NewFinder(m.list)
	if s.word.kind == mentionWord && s.shut == 0 {
		s.fill()
	}
	return nil
}

// menuLines returns the menu below the prompt, on at most height lines.
func (w *writing) menuLines(width, height int) []string {
	s := &w.suggest
	if waits := s.word.kind == mentionWord && s.paths.reading && s.paths.finder == nil; waits && w.search == nil && height > 0 {
		return []string{faint.Render("  listing the files of the workspace…")}
	}
	if about := s.about(); about != "" && !s.menu.Open() && w.search == nil && height > 0 {
		return []string{faint.Render("  " + termtext.OneLine(about, width-2))}
	}
	return w.openMenu().Lines(width, height)
}

// suggestKey handles a key press while the menu is open, and reports whether the
// menu used it.
func suggestKey(u *ui, name string) (tea.Cmd, bool) {
	s := &u.suggest
	if !s.menu.Open() {
		return nil, false
	}
	switch name {
	case "up", "ctrl+p":
		s.menu.Move(-1)
	case "down", "ctrl+n":
		s.menu.Move(1)
	case "esc":
		s.menu, s.shut = prompt.Menu{}, s.word.at+1
	case "tab":
		if _, ok := s.menu.Marked(); !ok {
			s.menu.Move(1)
		}
		return takeChoice(u, false), true
	case "enter":
		if _, ok := s.menu.Marked(); !ok {
			return nil, false
		}
		if s.word.kind == commandWord {
			return nil, takeCommand(u, "[") // with optional arguments only, it runs at once
		}
		return takeChoice(u, true), true
	default:
		return nil, false
	}
	return nil, true
}

// takeCommand puts the marked command into the prompt, with a space if it takes an argument.
// Arguments that begin with skip do not count. It reports whether there is a
// space.
func takeCommand(u *ui, skip string) bool {
	c, _ := u.suggest.menu.Marked()
	name, takes, _ := strings.Cut(c.Text, " ")
	u.in.Set(name)
	if takes == "" || skip != "" && strings.HasPrefix(takes, skip) {
		u.suggest.menu = prompt.Menu{}
		return false
	}
	u.in.Insert(" ")
	return true
}

// takeChoice puts the marked choice into the prompt in place of the word. A
// directory is followed by a space only if whole is true: otherwise the menu goes on with what is
// in it.
func takeChoice(u *ui, whole bool) tea.Cmd {
	c, _ := u.suggest.menu.Marked()
	n := len(u.suggest.before) - u.suggest.word.at
	switch u.suggest.word.kind {
	case commandWord:
		takeCommand(u, "")
		return nil
	case choiceWord, promptWord:
		u.in.Complete(n, 0, c.Text)
		return nil
	}
	text, open := c.Text, c.Path && strings.HasSuffix(c.Text, "/") && !whole
	if !c.Path {
		text, open = u.suggest.taken(c.Text)
	}
	text = mentionOf(text, !open)
	u.in.Complete(n, restOfMention(u.in.After(), u.suggest.before[u.suggest.word.at:], text), text)
	if !c.Path || strings.HasSuffix(c.Text, "/") {
		return nil
	}
	return attachMentioned(u, c.Text)
}

// restOfMention returns the length of the part of a mention that is after the cursor, in bytes. before is the part before the
// cursor. If text, which replaces the mention, ends with a space, it includes the one behind the mention.
func restOfMention(after, before, text string) int {
	n := len(after)
	if i := strings.IndexAny(after, " \t\"\x00"); i >= 0 {
		n = i
	}
	if strings.HasPrefix(before, `@"`) {
		n = strings.IndexByte(after, '"') + 1
	}
	if strings.HasSuffix(text, " ") && strings.HasPrefix(after[n:], " ") {
		n++
	}
	return n
}

// mentionOf returns a path as it is mentioned in a message. whole says that nothing
// will be added to the path.
func mentionOf(path string, whole bool) string {
	text := "@" + path
	quoted := strings.ContainsAny(path, " \t")
	if quoted {
		text = `@"` + path
	}
	switch {
	case whole && quoted:
		return text + `" `
	case whole:
		return text + " "
	}
	return text
}

// attachMentioned attaches an image or a PDF document that is mentioned. The path stays in the
// message. Other files are left to the agent, which reads as much of them as it needs.
func attachMentioned(u *ui, path string) tea.Cmd {
	if !slices.Contains([]string{".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"}, strings.ToLower(filepath.Ext(path))) {
		return nil
	}
	at := filepath.Join(u.talk.session.Cwd, path)
	if real, err := pathresolve.Real(at); err != nil || real != at {
		return say("Not attached: %s has become a link.", path)
	}
	file, err := attachment.ReadFile(at, mostAttached)
	if err != nil || strings.HasPrefix(file.Type, "text/") {
		return nil // the name does not say what it is
	}
	return addFile(u, file)
}
