package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/internal/mcpinput"
	"lashd/rpc/protocol"
)

// runCommand implements lash run. It is a client like any other: the turn runs in
// the daemon and survives this process.
type runCommand struct {
	Prompt  []string `arg:"" optional:"" help:"Task for the agent. Without one, or with - as its last word, lash reads stdin."`
	Session string   `help:"Session to continue, instead of a new one." placeholder:"ID"`
	Last    bool     `name:"continue" short:"c" help:"Continue the session that you last used in the directory, instead of a new one."`
	Model   string   `help:"Model to use; lash model lists the names. With --session, later turns use it too." placeholder:"NAME"`
	Effort  string   `help:"Reasoning effort; the model must support it. With --session, later turns use it too." placeholder:"NAME"`
	Driver  string   `help:"How the new session drives the model: standard, which calls tools natively, or rlm, which writes code cells." placeholder:"NAME"`
	Attach  []string `help:"Image, PDF document or text file to send with the prompt. Repeat the flag for more files." aliases:"image" placeholder:"FILE" sep:"none"`
	Schema  string   `name:"output-schema" help:"File with a JSON Schema. The answer is a JSON value that matches it." placeholder:"FILE"`
	Turns   uint     `name:"max-turns" help:"Maximum number of model calls; then the turn fails. It does not raise the limit of the session." placeholder:"N"`
	Cwd     string   `help:"Workspace of the new session (default the current directory)." placeholder:"DIR"`
	Sandbox string   `help:"Sandbox of the commands in the new session: readOnly or workspace, which need no questions, or fullAccess for none (default: config.toml)." enum:",readOnly,workspace,fullAccess" default:"" placeholder:"MODE"`
	Allow   bool     `help:"Allow every tool call that needs approval."`
	JSON    bool     `help:"Print one JSON object at the end of the turn instead of the answer." xor:"json"`
	Stream  bool     `name:"stream-json" help:"Print the events of the turn as JSON lines instead of the answer." xor:"json"`
}

// Help is shown by --help.
func (runCommand) Help() string {
	return `The prompt is the words of the command line. Without words, lash reads it from stdin; if the last word is -, stdin follows the words.

Streams the answer to stdout. Tool calls, retries and questions go to stderr. Control characters are escaped; --json and
--stream-json have the exact text.

Commands run in the sandbox, and files of the workspace change, without a question; --sandbox readOnly asks before each change. If
neither the sandbox nor a rule allows a tool call, lash run asks you on the terminal. "Always allow" covers later calls with the same arguments in this
workspace; for write and edit, later calls for the same file. Without a terminal, the call is denied. Approvals that subagents
request work the same way.

With --output-schema, stdout gets only the value, on one line, at the end of the turn. A reply that does not match the schema is shown on
stderr as a notice, and the model is asked again, at most twice. If no reply matches, the turn fails.

With --json, stdout gets one object with the answer, the outcome, the token usage and the cost, also if the turn failed. If no turn
was started, stdout stays empty.

@SERVER:URI in the prompt sends a resource of an MCP server with it.

Ctrl-C stops the turn; press it again to exit at once. If the daemon dies, lashd restarts it and the turn continues.

Exit codes: 0 success, 1 the turn failed or has no value of the schema, 2 wrong usage, 3 a tool call was denied, 4 cancelled, 5 no daemon.

Examples:
  lash run 'what does this project do?'
  git diff | lash run 'review this change' -
  git diff | lash run --json | jq -r .answer
  lash run --image screenshot.png 'what is wrong here?'
  lash run --output-schema city.json 'what is the capital of Switzerland?'`
}

// errNoPrompt is the error for a command line without a prompt on a terminal.
var errNoPrompt = console.Exit(console.ExitUsage, errors.New("there is no prompt; give one: lash run 'what does this project do?'"))

// readPrompt returns the words of the command line, stdin, or the words and then stdin.
func (c runCommand) readPrompt() (string, error) {
	words, last := c.Prompt, len(c.Prompt)-1
	switch {
	case last < 0 && console.Terminal(os.Stdin):
		return "", errNoPrompt
	case last >= 0 && words[last] != "-":
		return strings.Join(words, " "), nil
	case last >= 0:
		words = words[:last]
	}
	text, err := io.ReadAll(os.Stdin)
	if len(words) == 0 || err != nil {
		return string(text), err
	}
	return strings.Join(words, " ") + "\n\n" + string(text), nil
}

// Run runs one turn and returns an error whose exit code tells scripts how it
// ended. A denied call makes the command fail even if the turn finished, because
// the agent may have given up part of the task.
func (c runCommand) Run(ctx context.Context, e *daemon.Environment) error {
	if c.Session != "" && c.Last {
		return console.Exit(console.ExitUsage, errors.New("--continue cannot be combined with --session: both choose the session"))
	}
	if c.Last && c.Driver != "" {
		return console.Exit(console.ExitUsage, errors.New("--driver cannot be combined with --continue: a session keeps its driver"))
	}
	if c.Session != "" && c.Cwd != "" {
		return console.Exit(console.ExitUsage, errors.New("--cwd cannot be combined with --session: a session keeps its directory"))
	}
	if c.Session != "" && c.Driver != "" {
		return console.Exit(console.ExitUsage, errors.New("--driver cannot be combined with --session: a session keeps its driver"))
	}
	prompt, err := c.readPrompt()
	if err != nil {
		return err
	}
	if err := checkPrompt(prompt); err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	files, err := readAttachments(c.Attach)
	if err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	schema, err := readSchema(c.Schema)
	if err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	if c.Last {
		if c.Session, err = c.continued(ctx, e); err != nil {
			return err
		}
	}
	f := &follower{env: e, start: true, named: c.Session}
	if !c.Stream {
		f.plugins = newPluginWatch()
	}
	t := &turnRun{follower: f, command: c, prompt: prompt, files: files, schema: schema, key: string(protocol.NewInputID()), view: newView(c.Stream), asker: newAsker()}
	t.view.silent = c.JSON || schema != nil
	report, err := t.run(ctx)
	if err != nil {
		return err
	}
	return t.finish(ctx, report)
}

// continued returns the session that was used last in the directory.
func (c runCommand) continued(ctx context.Context, e *daemon.Environment) (string, error) {
	cwd, err := filepath.Abs(c.Cwd)
	if err != nil {
		return "", err
	}
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return "", err
	}
	defer l.Close()
	id, err := lastSession(caller(ctx, l), cwd)
	if err == nil && id == "" {
		err = console.Exit(console.ExitUsage, fmt.Errorf("there is no session of %s yet; omit --continue", cwd))
	}
	return string(id), err
}

// checkPrompt rejects an empty or oversized prompt, before a session is created
// for it.
func checkPrompt(prompt string) error {
	switch {
	case strings.TrimSpace(prompt) == "":
		return errors.New("the prompt is empty")
	case len(prompt) > protocol.MaxInput:
		return fmt.Errorf("the prompt has %d bytes, the limit is %d; put the text in a file and name the file in the prompt", len(prompt), protocol.MaxInput)
	}
	return nil
}

// turnRun runs one turn from its input to its end, across restarts of the daemon.
// It belongs to one goroutine. After each lost connection, once starts over with
// what the fields remember: the session, the turn, and the last event that was
// shown. Requests that were sent but not answered are repeated with the same key.
type turnRun struct {
	*follower
	command runCommand
	prompt  string
	files   []*protocol.Attachment
	schema  json.RawMessage // of the value; nil: the answer is text
	key     string          // idempotency key: repeated requests start one turn
	turn    protocol.TurnID // "" until the daemon has accepted the input
	view    *view
	asker   *asker
	about   protocol.Session // the session when it was attached
	stopped bool             // the user has interrupted the turn
	over    bool             // the end of the turn has been shown
	refused refusedCalls
	ran     protocol.CallID // a repeated call whose turn has not begun; "" if there is none

	resources []protocol.ResourceMention // of MCP servers, which the prompt mentions; nil until they were found
}

// maxLosses is the number of lost connections after which lash run gives up. The
// turn goes on in the daemon.
const maxLosses = 5

// run runs the turn and returns its report. It reconnects after lost connections,
// which also restarts the daemon.
func (t *turnRun) run(ctx context.Context) (*protocol.TurnReport, error) {
	defer t.view.endLine()
	for losses := 0; ; losses++ {
		report, err := t.once(ctx)
		if !errors.Is(err, daemon.ErrGone) || losses == maxLosses {
			return report, err
		}
		t.view.note("connection to the daemon lost; restarting the daemon, the turn continues")
	}
}

// once connects and does the remaining work, until the turn or the connection
// ends. After a reconnect it first asks the open decisions again and shows the
// unfinished items.
func (t *turnRun) once(ctx context.Context) (*protocol.TurnReport, error) {
	attached, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	defer t.link.Close()
	t.about = attached.Session
	t.plugins.begin(ctx, attached.Session.Cwd, t.call)
	if line := t.plugins.untrusted(); line != "" {
		t.view.note("[" + line + "]")
	}
	if t.turn == "" {
		if err := t.begin(ctx, attached.Session.State); err != nil {
			return nil, err
		}
	}
	t.asker.open = nil
	for _, d := range attached.Decisions {
		if t.asker.person || !t.below(&d) { // other clients answer earlier questions of subagents
			t.asker.opened(ctx, t, &d)
		}
	}
	for _, item := range attached.OpenItems {
		if item.TurnID == t.turn {
			t.view.started(&item)
		}
	}
	report, err := t.follow(ctx, attached.Gap != nil)
	for err == nil && report.State.Terminal() {
		var again bool
		if again, err = t.repeated(ctx); !again {
			break
		}
		report, err = t.follow(ctx, false)
	}
	return report, err
}

// follow shows events until the turn ends. If the end was shown before, or may be
// in a gap, no event will report it, so follow asks the daemon. The first
// cancellation of ctx interrupts the turn; follow then waits for its end.
func (t *turnRun) follow(ctx context.Context, gap bool) (*protocol.TurnReport, error) {
	if gap || t.over {
		if report, err := t.read(ctx); err != nil || report.State.Terminal() {
			return report, err
		}
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	interrupted := ctx.Done()
	for {
		select {
		case <-t.news.More():
			if t.show(ctx) {
				return t.read(ctx)
			}
		case <-t.plugins.more():
			t.showPlugins()
		case <-t.link.Gone():
			t.show(ctx)
			return nil, daemon.ErrGone
		case <-interrupted:
			interrupted = nil
			if err := t.interrupt(ctx); err != nil {
				return nil, err
			}
		case line, more := <-t.asker.lines:
			t.asker.entered(ctx, t, line, more)
		case <-tick.C:
			t.view.tick()
		}
	}
}

// show shows the new events of the turn, and decisions of subagents. It reports
// whether the turn has ended. If another turn continues it, that one becomes the
// turn to follow.
func (t *turnRun) show(ctx context.Context) bool {
	for _, raw := range t.news.Take() {
		var ev protocol.Event
		if json.Unmarshal(raw, &ev) != nil || !t.fresh(ev) {
			continue
		}
		t.follows(&ev)
		if ev.TurnID != t.turn && !t.below(ev.Decision) {
			continue
		}
		t.view.event(raw, ev)
		switch ev.Type {
		case protocol.EventItemCompleted:
			t.refused.item(ev.Item)
		case protocol.EventTaskCompleted:
			t.refused.task(ev.Task)
		case protocol.EventDecisionOpened:
			t.asker.opened(ctx, t, ev.Decision)
		case protocol.EventDecisionResolved:
			t.asker.resolved(ctx, t, ev.Decision)
		case protocol.EventTurnCompleted:
			if t.over = ev.Follower == ""; !t.over {
				t.turn = ev.Follower
			}
		}
	}
	return t.over
}

// showPlugins notes plugins that stopped working or work again.
func (t *turnRun) showPlugins() {
	for _, line := range t.plugins.lines() {
		t.view.note("[" + line + "]")
	}
}

// below reports whether a decision belongs to a subagent of this session.
func (t *turnRun) below(d *protocol.Decision) bool { return d != nil && d.SessionID != t.session }

// open connects and attaches to the session. It creates the session first if there
// is none. After an error the connection is closed.
func (t *turnRun) open(ctx context.Context) (*protocol.SessionAttachResult, error) {
	if err := t.connect(ctx); err != nil {
		return nil, err
	}
	if t.session == "" {
		if err := t.newSession(ctx); err != nil {
			return nil, errors.Join(err, t.link.Close())
		}
	}
	attached, err := t.attach(ctx)
	if err != nil {
		return nil, errors.Join(err, t.link.Close())
	}
	return attached, nil
}

// runFlags are the flags of run by the parameters that they set.
var runFlags = map[string]string{"/effort": "--effort", "/model": "--model", "/driver": "--driver", "/cwd": "--cwd"}

// newSession creates the session. The title is the beginning of the prompt. Calls
// of unknown outcome are left to the model at once, because there may be no person
// to ask.
func (t *turnRun) newSession(ctx context.Context) error {
	cwd, err := os.Getwd()
	if t.command.Cwd != "" {
		cwd, err = filepath.Abs(t.command.Cwd)
	}
	if err != nil {
		return err
	}
	p := protocol.SessionNewParams{
		Mutation: protocol.Mutation{IdempotencyKey: t.key + "-session"}, Cwd: cwd, Driver: t.command.Driver, Model: t.command.Model, Effort: effortParam(t.command.Effort),
		Title: console.OneLine(t.prompt, 60), Unknown: &protocol.UnknownOutcomeRule{DeadlineMs: new(int64)},
	}
	p.Approval = approvalParam(t.command.Sandbox, t.command.Allow)
	var r protocol.SessionNewResult
	if err := t.call(ctx, "session/new", p, &r); err != nil {
		return noModel(ctx, t.env, console.ForFlags(err, runFlags), t.command.Model)
	}
	t.session, t.seen = r.SessionID, r.Seq
	t.view.session(r.SessionID)
	return nil
}

// slash returns the slash command of a plugin with which the input begins; nil if there is none.
func (t *turnRun) slash(ctx context.Context) (*protocol.CommandCall, error) {
	line, ok := strings.CutPrefix(t.prompt, "/")
	if !ok {
		return nil, nil
	}
	name, rest, _ := strings.Cut(line, " ")
	var r protocol.CommandListResult
	err := t.call(ctx, "command/list", protocol.SessionParams{SessionID: t.session}, &r)
	if err != nil || !slices.ContainsFunc(r.Data, func(c protocol.CommandInfo) bool { return c.Name == name }) {
		return nil, err
	}
	return &protocol.CommandCall{Name: name, Arguments: strings.TrimSpace(rest)}, nil
}

// mention finds the resources of MCP servers that the prompt mentions. Repetitions send the same ones, since the daemon compares requests.
func (t *turnRun) mention(ctx context.Context) error {
	if t.resources != nil || !mcpinput.Mentions(t.prompt) {
		return nil
	}
	var known protocol.MCPResourcesResult
	err := t.call(ctx, "mcp/resources", protocol.MCPResourcesParams{SessionID: t.session}, &known)
	t.resources = mcpinput.Resources(t.prompt, &known)
	return err
}

// approvalParam returns the approval settings of a new session; nil for those of config.toml.
func approvalParam(sandbox string, allow bool) *protocol.ApprovalConfig {
	if sandbox == "" && !allow {
		return nil
	}
	a := &protocol.ApprovalConfig{Sandbox: protocol.SandboxMode(sandbox)}
	if allow {
		a.Mode = protocol.ApproveAllow
	}
	return a
}

// effortParam returns the parameter for --effort; nil if the command names none.
func effortParam(name string) *string {
	if name == "" {
		return nil
	}
	return &name
}

// begin sends the input. before is the state of the session, which says what a
// queued turn waits for. With --session it first changes the model and the effort
// that the command names.
func (t *turnRun) begin(ctx context.Context, before protocol.SessionState) error {
	if t.command.Session != "" && t.command.Model+t.command.Effort != "" {
		p := protocol.SessionConfigureParams{SessionID: t.session, Model: t.command.Model, Effort: effortParam(t.command.Effort)}
		if err := t.call(ctx, "session/configure", p, nil); err != nil {
			return console.ForFlags(err, runFlags)
		}
	}
	input, err := t.input(ctx)
	if err != nil {
		return err
	}
	command, err := t.slash(ctx)
	if err != nil {
		return err
	}
	if err := t.mention(ctx); err != nil {
		return err
	}
	var r protocol.TurnStartResult
	err = t.call(ctx, "turn/start", protocol.TurnStartParams{
		Mutation: protocol.Mutation{IdempotencyKey: t.key}, SessionID: t.session, Command: command, Resources: t.resources,
		Input: input, Schema: t.schema, Iterations: int(t.command.Turns),
	}, &r)
	t.turn = r.TurnID
	if err == nil && r.State == protocol.TurnQueued {
		t.view.queued(before)
	}
	if wire, data := console.WireError(err); data != nil && strings.HasPrefix(data.Pointer, "/pluginInputs/") {
		return errors.New(wire.Message + ": a plugin needs this input with each turn; use lash call turn/run to send it")
	}
	return err
}

// interrupt asks the daemon to stop the turn. The request is durable, so it is sent once.
func (t *turnRun) interrupt(ctx context.Context) error {
	if t.stopped {
		return nil
	}
	t.stopped = true
	t.view.note("stopping the turn; press Ctrl-C again to exit at once")
	return t.call(ctx, "turn/interrupt", protocol.TurnInterruptParams{TurnID: t.turn, Reason: "Ctrl-C"}, nil)
}

// read returns the report of the turn or, if other frames continue it, of the last
// turn in that chain. The turn may still be running.
func (t *turnRun) read(ctx context.Context) (*protocol.TurnReport, error) {
	for {
		var report protocol.TurnReport
		err := t.call(ctx, "turn/read", protocol.TurnParams{TurnID: t.turn}, &report)
		if err != nil || report.FollowedBy == "" {
			return &report, err
		}
		t.turn = report.FollowedBy
	}
}
