// Package cli implements lash, the program for people: its subcommands and flags.
//
// Each subcommand is a struct whose fields are its flags (see github.com/alecthomas/kong), with a Run method and, for long help, a Help
// method. Commands talk to the daemon through a daemon.Link and start lashd if it is not running. Results go to stdout; everything else
// goes to stderr. Text of models, plugins and files is escaped before it reaches a terminal.
package cli

import (
	"context"
	"fmt"
	"os"
	_ "time/tzdata" // time zones for schedules, in case the system has none

	"github.com/alecthomas/kong"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
)

// program is the name of this program.
const program = "lash"

// description is the text above the list of commands in lash --help.
const description = `Run LLM agents that survive crashes and restarts.

To start:
  lash login                                Store the API key of a model provider.
  lash                                      Chat with an agent in this directory; the same as lash chat.
  lash -c                                   Continue the last chat in this directory.
  lash run 'what does this project do?'     Run one turn.
  lashd demo                                See lashd recover from a crash.

Commands start the daemon, lashd, if they need it. Only tail, status, stop, logs, doctor and config never start it.

Results go to stdout; progress, logs and errors go to stderr. Lists are tables; --json prints JSON instead. You can shorten the
id of a session, turn or task to any unique prefix. --verbose adds the causes of an error.

Exit codes:
  0  success
  1  failure
  2  wrong usage
  3  a tool call was denied
  4  cancelled
  5  no daemon
The help of backup lists further codes.

Environment:
  LASHD_HOME, XDG_DATA_HOME         data directory
  LASHD_SOCKET, XDG_RUNTIME_DIR     socket of the daemon
  LASHD_LOG                         log level
  ANTHROPIC_API_KEY, OPENAI_API_KEY, ...
                                    API keys of model providers, instead of lash login
  OPENAI_BASE_URL                   OpenAI-compatible model server, unless set in config.toml`

// commands are all commands, in the order of the help. Fields with cmd tags are
// commands; kong calls the Run method of the chosen one.
type commands struct {
	daemon.Globals
	Chat    chatCommand    `cmd:"" help:"Chat with an agent in the terminal."`
	Run     runCommand     `cmd:"" help:"Run one turn and print the answer."`
	Session sessionCommand `cmd:"" help:"List, find, show, copy and delete sessions; show and undo their file changes."`
	Task    taskCommand    `cmd:"" help:"List, follow, signal and cancel background tasks."`
	Trigger triggerCommand `cmd:"" help:"Manage triggers, which start work on a schedule, on file changes or on events."`
	Plugin  pluginCommand  `cmd:"" help:"Manage, write and test plugins."`
	MCP     mcpCommand     `cmd:"" name:"mcp" help:"Add, list and remove MCP servers, and log in to them."`
	Tool    toolCommand    `cmd:"" help:"List the tools of a session."`
	Code    codeCommand    `cmd:"" help:"Run code in a session, or open a shell into its variables."`
	Model   modelCommand   `cmd:"" help:"List and test models; set the default model."`
	Login   loginCommand   `cmd:"" help:"Store the API key of a model provider."`
	Logout  logoutCommand  `cmd:"" help:"Delete a stored API key."`
	Rules   rulesCommand   `cmd:"" name:"rules" help:"List, try, add and remove approval rules."`
	Audit   auditCommand   `cmd:"" help:"List what ran outside a sandbox, who allowed it, and what was refused."`
	Call    callCommand    `cmd:"" help:"Call a method of the daemon and print the result."`
	Tail    tailCommand    `cmd:"" help:"Follow the events of a session as JSON lines."`
	Config  configCommand  `cmd:"" help:"Check config.toml."`
	Status  statusCommand  `cmd:"" help:"Show whether lashd runs, and what it does."`
	Stop    stopCommand    `cmd:"" help:"Stop lashd; turns continue at its next start."`
	Logs    logsCommand    `cmd:"" help:"Print the daemon's log."`
	Backup  backupCommand  `cmd:"" help:"Copy the stored data while turns keep running."`
	Doctor  doctorCommand  `cmd:"" help:"Check the installation and say how to fix problems."`
	Service serviceCommand `cmd:"" help:"Start lashd at login; see whether it runs; remove the service."`
	Upgrade upgradeCommand `cmd:"" help:"Install the newest release of lash and lashd."`
	Version versionCommand `cmd:"" help:"Print the version."`

	Man        manCommand        `cmd:"" help:"Show the manual page of a command."`
	Completion completionCommand `cmd:"" help:"Print a shell completion script."`
	Complete   completeCommand   `cmd:"" hidden:""`
	Install    installCommand    `cmd:"" hidden:""`
}

// hints say what to do instead of commands that other programs have.
var hints = map[string]string{
	"start":   "there is no command start: commands start lashd when they need it; to start it at login, run: lash service install",
	"restart": "there is no command restart; stop lashd, and the next command starts it: lash stop",
	"ask":     "there is no command ask; for one answer, run: lash run 'your question'",
	"key":     "there is no command key; to store an API key, run: lash login",
	"auth":    "there is no command auth; to store an API key, run: lash login",
	"export":  "to write a session as Markdown or JSON, run: lash session export",
	"list":    "there is no command list; to list sessions, run: lash session",
	"ls":      "there is no command ls; to list sessions, run: lash session",
	"search":  "to find sessions by their words, run: lash session search",
	"undo":    "to restore the files to what they were before the last turn, run: lash session undo",
	"history": "to list the turns of a session, run: lash session turns",
	"resume":  "to continue the session that you last used, run: lash -c",
	"serve":   "serve is a command of the daemon, which commands of lash start when they need it; to run it yourself: lashd serve",
	"demo":    "demo is a command of the daemon: lashd demo",
	"acp":     "acp is a command of the daemon: lashd acp",
	"stdio":   "stdio is a command of the daemon: lashd stdio",
	"schema":  "schema is a command of the daemon: lashd schema",
	"check":   "to check the installation, run: lash doctor",
}

// Main runs a command and returns its exit code. args are the arguments without the program name. The first SIGINT or SIGTERM
// cancels the command, so that it can clean up; the second one ends the process at once.
func Main(args []string) int {
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	hears := console.Hear(ctx, end)
	var c commands
	args = withCommand(args)
	parsed, err := console.Parser(ctx, program, description, &c).Parse(console.Spelled(args))
	if err != nil {
		return console.Report(program, console.UsageError(program, err, hints))
	}
	e, err := c.Globals.Environment(program)
	if err == nil {
		e.Hears = hears
		err = parsed.Run(e)
	}
	if err == nil {
		err = console.Stdout.Failed()
	}
	return console.Report(program, err, c.Detail(e, err)...)
}

// Model returns the declarations of all commands, for manual pages.
func Model() *kong.Application {
	return console.Parser(context.Background(), program, description, &commands{}).Model
}

// withCommand adds the command to a command line that has none. An empty one is a chat on a terminal, else the help. A command line that
// begins with -c continues a chat.
func withCommand(args []string) []string {
	switch {
	case len(args) > 0 && (args[0] == "-c" || args[0] == "--continue"):
		return append([]string{"chat"}, args...)
	case len(args) > 0:
		return args
	}
	if console.Terminal(os.Stdin) && console.Terminal(os.Stdout) {
		return []string{"chat"}
	}
	return []string{"--help"}
}

// versionCommand implements lash version. It needs no daemon; the version of a
// running daemon is in lash doctor.
type versionCommand struct{}

// Run prints "lash" and the version. It does not use the log or the data directory.
func (versionCommand) Run() error {
	fmt.Fprintln(console.Stdout, program, daemon.Version)
	return nil
}
