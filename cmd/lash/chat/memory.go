package chat

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/screen"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// memoryUsage says how to use /memory.
const memoryUsage = "usage: /memory, /memory N to open a file of the list, /memory user to open your own, /memory add TEXT"

// memory lists the files of instructions of the session, opens one in the editor, or adds a line to the user's own.
func memory(u *ui, rest string) tea.Cmd {
	word, rest, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(word)
	switch {
	case word == "":
		return withMemory(u, func(r *protocol.InstructionListResult) tea.Msg {
			return textMsg(each(faint, termtext.Printable(memoryList(r))))
		})
	case word == "user":
		return withMemory(u, func(r *protocol.InstructionListResult) tea.Msg { return fileMsg(r.UserFile) })
	case word == "add" && strings.TrimSpace(rest) != "":
		return withMemory(u, func(r *protocol.InstructionListResult) tea.Msg { return addMemory(r.UserFile, strings.TrimSpace(rest)) })
	case err == nil && n > 0:
		return withMemory(u, func(r *protocol.InstructionListResult) tea.Msg {
			if n > len(r.Data) {
				return saidMsg(fmt.Sprintf("There are only %d files of instructions. /memory lists them.", len(r.Data)))
			}
			return fileMsg(r.Data[n-1].Path)
		})
	}
	return say("%s", memoryUsage)
}

// withMemory returns a command that asks for the list and calls do with it.
func withMemory(u *ui, do func(*protocol.InstructionListResult) tea.Msg) tea.Cmd {
	id := u.talk.session.ID
	return func() tea.Msg {
		var r protocol.InstructionListResult
		if err := u.session.Call(u.ctx, "instruction/list", protocol.SessionParams{SessionID: id}, &r); err != nil {
			return saidMsg(err.Error())
		}
		return do(&r)
	}
}

// memoryList renders the list, a line for each file.
func memoryList(r *protocol.InstructionListResult) string {
	if len(r.Data) == 0 {
		return "There are no instructions for this session.\n/init writes an AGENTS.md; /memory user opens your own " + r.UserFile + "."
	}
	lines := []string{"Instructions that the model gets:"}
	for i, f := range r.Data {
		lines = append(lines, fmt.Sprintf("%3d  %s  %s, %s", i+1, f.Name, f.Origin, memoryRow(f)))
	}
	return strings.Join(append(lines, "/memory N opens a file, /memory add TEXT adds a line to yours: "+r.UserFile), "\n")
}

// memoryRow says how much of a file the model gets and when, or why it does not get it.
func memoryRow(f protocol.InstructionFile) string {
	switch {
	case f.Use == protocol.InstructionSkipped && f.ImportedBy != "":
		return "not imported by " + f.ImportedBy + ": " + f.Problem
	case f.Use == protocol.InstructionSkipped:
		return "not read: " + f.Problem
	}
	return memorySize(f) + memoryUse(f)
}

// memorySize returns the size of a file, and how much of it the model gets if that is less.
func memorySize(f protocol.InstructionFile) string {
	if f.Shown > 0 && f.Shown < f.Bytes && f.Patterns == nil && f.Description == "" {
		return fmt.Sprintf("%d of %d bytes", f.Shown, f.Bytes)
	}
	return fmt.Sprintf("%d bytes", f.Bytes)
}

// memoryUse says when the model gets a file, if that is not in each turn.
func memoryUse(f protocol.InstructionFile) string {
	use := map[protocol.InstructionUse]string{
		protocol.InstructionAdded:   ", in the conversation",
		protocol.InstructionMatches: ", for " + strings.Join(f.Patterns, ", "),
		protocol.InstructionListed:  ", if it needs it",
	}[f.Use]
	if f.ImportedBy != "" {
		use += ", imported by " + f.ImportedBy
	}
	return use
}

// fileMsg asks the event loop to open a file in the editor.
type fileMsg string

// use opens the file. The editor writes it itself.
func (path fileMsg) use(u *ui) tea.Cmd {
	words := editorCommand()
	if len(words) == 0 {
		return say("No editor is set up. Set EDITOR, for example to vim, and start the chat again. The file is %s", path)
	}
	cmd := exec.CommandContext(u.ctx, words[0], append(words[1:], string(path))...)
	return screen.Exec(cmd, func(err error) tea.Msg {
		if err != nil {
			return saidMsg(fmt.Sprintf("The editor failed: %v", err))
		}
		return saidMsg("The model gets what " + string(path) + " says now from the next turn on.")
	})
}

// addMemory adds a line to the user's own instructions.
func addMemory(path, text string) tea.Msg {
	if err := appendLine(path, "- "+text); err != nil {
		return saidMsg("Nothing was added: " + err.Error())
	}
	return saidMsg("Added to " + path + ". The model gets it from the next turn on.")
}

// appendLine adds a line to a file, which it makes if there is none.
func appendLine(path, line string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if len(old) > 0 && !strings.HasSuffix(string(old), "\n") {
		line = "\n" + line
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}
