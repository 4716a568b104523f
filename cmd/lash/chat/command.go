package chat

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// command is a slash command of the chat. takes names its arguments, says
// describes it in /help, and do runs it with the trimmed rest of the line. do runs
// in the event loop; what it does with the daemon happens in the command that it
// returns.
type command struct {
	name, takes, says string
	do                func(u *ui, rest string) tea.Cmd
}

// commands lists the slash commands in the order of /help. init fills it because
// /help refers to the list.
var commands []command

// otherNames are further words for commands of the chat, by the names that people know from elsewhere.
var otherNames = map[string]string{
	"clear": "new", "find": "sessions", "resume": "sessions", "mode": "approve", "approvals": "approve", "permissions": "approve",
	"rewind": "turns", "exit": "quit",
}

func init() {
	commands = []command{
		{"help", "", "show this help", func(u *ui, _ string) tea.Cmd { return u.println(help(u.width)) }},
		{"new", "", "start a session here; this one stays in the list (also /clear)", startNew},
		{"queue", "TEXT", "send TEXT in a new turn after this one", (*ui).queueUp},
		{"attach", "FILE", "send an image, PDF or text file with the next message", (*ui).attach},
		{"cancel", "", "remove the newest queued input", (*ui).cancel},
		{"stop", "", "stop the turn", func(u *ui, _ string) tea.Cmd { return u.whileBusy(u.interrupt) }},
		{"model", "[NAME]", "list models, or switch from the next turn on", (*ui).model},
		{"login", "[PROVIDER]", "set up the API key of a provider", (*ui).login},
		{"logout", "[PROVIDER]", "delete a stored API key", (*ui).logout},
		{"effort", "[NAME]", "show how hard the model may think, or set it from the next turn on", (*ui).effort},
		{"context", "", "show what fills the model's context window", (*ui).context},
		{"approve", "ask|allow|deny", "set the decision for tool calls that no rule covers (also /mode)", (*ui).approve},
		{"sandbox", "readOnly|workspace|fullAccess", "set the sandbox of the agent's commands", (*ui).sandbox},
		{"rules", "[add|test|remove]", "list the approval rules, or change or try them", rules},
		{"tools", "", "list the tools of the agent", listTools},
		{"mcp", "", "list the MCP servers and their states", listServers},
		{"output", "[N]", "show the newest call in full, or the Nth newest", output},
		{"tasks", "[cancel ID|all]", "list running background tasks, or cancel them", tasks},
		{"diff", "", "show the file changes of the newest turn", (*ui).diff},
		{"undo", "[POINT] [force]", "undo the file changes of the newest turn", (*ui).undo},
		{"turns", "", "list the turns: fork, go back, undo files (also /rewind, Esc Esc)", openTurns},
		{"compact", "[now] [TEXT]", "show what a summary would replace, and then replace it", (*ui).compact},
		{"memory", "[N|user|add TEXT]", "list the instructions that the model gets, open one, or add a line", memory},
		{"rename", "TITLE", "rename the session", (*ui).rename},
		{"export", "[FILE]", "write the session to a file, as Markdown or, for .json, as JSON", export},
		{"fork", "", "continue in a copy of the session", (*ui).fork},
		{"sessions", "[ID]", "find a session of this directory and open it (also /resume)", (*ui).resume},
		{"id", "", "show the session id", func(u *ui, _ string) tea.Cmd { return say("%s", u.talk.session.ID) }},
		{"quit", "", "quit; the session keeps running", func(*ui, string) tea.Cmd { return tea.Quit }},
	}
}

// helpColumn is where the explanations of /help begin, on terminals with helpWidth columns.
const (
	helpColumn = 29
	helpWidth  = 80
)

// help renders the text of /help. On a narrow terminal, explanations are below their commands.
func help(width int) string {
	lines := []string{
		"Enter sends, or steers the running turn · Ctrl-J inserts a new line · / completes commands, @ paths",
		"Up recalls earlier input, or takes back a queued one · Ctrl-S searches it · Ctrl-V pastes an image",
		"Tab expands pasted text · Ctrl-G opens $EDITOR · Ctrl-_ undoes · Ctrl-T shows calls in full",
		"Esc stops the turn · Ctrl-C clears the input or stops, twice quits · Ctrl-Z returns to the shell",
	}
	for i, l := range lines {
		lines[i] = ansi.Wordwrap(l, max(width, 20), "")
	}
	for _, c := range commands {
		name, column := strings.TrimRight("  /"+c.name+" "+c.takes, " "), helpColumn
		if width < helpWidth {
			lines, name, column = append(lines, name), "", 6
		}
		name = fmt.Sprintf("%-*s", column, name)
		says := ansi.Wordwrap(c.says, max(width-len(name), 20), "")
		lines = append(lines, name+strings.ReplaceAll(says, "\n", "\n"+strings.Repeat(" ", column)))
	}
	return each(faint, strings.Join(lines, "\n"))
}

// say returns a command that shows a note.
func say(format string, args ...any) tea.Cmd {
	return func() tea.Msg { return saidMsg(fmt.Sprintf(format, args...)) }
}

// command runs a slash command: one of the chat, or else one of a plugin. A unique prefix of its
// name is enough for those of the chat, and an exact name wins over longer ones.
func (u *ui) command(text string) tea.Cmd {
	name, rest, _ := strings.Cut(strings.TrimPrefix(text, "/"), " ")
	c, exact := commandNamed(name)
	if c == nil || !exact && hasCommand(u.suggest.offered, name) {
		return offeredCommand(u, text, name)
	}
	if u.tooEarly(c.name) {
		return say("There is no session yet, because no model is set up. /login stores an API key.")
	}
	return c.do(u, strings.TrimSpace(rest))
}

// commandNamed returns the command of the chat with a name, or the only one whose names begin with it; nil if there is none.
func commandNamed(name string) (found *command, exact bool) {
	for i := range commands {
		if slices.Contains(commands[i].names(), name) {
			return &commands[i], true
		}
	}
	for i := range commands {
		if name == "" || !slices.ContainsFunc(commands[i].names(), func(n string) bool { return strings.HasPrefix(n, name) }) {
			continue
		}
		if found != nil {
			return nil, false
		}
		found = &commands[i]
	}
	return found, false
}

// names returns the name of a command, and then its other names in alphabetical order.
func (c *command) names() []string {
	others := slices.Sorted(maps.Keys(otherNames))
	return append([]string{c.name}, slices.DeleteFunc(others, func(n string) bool { return otherNames[n] != c.name })...)
}

// whileBusy calls do if a turn is running.
func (u *ui) whileBusy(do func() tea.Cmd) tea.Cmd {
	if u.talk.turn == "" {
		return say("No turn is running.")
	}
	return do()
}

// queueUp sends an input that waits for a turn of its own.
func (u *ui) queueUp(text string) tea.Cmd {
	if text == "" {
		return say("Usage: /queue TEXT")
	}
	return u.input(text, protocol.BusyQueue)
}

// cancel removes the newest queued input. If the turn reads the input at the same
// moment, the daemon rejects the request.
func (u *ui) cancel(string) tea.Cmd {
	if len(u.talk.queue) == 0 {
		return say("The queue is empty.")
	}
	newest := u.talk.queue[len(u.talk.queue)-1]
	return u.ask(&outgoing{method: "queue/cancel", params: protocol.QueueCancelParams{Mutation: key(), SessionID: u.talk.session.ID, InputID: newest.ID}})
}

// configure changes settings of the session and shows done after success. Settings
// apply from the next turn on.
func (u *ui) configure(p protocol.SessionConfigureParams, done string) tea.Cmd {
	p.Mutation, p.SessionID = key(), u.talk.session.ID
	return u.ask(&outgoing{method: "session/configure", params: p, done: say("%s", done)})
}

// approve sets the approval mode of the session. The other approval settings, such
// as rules, stay. Without a valid mode it shows the current one.
func (u *ui) approve(mode string) tea.Cmd {
	if !slices.Contains([]string{"ask", "allow", "deny"}, mode) {
		now := cmp.Or(string(u.talk.session.Config.Approval.Mode), "ask, except for tools that only read")
		return say("Usage: /approve ask|allow|deny (current: %s)", now)
	}
	a := u.talk.session.Config.Approval
	a.Mode = protocol.ApprovalMode(mode)
	return u.configure(protocol.SessionConfigureParams{Approval: &a}, "Tool calls that no rule covers: "+mode)
}

// sandbox sets the sandbox mode of the session. The other approval settings stay. Without a valid mode it shows the
// current one.
func (u *ui) sandbox(mode string) tea.Cmd {
	a := u.talk.session.Config.Approval
	if set := protocol.SandboxMode(mode); mode == "" || !set.Known() {
		return say("Usage: /sandbox readOnly|workspace|fullAccess (current: %s)", cmp.Or(a.Sandbox, protocol.SandboxFullAccess))
	}
	a.Sandbox = protocol.SandboxMode(mode)
	return u.configure(protocol.SessionConfigureParams{Approval: &a}, "Sandbox of commands: "+mode)
}

// listTools lists the tools that the model may call. It leaves out tools that are
// registered but not enabled, and tools whose plugin is missing.
func listTools(u *ui, _ string) tea.Cmd {
	return read(u, "tool/list", protocol.SessionParams{SessionID: u.talk.session.ID}, func(r *protocol.ToolListResult) string {
		var names []string
		for _, t := range r.Data {
			if t.Member && !t.Orphan {
				names = append(names, t.Name)
			}
		}
		return "Tools: " + strings.Join(names, ", ")
	})
}

// compact shows what a summary would replace, and puts the command that does it into the
// prompt. what tells the model what the summary must keep; it may be empty.
func (u *ui) compact(what string) tea.Cmd {
	if rest, ok := strings.CutPrefix(what+" ", "now "); ok {
		return compactNow(u, strings.TrimSpace(rest))
	}
	id := u.talk.session.ID
	return func() tea.Msg {
		var r protocol.CompactionPreviewResult
		if err := u.session.Call(u.ctx, "session/compactPreview", protocol.SessionParams{SessionID: id}, &r); err != nil {
			return saidMsg(err.Error())
		}
		if !r.Compacts {
			return saidMsg(r.String())
		}
		return compactionMsg{id, r, strings.TrimSpace("/compact now " + what)}
	}
}

// compactionMsg is the preview of a compaction, and the command that carries it out.
type compactionMsg struct {
	session protocol.SessionID
	preview protocol.CompactionPreviewResult
	command string
}

// use shows the preview. The command waits in the prompt if that is empty.
func (m compactionMsg) use(u *ui) tea.Cmd {
	if m.session != u.talk.session.ID {
		return nil
	}
	how := "Enter compacts, Ctrl-C cancels."
	if u.in.Text() == "" {
		u.in.Set(m.command)
	} else {
		how = m.command + " compacts."
	}
	return u.println(each(faint, termtext.Printable(m.preview.String()+"\n"+how)))
}

// compactNow replaces old history by a summary.
func compactNow(u *ui, what string) tea.Cmd {
	r := new(protocol.SessionCompactResult)
	p := protocol.SessionCompactParams{Mutation: key(), SessionID: u.talk.session.ID, Instructions: what}
	return u.ask(&outgoing{method: "session/compact", params: p, result: r, done: func() tea.Msg {
		if r.Compacted {
			return nil // the event session/compacted shows a note
		}
		return saidMsg("Nothing to compact.")
	}})
}

// rename gives the session a title.
func (u *ui) rename(text string) tea.Cmd {
	if text == "" {
		return say("Usage: /rename TITLE")
	}
	return u.ask(&outgoing{method: "session/setTitle", params: protocol.SessionSetTitleParams{Mutation: key(), SessionID: u.talk.session.ID, Title: text}})
}

// read calls a method that changes nothing, and shows the text that tell makes of
// the result, as a note or, if it has several lines, as they are. Unlike ask, it does not repeat the call after a lost connection: the
// user sees the error and can try again.
func read[R any](u *ui, method string, params any, tell func(*R) string) tea.Cmd {
	return func() tea.Msg {
		r := new(R)
		if err := u.session.Call(u.ctx, method, params, r); err != nil {
			return saidMsg(err.Error())
		}
		text := tell(r)
		if strings.Contains(text, "\n") {
			return textMsg(each(faint, termtext.Printable(text)))
		}
		return saidMsg(text)
	}
}

// switchMsg asks the event loop to switch to another session and to show a note. made says that the chat has created the session for
// an input, and deletes it if it gets none.
type switchMsg struct {
	id   protocol.SessionID
	note string
	made bool
}

// fork copies the session and switches to the copy.
func (u *ui) fork(string) tea.Cmd {
	p := protocol.SessionForkParams{Mutation: key(), SessionID: u.talk.session.ID}
	return func() tea.Msg {
		var r protocol.SessionNewResult
		if err := u.session.Call(u.ctx, "session/fork", p, &r); err != nil {
			return saidMsg(err.Error())
		}
		return switchMsg{r.SessionID, "You are now in a copy. /resume " + shortID(string(p.SessionID)) + " returns to the original.", false}
	}
}

// startNew switches to a new session in the same directory, with the same driver. The session that it leaves stays.
func startNew(u *ui, _ string) tea.Cmd {
	if !u.used && u.talk.session.TurnIndex == 0 {
		return say("This session is new.")
	}
	was := u.talk.session
	p := protocol.SessionNewParams{Mutation: key(), Cwd: was.Cwd, Driver: was.Config.Driver}
	return func() tea.Msg {
		var r protocol.SessionNewResult
		if err := u.session.Call(u.ctx, "session/new", p, &r); err != nil {
			return saidMsg(err.Error())
		}
		return switchMsg{r.SessionID, "This is a new session. /resume " + shortID(string(was.ID)) + " returns to the one before.", true}
	}
}

// resume switches to another session, which must exist. Without an id it opens the session picker.
func (u *ui) resume(id string) tea.Cmd {
	if id == "" {
		return openSessions(u, "")
	}
	return func() tea.Msg {
		whole, err := wholeSession(u, id)
		if err != nil {
			return saidMsg(err.Error())
		}
		return switchTo(u, whole)()
	}
}

// switchTo returns a command that switches to another session, which must exist.
func switchTo(u *ui, id protocol.SessionID) tea.Cmd {
	return func() tea.Msg {
		var r protocol.SessionReadResult
		if err := u.session.Call(u.ctx, "session/read", protocol.SessionReadParams{SessionID: id, Limit: 1}, &r); err != nil {
			return saidMsg(err.Error())
		}
		return switchMsg{r.Session.ID, "Continuing session " + shortID(string(r.Session.ID)), false}
	}
}

// wholeSession returns the id of the session that a text begins. It calls the daemon, so it must run in a command.
func wholeSession(u *ui, text string) (protocol.SessionID, error) {
	if len(text) >= wholeLength {
		return protocol.SessionID(text), nil
	}
	var ids []protocol.SessionID
	for p := (protocol.SessionListParams{Children: true, Limit: sessionPage}); ; {
		var r protocol.SessionListResult
		if err := u.session.Call(u.ctx, "session/list", p, &r); err != nil {
			return "", err
		}
		for i := range r.Data {
			ids = append(ids, r.Data[i].ID)
		}
		if p.Cursor = r.NextCursor; p.Cursor == "" {
			return theOne(text, "session", ids)
		}
	}
}
