// Package emulator runs programs in real terminal emulators, for tests: tmux, and
// xterm.js, which VS Code and others contain. A test types, resizes the terminal
// and compares what a person would see.
package emulator
