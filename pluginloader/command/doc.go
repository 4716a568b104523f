// Package command makes parts of a plugin of commands: tools that are argv templates, and hooks that read JSON and answer
// with JSON, in the words of other agents. A command is started for each call, ends with it, and takes all that it started
// with it; nothing of it is left between calls.
//
// The loader makes a Part and registers what Spec gives. All of it may be used by several goroutines at once.
package command
