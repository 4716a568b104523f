// Package command implements the parts of a plugin that are commands: tools that are argv templates, and hooks that read and write
// JSON in the formats of other agents. Each call starts a command. When the call ends, the command and all its child processes
// have ended.
//
// The loader creates a Part and registers its Spec. All types are safe for concurrent use.
package command
