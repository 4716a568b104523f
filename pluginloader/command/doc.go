// Package command implements the parts of a plugin that are commands: tools with an argv template,
// and hooks that read and write JSON in the formats of other agents. Each call starts a command.
// When the call ends, the command and all its child processes have ended. The loader creates a Part
// and registers its Spec. All types are safe for concurrent use.
//
// # Tools
//
// A tool's command is a list of elements with {name} placeholders (template.go). Each element stays
// one argument, whatever the values contain, so values cannot inject options or shell code. A value
// that starts with "-" is rejected unless the parameter allows it.
//
// # Hooks
//
// A hook command gets an event as JSON on stdin (input.go). Its answer is the exit code and stdout
// (reply.go):
//
//   - Exit code 0: stdout decides. It is a JSON object with a decision, or plain text.
//   - Exit code 2: the event is blocked, and stderr has the reason.
//   - Any other end is a failure. OnError of the hook says what follows.
//
// All hooks of an event run at the same time (ask.go). The strongest decision wins (verdict.go), in
// the order halt, deny, ask, allow.
//
// Hooks were written for other agents, whose tools have other names and arguments. toolMappings lists
// how each of lashd's tools appears to those agents (foreign.go, special.go). A hook sees a call in
// the first format that its matcher accepts. If the hook changes the arguments, they are converted
// back to lashd's format (words.go).
package command
